// Sessions as lists show them, and what of the log changes them.
import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";

import type { Session } from "@callboard/protocol";

import { ofApproval, ofOpenSession, ofSession } from "../../src/model/catalog";
import {
  counts,
  listSessions,
  newSessions,
  putSession,
  removeSession,
  replaceSessions,
  sessionName,
  type Sessions,
} from "../../src/model/store";
import { approval, event, session } from "./wire";

describe("sessions", () => {
  let state: Sessions;

  beforeEach(() => {
    state = newSessions();
  });

  function put(sessionId: string, fields: Partial<Session> = {}): void {
    putSession(state, session({ sessionId, updatedAt: "2030-01-01T10:00:00Z", ...fields }));
  }

  const listed = (): string[] => listSessions(state).map((each) => each.sessionId);

  it("stand with those first that need somebody, then those that run, the newest first", () => {
    put("old", { updatedAt: "2030-01-01T09:00:00Z" });
    put("archived", { archived: true, status: "running", updatedAt: "2030-01-01T12:00:00Z" });
    put("running", { status: "running" });
    put("asking", { pendingApprovals: 1, status: "waiting_approval" });
    put("new", { updatedAt: "2030-01-01T11:00:00Z" });
    put("waiting", { status: "waiting_approval", updatedAt: "2030-01-01T10:30:00Z" });
    assert.deepEqual(listed(), ["asking", "waiting", "running", "new", "old", "archived"]);
  });

  it("that are pinned stand first in their group", () => {
    put("b", { updatedAt: "2030-01-01T11:00:00Z" });
    put("a", { pinned: true });
    assert.deepEqual(listed(), ["a", "b"]);
  });

  it("of the same moment have an order", () => {
    put("a");
    put("c");
    put("b");
    assert.deepEqual(listed(), ["c", "b", "a"]);
  });

  it("are roots", () => {
    put("root");
    put("child", { parentId: "root" });
    assert.deepEqual(listed(), ["root"]);
  });

  it("are replaced, and removed", () => {
    put("a", { title: "one" });
    put("a", { title: "two" });
    assert.equal(listSessions(state)[0]?.title, "two");
    removeSession(state, "a");
    removeSession(state, "a");
    assert.deepEqual(listed(), []);
  });

  it("that a listing does not name are gone, but for agents", () => {
    put("gone");
    put("child", { parentId: "kept" });
    replaceSessions(state, [session({ sessionId: "kept" })], true);
    assert.deepEqual([...state.byId.keys()].sort(), ["child", "kept"]);
    assert.deepEqual([state.loaded, state.more], [true, true]);
  });

  it("are no thing that a peer sends in their place", () => {
    for (const sent of [undefined, null, 7, "ses", {}, { sessionId: 7 }]) {
      putSession(state, sent as unknown as Session);
    }
    assert.equal(state.byId.size, 0);
  });

  it("that run are counted, agents among them", () => {
    put("a", { status: "running" });
    put("b", { status: "running", parentId: "a" });
    put("c", { status: "parked" });
    assert.deepEqual(counts(state), { running: 2 });
  });

  it("have a name", () => {
    const sessionId = "ses_abcdef123456";
    assert.equal(sessionName({ sessionId, title: "Title" }), "Title");
    assert.equal(sessionName({ sessionId, title: " " }), "session 123456");
    assert.equal(sessionName({ sessionId }), "session 123456");
  });
});

describe("an event of the store", () => {
  const refresh = { do: "refresh", sessionId: "ses_1" };

  it("has its session asked for again, or taken away", () => {
    assert.deepEqual(ofSession(event("session_updated")), [refresh]);
    assert.deepEqual(ofSession(event("a_later_one")), [refresh]);
    assert.deepEqual(ofSession(event("session_deleted")), [{ do: "remove", sessionId: "ses_1" }]);
    assert.deepEqual(ofSession(event("session_forked")), [
      { do: "began", sessionId: "ses_1" },
      refresh,
    ]);
  });

  it("tells how a turn has ended", () => {
    const turn = { turnId: "trn_1", outcome: "failed" };
    assert.deepEqual(ofSession(event("turn_finished", turn)), [
      { do: "turnEnded", sessionId: "ses_1", turn },
      refresh,
    ]);
  });

  it("brings approvals, and ends them", () => {
    const asked = approval("apr_1");
    assert.deepEqual(ofApproval(event("approval_request", { approval: asked })), [
      { do: "asked", approval: asked },
      refresh,
    ]);
    const resolution = { outcome: "allowed" };
    assert.deepEqual(ofApproval(event("approval_decision", { approvalId: "apr_1", resolution })), [
      { do: "resolved", approvalId: "apr_1", resolution },
      refresh,
    ]);
  });

  it("of another shape than the wire's has its session asked for again", () => {
    assert.deepEqual(ofApproval(event("approval_request", {})), [refresh]);
    assert.deepEqual(ofApproval(event("approval_decision", null)), [refresh]);
  });

  it("of an open session changes lists only where it tells of its state", () => {
    assert.deepEqual(ofOpenSession(event("turn_parked")), [refresh]);
    assert.deepEqual(ofOpenSession(event("message")), []);
  });
});
