/** What a session changed, reviewed as native diffs of the editor. */
import assert from "node:assert/strict";
import * as fs from "node:fs/promises";
import { join } from "node:path";
import * as vscode from "vscode";
import type { Api } from "../../../src/extension";
import { readReview } from "../../../src/model/review";
import { test, until } from "../runner";

export { run } from "../runner";

const root = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";

async function api(): Promise<Api> {
  const extension = vscode.extensions.getExtension<Api>("callboard.callboard");
  assert.ok(extension, "it is not installed");
  return extension.activate();
}

function at(name: string): string {
  return join(root, name);
}

async function onDisk(name: string): Promise<string | undefined> {
  return fs.readFile(at(name), "utf8").catch(() => undefined);
}

/** A session that does what it is told, up to where it asks. */
async function asked(prompt: string): Promise<string> {
  const { app } = await api();
  const { session } = await app.change("session/create", { cwd: root, title: prompt });
  const { sessionId } = session;
  app.focused = sessionId;
  await app.change("session/prompt", { sessionId, content: [{ type: "text", text: prompt }] });
  await until("it asks", () => app.approvals.pending.some((each) => each.sessionId === sessionId));
  return sessionId;
}

/** A session that has done what it was told. */
async function done(prompt: string): Promise<string> {
  const { app } = await api();
  const sessionId = await asked(prompt);
  const ended = new Promise<void>((resolve) => {
    const off = app.on("turnEnded", (end) => {
      if (end.sessionId === sessionId) {
        off();
        resolve();
      }
    });
  });
  const allow = (): void => {
    for (const approval of app.approvals.pending) {
      const once = approval.options.find((option) => option.kind === "allow_once");
      if (approval.sessionId === sessionId && once) {
        void app.answer(approval, once);
      }
    }
  };
  const off = app.on("approvals", allow);
  allow();
  await ended;
  off();
  return sessionId;
}

function tab(): vscode.TabInputTextDiff | undefined {
  const input: unknown = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
  return input instanceof vscode.TabInputTextDiff ? input : undefined;
}

function title(): string {
  return vscode.window.tabGroups.activeTabGroup.activeTab?.label ?? "";
}

async function text(uri: vscode.Uri | undefined): Promise<string> {
  assert.ok(uri);
  return (await vscode.workspace.openTextDocument(uri)).getText();
}

async function shown(sessionId: string, name: string): Promise<vscode.TabInputTextDiff> {
  await vscode.commands.executeCommand("callboard.showDiff", sessionId, at(name));
  return until("the diff is shown", () => tab());
}

async function state(sessionId: string, name: string): Promise<string | undefined> {
  const { reviewing } = await api();
  return reviewing.changes.with(sessionId, (tracked) => tracked.file(at(name))?.state);
}

/** Puts back what the active diff shows, and waits until that is settled. */
async function putBack(sessionId: string, name: string): Promise<void> {
  await vscode.commands.executeCommand("callboard.rejectFile");
  assert.equal(await state(sessionId, name), "rejected");
}

test("a change that waits is shown beside what it would be, and allowed there", async () => {
  const { app } = await api();
  const sessionId = await asked("edit proposed.txt");
  const approval = app.approvals.pending.find((each) => each.sessionId === sessionId);
  assert.ok(approval);
  await vscode.commands.executeCommand("callboard.showApprovalDiff", approval.approvalId);
  const diff = await until("the diff is shown", () => tab());
  assert.equal(title(), "proposed.txt (now ↔ proposed)");
  assert.equal(await text(diff.original), "one\ntwo\nthree\n");
  assert.equal(await text(diff.modified), "one\nTWO\nthree\n");
  assert.equal(diff.modified.scheme, "callboard-before");
  assert.equal(await onDisk("proposed.txt"), "one\ntwo\nthree\n");
  await vscode.commands.executeCommand("callboard.acceptFile");
  await until("it is written", async () => (await onDisk("proposed.txt"))?.includes("TWO"));
  await until("the diff is gone", () => tab() === undefined);
});

test("a change that waits goes from file to file, and is denied there", async () => {
  const { app } = await api();
  const sessionId = await asked("both");
  const approval = app.approvals.pending.find((each) => each.sessionId === sessionId);
  assert.ok(approval);
  await vscode.commands.executeCommand("callboard.showApprovalDiff", approval.approvalId);
  await until("the diff is shown", () => title() === "1.txt (no such file ↔ proposed)");
  await vscode.commands.executeCommand("callboard.rejectFile");
  await until("it is answered", () => !app.approvals.pending.includes(approval));
  assert.equal(await onDisk("both/1.txt"), undefined);
  for (const other of app.approvals.pending) {
    const deny = other.options.find((option) => option.kind === "reject_once");
    assert.ok(deny);
    await app.answer(other, deny);
  }
});

test("a changed file is shown beside what it was, and accepted there", async () => {
  const { app } = await api();
  const sessionId = await done("edit accepted.txt");
  const diff = await shown(sessionId, "accepted.txt");
  assert.equal(title(), "accepted.txt (before ↔ now)");
  assert.equal(await text(diff.original), "one\ntwo\nthree\n");
  assert.equal(diff.modified.fsPath, at("accepted.txt"));
  assert.equal(await state(sessionId, "accepted.txt"), "new");
  await vscode.commands.executeCommand("callboard.acceptFile");
  assert.equal(await state(sessionId, "accepted.txt"), "accepted");
  await until("the diff is gone", () => tab() === undefined);
  assert.equal(await onDisk("accepted.txt"), "one\nTWO\nthree\n");
  const { session } = await app.request("session/get", { sessionId });
  assert.ok(readReview(session.metadata, sessionId).through > 0, "the other editor would not know");
});

test("closing a diff settles nothing", async () => {
  const sessionId = await done("make closed.txt");
  await shown(sessionId, "closed.txt");
  await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
  await until("the diff is gone", () => tab() === undefined);
  assert.equal(await state(sessionId, "closed.txt"), "new");
});

test("a diff that somebody goes back to is filled, and can be judged", async () => {
  const sessionId = await done("edit again.txt");
  const { original, modified } = await shown(sessionId, "again.txt");
  await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
  await until("the diff is gone", () => tab() === undefined);
  await vscode.commands.executeCommand("vscode.diff", original, modified, "again");
  const diff = await until("the diff is back", () => tab());
  const left = await vscode.workspace.openTextDocument(diff.original);
  await until("it is filled", () => left.getText() === "one\ntwo\nthree\n");
  const { reviewing } = await api();
  await until("it can be judged", () => reviewing.review.current);
  await vscode.commands.executeCommand("callboard.rejectFile");
  assert.equal(await state(sessionId, "again.txt"), "rejected");
  assert.equal(await onDisk("again.txt"), "one\ntwo\nthree\n");
});

test("the next file that is new comes after one that is settled", async () => {
  const sessionId = await done("both");
  await shown(sessionId, "both/1.txt");
  await vscode.commands.executeCommand("callboard.nextChange");
  await until("the other one is shown", () => title() === "2.txt (no such file ↔ now)");
  await vscode.commands.executeCommand("callboard.acceptFile");
  await until("the first is shown again", () => title() === "1.txt (no such file ↔ now)");
  assert.equal(await state(sessionId, "both/2.txt"), "accepted");
  await vscode.commands.executeCommand("callboard.acceptFile");
  await until("the diff is gone", () => tab() === undefined);
});

test("what a file was is put back through its editor, and can be undone", async () => {
  const sessionId = await done("edit clean.txt");
  await shown(sessionId, "clean.txt");
  await putBack(sessionId, "clean.txt");
  assert.equal(await onDisk("clean.txt"), "one\ntwo\nthree\n");
  const document = await vscode.workspace.openTextDocument(at("clean.txt"));
  assert.equal(document.getText(), "one\ntwo\nthree\n");
  assert.equal(document.isDirty, false);
  await vscode.window.showTextDocument(document);
  await vscode.commands.executeCommand("undo");
  await until("it is undone", () => document.getText() === "one\nTWO\nthree\n");
  await vscode.commands.executeCommand("workbench.action.revertAndCloseActiveEditor");
});

test("what runs on saving does not change what is put back", async () => {
  const files = vscode.workspace.getConfiguration("files");
  await files.update("trimTrailingWhitespace", true, vscode.ConfigurationTarget.Workspace);
  const sessionId = await done("edit trimmed.txt");
  await shown(sessionId, "trimmed.txt");
  await putBack(sessionId, "trimmed.txt");
  await files.update("trimTrailingWhitespace", undefined, vscode.ConfigurationTarget.Workspace);
  assert.equal(await onDisk("trimmed.txt"), "one   \ntwo\nthree\n");
});

test("what is not saved in an editor is kept, and not written", async () => {
  const sessionId = await done("edit dirty.txt");
  const document = await vscode.workspace.openTextDocument(at("dirty.txt"));
  const editor = await vscode.window.showTextDocument(document, { preview: false });
  await until("it is read", () => document.getText().includes("TWO"));
  await editor.edit((edit) => {
    edit.insert(document.positionAt(document.getText().length), "mine\n");
  });
  await shown(sessionId, "dirty.txt");
  await until("the title tells", () => title() === "dirty.txt (before ↔ now, unsaved)");
  await putBack(sessionId, "dirty.txt");
  const all = "one\ntwo\nthree\nfour\nfive\nsix\nseven\nmine\n";
  assert.equal(document.getText(), all);
  assert.equal(document.isDirty, true);
  assert.match((await onDisk("dirty.txt")) ?? "", /TWO/);
  await vscode.window.showTextDocument(document);
  await vscode.commands.executeCommand("workbench.action.revertAndCloseActiveEditor");
});

test("a change that an unsaved editor does not have is put back on disk", async () => {
  const document = await vscode.workspace.openTextDocument(at("aside.txt"));
  const editor = await vscode.window.showTextDocument(document, { preview: false });
  await editor.edit((edit) => {
    edit.replace(new vscode.Range(0, 0, 1, 3), "all mine");
  });
  const sessionId = await done("edit aside.txt");
  const diff = await shown(sessionId, "aside.txt");
  assert.equal(title(), "aside.txt (before ↔ on disk)");
  assert.equal(await text(diff.modified), "one\nTWO\nthree\n");
  await putBack(sessionId, "aside.txt");
  assert.equal(await onDisk("aside.txt"), "one\ntwo\nthree\n");
  assert.equal(document.getText(), "all mine\nthree\n");
  await vscode.window.showTextDocument(document);
  await vscode.commands.executeCommand("workbench.action.revertAndCloseActiveEditor");
});

test("what was changed since stays, and is told", async () => {
  const sessionId = await done("edit since.txt");
  await fs.writeFile(at("since.txt"), "one\nTWO and more\nthree\n");
  await vscode.commands.executeCommand("callboard.showDiff", sessionId, at("since.txt"));
  await until("only the diff is shown", () => title().startsWith("since.txt"));
  await vscode.commands.executeCommand("callboard.rejectFile");
  assert.equal(await state(sessionId, "since.txt"), "new");
  assert.equal(await onDisk("since.txt"), "one\nTWO and more\nthree\n");
  await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
});

test("line ends, and that there is none at the end, come back", async () => {
  const sessionId = await done("edit ends.txt");
  assert.equal(await onDisk("ends.txt"), "one\r\nTWO\r\nthree");
  const diff = await shown(sessionId, "ends.txt");
  assert.equal(await text(diff.original), "one\r\ntwo\r\nthree");
  await putBack(sessionId, "ends.txt");
  assert.equal(await onDisk("ends.txt"), "one\r\ntwo\r\nthree");
});

test("a file that was made is deleted", async () => {
  const sessionId = await done("make made.txt");
  const diff = await shown(sessionId, "made.txt");
  assert.equal(title(), "made.txt (no such file ↔ now)");
  assert.equal(await text(diff.original), "");
  await putBack(sessionId, "made.txt");
  assert.equal(await onDisk("made.txt"), undefined);
});

test("nothing is put back through a link that leads out", async () => {
  const sessionId = await done("edit linked.txt");
  const outside = join(root, "..", "outside.txt");
  await fs.rename(at("linked.txt"), outside);
  await fs.symlink(outside, at("linked.txt"));
  await shown(sessionId, "linked.txt");
  await vscode.commands.executeCommand("callboard.rejectFile");
  assert.equal(await state(sessionId, "linked.txt"), "new");
  assert.equal(await fs.readFile(outside, "utf8"), "one\nTWO\nthree\n");
  await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
});

test("the list tells what was changed, and is empty for another session", async () => {
  const { app, reviewing } = await api();
  const sessionId = await done("make sub/listed.txt");
  await vscode.commands.executeCommand("callboard.openChanges");
  const rows = await until("the file is listed", () => {
    const { rows } = reviewing.tree;
    return rows.length > 0 && rows;
  });
  assert.deepEqual(
    rows.map((row) => [row.name, row.description]),
    [["listed.txt", "+1 −0 · new · made · sub"]],
  );
  await shown(sessionId, "sub/listed.txt");
  await vscode.commands.executeCommand("callboard.acceptFile");
  await until("it is told", () => reviewing.tree.rows[0]?.description.includes("accepted"));
  app.focused = undefined;
  await until("the list is empty", () => reviewing.tree.rows.length === 0);
});

test("a session goes back to before a turn, and files stay", async () => {
  const { app } = await api();
  const sessionId = await done("edit rewound.txt");
  const { data } = await app.request("session/turns", { sessionId });
  await vscode.commands.executeCommand("callboard.restoreCheckpoint", sessionId, data[0]?.turnId);
  const left = await app.request("session/turns", { sessionId });
  assert.deepEqual(left.data, []);
  assert.equal(await onDisk("rewound.txt"), "one\nTWO\nthree\n");
  assert.equal(await state(sessionId, "rewound.txt"), "new");
});

test("a diff opens by itself where that is wished and its chat is in view", async () => {
  const { app, chats } = await api();
  const diff = vscode.workspace.getConfiguration("callboard.diff");
  await diff.update("openAutomatically", true, vscode.ConfigurationTarget.Workspace);
  const { session } = await app.change("session/create", { cwd: root });
  const { sessionId } = session;
  await chats.open(sessionId, { in: "editor" });
  await until("the chat is in view", () => chats.isVisible(sessionId));
  const content = [{ type: "text" as const, text: "make unasked.txt" }];
  await app.change("session/prompt", { sessionId, content });
  await until("the diff is shown", () => title() === "unasked.txt (no such file ↔ proposed)");
  await vscode.commands.executeCommand("callboard.rejectFile");
  await until("the diff is gone", () => tab() === undefined);
  await diff.update("openAutomatically", undefined, vscode.ConfigurationTarget.Workspace);
  await vscode.commands.executeCommand("workbench.action.closeAllEditors");
});
