// When what is shown of a tree is asked for again, and what is said above it.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it, mock } from "node:test";

import { Live } from "../../src/live";
import { CallError } from "../../src/server/errors";
import { TASKS, readAgents, readBoard, rootOf, withApprovals } from "../../src/team";
import { addApproval } from "../../src/model/approvals";
import { fakeApp, settled, type FakeApp } from "./fake_app";
import { agent, approval, session, task } from "./wire";

describe("what is shown of a tree", () => {
  let fake: FakeApp;
  let fetched: number;
  let drawn: number;
  let answer: () => Promise<void>;
  let grows: boolean;
  let live: Live;

  beforeEach(() => {
    mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
    fake = fakeApp();
    [fetched, drawn, grows] = [0, 0, false];
    answer = () => Promise.resolve();
    live = new Live({
      app: fake.app,
      root: "ses_root",
      types: ["turn_started"],
      fetch: () => {
        fetched += 1;
        return answer();
      },
      changed: () => {
        drawn += 1;
      },
      ticks: () => grows,
    });
  });

  afterEach(() => {
    live.detach();
    mock.timers.reset();
  });

  const events = (): void => {
    fake.following[0]?.onEvents([], undefined as never);
  };

  async function begin(): Promise<void> {
    live.attach();
    fake.following[0]?.onLive?.();
    await settled();
  }

  it("is asked for once for what several events have changed", async () => {
    await begin();
    assert.deepEqual(fake.following[0]?.scope, { kind: "tree", id: "ses_root" });
    assert.equal(fetched, 1);
    for (let i = 0; i < 50; i++) {
      events();
    }
    assert.equal(fetched, 1);
    mock.timers.tick(500);
    await settled();
    assert.equal(fetched, 2);
    mock.timers.tick(5000);
    assert.equal(fetched, 2);
    assert.equal(live.busy, false);
  });

  it("is asked for once more after an answer that something overtook", async () => {
    let done: () => void = () => undefined;
    answer = () =>
      new Promise((resolve) => {
        done = resolve;
      });
    await begin();
    live.fetch();
    live.fetch();
    assert.equal(fetched, 1);
    done();
    await settled();
    mock.timers.tick(500);
    assert.equal(fetched, 2);
  });

  it("is followed while it is seen, and not after", async () => {
    await begin();
    live.attach();
    assert.equal(fake.following.length, 1);
    events();
    live.detach();
    assert.equal(fake.following.length, 0);
    const before = drawn;
    fake.tell("server");
    live.fetch();
    mock.timers.tick(5000);
    assert.deepEqual([fetched, drawn, live.busy], [1, before, false]);
  });

  it("is drawn each second only while something of it grows", async () => {
    await begin();
    assert.equal(live.busy, false);
    grows = true;
    fake.tell("approvals");
    const before = drawn;
    mock.timers.tick(3000);
    assert.equal(drawn, before + 3);
    grows = false;
    mock.timers.tick(1000);
    assert.equal(live.busy, false);
  });

  it("says what is wrong above what it had", async () => {
    live.attach();
    assert.equal(live.notice(), "Loading…");
    fake.following[0]?.onLive?.();
    await settled();
    assert.equal(live.notice(), undefined);
    answer = () => Promise.reject(new CallError(0, "the store is busy"));
    live.fetch();
    await settled();
    assert.equal(live.notice(), "This may be old: the store is busy");
    fake.server.silent = true;
    assert.equal(live.notice(), "The server does not answer.");
    fake.server.state = "waiting";
    assert.equal(live.notice(), "The server has ended; it is started again…");
    fake.server.state = "failed";
    fake.server.failure = { message: "gone for good" };
    assert.equal(live.notice(), "No server: gone for good");
  });

  it("goes on after a cursor that is of no use any more", async () => {
    await begin();
    fake.following[0]?.onLost?.(new CallError(0, "gone", { kind: "cursorExpired" }));
    assert.equal(fake.following.length, 2);
    fake.following[1]?.onLost?.(new CallError(0, "no such session", { kind: "sessionNotFound" }));
    assert.match(live.notice() ?? "", /^This may be old: no such session/);
  });
});

describe("a tree that is read", () => {
  it("has all pages of its agents, and what waits of the root itself", async () => {
    const fake = fakeApp();
    const root = session({ sessionId: "ses_root" });
    fake.answers["session/get"] = { session: root };
    fake.answers["agent/list"] = ({ cursor }: { cursor?: string }) =>
      cursor === undefined
        ? { data: [agent("a")], nextCursor: "next" }
        : { data: [agent("b")], nextCursor: null };
    addApproval(fake.app.approvals, approval("x", { sessionId: "ses_root", rootId: "ses_root" }));
    addApproval(fake.app.approvals, approval("y", { sessionId: "ses_a", rootId: "ses_root" }));
    const view = withApprovals(fake.app, await readAgents(fake.app, "ses_root"));
    assert.deepEqual(
      view.agents.map((each) => each.name),
      ["a", "b"],
    );
    assert.deepEqual(
      view.approvals.map((each) => each.approvalId),
      ["x"],
    );
  });

  it("asks who the root is, where only an agent is known", async () => {
    const fake = fakeApp();
    fake.answers["session/get"] = {
      session: session({ sessionId: "ses_docs", rootId: "ses_root" }),
    };
    assert.equal(await rootOf(fake.app, "ses_docs"), "ses_root");
    assert.equal(await rootOf(fake.app, "ses_docs"), "ses_root");
    assert.equal(fake.count("session/get"), 1);
  });

  it("reads all pages of a long board, up to a bound", async () => {
    const fake = fakeApp();
    fake.answers["group/get"] = { group: { members: [], counts: {} } };
    fake.answers["group/messageList"] = { data: [] };
    let pages = 0;
    fake.answers["group/taskList"] = () => {
      pages += 1;
      const data = Array.from({ length: 100 }, (_, at) => task(`${pages}_${at}`, "pending"));
      return { data, nextCursor: "next" };
    };
    const view = await readBoard(fake.app, "ses_root");
    assert.deepEqual([pages, view.tasks.length, view.more], [TASKS / 100, TASKS, true]);
  });

  it("has no tasks where nobody has begun a board", async () => {
    const fake = fakeApp();
    fake.answers["group/get"] = { group: null };
    const view = await readBoard(fake.app, "ses_123456");
    assert.deepEqual([view.group, view.tasks, view.title], [undefined, [], "session 123456"]);
    assert.equal(fake.count("group/taskList"), 0);
  });
});
