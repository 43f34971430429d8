// What views know of an app, with answers in the place of a server.
import type { App } from "../../src/app";
import { newApprovals } from "../../src/model/approvals";
import { newSessions, putSession } from "../../src/model/store";
import type { Follow } from "../../src/server/feed";

export interface FakeApp {
  /** What it is to those that it is given to. */
  app: App;
  /** What was asked, in order. */
  asked: { method: string; params: Record<string, unknown> }[];
  /** By method: an answer, or what makes one. */
  answers: Record<string, unknown>;
  /** Who follows what. */
  following: Follow[];
  server: { state: string; silent: boolean; failure?: { message: string } };
  features: Set<string>;
  tell(topic: string): void;
  count(method: string): number;
}

export function fakeApp(): FakeApp {
  const listeners = new Map<string, Set<() => void>>();
  const sessions = newSessions();
  const fake: FakeApp = {
    app: undefined as unknown as App,
    asked: [],
    answers: {},
    following: [],
    server: { state: "ready", silent: false },
    features: new Set(["agents", "groups"]),
    tell: (topic) => {
      for (const listener of listeners.get(topic) ?? []) {
        listener();
      }
    },
    count: (method) => fake.asked.filter((each) => each.method === method).length,
  };
  const ask = (method: string, params: Record<string, unknown>): Promise<unknown> => {
    fake.asked.push({ method, params });
    const answer = fake.answers[method];
    return Promise.resolve().then(() =>
      typeof answer === "function" ? (answer as (p: unknown) => unknown)(params) : answer,
    );
  };
  const app = {
    trusted: true,
    focused: undefined as string | undefined,
    log: { error: () => undefined, warn: () => undefined },
    sessions,
    approvals: newApprovals(),
    server: fake.server,
    feature: (name: string) => fake.features.has(name),
    request: ask,
    change: ask,
    putSession: (session: Parameters<typeof putSession>[1]) => {
      putSession(sessions, session);
    },
    feed: {
      follow: (wanted: Follow) => {
        fake.following.push(wanted);
        return () => {
          fake.following = fake.following.filter((each) => each !== wanted);
        };
      },
    },
    on: (topic: string, listener: () => void) => {
      const all = listeners.get(topic) ?? new Set();
      listeners.set(topic, all.add(listener));
      return () => all.delete(listener);
    },
  };
  fake.app = app as unknown as App;
  return fake;
}

/** Lets all that is settled go on. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) {
    await Promise.resolve();
  }
}
