/** What files were before a session changed them, put back. */
import assert from "node:assert/strict";
import * as fs from "node:fs/promises";
import { join } from "node:path";
import * as vscode from "vscode";
import {
  api,
  at,
  done,
  leave,
  onDisk,
  putBack,
  root,
  shown,
  state,
  text,
  title,
} from "../changing";
import { test, until } from "../runner";

export { run } from "../runner";

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
  await leave(document);
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
  await leave(document);
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
  await leave(document);
});

test("what was changed since stays, and is told", async () => {
  const sessionId = await done("edit since.txt");
  await fs.writeFile(at("since.txt"), "one\nTWO and more\nthree\n");
  await vscode.commands.executeCommand("callboard.openChanges");
  await vscode.commands.executeCommand("callboard.showDiff", sessionId, at("since.txt"));
  await until("only the diff is shown", () => title().startsWith("since.txt"));
  await vscode.commands.executeCommand("callboard.rejectFile");
  assert.equal(await state(sessionId, "since.txt"), "new");
  assert.equal(await onDisk("since.txt"), "one\nTWO and more\nthree\n");
  const { tree } = (await api()).reviewing;
  await until("the list tells", () => tree.rows[0]?.description.endsWith("new, changed since"));
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
