/** The agents of the open session's tree: the lead, its members, and those below them. */
import type * as vscode from "vscode";
import type { App } from "../app";
import {
  agentTree,
  runs,
  sumOf,
  type AgentDetail,
  type AgentLook,
  type AgentNode,
  type AgentsView,
} from "../model/agents";
import { AGENT_EVENTS, readAgents, withApprovals } from "../team";
import type { Line } from "./keyedTree";
import { TreeOfSession, type Picture } from "./treeOfSession";

/** Each look is told by its icon and by its words; colour only repeats them. */
const ICONS: Readonly<Record<AgentLook, readonly [icon: string, color?: string]>> = {
  starting: ["circle-outline"],
  running: ["play-circle", "charts.blue"],
  attention: ["bell-dot", "notificationsWarningIcon.foreground"],
  completed: ["pass", "testing.iconPassed"],
  failed: ["error", "testing.iconFailed"],
  interrupted: ["debug-stop", "notificationsWarningIcon.foreground"],
  closed: ["circle-slash"],
};

const DETAIL_ICONS: Readonly<Record<AgentDetail["kind"], string>> = {
  tool: "tools",
  approval: "bell-dot",
  question: "question",
  queued: "mail",
  stopped: "debug-stop",
  failed: "error",
  report: "note",
};

/** What a line of the tree is about. */
export interface AboutAgent {
  readonly id: string;
  readonly node: AgentNode;
}

function openCommand(id: string): vscode.Command {
  return { command: "callboard.openSession", title: "Open", arguments: [id] };
}

function detailLine(node: AgentNode, detail: AgentDetail, at: number): Line {
  const about: AboutAgent = { id: node.id, node };
  const asks = detail.kind === "question";
  return {
    id: `${node.id}/${detail.kind}/${at}`,
    label: detail.text,
    ...(detail.since === undefined ? {} : { description: detail.since }),
    icon: DETAIL_ICONS[detail.kind],
    ...(asks || detail.kind === "approval" ? { color: "notificationsWarningIcon.foreground" } : {}),
    context: asks ? "callboardDetail asks" : "callboardDetail",
    command: asks
      ? { command: "callboard.answerAgent", title: "Reply", arguments: [node.id] }
      : openCommand(node.id),
    children: [],
    about,
  };
}

/** Words by which menus know what can be done with an agent. */
function contextOf(node: AgentNode): string {
  const { agent } = node;
  if (!agent) {
    return "callboardLead";
  }
  return [
    "callboardAgent",
    ...(agent.turnId ? ["running"] : []),
    ...(agent.question ? ["asks"] : []),
    agent.status === "closed" ? "closed" : "open",
  ].join(" ");
}

function tooltipOf(node: AgentNode): string {
  return [
    `${node.name}: ${node.state}`,
    ...node.facts,
    ...node.details.map((detail) =>
      detail.since === undefined ? detail.text : `${detail.text} (${detail.since})`,
    ),
  ].join("\n");
}

/** A model without its provider, so that in a narrow list there is room for what it has used. */
function brief(fact: string): string {
  return fact.split("/").at(-1) ?? fact;
}

function lineOf(node: AgentNode): Line {
  const [icon, color] = ICONS[node.look];
  const about: AboutAgent = { id: node.id, node };
  return {
    id: node.id,
    label: node.name,
    description: [node.state, ...node.facts.map(brief)].join(" · "),
    tooltip: tooltipOf(node),
    icon,
    ...(color === undefined ? {} : { color }),
    context: contextOf(node),
    command: openCommand(node.id),
    children: [
      ...node.details.map((detail, at) => detailLine(node, detail, at)),
      ...node.children.map(lineOf),
    ],
    about,
  };
}

/** A session without agents shows nothing: the view says then what it is for. */
export function picture(view: AgentsView, now: number): Picture {
  const lines = view.agents.length > 0 ? [lineOf(agentTree(view, now))] : [];
  return { lines, summary: view.agents.length > 0 ? sumOf(view) : "" };
}

export type AgentsTree = TreeOfSession<Omit<AgentsView, "approvals">>;

export function agentsTree(app: App): AgentsTree {
  return new TreeOfSession(app, {
    id: "callboard.agents",
    types: AGENT_EVENTS,
    read: (root) => readAgents(app, root),
    draw: (view) => picture(withApprovals(app, view), performance.now()),
    runs: (view) => runs(view),
  });
}
