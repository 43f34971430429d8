import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import type { Approval, Session } from "@callboard/protocol";
import { registerApprovals } from "../../src/commands/approvals";
import { changedSettings, onSettings, setting, wrongSettings } from "../../src/config";
import { followKeys } from "../../src/contextKeys";
import { SessionListing } from "../../src/listing";
import type { ListNode } from "../../src/model/sessionList";
import { CallError } from "../../src/server/errors";
import { Notifications } from "../../src/views/notifications";
import { contextOf, listItem, tooltipOf } from "../../src/views/sessionItem";
import { SessionsTree } from "../../src/views/sessionsTree";
import { nextActions, statusBar } from "../../src/views/statusBar";
import { eventOf, FakeServer, sessionOf, settle } from "./fake_server";
import { stub, Uri } from "./vscode_stub";
import { agentOption, approval } from "./wire";

const OPTIONS = [
  { optionId: "yes", name: "Allow once", kind: "allow_once" },
  { optionId: "no", name: "Reject", kind: "reject_once" },
];

let server: FakeServer;
let pending: Approval[];
let sessions: Session[];

beforeEach(() => {
  stub.reset();
  server = new FakeServer();
  pending = [];
  sessions = [sessionOf("ses_1", { title: "Mend the parser" })];
  server.answers["approval/list"] = () => ({ data: pending, nextCursor: null });
  server.answers["session/list"] = (params) => ({
    data: sessions.filter(
      (session) => (session.archived ?? false) === (params["archived"] ?? false),
    ),
    nextCursor: null,
  });
  server.answers["session/get"] = ({ sessionId }) => ({
    session: sessions.find((session) => session.sessionId === sessionId),
  });
});

async function started(): Promise<void> {
  server.app.start();
  await settle();
  for (const id of server.subscriptions.keys()) {
    server.say("event/batch", { subscriptionId: id, events: [], cursor: "0", caughtUp: true });
  }
  await settle();
}

function asks(id: string, fields: Partial<Approval> = {}): Approval {
  return approval(id, { options: OPTIONS, ...fields });
}

async function asked(...approvals: Approval[]): Promise<void> {
  pending.push(...approvals);
  server.tell(
    "approvals",
    approvals.map((each, at) =>
      eventOf(each.sessionId, at + 1, "approval_request", { approval: each }),
    ),
  );
  await settle();
}

async function answered(id: string): Promise<void> {
  pending = pending.filter((each) => each.approvalId !== id);
  const resolution = { optionId: "yes", outcome: "allowed", by: { kind: "client" } };
  server.tell("approvals", [
    eventOf("ses_1", 9, "approval_decision", { approvalId: id, resolution }),
  ]);
  await settle();
}

describe("notifications", () => {
  let visible: string[];

  beforeEach(async () => {
    visible = [];
    new Notifications(server.app, { isVisible: (id) => visible.includes(id) });
    await started();
  });

  it("offer what can be answered from there", async () => {
    await asked(asks("apr_1"));
    assert.deepEqual(stub.shown, [
      {
        kind: "warning",
        message: "“Mend the parser” wants to run: make (in /w)",
        items: ["Allow Once", "Deny", "Show"],
      },
    ]);
  });

  it("answer the approval that they were about, and no other", async () => {
    stub.presses = ({ items }) => items[0];
    await asked(asks("apr_1"));
    assert.deepEqual(stub.executed, [["callboard.approveOnce", "apr_1"]]);
  });

  it("answer nothing when the approval was answered elsewhere meanwhile", async () => {
    let press: (button: string) => void = () => undefined;
    stub.presses = () => new Promise((resolve) => (press = resolve)) as never;
    await asked(asks("apr_1", { title: "Run make" }));
    await answered("apr_1");
    stub.presses = () => undefined;
    press("Allow Once");
    await settle();
    assert.deepEqual(stub.executed, []);
    assert.match(stub.shown[1]?.message ?? "", /^“Run make” was answered already/);
  });

  it("do not allow what is not shown whole", async () => {
    const subject = { type: "command", command: "a\nb", cwd: "/w" } as const;
    await asked(asks("apr_1", { subject }));
    assert.deepEqual(stub.shown[0]?.items, ["Deny", "Show"]);
  });

  it("are not shown while the session is in view of a window in front", async () => {
    visible = ["ses_1"];
    await asked(asks("apr_1"));
    assert.equal(stub.shown.length, 0);
    stub.focused = false;
    await asked(asks("apr_2"));
    assert.equal(stub.shown.length, 1);
  });

  it("know the chat of the root as the place of an agent's approval", async () => {
    visible = ["ses_1"];
    await asked(asks("apr_1", { sessionId: "ses_child" }));
    assert.equal(stub.shown.length, 0);
  });

  it("are shown always, or never, when that is wished", async () => {
    visible = ["ses_1"];
    stub.set({ "callboard.approvals.notify": "always" });
    await asked(asks("apr_1"));
    assert.equal(stub.shown.length, 1);
    visible = [];
    stub.set({ "callboard.approvals.notify": "never" });
    await asked(asks("apr_2"));
    assert.equal(stub.shown.length, 1);
  });

  it("come once for each approval, also when the server is another one", async () => {
    await asked(asks("apr_1"));
    server.die();
    server.clock.pass(1000);
    await settle();
    await started();
    assert.equal(server.starts, 2);
    assert.equal(server.app.approvals.pending.length, 1);
    assert.equal(stub.shown.length, 1);
  });

  it("are one for many that come together", async () => {
    server.tell("approvals", []);
    pending = ["a", "b", "c", "d"].map((id) => asks(id));
    server.die();
    server.clock.pass(1000);
    await settle();
    await started();
    assert.deepEqual(
      stub.shown.map(({ message }) => message),
      ["4 approvals wait for you."],
    );
  });

  it("tell the end of a turn that nobody looked at, and not of an agent's", async () => {
    const ends = async (sessionId: string, outcome: string): Promise<void> => {
      server.tell("catalog", [
        eventOf(sessionId, 3, "turn_finished", { turnId: "trn_1", outcome }, { turnId: "trn_1" }),
      ]);
      await settle();
    };
    server.app.putSession(sessionOf("ses_2", { parentId: "ses_1", rootId: "ses_1" }));
    await ends("ses_2", "completed");
    await ends("ses_1", "cancelled");
    assert.equal(stub.shown.length, 0);
    await ends("ses_1", "completed");
    await ends("ses_1", "failed");
    visible = ["ses_1"];
    await ends("ses_1", "completed");
    visible = [];
    stub.set({ "callboard.notifications.onFinish": false });
    await ends("ses_1", "completed");
    assert.deepEqual(
      stub.shown.map(({ kind, message }) => `${kind}: ${message}`),
      ["information: “Mend the parser” is done.", "warning: “Mend the parser” has failed."],
    );
  });

  it("tell once that a server which ran is gone for good, with the ways out", async () => {
    stub.presses = ({ kind }) => (kind === "error" ? "Restart Server" : undefined);
    for (let death = 0; death < 5; death += 1) {
      server.die();
      server.clock.pass(8000);
      await settle();
    }
    assert.equal(server.app.server.state, "failed");
    server.app.tell("server", undefined);
    await settle();
    assert.deepEqual(
      stub.shown.map(({ kind, items }) => [kind, ...items]),
      [["error", "Restart Server", "Show Log"]],
    );
    assert.deepEqual(stub.executed, [["callboard.restartServer"]]);
  });

  it("make no link of what a model says", async () => {
    sessions[0] = sessionOf("ses_1", { title: "[all](command:callboard.approveOnce)" });
    server.app.putSession(sessions[0]);
    const subject = { type: "command", command: "[a](command:b)", cwd: "/project" } as const;
    await asked(asks("apr_1", { subject }));
    assert.doesNotMatch(stub.shown[0]?.message ?? "", /\]\(/);
    assert.deepEqual(stub.shown[0]?.items, ["Deny", "Show"]);
  });
});

describe("the status bar's item", () => {
  it("changes with server and sessions, and only then", async () => {
    const item = statusBar(server.app);
    const [bar] = stub.bars;
    assert.equal(bar?.["text"], "$(comment-discussion) Callboard");
    await started();
    assert.equal(bar["text"], "$(check) Callboard");
    assert.equal(bar["command"], "callboard.showActions");
    await asked(asks("apr_1"));
    assert.equal(bar["text"], "$(bell-dot) 1 approval");
    assert.deepEqual(
      { ...(bar["backgroundColor"] as object) },
      { id: "statusBarItem.warningBackground" },
    );
    item.dispose();
    await answered("apr_1");
    assert.equal(bar["text"], "$(bell-dot) 1 approval");
  });

  it("leads to what is most urgent first", async () => {
    await started();
    const first = (): string | undefined => nextActions(server.app)[0]?.command;
    assert.equal(first(), "callboard.newSession");
    await asked(asks("apr_1"));
    assert.equal(first(), "callboard.nextApproval");
    server.app.server.state = "failed";
    assert.equal(first(), "callboard.restartServer");
  });

  it("leads to trust alone where none is given", () => {
    const { app } = new FakeServer(false);
    const commands = nextActions(app).flatMap(({ command }) => command ?? []);
    assert.deepEqual(commands, ["callboard.manageTrust", "callboard.doctor", "callboard.showLog"]);
  });

  it("draws no icon that a title names", async () => {
    sessions = [sessionOf("ses_1", { title: "$(trash) gone", status: "running" })];
    await started();
    const labels = nextActions(server.app).map(({ label }) => label);
    assert.ok(labels.includes("$(loading~spin) \\$(trash) gone"), labels.join("\n"));
  });
});

describe("settings", () => {
  it("of a wrong kind count as not set, and are told", () => {
    stub.set({ "callboard.server.args": "serve", "callboard.chat.sendKey": "space" });
    assert.deepEqual(setting("server.args"), ["serve"]);
    assert.equal(setting("chat.sendKey"), "enter");
    assert.deepEqual(wrongSettings(), ["chat.sendKey", "server.args"]);
  });

  it("that differ from what they are at first are told", () => {
    stub.set({ "callboard.sessions.recentCount": 9, "callboard.server.path": "" });
    assert.deepEqual(changedSettings(), ["sessions.recentCount"]);
  });

  it("are heard of by those that they are for", () => {
    let heard = 0;
    const off = onSettings(["server"], () => (heard += 1));
    stub.set({ "callboard.chat.fontSize": 12 });
    assert.equal(heard, 0);
    stub.set({ "callboard.server.env": { A: "b" } });
    assert.equal(heard, 1);
    off.dispose();
    stub.set({ "callboard.server.env": {} });
    assert.equal(heard, 1);
  });
});

describe("context keys", () => {
  it("follow server, sessions and approvals, each told only when it changes", async () => {
    const off = followKeys(server.app);
    const keys = (): Record<string, unknown> =>
      Object.fromEntries(stub.executed.map(([, key, value]) => [key as string, value] as const));
    assert.equal(keys()["callboard.serverState"], "stopped");
    assert.equal(keys()["callboard.feature.groups"], false);
    await started();
    assert.equal(keys()["callboard.serverState"], "ready");
    assert.equal(keys()["callboard.feature.groups"], true);
    server.app.focused = "ses_1";
    server.app.putSession(sessionOf("ses_1", { status: "running" }));
    await asked(asks("apr_1"));
    assert.equal(keys()["callboard.sessionOpen"], true);
    assert.equal(keys()["callboard.hasPendingApproval"], true);
    const told = stub.executed.length;
    server.app.tell("server", undefined);
    server.app.tell("sessions", undefined);
    assert.equal(stub.executed.length, told);
    off.dispose();
  });
});

describe("the listing", () => {
  it("asks for the folder's own only where the newest of all leave some out", async () => {
    const listing = new SessionListing(server.app, () => ["/project"]);
    await started();
    await listing.follow();
    assert.equal(server.asked.filter(({ params }) => params["cwd"] === "/project").length, 0);
    server.app.sessions.more = true;
    server.app.sessions.listings += 1;
    await listing.follow();
    await listing.follow();
    assert.equal(server.asked.filter(({ params }) => params["cwd"] === "/project").length, 1);
  });

  it("goes on page by page, and knows when it is at the end", async () => {
    const pages: Record<string, unknown> = {
      "": { data: [sessionOf("ses_1")], nextCursor: "p2" },
      p2: { data: [sessionOf("ses_2")], nextCursor: null },
    };
    server.answers["session/list"] = ({ cursor, archived, cwd }) =>
      archived === true || cwd !== undefined
        ? { data: [], nextCursor: null }
        : pages[(cursor as string | undefined) ?? ""];
    const listing = new SessionListing(server.app, () => ["/project"]);
    await started();
    assert.equal(listing.more, true);
    await listing.next(false);
    assert.equal(listing.more, false);
    assert.deepEqual([...server.app.sessions.byId.keys()], ["ses_1", "ses_2"]);
    const before = server.times("session/list");
    await listing.next(false);
    assert.equal(server.times("session/list"), before);
  });

  it("knows whether there are archived ones, and gets them when they are wanted", async () => {
    sessions.push(sessionOf("ses_old", { archived: true }));
    const listing = new SessionListing(server.app, () => []);
    await started();
    await listing.follow();
    assert.equal(listing.moreArchived, true);
    await listing.next(true);
    assert.equal(listing.moreArchived, false);
    assert.ok(server.app.sessions.byId.has("ses_old"));
  });

  it("fails in words for whoever asked, and can be asked again", async () => {
    const listing = new SessionListing(server.app, () => []);
    await started();
    server.answers["session/list"] = () => {
      throw new CallError(-31601, "the store is busy", { kind: "storeBusy" });
    };
    await assert.rejects(listing.next(true), /the store is busy/);
    await assert.rejects(listing.next(true), /the store is busy/);
  });
});

function labelOf({ label }: { label?: unknown }): string {
  assert.equal(typeof label, "string");
  return label as string;
}

describe("commands that answer approvals", () => {
  const subject = {
    type: "command",
    command: "ls [why](command:evil) $(bell)",
    cwd: "/w",
  } as const;

  beforeEach(async () => {
    registerApprovals({ subscriptions: [] } as never, server.app, {} as never);
    await started();
  });

  it("make no link and no icon of what is asked, which VS Code does below a box and in a list", async () => {
    const seen: unknown[] = [];
    stub.types = ({ prompt }) => {
      seen.push(prompt);
      return undefined;
    };
    stub.picks = (items) => {
      seen.push(...items.map((item) => Object.values(item).filter((v) => typeof v === "string")));
      return undefined;
    };
    const path = [
      { sessionId: "ses_1", name: "lead" },
      { sessionId: "ses_2", name: "$(check) kid" },
    ];
    await asked(asks("apr_1", { subject }));
    await stub.registered.get("callboard.denyWithNote")?.("apr_1");
    await asked(asks("apr_2", { subject, path, risk: "$(pass)" as never }));
    await stub.registered.get("callboard.deny")?.();
    const what = "ls [why](command:evil) \\$(bell)";
    assert.deepEqual(seen, [
      what.replace("](", "] ("),
      [what, "medium risk", ""],
      [what, "\\$(pass) risk", "\\$(check) kid"],
    ]);
  });
});

describe("the view of sessions", () => {
  const context = { workspaceState: { get: () => undefined, update: () => Promise.resolve() } };
  let tree: SessionsTree;

  async function opened(): Promise<void> {
    stub.folders = [{ uri: Uri.file("/project"), name: "work" }];
    tree = new SessionsTree(context as never, server.app);
    // The names of the folders come from the disk.
    for (let turn = 0; tree.folders.length === 0 && turn < 10_000; turn += 1) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    await started();
  }

  function labels(nodes: readonly ListNode[] = tree.getChildren()): string[] {
    return nodes.flatMap((node) => [
      labelOf(tree.getTreeItem(node)),
      ...labels(node.kind === "group" ? tree.getChildren(node) : []),
    ]);
  }

  it("is the first use of a server when it is seen, and not before", async () => {
    stub.view.visible = false;
    tree = new SessionsTree(context as never, server.app);
    await settle();
    assert.equal(server.starts, 0);
    stub.look(true);
    await settle();
    assert.equal(server.starts, 1);
    tree.dispose();
  });

  it("shows the sessions of the store, and counts what waits on its icon", async () => {
    await opened();
    assert.deepEqual(labels(), ["Idle", "Mend the parser"]);
    await asked(asks("apr_1"));
    assert.deepEqual(labels(), ["Needs you", "Mend the parser"]);
    assert.deepEqual(stub.view.badge, { value: 1, tooltip: "1 approval to answer" });
    await answered("apr_1");
    assert.equal(stub.view.badge, undefined);
    tree.dispose();
  });

  it("stays as it was when the server is gone, and says so", async () => {
    await opened();
    server.die();
    await settle();
    assert.deepEqual(labels(), ["Idle", "Mend the parser"]);
    assert.match(stub.view.message, /Reconnecting/);
    tree.dispose();
  });

  it("keeps its lines while nothing looks different, so that VS Code draws nothing", async () => {
    await opened();
    const [before] = tree.getChildren();
    server.app.tell("sessions", undefined);
    assert.equal(tree.getChildren()[0], before);
    tree.dispose();
  });

  it("shows what is hidden, and more, when asked", async () => {
    sessions = [
      ...Array.from({ length: 8 }, (_, n) => sessionOf(`ses_${n}`, { title: `t${n}` })),
      sessionOf("ses_far", { cwd: "/far", title: "far" }),
    ];
    await opened();
    assert.deepEqual(labels().slice(-2), ["Show more", "1 hidden by filter"]);
    await tree.show({ everywhere: true, words: "far" });
    assert.deepEqual(labels(), ["Idle", "far", "8 hidden by filter"]);
    assert.equal(stub.view.description, "all folders, “far”");
    await tree.show({ everywhere: false, words: "" });
    const [group] = tree.getChildren();
    const more = group?.kind === "group" ? group.children.at(-1) : undefined;
    assert.ok(more?.kind === "more");
    await tree.more(more);
    assert.equal(labels().length, 10);
    tree.dispose();
  });
});

describe("a line of the view", () => {
  const look = { now: Date.parse("2000-01-01T00:03:00Z"), usage: true, changed: () => undefined };
  const row = (fields: Partial<Session>, here = true): ListNode & { kind: "session" } => {
    const session = sessionOf("ses_1", { lastOutcome: "completed", ...fields });
    return {
      kind: "session",
      sessionId: "ses_1",
      told: true,
      row: { session, group: "idle", here },
    };
  };

  it("says agent, age, lines and cost", () => {
    const node = row({ profile: "builder", usage: { inputTokens: 10, cost: 0.08 } });
    const changed = (): { added: number; removed: number } => ({ added: 12, removed: 4 });
    const { description } = listItem(node, { ...look, changed });
    assert.equal(description, "builder · 3 m · +12 −4 · $0.08");
  });

  it("says tokens where no cost is known, and neither where that is not wished", () => {
    const node = row({ usage: { inputTokens: 1200, outputTokens: 34 } });
    assert.equal(listItem(node, look).description, "3 m · 1.2k tokens");
    assert.equal(listItem(node, { ...look, usage: false }).description, "3 m");
  });

  it("says the folder of another one", () => {
    assert.equal(listItem(row({ cwd: "/far/away" }, false), look).description, "away · 3 m");
  });

  it("says in words what its icon says", () => {
    const item = listItem(row({ lastOutcome: "failed", pinned: true }), look);
    assert.deepEqual((item.iconPath as { id: string }).id, "error");
    assert.equal(item.accessibilityInformation?.label, "A session, failed, pinned, 3 m");
  });

  it("spells out what would act on whoever shows it", () => {
    const item = listItem(row({ title: "a\u202eb\u0007\nc" }), look);
    assert.equal(item.label, "a<U+202E>b<07> c");
    assert.equal(typeof item.tooltip, "string");
    assert.doesNotMatch(item.tooltip as string, /\u202e|\u0007/);
  });

  it("tells menus what may be done", () => {
    assert.equal(contextOf(sessionOf("s", { status: "waiting_approval" })), "session running");
    assert.equal(
      contextOf(sessionOf("s", { pinned: true, archived: true })),
      "session pinned archived",
    );
  });

  it("has all that is known in its tooltip", () => {
    const { row: it } = row({ model: "a/b", queueLength: 2, pendingApprovals: 1 });
    const text = tooltipOf(it, look);
    for (const part of [
      "Model: a/b",
      "Folder: /project",
      "Changed: 3 m ago",
      "Usage: not known",
      "Queue: 2",
    ]) {
      assert.ok(text.includes(part), part);
    }
    const options = [agentOption("codex", "model"), agentOption("codex", "mode")];
    const { row: other } = row({ model: "a/b", mode: "work", options });
    assert.match(tooltipOf(other, look), /Model: Small\nMode: work, Small\n/);
  });
});
