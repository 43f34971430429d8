/** Sessions that change files of the workspace, and their diffs, for suites. */
import assert from "node:assert/strict";
import * as fs from "node:fs/promises";
import { join } from "node:path";
import * as vscode from "vscode";
import type { Api } from "../../src/extension";
import { until } from "./runner";

export const root = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";

export async function api(): Promise<Api> {
  const extension = vscode.extensions.getExtension<Api>("callboard.callboard");
  assert.ok(extension, "it is not installed");
  return extension.activate();
}

export function at(name: string): string {
  return join(root, name);
}

export async function onDisk(name: string): Promise<string | undefined> {
  return fs.readFile(at(name), "utf8").catch(() => undefined);
}

/** A session that does what it is told, up to where it asks. */
export async function asked(prompt: string): Promise<string> {
  const { app } = await api();
  const { session } = await app.change("session/create", { cwd: root, title: prompt });
  const { sessionId } = session;
  app.focused = sessionId;
  await app.change("session/prompt", { sessionId, content: [{ type: "text", text: prompt }] });
  await until("it asks", () => app.approvals.pending.some((each) => each.sessionId === sessionId));
  return sessionId;
}

/** A session that has done what it was told. */
export async function done(prompt: string): Promise<string> {
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

export function tab(): vscode.TabInputTextDiff | undefined {
  const input: unknown = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
  return input instanceof vscode.TabInputTextDiff ? input : undefined;
}

export function title(): string {
  return vscode.window.tabGroups.activeTabGroup.activeTab?.label ?? "";
}

export async function text(uri: vscode.Uri | undefined): Promise<string> {
  assert.ok(uri);
  return (await vscode.workspace.openTextDocument(uri)).getText();
}

export async function shown(sessionId: string, name: string): Promise<vscode.TabInputTextDiff> {
  await vscode.commands.executeCommand("callboard.showDiff", sessionId, at(name));
  return until("the diff is shown", () => tab());
}

export async function state(sessionId: string, name: string): Promise<string | undefined> {
  const { reviewing } = await api();
  return reviewing.changes.with(sessionId, (tracked) => tracked.file(at(name))?.state);
}

/** Puts back what the active diff shows, and waits until that is settled. */
export async function putBack(sessionId: string, name: string): Promise<void> {
  await vscode.commands.executeCommand("callboard.rejectFile");
  assert.equal(await state(sessionId, name), "rejected");
}

/** Gives up what is unsaved in a document, and closes all tabs. */
export async function leave(document?: vscode.TextDocument): Promise<void> {
  if (document) {
    await vscode.window.showTextDocument(document);
    await vscode.commands.executeCommand("workbench.action.files.revert");
    await until("nothing is unsaved", () => !document.isDirty);
  }
  // The editor would ask, and wait for an answer.
  const unsaved = vscode.workspace.textDocuments.filter(({ isDirty }) => isDirty);
  assert.deepEqual(
    unsaved.map(({ uri }) => uri.fsPath),
    [],
  );
  await vscode.window.tabGroups.close(vscode.window.tabGroups.all.flatMap((group) => group.tabs));
  await until("no tab is open", () => vscode.window.tabGroups.all.every(({ tabs }) => !tabs[0]));
}
