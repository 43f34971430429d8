/** What is asked before something is put back, brought in, written or deleted, and what comes of the answer. */
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as vscode from "vscode";
import { api, done, onDisk, root, state } from "../changing";
import { answering, press } from "../dialogs";
import { test, until } from "../runner";

export { run } from "../runner";

async function turnOf(sessionId: string): Promise<string> {
  const { app } = await api();
  const [turn] = (await app.request("session/turns", { sessionId })).data;
  assert.ok(turn);
  return turn.turnId;
}

async function exists(sessionId: string): Promise<boolean> {
  const { app } = await api();
  return app.request("session/get", { sessionId }).then(
    () => true,
    () => false,
  );
}

test("after a rewind files are put back once both questions were answered", async () => {
  const sessionId = await done("edit back.txt");
  assert.equal(await onDisk("back.txt"), "one\nTWO\nthree\n");
  const turnId = await turnOf(sessionId);
  const asked = await answering([press("Put Files Back…"), press("Put Back")], () =>
    vscode.commands.executeCommand("callboard.restoreCheckpoint", sessionId, turnId),
  );
  assert.match(asked[1]?.words ?? "", /^Put back 1 file\?/);
  await until("it is put back", async () => (await onDisk("back.txt")) === "one\ntwo\nthree\n");
  await until("that is kept", async () => (await state(sessionId, "back.txt")) === "rejected");
});

test("after a rewind files stay where the second question is not answered", async () => {
  const sessionId = await done("edit stay.txt");
  const turnId = await turnOf(sessionId);
  await answering([press("Put Files Back…"), () => undefined], () =>
    vscode.commands.executeCommand("callboard.restoreCheckpoint", sessionId, turnId),
  );
  assert.equal(await state(sessionId, "stay.txt"), "new");
  assert.equal(await onDisk("stay.txt"), "one\nTWO\nthree\n");
});

test("a session is written to the file that was named, and brought in from it beside itself", async () => {
  const sessionId = await done("edit out.txt");
  const folder = await mkdtemp(join(tmpdir(), "callboard-"));
  const file = vscode.Uri.file(join(folder, "out.jsonl"));
  try {
    await answering(
      [
        ({ choices }) =>
          choices.find((each) => (each as vscode.QuickPickItem).label === "JSON lines"),
        () => file,
        ({ words }) => {
          assert.equal(words, "The session is in out.jsonl.");
        },
      ],
      () => vscode.commands.executeCommand("callboard.exportSession", sessionId),
    );
    assert.ok((await readFile(file.fsPath, "utf8")).includes(sessionId));
    const { app } = await api();
    await answering([() => [file], press("Import Beside It")], () =>
      vscode.commands.executeCommand("callboard.importSession"),
    );
    const brought = app.focused;
    assert.ok(brought !== undefined && brought !== sessionId);
    const { session } = await app.request("session/get", { sessionId: brought });
    assert.deepEqual([session.title, session.cwd], ["edit out.txt", root]);
    await answering([() => [file], () => undefined], () =>
      vscode.commands.executeCommand("callboard.importSession"),
    );
    assert.equal(app.focused, brought);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("a session is deleted when the question is answered so, and only then", async () => {
  const sessionId = await done("edit gone.txt");
  const [question] = await answering([() => undefined], () =>
    vscode.commands.executeCommand("callboard.deleteSession", sessionId),
  );
  assert.equal(question?.words, "Delete “edit gone.txt”?");
  assert.equal(await exists(sessionId), true);
  await answering([press("Delete for Good")], () =>
    vscode.commands.executeCommand("callboard.deleteSession", sessionId),
  );
  assert.equal(await exists(sessionId), false);
  assert.equal(await onDisk("gone.txt"), "one\nTWO\nthree\n");
});
