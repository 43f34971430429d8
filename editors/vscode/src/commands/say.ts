import type { Delivery } from "@callboard/protocol";
import * as vscode from "vscode";
import type { App } from "../app";
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
    const sessionId = await newSession(chat.app);
    chat.show(sessionId);
    chat.app.focused = sessionId;
  }
  const { open } = chat;
  if (!open) {
    throw new CallError(0, "The session was closed while it began.");
  }
  const context = chat.context.items();
  const result = await open.prompt({ text, delivery, context });
  chat.context.sent();
  if (result.warning != null) {
    void vscode.window.showWarningMessage(result.warning);
  }
}

/**
 * Begins a session in a folder of this window; asks which when there are several.
 * @throws CallError
 */
export async function newSession(app: App): Promise<string> {
  const folder = await folderFor();
  const { session } = await app.change("session/create", { cwd: folder });
  app.putSession(session);
  return session.sessionId;
}

async function folderFor(): Promise<string> {
  const folders = (vscode.workspace.workspaceFolders ?? []).filter(
    (folder) => folder.uri.scheme === "file",
  );
  const [first] = folders;
  if (!first) {
    throw new CallError(0, "An agent works in a folder: open one first (File > Open Folder…).");
  }
  if (folders.length === 1) {
    return first.uri.fsPath;
  }
  const active = vscode.window.activeTextEditor?.document.uri;
  const here = active && vscode.workspace.getWorkspaceFolder(active);
  const picked = await vscode.window.showQuickPick(
    [...folders]
      .sort((a, b) => Number(b === here) - Number(a === here))
      .map((folder) => ({
        label: folder.name,
        description: folder.uri.fsPath,
        path: folder.uri.fsPath,
      })),
    { title: "New session", placeHolder: "The folder that the agent works in" },
  );
  if (!picked) {
    throw new vscode.CancellationError();
  }
  return picked.path;
}
