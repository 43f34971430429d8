/** What of the whole store a window follows: its sessions, and the approvals that wait. */
import type { Approval, Event, ScopeKind } from "@callboard/protocol";
import { isKnownEvent } from "@callboard/protocol";
import type { App } from "./app";
import { addApproval, forgetApprovals, replaceApprovals } from "./model/approvals";
import { putSession, removeSession, replaceSessions } from "./model/store";
import { explain, kindOf } from "./server/errors";

/** So many sessions are listed, the newest. */
export const LISTED = 100;

async function listSessions(app: App): Promise<void> {
  const page = await app.request("session/list", { limit: LISTED }, { once: true });
  const before = new Map(app.sessions.byId);
  replaceSessions(app.sessions, page.data, page.nextCursor != null);
  for (const id of app.openIds()) {
    // One that somebody looks at is known, however old it is.
    const known = before.get(id);
    if (known && !app.sessions.byId.has(id)) {
      putSession(app.sessions, known);
      app.refresh(id);
    }
  }
  app.sessions.cursor = page.nextCursor ?? undefined;
  app.tell("sessions", undefined);
}

async function listApprovals(app: App): Promise<void> {
  const all: Approval[] = [];
  let cursor: string | undefined;
  do {
    const page = await app.request(
      "approval/list",
      { state: "pending", ...(cursor === undefined ? {} : { cursor }) },
      { once: true },
    );
    all.push(...page.data);
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  replaceApprovals(app.approvals, all);
  app.tell("approvals", undefined);
}

function ofSession(app: App, event: Event): void {
  if (event.type === "session_deleted") {
    removeSession(app.sessions, event.sessionId);
    if (forgetApprovals(app.approvals, event.sessionId).length > 0) {
      app.tell("approvals", undefined);
    }
    app.tell("sessions", undefined);
    return;
  }
  if (isKnownEvent(event) && event.type === "turn_finished") {
    const { turnId, outcome } = event.data;
    app.tell("turnEnded", { sessionId: event.sessionId, turnId, outcome });
  }
  app.refresh(event.sessionId);
}

/** The server asks for an answer, or says that it has asked. */
export function asked(app: App, approval: Approval): void {
  if (addApproval(app.approvals, approval)) {
    app.tell("approvals", undefined);
  }
}

function ofApproval(app: App, event: Event): void {
  if (isKnownEvent(event)) {
    if (event.type === "approval_request") {
      asked(app, event.data.approval);
    } else if (event.type === "approval_decision") {
      app.settle(event.data.approvalId, event.data.resolution);
    }
  }
  app.refresh(event.sessionId);
}

/** Follows a scope from now on, with a listing of what was before each time that it begins. */
function follow(
  app: App,
  kind: ScopeKind,
  list: (app: App) => Promise<void>,
  take: (app: App, event: Event) => void,
): void {
  let live = false;
  app.feed.follow({
    scope: { kind },
    cursor: "now",
    onEvents: (events) => {
      for (const event of events) {
        app.guard(() => {
          take(app, event);
        });
      }
    },
    onLive: () => {
      live = true;
      list(app).catch((fault: unknown) => {
        // The next server is asked again, by the next `onLive`.
        if (!["serverGone", "noServer"].includes(kindOf(fault) ?? "")) {
          app.log.error(`the ${kind} cannot be listed: ${explain(fault)}`);
        }
      });
    },
    onStalled: (fault) => {
      app.log.error(`the ${kind} cannot be followed for now: ${explain(fault)}`);
    },
    onLost: (fault) => {
      const lost = kindOf(fault);
      // A cursor that never was of use is not asked for again and again.
      if (live && (lost === "invalidCursor" || lost === "cursorExpired")) {
        follow(app, kind, list, take);
      } else {
        app.log.error(`the ${kind} cannot be followed: ${explain(fault)}`);
      }
    },
  });
}

export function followStore(app: App): void {
  follow(app, "catalog", listSessions, ofSession);
  follow(app, "approvals", listApprovals, ofApproval);
}
