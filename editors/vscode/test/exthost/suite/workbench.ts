/** The list of sessions, its commands, the doctor and the server's settings, against a real server. */
import assert from "node:assert/strict";
import * as vscode from "vscode";
import type { Api } from "../../../src/extension";
import type { ListNode } from "../../../src/model/sessionList";
import { test, until } from "../runner";

export { run } from "../runner";

const root = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";

async function api(): Promise<Api> {
  const extension = vscode.extensions.getExtension<Api>("callboard.callboard");
  assert.ok(extension, "it is not installed");
  return extension.activate();
}

async function begin(title: string): Promise<string> {
  const { app } = await api();
  const { session } = await app.change("session/create", { cwd: root, title });
  return session.sessionId;
}

async function say(sessionId: string, text: string): Promise<void> {
  const { app } = await api();
  await app.change("session/prompt", { sessionId, content: [{ type: "text", text }] });
}

async function focused(): Promise<string> {
  const { app } = await api();
  return until("a session is looked at", () => app.focused);
}

/** The groups of the list, each with the titles that stand in it. */
async function groups(): Promise<Record<string, string[]>> {
  const { sessions } = await api();
  const titles = (nodes: readonly ListNode[]): string[] =>
    nodes.flatMap((node) => (node.kind === "session" ? (node.row.session.title ?? "") : []));
  return Object.fromEntries(
    sessions
      .getChildren()
      .flatMap((node) => (node.kind === "group" ? [[node.label, titles(node.children)]] : [])),
  );
}

function holds(group: string, title: string): Promise<boolean> {
  return until(`"${title}" in ${group}`, async () => (await groups())[group]?.includes(title));
}

test("a list that is seen starts the server, and shows sessions as they come", async () => {
  const { app } = await api();
  await vscode.commands.executeCommand("callboard.sessions.focus");
  await until("the server runs", () => app.server.state === "ready");
  await begin("first");
  await holds("Idle", "first");
});

test("a session that asks stands first, and is answered by its id", async () => {
  const { app } = await api();
  const sessionId = await begin("asks");
  await say(sessionId, "run");
  await holds("Needs you", "asks");
  const [approval] = app.approvals.pending;
  assert.equal(approval?.sessionId, sessionId);
  await vscode.commands.executeCommand("callboard.approveOnce", approval.approvalId);
  await holds("Idle", "asks");
  assert.equal((await groups())["Needs you"], undefined);
});

test("a session is archived, and brought back", async () => {
  const sessionId = await begin("put away");
  await holds("Idle", "put away");
  await vscode.commands.executeCommand("callboard.archiveSession", sessionId);
  await holds("Archived", "put away");
  await vscode.commands.executeCommand("callboard.unarchiveSession", { sessionId });
  await holds("Idle", "put away");
});

test("a session that is pinned stands before those that are newer", async () => {
  const sessionId = await begin("pinned");
  await vscode.commands.executeCommand("callboard.pinSession", sessionId);
  await begin("newer");
  await holds("Idle", "newer");
  await until("it stands first", async () => (await groups())["Idle"]?.[0] === "pinned");
  await vscode.commands.executeCommand("callboard.unpinSession", sessionId);
  await begin("newest");
  await until("it does not", async () => (await groups())["Idle"]?.[0] === "newest");
});

test("a session that is opened, forked or resumed is the one that is looked at", async () => {
  const { app } = await api();
  const sessionId = await begin("to fork");
  await say(sessionId, "hello");
  await until("it has answered", () => app.sessions.byId.get(sessionId)?.lastOutcome);
  await vscode.commands.executeCommand("callboard.openSession", sessionId);
  assert.equal(app.focused, sessionId);
  await vscode.commands.executeCommand("callboard.forkSession", sessionId);
  const fork = await focused();
  assert.notEqual(fork, sessionId);
  assert.equal(app.sessions.byId.get(fork)?.forkedFrom?.sessionId, sessionId);
  await vscode.commands.executeCommand("callboard.openSession", sessionId);
  await vscode.commands.executeCommand("callboard.resumeSession");
  assert.equal(app.focused, fork);
});

test("the list shows no more than is wished, and more when asked", async () => {
  const { sessions } = await api();
  const shown = async (): Promise<number | undefined> => (await groups())["Idle"]?.length;
  await vscode.commands.executeCommand("callboard.sessions.focus");
  await until("three are shown", async () => (await shown()) === 3);
  const idle = sessions.getChildren().find((node) => node.kind === "group" && node.id === "idle");
  const more = idle?.kind === "group" ? idle.children.at(-1) : undefined;
  assert.equal(more?.kind, "more");
  await vscode.commands.executeCommand("callboard.showMoreSessions", more);
  await until("more are shown", async () => ((await shown()) ?? 0) > 3);
});

test("the doctor says what is there, in a document", async () => {
  await vscode.commands.executeCommand("callboard.doctor");
  const text = await until("the document", () => {
    const { document } = vscode.window.activeTextEditor ?? {};
    return document?.languageId === "markdown" && document.getText();
  });
  for (const part of ["found by callboard.server.path", "protocol 1", ".db (", "Model: "]) {
    assert.ok(text.includes(part), `${part}\n${text}`);
  }
  assert.doesNotMatch(text, /✗ Problem/);
});

test("a server is started anew when its settings are others", async () => {
  const { app } = await api();
  const before = app.server.pid;
  assert.ok(before);
  const settings = vscode.workspace.getConfiguration("callboard");
  await settings.update("server.env", { CALLBOARD_TRIED: "1" }, vscode.ConfigurationTarget.Global);
  const changed = (): boolean => app.server.state === "ready" && app.server.pid !== before;
  await until("another server", changed);
  await settings.update("server.env", undefined, vscode.ConfigurationTarget.Global);
});

test("a server that is not found is told, and found when the setting is put right", async () => {
  const { app } = await api();
  const settings = vscode.workspace.getConfiguration("callboard");
  const target = vscode.ConfigurationTarget.Workspace;
  await settings.update("server.path", "/no/such/callboard", target);
  await until("it has failed", () => app.server.state === "failed");
  assert.match(app.server.failure?.message ?? "", /\/no\/such\/callboard/);
  await vscode.commands.executeCommand("callboard.doctor");
  await until("the doctor says so", () =>
    vscode.window.activeTextEditor?.document.getText().includes("/no/such/callboard"),
  );
  await settings.update("server.path", undefined, target);
  await until("it runs again", () => app.server.state === "ready");
  await holds("Idle", "newer");
});
