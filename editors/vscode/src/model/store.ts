/** The sessions of the store, as lists and the status bar show them. */
import type { Session } from "@callboard/protocol";
import { list } from "./loose";
import { asText } from "./text";

export interface Sessions {
  readonly byId: Map<string, Session>;
  /** A first listing is there. */
  loaded: boolean;
  /** There are older ones than those listed. */
  more: boolean;
  /** Where the next page of them begins. */
  cursor?: string | undefined;
  /** How often they were listed: what was there besides is gone each time. */
  listings: number;
}

export type SessionGroup = "attention" | "running" | "idle" | "archived";

/** The groups of a list, those first that need somebody. */
export const GROUPS: readonly SessionGroup[] = ["attention", "running", "idle", "archived"];

export function newSessions(): Sessions {
  return { byId: new Map(), loaded: false, more: false, listings: 0 };
}

export function getSession(state: Sessions, sessionId: string): Session | undefined {
  return state.byId.get(sessionId);
}

/**
 * What a peer sends in place of a session is no session; what every session has is there. What a list leaves out, the
 * options of its agents, stays as it was.
 */
export function putSession(state: Sessions, session: Session): void {
  const sent = session as Partial<Session> | null | undefined;
  if (typeof sent === "object" && sent !== null && typeof sent.sessionId === "string") {
    const { sessionId, rootId, cwd, updatedAt } = sent;
    const fits = [rootId, cwd, updatedAt].every((each) => typeof each === "string");
    const fit = {
      rootId: asText(rootId) || sessionId,
      cwd: asText(cwd),
      updatedAt: asText(updatedAt),
    };
    const kept = sent.options ?? state.byId.get(sessionId)?.options;
    state.byId.set(sessionId, {
      ...session,
      ...(fits ? {} : fit),
      ...(kept === undefined ? {} : { options: kept }),
    });
  }
}

export function removeSession(state: Sessions, sessionId: string): void {
  state.byId.delete(sessionId);
}

/** The newest roots as the server lists them; agents that are known stay, as no listing holds them. */
export function replaceSessions(state: Sessions, listed: readonly Session[], more: boolean): void {
  const fresh = new Set(list(listed).map(({ sessionId }) => sessionId));
  for (const [id, session] of state.byId) {
    if (session.parentId == null && !fresh.has(id)) {
      state.byId.delete(id);
    }
  }
  for (const session of listed) {
    putSession(state, session);
  }
  state.loaded = true;
  state.more = more;
  state.listings += 1;
}

export function groupOf(session: Session): SessionGroup {
  if (session.archived) {
    return "archived";
  } else if (session.pendingApprovals > 0) {
    return "attention";
  } else if (session.status === "running" || session.status === "waiting_approval") {
    return "running";
  }
  return "idle";
}

/** The pinned first, then the newest; of the same moment the later id. */
export function newestFirst(a: Session, b: Session): number {
  const pinned = Number(b.pinned ?? false) - Number(a.pinned ?? false);
  if (pinned !== 0) {
    return pinned;
  } else if (a.updatedAt !== b.updatedAt) {
    return a.updatedAt > b.updatedAt ? -1 : 1;
  }
  return a.sessionId > b.sessionId ? -1 : 1;
}

/** Roots only, those that need someone first, the newest of each group first. */
export function listSessions(state: Sessions): Session[] {
  const roots = [...state.byId.values()].filter((session) => session.parentId == null);
  return roots.sort(
    (a, b) => GROUPS.indexOf(groupOf(a)) - GROUPS.indexOf(groupOf(b)) || newestFirst(a, b),
  );
}

/** How many run, agents among them. */
export function counts(state: Sessions): { running: number } {
  let running = 0;
  for (const session of state.byId.values()) {
    running += session.status === "running" ? 1 : 0;
  }
  return { running };
}

/** What to call a session: its title, or the end of its id. Raw: whoever shows it cleans it. */
export function sessionName(session: Pick<Session, "sessionId" | "title">): string {
  if (typeof session.title === "string" && session.title.trim() !== "") {
    return session.title;
  }
  return `session ${session.sessionId.slice(-6)}`;
}
