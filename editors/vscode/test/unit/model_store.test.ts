// Sessions as lists show them.
import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";

import type { Session } from "@callboard/protocol";

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
import { agentOption, session } from "./wire";

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

  it("keep the options of their agents, which no list holds", () => {
    const options = [agentOption("codex", "model")];
    put("a", { options });
    put("a");
    replaceSessions(state, [session({ sessionId: "a" })], false);
    assert.deepEqual(state.byId.get("a")?.options, options);
    put("a", { options: [] });
    assert.deepEqual(state.byId.get("a")?.options, []);
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
