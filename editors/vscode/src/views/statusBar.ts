/** The item in the status bar, and what it leads to. */
import * as vscode from "vscode";
import type { App } from "../app";
import { stateOf } from "../model/rows";
import { serverState, whyNotStarted } from "../model/serverState";
import { statusLine, type StatusLine } from "../model/statusLine";
import { counts, groupOf, listSessions, sessionName } from "../model/store";
import { label, oneLine } from "../model/text";
import { iconOf } from "./sessionItem";

const COLORS: Readonly<Record<StatusLine["urgency"], string | undefined>> = {
  none: undefined,
  warning: "statusBarItem.warningBackground",
  error: "statusBarItem.errorBackground",
};

function lineOf(app: App): StatusLine {
  const { failure, state } = app.server;
  const message = (state === "waiting" ? whyNotStarted(failure) : undefined) ?? failure?.message;
  return statusLine({
    server: serverState(app),
    running: counts(app.sessions).running,
    approvals: app.approvals.pending.length,
    message: message === undefined ? undefined : oneLine(message, 300),
  });
}

/** Shows how things stand. Changed only when it says something else. */
export function statusBar(app: App): vscode.Disposable {
  const item = vscode.window.createStatusBarItem(
    "callboard.status",
    vscode.StatusBarAlignment.Left,
    10,
  );
  let shown = "";
  const look = (): void => {
    const { text, about, urgency } = lineOf(app);
    const now = JSON.stringify([text, about, urgency]);
    if (now === shown) {
      return;
    }
    shown = now;
    const color = COLORS[urgency];
    item.text = text;
    item.tooltip = `${about}. Choose what to do next.`;
    item.accessibilityInformation = { label: about, role: "button" };
    item.backgroundColor = color === undefined ? undefined : new vscode.ThemeColor(color);
  };
  item.name = "Callboard";
  item.command = "callboard.showActions";
  look();
  item.show();
  const offs = [app.on("server", look), app.on("sessions", look), app.on("approvals", look)];
  return new vscode.Disposable(() => {
    for (const off of offs) {
      off();
    }
    item.dispose();
  });
}

export interface Action extends vscode.QuickPickItem {
  command?: string;
  arguments?: unknown[];
}

/** So many sessions that run are named. */
const NAMED = 5;

/** What can be done as things stand, the most urgent first. */
export function nextActions(app: App): Action[] {
  const action = (text: string, command: string, description = ""): Action => ({
    label: text,
    description,
    command: command.includes(".") ? command : `callboard.${command}`,
  });
  const separator = (text: string): Action => ({
    label: text,
    kind: vscode.QuickPickItemKind.Separator,
  });
  const help = [
    separator("Server"),
    action("$(pulse) Look at what Callboard needs", "doctor"),
    action("$(output) Show the log", "showLog"),
  ];
  const state = serverState(app);
  if (state === "untrusted") {
    return [action("$(shield) Manage workspace trust", "manageTrust"), ...help];
  }
  const restart = action("$(refresh) Restart the server", "restartServer");
  const broken = state === "failed" || state === "notFound" || state === "silent";
  const waiting = app.approvals.pending.length;
  const open = app.focused !== undefined;
  const busy = listSessions(app.sessions)
    .filter((each) => each.status === "running" || each.status === "waiting_approval")
    .slice(0, NAMED);
  return [
    ...(broken ? [restart] : []),
    ...(waiting > 0
      ? [action("$(bell-dot) Go to the next approval", "nextApproval", `${waiting} to answer`)]
      : []),
    ...busy.map((session) => {
      const row = { session, group: groupOf(session), here: true };
      const text = `$(${iconOf(row).id}) ${label(sessionName(session), 60)}`;
      const state = stateOf(session, row.group);
      return { ...action(text, "openSession", state), arguments: [session.sessionId] };
    }),
    action("$(add) New session", "newSession"),
    ...(open ? [action("$(comment-discussion) Show the chat", "focusChat")] : []),
    action("$(folder-opened) Open a session", "openSession"),
    action("$(search) Search sessions", "searchSessions"),
    ...(open ? [action("$(diff-multiple) Show the changes of the session", "openChanges")] : []),
    ...(open ? [action("$(graph) Show tokens and cost", "showUsage")] : []),
    ...help,
    ...(broken ? [] : [restart]),
  ];
}

export async function showActions(app: App): Promise<void> {
  const { about } = lineOf(app);
  const picked = await vscode.window.showQuickPick(nextActions(app), {
    title: about,
    placeHolder: "What to do next",
  });
  if (picked?.command !== undefined) {
    await vscode.commands.executeCommand(picked.command, ...(picked.arguments ?? []));
  }
}
