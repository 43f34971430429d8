/** Sessions as files: written wherever one likes, and brought in from there. */
import { randomUUID } from "node:crypto";
import * as fs from "node:fs/promises";
import * as os from "node:os";
import * as path from "node:path";
import type { Session } from "@callboard/protocol";
import * as vscode from "vscode";
import type { App } from "../app";
import { asText, oneLine } from "../model/text";
import { CallError, kindOf } from "../server/errors";
import { called } from "./called";

type Format = "markdown" | "jsonl";

const FORMATS: readonly (vscode.QuickPickItem & { format: Format; ending: string })[] = [
  { label: "Markdown", detail: "To read and to share", format: "markdown", ending: "md" },
  {
    label: "JSON lines",
    detail: "All of it, to be imported elsewhere",
    format: "jsonl",
    ending: "jsonl",
  },
];

/** A name for a file, made of a title. */
export function fileName(session: Pick<Session, "sessionId" | "title">, ending: string): string {
  const name = asText(session.title)
    .replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}/\\:*?"<>|\s%#`$!&';{}~]+/gu, "-")
    .replace(/^[-.]+/, "");
  const short = Array.from(name)
    .slice(0, 60)
    .join("")
    .replace(/[-.]+$/, "");
  return `${short === "" ? `session-${session.sessionId.slice(-6)}` : short}.${ending}`;
}

function startFolder(): string {
  return vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? os.homedir();
}

export async function exportSession(app: App, sessionId: string): Promise<void> {
  const picked = await vscode.window.showQuickPick(FORMATS, {
    title: `Export ${called(app, sessionId)}`,
    placeHolder: "As what",
  });
  if (!picked) {
    return;
  }
  const { format, ending } = picked;
  const name = fileName(app.sessions.byId.get(sessionId) ?? { sessionId }, ending);
  const uri = await vscode.window.showSaveDialog({
    title: "Export Session",
    saveLabel: "Export",
    defaultUri: vscode.Uri.file(path.join(startFolder(), name)),
    filters: { [picked.label]: [ending] },
  });
  if (!uri) {
    return;
  }
  const whole = await vscode.window.withProgress(
    {
      location: vscode.ProgressLocation.Notification,
      title: `Exporting ${called(app, sessionId)}`,
      cancellable: true,
    },
    (_, cancelled) => writeExport(app, { sessionId, format }, uri.fsPath, cancelled),
  );
  if (!whole) {
    return;
  }
  const open = "Open";
  const said = `The session is in ${oneLine(path.basename(uri.fsPath), 80)}.`;
  if ((await vscode.window.showInformationMessage(said, open)) === open) {
    await vscode.commands.executeCommand("vscode.open", uri);
  }
}

/**
 * Writes piece by piece, beside the file that is to be: there is never half of one.
 * @returns false when it was cancelled
 */
export async function writeExport(
  app: Pick<App, "request">,
  wanted: { sessionId: string; format: Format },
  file: string,
  cancelled: Pick<vscode.CancellationToken, "isCancellationRequested">,
): Promise<boolean> {
  const part = `${file}.${randomUUID().slice(0, 8)}.part`;
  const handle = await fs.open(part, "wx"); // whatever else is there is somebody's
  try {
    let cursor: string | undefined;
    do {
      if (cancelled.isCancellationRequested) {
        return false;
      }
      const piece = await app.request("session/export", {
        ...wanted,
        ...(cursor === undefined ? {} : { cursor }),
      });
      await handle.writeFile(piece.text, "utf8");
      cursor = piece.nextCursor ?? undefined;
    } while (cursor !== undefined);
    await handle.sync();
    await fs.rename(part, file);
    return true;
  } finally {
    await handle.close();
    await fs.rm(part, { force: true });
  }
}

/** Brings in a session from a file; nothing in it runs by itself. */
export async function importSession(app: App): Promise<Session | undefined> {
  const [uri] =
    (await vscode.window.showOpenDialog({
      title: "Import a Session",
      openLabel: "Import",
      defaultUri: vscode.Uri.file(startFolder()),
      filters: { "JSON lines": ["jsonl"], "All files": ["*"] },
    })) ?? [];
  if (!uri) {
    return undefined;
  }
  if (uri.scheme !== "file") {
    throw new CallError(0, "Only a file of the machine that the server runs on can be imported.");
  }
  const bring = (newId: boolean): Promise<Session> => bringIn(app, uri.fsPath, newId);
  try {
    return await bring(false);
  } catch (fault) {
    if (kindOf(fault) !== "sessionExists") {
      throw fault;
    }
    const beside = "Import Beside It";
    const chosen = await vscode.window.showWarningMessage(
      "This session is in the store already. Import the file as another one, beside it?",
      { modal: true },
      beside,
    );
    return chosen === beside ? bring(true) : undefined;
  }
}

async function bringIn(app: App, file: string, newId: boolean): Promise<Session> {
  const { session, added } = await vscode.window.withProgress(
    { location: vscode.ProgressLocation.Notification, title: "Importing a session" },
    () => app.change("session/import", { path: file, newId }),
  );
  if ((added ?? 0) > 0) {
    void vscode.window.showInformationMessage(
      "The turn that was under way when it was exported is interrupted.",
    );
  }
  return session;
}
