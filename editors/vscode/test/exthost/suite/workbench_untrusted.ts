/** A folder that is not trusted: nothing is started, and everything says why. */
import assert from "node:assert/strict";
import * as vscode from "vscode";
import type { Api } from "../../../src/extension";
import type { CallError } from "../../../src/server/errors";
import { test, until } from "../runner";

export { run } from "../runner";

async function api(): Promise<Api> {
  const extension = vscode.extensions.getExtension<Api>("callboard.callboard");
  assert.ok(extension, "it is not installed");
  return extension.activate();
}

test("the extension is there, and starts no server, whatever is looked at", async () => {
  const { app, sessions } = await api();
  assert.equal(vscode.workspace.isTrusted, false);
  await vscode.commands.executeCommand("callboard.sessions.focus");
  await vscode.commands.executeCommand("callboard.chat.focus");
  app.start();
  assert.equal(app.server.state, "stopped");
  assert.deepEqual(sessions.getChildren(), []);
});

test("what is asked for is refused in words that say the way out", async () => {
  const { app } = await api();
  await assert.rejects(app.request("session/list", {}), (fault) => {
    // Of another bundle, and so of another class.
    assert.equal((fault as CallError).kind, "noServer");
    assert.match(String(fault), /Restricted Mode/);
    return true;
  });
});

test("the doctor works, and runs nothing", async () => {
  const { app } = await api();
  await vscode.commands.executeCommand("callboard.doctor");
  const text = await until("the document", () => {
    const { document } = vscode.window.activeTextEditor ?? {};
    return document?.languageId === "markdown" && document.getText();
  });
  assert.match(text, /Restricted Mode/);
  assert.match(text, /Not looked at in Restricted Mode/);
  assert.equal(app.server.state, "stopped");
});
