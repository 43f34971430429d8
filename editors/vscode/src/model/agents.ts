/**
 * The agents of a root session as a tree: who does what, since when, with which model, at what cost, and what
 * it waits for. Pure.
 */
import type { Agent, Approval, Session } from "@callboard/protocol";

import { list, plural } from "./loose";
import { said, saidOfTotal, totalOf } from "./spent";
import { sessionName } from "./store";
import { duration, oneLine } from "./text";
import { ms } from "./time";

export interface AgentsView {
  readonly root: Session;
  readonly agents: readonly Agent[];
  /** Of the root itself. */
  readonly approvals: readonly Approval[];
  /** When it was told, on the clock of `now`. Ms. */
  readonly fetched: number;
}

export type AgentLook =
  "starting" | "running" | "attention" | "completed" | "failed" | "interrupted" | "closed";

/** What a line below an agent is about. */
export type DetailKind =
  "tool" | "approval" | "question" | "queued" | "stopped" | "failed" | "report";

export interface AgentDetail {
  readonly kind: DetailKind;
  readonly text: string;
  /** For how long it has been going on, as text. */
  readonly since?: string;
}

export interface AgentNode {
  /** The session that it is. */
  readonly id: string;
  /** Undefined: the root. */
  readonly agent?: Agent;
  readonly name: string;
  readonly look: AgentLook;
  /** How it stands, and for how long. */
  readonly state: string;
  /** Model and usage, as far as they are known. */
  readonly facts: readonly string[];
  readonly details: readonly AgentDetail[];
  readonly children: readonly AgentNode[];
}

const LOOKS: ReadonlySet<string> = new Set([
  "starting",
  "running",
  "completed",
  "failed",
  "interrupted",
  "closed",
]);

/** A status that is not known here is told in its own words, as something that goes on. */
function lookOf(status: string): AgentLook {
  return LOOKS.has(status) ? (status as AgentLook) : "running";
}

function words(status: unknown): string {
  return oneLine(status, 60).replaceAll("_", " ");
}

/** How an agent stands, in words. */
export function agentState(agent: Agent): { word: string; look: AgentLook } {
  if (list(agent.approvals).length > 0) {
    return { word: "waits for approval", look: "attention" };
  } else if (agent.question) {
    return { word: "waits for a reply", look: "attention" };
  } else if (agent.interrupt === "steer") {
    return { word: "is about to be corrected", look: "running" };
  } else if (agent.interrupt === "cancel") {
    return { word: "winds down", look: "running" };
  } else if (agent.interrupt) {
    return { word: "is being stopped", look: "running" };
  } else if (agent.waitsForSlot) {
    return { word: "waits for a free place", look: "starting" };
  }
  return { word: words(agent.status), look: lookOf(agent.status) };
}

/** How long the turn that runs has taken by now, or the last one took. Ms. */
export function elapsed(view: AgentsView, agent: Agent, now: number): number | undefined {
  if (agent.elapsedMs == null) {
    return undefined;
  }
  return agent.turnId ? agent.elapsedMs + Math.max(0, now - view.fetched) : agent.elapsedMs;
}

/** Whether a turn runs whose time goes on. */
export function runs(view: Pick<AgentsView, "agents">): boolean {
  return view.agents.some((agent) => agent.turnId && agent.elapsedMs != null);
}

/** So many characters of a name are shown. */
export const NAME = 40;

export function agentName(agent: Pick<Agent, "name">): string {
  return oneLine(agent.name, NAME);
}

function toolDetails(view: AgentsView, agent: Agent, now: number): AgentDetail[] {
  const total = agent.turnId ? elapsed(view, agent, now) : undefined;
  const turn = ms(agent.turnStartedAt ?? "");
  return list(agent.tools).map((tool) => {
    const began = ms(tool.startedAt);
    const known = began !== undefined && turn !== undefined && total !== undefined;
    return {
      kind: "tool",
      text: oneLine(tool.title || tool.name, 120),
      ...(known ? { since: duration(Math.max(1000, total - (began - turn))) } : {}),
    };
  });
}

/** How it has ended: what stopped it, or what it reported. */
function endDetails(agent: Agent): AgentDetail[] {
  if (agent.interrupted) {
    return [{ kind: "stopped", text: `stopped: ${oneLine(agent.interrupted.reason, 160)}` }];
  }
  const summary = agent.turnId ? "" : oneLine(agent.report?.summary, 160);
  if (summary === "") {
    return [];
  }
  return agent.report?.status === "failed"
    ? [{ kind: "failed", text: `failed: ${summary}` }]
    : [{ kind: "report", text: `reported: ${summary}` }];
}

function toApprove(approval: { readonly title: string }): AgentDetail {
  return { kind: "approval", text: `to approve: ${oneLine(approval.title, 160)}` };
}

function detailsOf(view: AgentsView, agent: Agent, now: number): AgentDetail[] {
  const details = [...toolDetails(view, agent, now), ...list(agent.approvals).map(toApprove)];
  if (agent.question) {
    details.push({ kind: "question", text: `asks: ${oneLine(agent.question.text, 1000)}` });
  }
  const queued = agent.queued ?? 0;
  if (queued > 0) {
    details.push({ kind: "queued", text: `${plural(queued, "message")} for its next step` });
  }
  return [...details, ...endDetails(agent)];
}

function factsOf(of: Pick<Agent, "model" | "usage">): string[] {
  const model = of.model == null ? "" : oneLine(of.model, NAME);
  return [model, said(of.usage) ?? ""].filter((part) => part !== "");
}

function stateWithTime(view: AgentsView, agent: Agent, now: number): string {
  const { word } = agentState(agent);
  const took = elapsed(view, agent, now);
  if (took === undefined) {
    return word;
  }
  return `${word} ${duration(agent.turnId ? Math.max(1000, took) : took)}`;
}

/**
 * Agents by the one that started them, each list in the order in which they came. One whose parent is not
 * there stands below the root.
 */
function byParent(view: AgentsView): Map<string, Agent[]> {
  const there = new Set([view.root.sessionId, ...view.agents.map((agent) => agent.agentId)]);
  const children = new Map<string, Agent[]>();
  for (const agent of view.agents) {
    const known = there.has(agent.parentId) && agent.parentId !== agent.agentId;
    const parent = known ? agent.parentId : view.root.sessionId;
    children.set(parent, [...(children.get(parent) ?? []), agent]);
  }
  for (const siblings of children.values()) {
    siblings.sort((a, b) =>
      a.createdAt === b.createdAt
        ? Number(a.agentId > b.agentId) - Number(a.agentId < b.agentId)
        : a.createdAt < b.createdAt
          ? -1
          : 1,
    );
  }
  return children;
}

/** The tree, the root at its top. Each agent is in it once, also where parents go in a circle. */
export function agentTree(view: AgentsView, now: number): AgentNode {
  const children = byParent(view);
  const seen = new Set<string>([view.root.sessionId]);
  function node(agent: Agent): AgentNode {
    seen.add(agent.agentId);
    const type = agent.agentType == null ? "" : ` (${oneLine(agent.agentType, 30)})`;
    return {
      id: agent.agentId,
      agent,
      name: agentName(agent) + type,
      look: agentState(agent).look,
      state: stateWithTime(view, agent, now),
      facts: factsOf(agent),
      details: detailsOf(view, agent, now),
      children: below(agent.agentId),
    };
  }
  function below(parent: string): AgentNode[] {
    const nodes: AgentNode[] = [];
    for (const agent of children.get(parent) ?? []) {
      if (!seen.has(agent.agentId)) {
        nodes.push(node(agent));
      }
    }
    return nodes;
  }
  const { root } = view;
  const nodes = below(root.sessionId);
  for (const agent of view.agents) {
    if (!seen.has(agent.agentId)) {
      nodes.push(node(agent)); // below itself, as no tree is: it is shown all the same
    }
  }
  return {
    id: root.sessionId,
    name: oneLine(sessionName(root), 60),
    look: view.approvals.length > 0 ? "attention" : rootLook(root),
    state: words(root.status),
    facts: factsOf(root),
    details: view.approvals.map(toApprove),
    children: nodes,
  };
}

function rootLook(root: Session): AgentLook {
  if (root.closed || root.status === "closed") {
    return "closed";
  } else if (root.status === "running") {
    return "running";
  } else if (root.status === "waiting_approval" || root.status === "parked") {
    return "attention";
  } else if (root.lastOutcome === "failed" || root.lastOutcome === "timed_out") {
    return "failed";
  } else if (root.lastOutcome === "cancelled" || root.lastOutcome === "interrupted") {
    return "interrupted";
  }
  return root.lastOutcome == null ? "starting" : "completed";
}

/** How many there are, and what all of them have used. */
export function sumOf(view: AgentsView): string {
  const looks = view.agents.map((agent) => agentState(agent).look);
  const running = looks.filter((look) => look === "running" || look === "starting").length;
  const attention = looks.filter((look) => look === "attention").length + view.approvals.length;
  const used = saidOfTotal(totalOf(view));
  return [
    plural(view.agents.length, "agent"),
    ...(running > 0 ? [`${running} running`] : []),
    ...(attention > 0 ? [`${attention} waiting for you`] : []),
    ...(used ? [`all together ${used}`] : []),
  ].join(" · ");
}

export const NO_AGENTS =
  "No agents yet: whoever works in this session starts them when there is work for several.";
