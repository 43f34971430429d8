/** How a line of the list of sessions looks. */
import type { Session } from "@callboard/protocol";
import * as vscode from "vscode";
import { stateBeside, type ListNode, type SessionNode } from "../model/sessionList";
import { age, stateOf, used, type Row } from "../model/rows";
import { worksWith } from "../model/options";
import { sessionName } from "../model/store";
import { oneLine } from "../model/text";
import { bothOf } from "../shared/chat";

/** Lines that came and went by a session, as far as this is known. */
export type ChangedLines = (sessionId: string) => { added: number; removed: number } | undefined;

export interface ItemLook {
  /** Ms since the epoch. */
  readonly now: number;
  readonly usage: boolean;
  readonly changed: ChangedLines;
}

/** Longest title that a line holds. The view cuts it off where there is no room. */
const TITLE = 200;

export function listItem(node: ListNode, look: ItemLook): vscode.TreeItem {
  switch (node.kind) {
    case "session":
      return sessionItem(node, look);
    case "group": {
      const { Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
      const item = new vscode.TreeItem(node.label, node.folded ? Collapsed : Expanded);
      item.id = `group:${node.id}`;
      item.description = node.about;
      item.tooltip = node.about === "" ? node.label : `${node.label}: ${node.about}`;
      item.contextValue = "group";
      return item;
    }
    case "more": {
      const item = new vscode.TreeItem("Show more");
      item.id = `more:${node.group}`;
      item.iconPath = new vscode.ThemeIcon("ellipsis");
      item.description =
        node.count === 0 ? "" : node.open ? `${node.count} or more` : String(node.count);
      item.tooltip = "Show more sessions";
      item.command = run("showMoreSessions", "Show more", node);
      return item;
    }
    case "hidden": {
      const item = new vscode.TreeItem(node.label);
      item.id = "hidden";
      item.iconPath = new vscode.ThemeIcon("filter");
      item.tooltip = node.about;
      item.command = run("showHiddenSessions", "Show all", node);
      return item;
    }
  }
}

function run(name: string, title: string, argument: unknown): vscode.Command {
  return { command: `callboard.${name}`, title, arguments: [argument] };
}

function sessionItem(node: SessionNode, look: ItemLook): vscode.TreeItem {
  const { session } = node.row;
  const title = oneLine(sessionName(session), TITLE);
  const item = new vscode.TreeItem(title);
  const state = stateOf(session, node.row.group);
  item.id = `session:${session.sessionId}`;
  const facts = factsOf(node, look);
  const pinned = session.pinned ? ["pinned"] : [];
  item.description = [stateBeside(node), ...facts, ...pinned].filter(Boolean).join(" · ");
  item.iconPath = iconOf(node.row);
  item.tooltip = tooltipOf(node.row, look);
  item.contextValue = contextOf(session);
  item.command = run("openSession", "Open", session.sessionId);
  item.accessibilityInformation = {
    label: [title, state, ...pinned, ...facts].join(", "),
  };
  return item;
}

/** What stands behind the title: agent, when something happened last, lines, cost. */
function factsOf(node: SessionNode, look: ItemLook): string[] {
  const { session, here } = node.row;
  const lines = look.changed(session.sessionId);
  const spent = look.usage ? used(session.usage) : "";
  const facts = [
    // That it is the agent that everybody has says nothing.
    session.profile === "default" ? "" : oneLine(session.profile, 40),
    here ? "" : oneLine(/[^/\\]+[/\\]*$/.exec(session.cwd)?.[0] ?? session.cwd, 30),
    age(session.updatedAt, look.now),
    lines ? `+${lines.added} −${lines.removed}` : "",
    // The cost alone where it is known: there is little room. The tooltip has both.
    /\S+$/.exec(spent)?.[0] === "tokens" ? spent : spent.replace(/^.* tokens /, ""),
  ];
  return facts.filter((fact) => fact !== "");
}

/** Words by which menus know what may be done with a session. */
export function contextOf(session: Session): string {
  const busy = session.status === "running" || session.status === "waiting_approval";
  return [
    "session",
    ...(busy ? ["running"] : []),
    ...(session.pinned ? ["pinned"] : []),
    ...(session.archived ? ["archived"] : []),
  ].join(" ");
}

const ICONS: Readonly<Record<string, readonly [icon: string, color?: string]>> = {
  "waits for you": ["bell-dot", "list.warningForeground"],
  running: ["loading~spin"],
  failed: ["error", "list.errorForeground"],
  stopped: ["circle-slash"],
  new: ["circle-large-outline"],
  done: ["pass"],
  archived: ["archive"],
  closed: ["lock"],
};

export function iconOf(row: Row): vscode.ThemeIcon {
  const [icon, color] = ICONS[stateOf(row.session, row.group)] ?? ["circle-large-outline"];
  return color === undefined
    ? new vscode.ThemeIcon(icon)
    : new vscode.ThemeIcon(icon, new vscode.ThemeColor(color));
}

/** All that is known of a session. A plain text, since none of it is to be trusted. */
export function tooltipOf(row: Row, look: Pick<ItemLook, "now">): string {
  const { session } = row;
  const { model, agentModel, agentMode } = worksWith(session, session.mode, session.model);
  const line = (name: string, value: string): string[] =>
    value === "" ? [] : [`${name}: ${oneLine(value, 200)}`];
  const waiting = session.pendingApprovals;
  return [
    oneLine(sessionName(session), 300),
    "",
    ...line("State", stateOf(session, row.group)),
    ...line("Agent", session.profile),
    ...line("Model", bothOf(model, agentModel) || "as configured"),
    ...line("Mode", bothOf(session.mode, agentMode)),
    ...line("Folder", session.cwd),
    ...line("Changed", ago(age(session.updatedAt, look.now))),
    ...line("Begun", ago(age(session.createdAt, look.now))),
    ...line("Usage", used(session.usage) || "not known"),
    ...(session.queueLength > 0 ? line("Queue", String(session.queueLength)) : []),
    ...(waiting > 0 ? line("Approvals", `${waiting} wait for an answer`) : []),
    ...(session.forkedFrom ? line("Fork of", session.forkedFrom.sessionId) : []),
    ...line("Id", session.sessionId),
  ].join("\n");
}

function ago(passed: string): string {
  return passed === "" || passed === "now" ? passed : `${passed} ago`;
}
