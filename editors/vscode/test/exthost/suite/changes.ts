/** What a session changed, and what it would change, as native diffs of the editor. */
import assert from "node:assert/strict";
import * as vscode from "vscode";
import { readReview } from "../../../src/model/review";
import {
  api,
  asked,
  at,
  done,
  leave,
  onDisk,
  root,
  shown,
  state,
  tab,
  text,
  title,
} from "../changing";
import { test, until } from "../runner";

export { run } from "../runner";

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
  const { app, chats, reviewing } = await api();
  const diff = vscode.workspace.getConfiguration("callboard.diff");
  await diff.update("openAutomatically", true, vscode.ConfigurationTarget.Workspace);
  const { session } = await app.change("session/create", { cwd: root });
  const { sessionId } = session;
  await chats.open(sessionId, { in: "editor" });
  await until("the chat is in view", () => chats.isVisible(sessionId));
  const content = [{ type: "text" as const, text: "make unasked.txt" }];
  const { now } = Date;
  let time = now() + 60_000; // long after what other tests have typed: while somebody types none opens
  Date.now = () => time;
  try {
    await app.change("session/prompt", { sessionId, content });
    await until("the diff is shown", () => title() === "unasked.txt (no such file ↔ proposed)");
    // A key that was typed for what stood there before does not answer what came in its place.
    await assert.rejects(reviewing.approvals.answer(1), /has only just come/);
    assert.equal(app.approvals.pending.filter((each) => each.sessionId === sessionId).length, 1);
    await until("it has been there for a while", () => {
      time += 1000;
      return reviewing.approvals.answer(4).catch(() => false);
    });
  } finally {
    Date.now = now;
  }
  await until("the diff is gone", () => tab() === undefined);
  await diff.update("openAutomatically", undefined, vscode.ConfigurationTarget.Workspace);
  await leave();
});
