/** The extension in the host that VS Code gives it. */
import assert from "node:assert/strict";

import * as vscode from "vscode";

import { test, until } from "../runner";

export { run } from "../runner";

const ID = "callboard.callboard";

test("the extension is there and activates", async () => {
  const extension = vscode.extensions.getExtension(ID);
  assert.ok(extension, "it is not installed");
  await extension.activate();
  await until("it is active", () => extension.isActive);
});

test("every command of the manifest is registered", async () => {
  const extension = vscode.extensions.getExtension<unknown>(ID);
  assert.ok(extension);
  const manifest = extension.packageJSON as {
    contributes?: { commands?: { command: string }[] };
  };
  const contributed = (manifest.contributes?.commands ?? []).map(({ command }) => command);
  const registered = await vscode.commands.getCommands(true);
  assert.deepEqual(
    contributed.filter((command) => !registered.includes(command)),
    [],
  );
});

test("files of the workspace are found", async () => {
  const found = await vscode.workspace.findFiles("**/*.txt");
  assert.deepEqual(
    found.map((uri) => vscode.workspace.asRelativePath(uri)),
    ["notes/a file.txt"],
  );
});
