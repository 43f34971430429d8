/** Reads a tree of sessions from the server: its agents, and the board that they share. */
import type { Agent, GroupTask } from "@callboard/protocol";
import type { App } from "./app";
import type { AgentsView } from "./model/agents";
import { approvalsOf } from "./model/approvals";
import { list } from "./model/loose";
import { sessionName } from "./model/store";
import type { BoardView } from "./model/tasks";

/** Events after which an agent may look different. */
export const AGENT_EVENTS: readonly string[] = [
  "agent_spawned",
  "agent_status_changed",
  "agent_asked",
  "agent_replied",
  "agent_report_created",
  "agent_interrupted",
  "agent_interrupt_requested",
  "agent_interrupt_consumed",
  "agent_message_queued",
  "agent_closed",
  "turn_started",
  "turn_finished",
  "turn_parked",
  "turn_resumed",
  "tool_call",
  "tool_result",
  "approval_request",
  "approval_decision",
  "model_changed",
  "session_updated",
  "session_closed",
  "session_deleted",
];

/** Events after which a board may look different. */
export const TASK_EVENTS: readonly string[] = [
  "agent_group_created",
  "agent_group_member_joined",
  "group_task_created",
  "group_task_claimed",
  "group_task_released",
  "group_task_status_changed",
  "group_message_queued",
  "group_message_delivered",
  "agent_status_changed",
  "agent_report_created",
  "agent_interrupted",
  "agent_closed",
  "turn_started",
  "turn_finished",
  "session_updated",
  "session_deleted",
];

/** So many tasks are read; a page of the server has fewer. */
export const TASKS = 1000;
const MESSAGES = 20;

interface Page<T> {
  readonly data: T[];
  readonly nextCursor?: string | null;
}

/** All pages of a list, or those with the first `most` entries. */
async function pages<T>(
  ask: (cursor: string | undefined) => Promise<Page<T>>,
  most = Infinity,
): Promise<{ all: T[]; more: boolean }> {
  const all: T[] = [];
  let cursor: string | undefined;
  do {
    const page = await ask(cursor);
    all.push(...list(page.data));
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined && all.length < most);
  return { all, more: cursor !== undefined };
}

/**
 * The root of the tree that a session is part of: known, or asked for.
 * @throws CallError
 */
export async function rootOf(app: App, sessionId: string): Promise<string> {
  const known = app.sessions.byId.get(sessionId);
  if (known) {
    return known.rootId;
  }
  const { session } = await app.request("session/get", { sessionId });
  app.putSession(session);
  return session.rootId;
}

/**
 * The root, and all agents below it.
 * @throws CallError
 */
export async function readAgents(app: App, rootId: string): Promise<Omit<AgentsView, "approvals">> {
  const { session: root } = await app.request("session/get", { sessionId: rootId });
  app.putSession(root);
  const { all: agents } = await pages<Agent>((cursor) =>
    app.request("agent/list", { rootId, ...(cursor === undefined ? {} : { cursor }) }),
  );
  return { root, agents, fetched: performance.now() };
}

/** The same, with what of the root itself waits for an answer. */
export function withApprovals(app: App, view: Omit<AgentsView, "approvals">): AgentsView {
  const { sessionId } = view.root;
  const approvals = approvalsOf(app.approvals, sessionId);
  return { ...view, approvals: approvals.filter((each) => each.sessionId === sessionId) };
}

/**
 * The board of a tree; one that nobody has begun has no group.
 * @throws CallError
 */
export async function readBoard(app: App, rootId: string): Promise<BoardView> {
  const { group } = await app.request("group/get", { rootId });
  const title = sessionName(app.sessions.byId.get(rootId) ?? { sessionId: rootId });
  if (!group) {
    return { root: rootId, title, tasks: [], more: false, messages: [] };
  }
  const { all: tasks, more } = await pages<GroupTask>(
    (cursor) =>
      app.request("group/taskList", {
        rootId,
        status: "all",
        ...(cursor === undefined ? {} : { cursor }),
      }),
    TASKS,
  );
  const { data } = await app.request("group/messageList", { rootId, limit: MESSAGES });
  return { root: rootId, title, group, tasks, more, messages: list(data) };
}
