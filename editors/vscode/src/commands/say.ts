import type { Delivery } from "@callboard/protocol";
import * as vscode from "vscode";
import type { App } from "../app";
import { label, message } from "../model/text";
import { CallError } from "../server/errors";
import type { Chat } from "../views/chat";

/**
 * Says something to a chat's session, with what stands in its chips; a chat without a session begins one.
 * @throws CallError
 */
export async function say(chat: Chat, text: string, delivery: Delivery): Promise<void> {
  if (text.trim() === "") {
    throw new CallError(0, "There is nothing to send.");
  }
  if (!chat.open) {
    // What is said while a session begins is said to that one.
    const sessionId = await (beginning.get(chat.app) ?? newSession(chat.app));
    if (chat.sessionId === undefined) {
      chat.show(sessionId);
      chat.app.focused = sessionId;
    }
  }
  const { open } = chat;
  if (!open) {
    throw new CallError(0, "The session was closed while it began.");
  }
  const context = chat.context.items();
  const result = await open.prompt({ text, delivery, context });
  chat.context.sent(context);
  if (result.warning != null) {
    void vscode.window.showWarningMessage(message(result.warning, 300));
  }
}

/** Sessions that have been asked for and are not there yet. */
const beginning = new WeakMap<App, Promise<string>>();

/**
 * Begins a session in a folder of this window; asks which when there are several.
 * @throws CallError
 */
export async function newSession(app: App): Promise<string> {
  const begun = begin(app);
  beginning.set(app, begun);
  try {
    return await begun;
  } finally {
    if (beginning.get(app) === begun) {
      beginning.delete(app);
    }
  }
}

async function begin(app: App): Promise<string> {
  const cwd = await folderFor();
  // What the person has opened beside it belongs to the work.
  const additionalDirectories = folders()
    .map((folder) => folder.uri.fsPath)
    .filter((each) => each !== cwd);
  const { session } = await app.change("session/create", { cwd, additionalDirectories });
  app.putSession(session);
  return session.sessionId;
}

function folders(): vscode.WorkspaceFolder[] {
  return (vscode.workspace.workspaceFolders ?? []).filter(({ uri }) => uri.scheme === "file");
}

async function folderFor(): Promise<string> {
  const all = folders();
  const [first] = all;
  if (!first) {
    throw new CallError(0, "An agent works in a folder: open one first (File > Open Folder…).");
  }
  if (all.length === 1) {
    return first.uri.fsPath;
  }
  const active = vscode.window.activeTextEditor?.document.uri;
  const here = active && vscode.workspace.getWorkspaceFolder(active);
  const picked = await vscode.window.showQuickPick(
    [...all]
      .sort((a, b) => Number(b === here) - Number(a === here))
      .map((folder) => ({
        label: label(folder.name),
        description: label(folder.uri.fsPath),
        path: folder.uri.fsPath,
      })),
    { title: "New session", placeHolder: "The folder that the agent works in" },
  );
  if (!picked) {
    throw new vscode.CancellationError();
  }
  return picked.path;
}
