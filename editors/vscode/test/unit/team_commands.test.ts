// What a person does with agents and tasks: what is asked first, what is sent, and what they are told.
import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";

import type { ExtensionContext } from "vscode";
import { registerAgents } from "../../src/commands/agents";
import { registerTasks } from "../../src/commands/tasks";
import { CallError } from "../../src/server/errors";
import type { AgentsTree } from "../../src/views/agentsTree";
import type { Boards } from "../../src/views/board";
import type { Chats } from "../../src/views/chats";
import { Entry } from "../../src/views/keyedTree";
import type { TasksTree } from "../../src/views/tasksTree";
import { fakeApp, type FakeApp } from "./fake_app";
import { stub } from "./vscode_stub";
import { agent, session, task } from "./wire";

const context = { subscriptions: [] } as unknown as ExtensionContext;
const ABOUT = { root: "ses_root", taskId: "tsk_it" };
const BASE = { rootId: "ses_root", taskId: "tsk_it" };

let fake: FakeApp;
let asked: string[];
let opened: string[];

/** The person types this into each box that comes. */
function types(...words: (string | undefined)[]): void {
  stub.types = ({ title = "", prompt }) => {
    asked.push(prompt === undefined ? title : `${title} (${prompt})`);
    return words.shift();
  };
}

async function run(name: string, ...args: unknown[]): Promise<void> {
  await stub.registered.get(`callboard.${name}`)?.(...args);
}

/** What was sent last by a method, or undefined where nothing was. */
function sent(method: string): unknown {
  return fake.asked.findLast((each) => each.method === method)?.params;
}

const said = (): string => stub.passing.at(-1) ?? "";
const refused = (): string => stub.shown.at(-1)?.message ?? "";

beforeEach(() => {
  stub.reset();
  fake = fakeApp();
  [asked, opened] = [[], []];
  const root = session({ sessionId: "ses_root", title: "The team" });
  fake.app.putSession(root);
  fake.app.focused = "ses_root";
  fake.app.putSession(session({ sessionId: "ses_docs", rootId: "ses_root", parentId: "ses_root" }));
  fake.features.add("agents.interrupts");
  fake.answers["session/get"] = { session: root };
  fake.answers["agent/list"] = { data: [agent("docs", { turnId: "trn" })] };
  fake.answers["group/get"] = {
    group: {
      groupId: "grp",
      members: [
        { agentId: "ses_root", name: "root", isRoot: true },
        { agentId: "ses_docs", name: "docs", status: "running" },
      ],
      counts: { total: 1 },
    },
  };
  fake.answers["group/taskList"] = {
    data: [task("it", "pending", { title: "Write it", ready: true })],
  };
  fake.answers["group/messageList"] = { data: [] };
  fake.answers["group/messageSend"] = { recipients: ["ses_docs"] };
  const chats = {
    open: (id: string) => {
      opened.push(`chat ${id}`);
      return Promise.resolve();
    },
  } as unknown as Chats;
  const boards = { open: (root: string) => opened.push(`board ${root}`) } as unknown as Boards;
  const tree = { refresh: () => undefined };
  registerAgents(context, fake.app, tree as AgentsTree);
  registerTasks(context, fake.app, chats, boards, tree as TasksTree);
});

describe("an agent", () => {
  it("is sent what was written, and nothing where nothing was", async () => {
    types(undefined, "  ", " Hello ");
    await run("messageAgent", "ses_docs");
    await run("messageAgent", "ses_docs");
    assert.equal(fake.count("agent/send"), 0);
    fake.answers["agent/send"] = {};
    await run("messageAgent", "ses_docs");
    assert.equal(asked[2], "Message to docs");
    assert.deepEqual(sent("agent/send"), { agentId: "ses_docs", text: "Hello" });
    assert.match(said(), /left for docs/);
    assert.deepEqual(stub.shown, []);
  });

  it("is picked where none was named", async () => {
    fake.answers["agent/list"] = {
      data: [agent("docs"), agent("old", { status: "closed" }), agent("$(bell) nasty")],
    };
    let offered: string[] = [];
    stub.picks = (items) => {
      offered = items.map((item) => item.label);
      return items[0];
    };
    types("Go on.");
    fake.answers["agent/continue"] = { turnId: "trn" };
    await run("continueAgent");
    assert.deepEqual(offered, ["docs", "\\$(bell) nasty"]);
    assert.deepEqual(sent("agent/continue"), { agentId: "ses_docs", text: "Go on." });
    assert.match(said(), /docs goes on/);
  });

  it("is interrupted in the way that was chosen", async () => {
    types("Because.", "Because.");
    fake.answers["agent/interrupt"] = { outcome: "delivered" };
    await run("steerAgent", "ses_docs");
    const params = { agentId: "ses_docs", kind: "steer", reason: "Because." };
    assert.deepEqual(sent("agent/interrupt"), params);
    await run("cancelAgent", "ses_docs");
    assert.deepEqual(sent("agent/interrupt"), { ...params, kind: "cancel" });
    await run("abortAgent", "ses_docs");
    assert.deepEqual(sent("agent/interrupt"), { agentId: "ses_docs", kind: "abort" });
    assert.deepEqual(asked, ["What should docs do instead?", "Why should docs stop?"]);
    assert.match(said(), /docs is told at its next step/);
  });

  it("is not corrected by a server that cannot, and the other way is told", async () => {
    fake.features.delete("agents.interrupts");
    types("Because.");
    fake.app.server.handshake = {} as never;
    await run("steerAgent", "ses_docs");
    assert.match(refused(), /features = \["agents.interrupts"\].*Stop Agent at Once/);
    assert.equal(fake.count("agent/interrupt"), 0);
  });

  it("is closed after it was asked about alone", async () => {
    fake.answers["agent/close"] = {};
    await run("closeAgent", "ses_docs");
    assert.equal(fake.count("agent/close"), 0);
    assert.match(refused(), /Close docs, and the agents below it, for good/);
    stub.presses = () => "Close";
    await run("closeAgent", "ses_docs");
    assert.deepEqual(sent("agent/close"), { agentId: "ses_docs" });
  });

  it("is replied to where it asks, with what it asks as text", async () => {
    await run("answerAgent", "ses_docs");
    assert.match(said(), /docs asks nothing/);
    const question = { askId: "ask_1", text: "Which? [x](command:y) $(bell)" };
    fake.answers["agent/list"] = { data: [agent("docs", { question: question as never })] };
    fake.answers["agent/reply"] = {};
    types("This.");
    const line = {
      id: "q",
      label: "",
      icon: "",
      context: "",
      children: [],
      about: { id: "ses_docs" },
    };
    await run("answerAgent", new Entry(line, undefined));
    assert.equal(asked[0], "Reply to docs (docs asks: Which? [x] (command:y) \\$(bell))");
    assert.deepEqual(sent("agent/reply"), { askId: "ask_1", text: "This." });
  });

  it("is not the session itself", async () => {
    await run("messageAgent", "ses_root");
    assert.match(refused(), /its chat is where you write to it/);
  });
});

describe("a task", () => {
  it("is changed by what was chosen, in the place of the root", async () => {
    for (const method of ["Claim", "Start", "Release", "Complete", "Block", "Cancel", "Reassign"]) {
      fake.answers[`group/task${method}`] = {};
    }
    await run("claimTask", ABOUT);
    assert.deepEqual(sent("group/taskClaim"), BASE);
    await run("startTask", ABOUT);
    assert.deepEqual(sent("group/taskStart"), BASE);
    await run("releaseTask", ABOUT);
    assert.deepEqual(sent("group/taskRelease"), BASE);
    types("Words.", "Words.", "", "Nobody wants it.");
    await run("completeTask", ABOUT);
    assert.deepEqual(sent("group/taskComplete"), { ...BASE, summary: "Words." });
    assert.match(said(), /"Write it" is done/);
    await run("blockTask", ABOUT);
    assert.deepEqual(sent("group/taskBlock"), { ...BASE, reason: "Words." });
    await run("cancelTask", ABOUT);
    assert.deepEqual(sent("group/taskCancel"), BASE);
    await run("cancelTask", ABOUT);
    assert.deepEqual(sent("group/taskCancel"), { ...BASE, reason: "Nobody wants it." });
    stub.picks = (items) => {
      assert.deepEqual(
        items.map((item) => item.label),
        ["root (this session)", "docs (running)"],
      );
      return items[1];
    };
    await run("assignTask", ABOUT);
    assert.deepEqual(sent("group/taskReassign"), { ...BASE, agentId: "ses_docs" });
    assert.match(said(), /docs has "Write it" now/);
  });

  it("is not changed when the question before is left", async () => {
    types("  ", undefined, undefined);
    await run("completeTask", ABOUT);
    await run("blockTask", ABOUT);
    await run("cancelTask", ABOUT);
    await run("assignTask", ABOUT);
    assert.ok(fake.asked.every(({ method }) => /list|get/i.test(method)));
    assert.deepEqual(stub.shown, []);
  });

  it("that somebody else was faster with is refused in one message", async () => {
    fake.answers["group/taskClaim"] = () => {
      throw new CallError(-31512, "task tsk_it is claimed, and 'docs' has it; list the ready ones");
    };
    await run("claimTask", ABOUT);
    assert.equal(stub.shown.length, 1);
    assert.match(
      refused(),
      /^Cannot claim "Write it": task "Write it" is claimed, and 'docs' has it/,
    );
  });

  it("is made with what must be done before it", async () => {
    fake.answers["group/taskCreate"] = {};
    types("New", "New");
    await run("addTask");
    assert.equal(fake.count("group/taskCreate"), 0);
    stub.picks = (items) => items;
    await run("addTask");
    const params = { rootId: "ses_root", title: "New", dependencies: ["tsk_it"] };
    assert.deepEqual(sent("group/taskCreate"), params);
  });

  it("is given to an agent that begins with it", async () => {
    fake.answers["agent/spawn"] = {};
    types("writer", "");
    await run("spawnTask", ABOUT);
    const params = { parentId: "ses_root", name: "writer", message: "Write it", taskId: "tsk_it" };
    assert.deepEqual(sent("agent/spawn"), params);
  });
});

describe("a group", () => {
  it("is written to, or one of it", async () => {
    types("All.", "One.");
    stub.picks = (items) => items[0];
    await run("messageGroup");
    assert.deepEqual(sent("group/messageSend"), { rootId: "ses_root", to: "group", text: "All." });
    stub.picks = (items) => items[1];
    await run("messageGroup");
    const params = { rootId: "ses_root", to: "agent", agentId: "ses_docs", text: "One." };
    assert.deepEqual(sent("group/messageSend"), params);
    assert.match(said(), /Sent to 1 member/);
    fake.answers["group/get"] = { group: null };
    fake.answers["group/messageSend"] = { recipients: [] };
    types("Anybody?");
    await run("messageGroup");
    assert.match(said(), /Nobody else takes part/);
  });

  it("begins with its first task, in the session that is open", async () => {
    fake.answers["group/get"] = { group: null };
    fake.answers["group/taskCreate"] = {};
    types("Count the stock");
    stub.picks = (items) => items[0];
    await run("newGroup");
    assert.deepEqual(sent("group/taskCreate"), { rootId: "ses_root", title: "Count the stock" });
    assert.deepEqual(opened, ["chat ses_root", "board ses_root"]);
  });

  it("has its board opened, by whatever of its tree is looked at", async () => {
    fake.app.focused = "ses_docs";
    await run("openTaskBoard");
    assert.deepEqual(opened, ["board ses_root"]);
  });
});
