// Recorded stores: what `tests/editors/nvim/record.py` wrote. Both editors' plugins are held against them.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import type { Approval, Draft, Event, QueuedPrompt, Session, Turn } from "@callboard/protocol";

import { apply, newTranscript, type Transcript } from "../../src/model/reducer";

// Units are run from the folder of the extension.
const folder = join(process.cwd(), "../nvim/tests/fixtures");

export interface SaidOfSession {
  session: Session;
  draft?: Draft;
  queue: QueuedPrompt[];
  turns: Turn[];
}

/** Names of all recordings. */
export function names(): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".jsonl"))
    .map((name) => name.slice(0, -".jsonl".length))
    .sort();
}

/** The events of a recording, in their order: of one session, or of all. */
export function events(name: string, sessionId?: string): Event[] {
  return readFileSync(join(folder, `${name}.jsonl`), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Event)
    .filter((event) => sessionId === undefined || event.sessionId === sessionId);
}

/** What the server said at the recording's end. */
export function said(name: string): { sessions: SaidOfSession[]; approvals: Approval[] } {
  return JSON.parse(readFileSync(join(folder, `${name}.said.json`), "utf8")) as {
    sessions: SaidOfSession[];
    approvals: Approval[];
  };
}

/** The session that a recording began with. */
export function root(name: string): string {
  const [first] = said(name).sessions;
  if (!first) {
    throw new Error(`${name} has no session`);
  }
  return first.session.sessionId;
}

/** A transcript of all events of a session, of the first one unless told. */
export function transcript(name: string, sessionId = root(name)): Transcript {
  const t = newTranscript(sessionId);
  for (const event of events(name, sessionId)) {
    apply(t, event);
  }
  return t;
}

/** Without what is absent: a field that is undefined is the same as none. */
export function plain(value: unknown): unknown {
  if (value instanceof Map) {
    return new Map([...(value as Map<unknown, unknown>)].map(([key, each]) => [key, plain(each)]));
  } else if (value instanceof Set) {
    return new Set([...(value as Set<unknown>)].sort());
  } else if (Array.isArray(value)) {
    return value.map(plain);
  } else if (typeof value === "object" && value !== null) {
    return Object.fromEntries(
      Object.entries(value)
        .filter(([, each]) => each !== undefined)
        .map(([key, each]) => [key, plain(each)]),
    );
  }
  return value;
}

/** Chance that is the same each time. */
export function chance(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}
