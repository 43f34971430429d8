/** What a person does in a chat, carried out. What fails is told where it was done. */
import * as path from "node:path";
import * as vscode from "vscode";
import { interrupt } from "../commands/interrupt";
import { editQueued, removeQueued, steerQueued } from "../commands/queue";
import { failed } from "../commands/registry";
import { say } from "../commands/say";
import { getApproval } from "../model/approvals";
import { message as plainMessage, visible } from "../model/text";
import type { FileLink, FromChat } from "../shared/chat";
import { CallError, explain } from "../server/errors";
import type { Chat } from "./chat";
import type { Documents } from "./documents";
import { wholeOf } from "./whole";

export interface ChatDoing {
  documents: Documents;
}

type Action = Exclude<FromChat, { type: "ready" } | { type: "focused" }>;

/** So many files are offered for a few letters. */
const OFFERED = 30;

/** Never rejects. */
export async function act(chat: Chat, action: Action, doing: ChatDoing): Promise<void> {
  try {
    await perform(chat, action, doing);
  } catch (fault) {
    await failed(chat.app, fault);
  }
}

async function perform(chat: Chat, action: Action, doing: ChatDoing): Promise<void> {
  const { app, open } = chat;
  switch (action.type) {
    case "send":
      await send(chat, action);
      return;
    case "answer":
      await answer(chat, action);
      return;
    case "command":
      await command(chat, action.command);
      return;
    case "openFile":
      await openFile(chat, action.file);
      return;
    case "openLink":
      await openLink(action.href);
      return;
    case "openApprovalDiff":
      await vscode.commands.executeCommand("callboard.showApprovalDiff", action.approvalId);
      return;
    case "copy":
      await vscode.env.clipboard.writeText(action.text);
      return;
    case "chip":
      chat.context[action.do](action.id);
      return;
    case "findFiles":
      chat.files(action.query, await findFiles(action.query));
      return;
    case "attach":
      chat.context.add(vscode.Uri.file(resolved(chat, action.file.path)));
      return;
    case "retry":
      await retry(chat);
      return;
    case "older":
      await chat.older();
      return;
    default:
  }
  if (!open) {
    return;
  }
  switch (action.type) {
    case "cancel":
      await interrupt(app, open.id, action.scope);
      return;
    case "interrupt":
      await interrupt(app, open.id, action.what);
      return;
    case "openDiff":
      await vscode.commands.executeCommand("callboard.showDiff", open.id, action.path);
      return;
    case "openWhole": {
      const item = open.transcript.byId.get(action.cardId);
      if (item) {
        const whole = await wholeOf(app, item);
        await doing.documents.show(whole.name, visible(whole.text), whole.language);
      }
      return;
    }
    case "queueEdit":
      await editQueued(open, action.eventSeq, action.text);
      return;
    case "queueRemove":
      await removeQueued(open, action.eventSeq);
      return;
    case "queueSteer":
      await steerQueued(open, action.eventSeq, (text) => {
        chat.say({ type: "insert", text });
      });
      return;
    case "rewind":
      await vscode.commands.executeCommand("callboard.restoreCheckpoint", open.id, action.turnId);
      return;
    default:
  }
}

async function send(chat: Chat, action: Extract<Action, { type: "send" }>): Promise<void> {
  const { key, text, delivery } = action;
  try {
    await say(chat, text, delivery);
    chat.say({ type: "sent", key, ok: true });
  } catch (fault) {
    chat.app.log.error(explain(fault));
    // Given back: what a person typed is in the log, on its way, or in the composer.
    chat.say({ type: "sent", key, ok: false, message: explain(fault) });
  }
}

async function answer(chat: Chat, action: Extract<Action, { type: "answer" }>): Promise<void> {
  const { approvalId, optionId, note } = action;
  const { app } = chat;
  const approval = app.approvals.pending.find((each) => each.approvalId === approvalId);
  const option = approval?.options.find((each) => each.optionId === optionId);
  if (!approval || !option) {
    tooLate(chat, approvalId, "It does not wait any more: it was answered, or its turn has ended.");
    return;
  }
  try {
    const answered = await app.answer(approval, option, note);
    if (!answered.taken) {
      tooLate(chat, approvalId, answered.message);
    }
  } catch (fault) {
    chat.say({ type: "refused", approvalId, message: explain(fault) });
  }
}

/** The card says so for as long as it is there; where it has gone, the person would see no word of it. */
function tooLate(chat: Chat, approvalId: string, words: string): void {
  chat.say({ type: "refused", approvalId, message: words });
  if (!getApproval(chat.app.approvals, approvalId)) {
    void vscode.window.showWarningMessage(plainMessage(words, 300));
  }
}

async function command(
  chat: Chat,
  name: Extract<Action, { type: "command" }>["command"],
): Promise<void> {
  if (name === "callboard.manageTrust") {
    await vscode.commands.executeCommand("workbench.trust.manage");
  } else if (name === "callboard.serverSettings") {
    await vscode.commands.executeCommand("workbench.action.openSettings", "callboard.server");
  } else {
    await vscode.commands.executeCommand(name, chat.sessionId);
  }
}

/** Paths of a session are meant from where its agent works. */
function resolved(chat: Chat, file: string): string {
  const cwd =
    chat.open?.session?.cwd ?? vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? path.sep;
  return path.resolve(cwd, file);
}

async function openFile(chat: Chat, file: FileLink): Promise<void> {
  const uri = vscode.Uri.file(resolved(chat, file.path));
  const kind = await vscode.workspace.fs.stat(uri).then(
    (stat) => stat.type,
    () => undefined,
  );
  if (kind === undefined) {
    throw new CallError(0, `${uri.fsPath} is not there: it was moved, deleted, or never made.`);
  }
  if (kind & vscode.FileType.Directory) {
    await vscode.commands.executeCommand("revealInExplorer", uri);
    return;
  }
  const line = Math.max(0, (file.line ?? 1) - 1);
  // Through `vscode.open`, which also shows what is no text.
  await vscode.commands.executeCommand("vscode.open", uri, {
    ...(file.line === undefined ? {} : { selection: new vscode.Range(line, 0, line, 0) }),
    // Not over the chat that it was asked from.
    viewColumn:
      chat.surface.place === "editor" ? vscode.ViewColumn.Beside : vscode.ViewColumn.Active,
  });
}

/** Opens what is safe to open, after VS Code's own question about where it leads. */
async function openLink(href: string): Promise<void> {
  const uri = vscode.Uri.parse(href, true);
  if (!["http", "https", "mailto"].includes(uri.scheme)) {
    throw new CallError(0, `A link of the kind ${uri.scheme}: is not followed.`);
  }
  await vscode.env.openExternal(uri);
}

async function findFiles(query: string): Promise<FileLink[]> {
  const letters = Array.from(query.replace(/[^\p{L}\p{N}._/-]+/gu, "")).slice(0, 40);
  const any = letters.map((letter) => `*${caseless(letter)}`).join("");
  // Settings such as `files.exclude` hold for it.
  const found = await vscode.workspace.findFiles(`**/${any}*`, undefined, OFFERED * 4);
  return found
    .map((uri) => ({ label: vscode.workspace.asRelativePath(uri), path: uri.fsPath }))
    .sort((a, b) => a.label.length - b.label.length || (a.label < b.label ? -1 : 1))
    .slice(0, OFFERED);
}

function caseless(letter: string): string {
  const [low, high] = [letter.toLowerCase(), letter.toUpperCase()];
  return low !== high && low.length === 1 && high.length === 1 ? `[${low}${high}]` : letter;
}

/** What is lost is read again; without a server, one is started. */
async function retry(chat: Chat): Promise<void> {
  const { app, open } = chat;
  if (app.server.state === "failed" || app.server.silent) {
    app.server.restart();
  } else if (open?.phase === "lost") {
    await open.load();
  } else {
    app.start();
  }
}
