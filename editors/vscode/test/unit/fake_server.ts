/** An app on a server that is a function: what it is asked, it answers at once; what it says, a test says. */
import type { EventEnvelope, Event, Session } from "@callboard/protocol";
import { App } from "../../src/app";
import type { Log } from "../../src/log";
import type { ClientHandlers } from "../../src/server/connection";
import { CallError } from "../../src/server/errors";

export const quiet: Log = {
  trace: () => undefined,
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

export interface Asked {
  method: string;
  params: Record<string, unknown>;
}

type Answer = (params: Record<string, unknown>) => unknown;

/** Timers that a test lets run out. */
export class Clock {
  now = 0;
  #due: { at: number; fn: () => void }[] = [];

  later = (ms: number, fn: () => void): (() => void) => {
    const entry = { at: this.now + ms, fn };
    this.#due.push(entry);
    return () => {
      this.#due = this.#due.filter((other) => other !== entry);
    };
  };

  get waiting(): number {
    return this.#due.length;
  }

  pass(ms: number): void {
    this.now += ms;
    const due = this.#due.filter(({ at }) => at <= this.now);
    this.#due = this.#due.filter(({ at }) => at > this.now);
    for (const { fn } of due) {
      fn();
    }
  }
}

export class FakeServer {
  readonly app: App;
  readonly asked: Asked[] = [];
  readonly clock = new Clock();
  readonly answers: Record<string, Answer> = {};
  readonly subscriptions = new Map<string, { kind: string; id?: string }>();
  #handlers: ClientHandlers | undefined;
  #number = 0;
  starts = 0;

  constructor(trusted = true) {
    this.answers["initialize"] = () => ({
      capabilities: {
        experimental: {
          callboard: {
            protocolVersion: "1.0",
            storeId: "store",
            hostId: "host",
            serverInfo: { name: "callboard", version: "0" },
            features: { agents: true, groups: true },
            limits: {},
            head: "0",
          },
        },
      },
    });
    this.answers["event/subscribe"] = (params) => {
      this.#number += 1;
      const subscriptionId = `sub${this.#number}`;
      this.subscriptions.set(subscriptionId, params["scope"] as { kind: string; id?: string });
      return { subscriptionId, cursor: "0" };
    };
    this.answers["event/unsubscribe"] = ({ subscriptionId }) => {
      this.subscriptions.delete(subscriptionId as string);
      return {};
    };
    this.answers["session/list"] = () => ({ data: [], nextCursor: null });
    this.answers["approval/list"] = () => ({ data: [], nextCursor: null });
    this.app = new App({
      log: quiet,
      clientId: "test",
      trusted: () => trusted,
      buffers: () => Promise.reject(new CallError(0, "none")),
      server: {
        locate: () => Promise.resolve({ found: { cmd: ["fake"], how: "by a test" } }),
        start: (_found, handlers) => {
          this.starts += 1;
          this.#handlers = handlers;
          return {
            pid: 1,
            alive: () => this.#handlers === handlers,
            request: (method, params, answered) => {
              const given = params as Record<string, unknown>;
              this.asked.push({ method, params: given });
              queueMicrotask(() => {
                if (this.#handlers !== handlers) {
                  return;
                }
                handlers.heard();
                const answer = this.answers[method];
                if (!answer) {
                  answered(
                    new CallError(-32601, `no ${method}`, { kind: "methodNotFound" }),
                    undefined,
                  );
                  return;
                }
                try {
                  const result = answer(given);
                  if (result !== HANGS) {
                    answered(undefined, result);
                  }
                } catch (fault) {
                  answered(fault as CallError, undefined);
                }
              });
              return () => undefined;
            },
            notify: (method, params) => {
              this.asked.push({ method, params: params as Record<string, unknown> });
            },
            kill: () => {
              this.die();
            },
            stop: () => {
              this.die();
            },
            leave: () => Promise.resolve(),
          };
        },
        initialize: () => ({}),
        folders: () => ["/project"],
        now: () => this.clock.now,
        later: this.clock.later,
      },
    });
  }

  /** The process ends. */
  die(): void {
    const handlers = this.#handlers;
    this.#handlers = undefined;
    this.subscriptions.clear();
    handlers?.exit({ code: null, signal: "SIGKILL", stderr: ["it was killed"] });
  }

  say(method: string, params: Record<string, unknown>): void {
    this.#handlers?.notification(method, params);
  }

  /** Tells events to whoever follows them. */
  tell(kind: string, events: readonly object[], id?: string): void {
    for (const [subscriptionId, scope] of this.subscriptions) {
      if (scope.kind === kind && (id === undefined || scope.id === id)) {
        this.say("event/batch", { subscriptionId, cursor: `c${events.length}`, events });
      }
    }
  }

  delta(sessionId: string, piece: Record<string, unknown>): void {
    for (const [subscriptionId, scope] of this.subscriptions) {
      if (scope.kind === "session" && scope.id === sessionId) {
        this.say("event/delta", { subscriptionId, sessionId, ...piece });
      }
    }
  }

  times(method: string): number {
    return this.asked.filter((each) => each.method === method).length;
  }
}

/** An answer that never comes. */
export const HANGS = Symbol("hangs");

/** Lets what was promised happen. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) {
    await Promise.resolve();
  }
}

export function sessionOf(sessionId: string, more: Partial<Session> = {}): Session {
  return {
    sessionId,
    rootId: sessionId,
    cwd: "/project",
    profile: "default",
    mode: "work",
    status: "idle",
    createdAt: "2000-01-01T00:00:00Z",
    updatedAt: "2000-01-01T00:00:00Z",
    headSeq: 0,
    queueLength: 0,
    pendingApprovals: 0,
    title: "A session",
    ...more,
  };
}

export function eventOf(
  sessionId: string,
  seq: number,
  type: string,
  data: object,
  more: Partial<EventEnvelope> = {},
): Event {
  return {
    pos: seq,
    sessionId,
    seq,
    eventId: `${sessionId}-${seq}`,
    type,
    at: "2000-01-01T00:00:00Z",
    actor: { kind: "client", id: "someone" },
    data,
    ...more,
  };
}
