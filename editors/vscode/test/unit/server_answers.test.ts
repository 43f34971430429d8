// What a server answers in place of what was asked for.
import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";

import type { Approval } from "@callboard/protocol";

import { steerQueued } from "../../src/commands/queue";
import { sessionsBelow } from "../../src/reading";
import { answer } from "../../src/server/answers";
import { CallError } from "../../src/server/errors";
import type { ToChat } from "../../src/shared/chat";
import { ChatFeed } from "../../src/views/chatFeed";
import { Clock, eventOf, FakeServer, sessionOf, settle } from "./fake_server";
import { approval } from "./wire";

describe("an answer", () => {
  it("is an object, and holds the session or the list that was asked for", () => {
    for (const result of [undefined, null, 7, "x", [], [{}]]) {
      assert.equal(answer("server/info", {}, result), undefined);
    }
    assert.deepEqual(answer("server/info", {}, { any: 1 }), { any: 1 });
    for (const session of [undefined, null, 7, {}, { sessionId: 7 }]) {
      assert.equal(answer("session/get", {}, { session }), undefined);
    }
    for (const data of [undefined, null, 7, "x", {}]) {
      assert.equal(answer("session/list", {}, { data }), undefined);
    }
    const data = [null, { sessionId: "ses_1" }, undefined];
    assert.deepEqual(answer("session/list", {}, { data }), { data: [{ sessionId: "ses_1" }] });
  });

  it("does not lead to itself: whoever reads all pages comes to an end", () => {
    const page = { data: [], nextCursor: "c1" };
    assert.deepEqual(answer("agent/list", {}, page), page);
    assert.equal(answer("agent/list", { cursor: "c1" }, page), undefined);
  });
});

describe("a server that answers oddly", () => {
  let server: FakeServer;

  beforeEach(() => {
    server = new FakeServer();
    server.answers["session/list"] = () => ({ data: [sessionOf("ses_1")], nextCursor: null });
    server.answers["session/get"] = () => ({ session: sessionOf("ses_1"), draft: null });
    server.answers["event/list"] = () => ({ data: [], cursor: "0", nextCursor: null });
  });

  it("is not asked without end for the agents of a session, of which it lists all sessions", async () => {
    server.app.start();
    const below = await sessionsBelow(server.app, "ses_1");
    assert.deepEqual(below, []);
    server.answers["session/list"] = () => ({
      data: [sessionOf("ses_1"), sessionOf("ses_2", { parentId: "ses_1" })],
      nextCursor: null,
    });
    const others = await sessionsBelow(server.app, "ses_1");
    assert.deepEqual(
      others.map((each) => each.sessionId),
      ["ses_2"],
    );
  });

  it("hides no approval behind one that cannot be read, and leaves no chat blank", async () => {
    const odd: Partial<Record<keyof Approval, unknown>>[] = [
      { subject: null },
      { subject: { type: "fileChange", changes: [null] } },
      { subject: { type: "toolCall", locations: [null] } },
      { options: null },
      { options: [null] },
      { path: [null, null] },
      { rootId: 7 },
    ];
    const data = [
      null,
      { approvalId: 7 },
      ...odd.map((fields, at) => ({ ...approval(`apr_${at}`), ...fields })),
      approval("apr_good"),
    ];
    server.answers["approval/list"] = () => ({ data, nextCursor: null });
    const told: ToChat[] = [];
    const feed = new ChatFeed({
      app: server.app,
      post: (message) => told.push(message),
      later: new Clock().later,
      look: () => ({ sendKey: "enter", fontSize: 0, showUsage: true }),
      context: () => [],
    });
    server.app.start();
    await settle();
    feed.show("ses_1");
    await settle();
    feed.ready();
    const [all] = told;
    assert.ok(all?.type === "all");
    assert.deepEqual(
      all.all.approvals.map((each) => each.approvalId).sort(),
      [...odd.map((_, at) => `apr_${at}`), "apr_good"].sort(),
    );
  });

  it("is not asked without end from a cursor that it never takes", async () => {
    server.answers["event/subscribe"] = () => {
      throw new CallError(-31009, "of another store", { kind: "invalidCursor" });
    };
    server.app.start();
    const open = server.app.use("ses_1");
    await settle();
    await settle();
    assert.equal(server.times("event/subscribe"), 3);
    assert.deepEqual([open.phase, open.fault], ["lost", "of another store"]);
  });

  it("gives back what waited, when it could not be told to the agent that runs", async () => {
    const data = [
      eventOf("ses_1", 1, "turn_started", { turnId: "trn_1", model: "a/b", profile: "default" }),
      eventOf("ses_1", 2, "message", {
        messageId: "msg_1",
        author: { kind: "person", name: "ann" },
        content: [{ type: "text", text: "hours of work" }],
      }),
    ];
    server.answers["event/list"] = () => ({ data, cursor: "2", nextCursor: null });
    server.answers["session/queue"] = () => ({ data: [{ eventSeq: 2, content: [] }] });
    server.answers["session/queueRemove"] = () => ({});
    server.answers["session/prompt"] = () => {
      throw new CallError(-31601, "the disk is full");
    };
    server.app.start();
    const open = server.app.use("ses_1");
    await settle();
    const back: string[] = [];
    await assert.rejects(
      steerQueued(open, 2, (text) => back.push(text)),
      /the disk is full/,
    );
    assert.deepEqual(back, ["hours of work"]);
  });

  it("leaves nothing out of a session that lists look at", async () => {
    const { cwd, rootId, updatedAt, ...rest } = sessionOf("ses_1");
    assert.ok(cwd && rootId && updatedAt);
    server.answers["session/list"] = () => ({ data: [rest], nextCursor: null });
    server.app.start();
    await settle();
    const session = server.app.sessions.byId.get("ses_1");
    assert.deepEqual([session?.rootId, session?.cwd, session?.updatedAt], ["ses_1", "", ""]);
  });
});
