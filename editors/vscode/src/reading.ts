/** The log of a session, page by page: the newest first, and those before it as they are wanted. */
import type { Event, Session } from "@callboard/protocol";
import type { App } from "./app";
import type { Change, Transcript } from "./model/items";
import { newTranscript } from "./model/items";
import { earlierPlan, hasPlan, older as putOlder, seed } from "./model/reducer";
import type { OpenSession } from "./session";

/** Events of a page. */
const PAGE = 200;

export interface Newest {
  transcript: Transcript;
  /** From where it is followed. */
  cursor: string;
  /** The cursor before its first event, if there are others before it. */
  oldest: string | undefined;
  /** The plan may have been made before the page. */
  plan: Promise<Change | undefined> | undefined;
}

export interface Older {
  oldest: string | undefined;
  put(transcript: Transcript): Change | undefined;
}

/** @throws CallError */
export async function newest(open: OpenSession, session: Session): Promise<Newest> {
  const page = await open.app.request("event/list", {
    scope: { kind: "session", id: open.id },
    before: "now",
    limit: PAGE,
  });
  const transcript = newTranscript(open.id);
  for (const event of page.data) {
    open.apply(transcript, event);
  }
  seed(transcript, session);
  const oldest = page.nextCursor ?? undefined;
  return {
    transcript,
    cursor: page.cursor,
    oldest,
    plan:
      oldest !== undefined && !hasPlan(transcript) ? lastPlan(open, transcript, oldest) : undefined,
  };
}

async function lastPlan(
  open: OpenSession,
  transcript: Transcript,
  before: string,
): Promise<Change | undefined> {
  try {
    const page = await open.app.request("event/list", {
      scope: { kind: "session", id: open.id },
      types: ["plan_updated"],
      before,
      limit: 1,
    });
    const event: Event | undefined = page.data.at(-1);
    return event && earlierPlan(transcript, event);
  } catch {
    return undefined; // the session is there all the same
  }
}

/** @throws CallError */
export async function older(open: OpenSession, before: string): Promise<Older> {
  const page = await open.app.request("event/list", {
    scope: { kind: "session", id: open.id },
    before,
    limit: PAGE,
  });
  return {
    oldest: page.nextCursor ?? undefined,
    put: (transcript) => putOlder(transcript, page.data),
  };
}

/**
 * All sessions that work for a session, also for those below it.
 * @throws CallError
 */
export async function sessionsBelow(app: App, sessionId: string): Promise<Session[]> {
  // By id: a server that lists one again, or all of them always, is not asked without end.
  const found = new Map<string, Session>();
  const parents = [sessionId];
  for (let parent = parents.shift(); parent !== undefined; parent = parents.shift()) {
    let cursor: string | undefined;
    do {
      const page = await app.request("session/list", {
        parent,
        ...(cursor === undefined ? {} : { cursor }),
      });
      for (const session of page.data) {
        if (session.sessionId !== sessionId && !found.has(session.sessionId)) {
          found.set(session.sessionId, session);
          parents.push(session.sessionId);
        }
      }
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
  }
  return [...found.values()];
}
