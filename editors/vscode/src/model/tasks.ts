/** The task board of a group: tasks by how they stand, who has them, and what is in the way. Pure. */
import type {
  DependencyFailure,
  Group,
  GroupConflict,
  GroupCounts,
  GroupMember,
  GroupMessage,
  GroupTask,
} from "@callboard/protocol";

import { list, plural } from "./loose";
import { oneLine } from "./text";

export type TaskSection = "ready" | "active" | "blocked" | "waiting" | "done" | "cancelled";

export interface BoardView {
  /** Of the root session. */
  readonly title: string;
  readonly root: string;
  readonly group?: Group | undefined;
  /** In the order in which they were created. */
  readonly tasks: readonly GroupTask[];
  /** There are tasks that are not among them. */
  readonly more: boolean;
  /** To the root, the newest first. */
  readonly messages: readonly GroupMessage[];
}

export const SECTIONS: readonly { readonly name: TaskSection; readonly title: string }[] = [
  { name: "ready", title: "Ready" },
  { name: "active", title: "Active" },
  { name: "blocked", title: "Blocked" },
  { name: "waiting", title: "Waiting" },
  { name: "done", title: "Done" },
  { name: "cancelled", title: "Cancelled" },
];

/** So many tasks that are over are shown; the latest tell the most. */
export const OVER = 20;
/** Of many tasks that another waits for, so many are named. */
const NAMED = 3;

export function sectionOf(task: GroupTask): TaskSection {
  switch (task.status) {
    case "completed":
      return "done";
    case "cancelled":
      return "cancelled";
    case "blocked":
      return "blocked";
    case "claimed":
    case "in_progress":
      return "active";
    default:
      return task.ready ? "ready" : "waiting";
  }
}

export function isOver(section: TaskSection): boolean {
  return section === "done" || section === "cancelled";
}

/** The words for a status, as in `in progress`. */
export function statusWords(status: unknown): string {
  return oneLine(status, 60).replaceAll("_", " ");
}

function short(id: string): string {
  return `…${oneLine(id).slice(-6)}`;
}

export function memberName(view: BoardView, id: string | null | undefined): string {
  const member = list(view.group?.members).find((each) => each.agentId === id);
  if (member) {
    return oneLine(member.name, 40);
  }
  return id ? short(id) : "nobody";
}

export function taskOf(view: BoardView, id: string): GroupTask | undefined {
  return view.tasks.find((task) => task.taskId === id);
}

/** A message of the server with the titles of tasks in the place of their ids. */
export function withTitles(view: BoardView, message: string): string {
  return view.tasks.reduce(
    (told, task) => told.replaceAll(task.taskId, () => `"${oneLine(task.title, 40)}"`),
    message,
  );
}

/** What the tasks of a view are told with; made once for all of them. */
export interface BoardIndex {
  readonly titles: ReadonlyMap<string, string>;
  readonly members: ReadonlyMap<string, GroupMember>;
  readonly failures: ReadonlyMap<string, readonly DependencyFailure[]>;
  readonly conflicts: ReadonlyMap<string, readonly GroupConflict[]>;
}

function grouped<T>(all: readonly T[], keys: (one: T) => readonly string[]): Map<string, T[]> {
  const by = new Map<string, T[]>();
  for (const one of all) {
    for (const key of keys(one)) {
      by.set(key, [...(by.get(key) ?? []), one]);
    }
  }
  return by;
}

export function indexOf(view: BoardView): BoardIndex {
  const { group } = view;
  return {
    titles: new Map(view.tasks.map((task) => [task.taskId, oneLine(task.title, 40)])),
    members: new Map(list(group?.members).map((member) => [member.agentId, member])),
    failures: grouped(list(group?.dependencyFailures), (failure) => [failure.taskId]),
    conflicts: grouped(list(group?.conflicts), (conflict) => list(conflict.taskIds)),
  };
}

function named(index: BoardIndex, ids: readonly string[]): string {
  const names = ids.slice(0, NAMED).map((id) => `"${index.titles.get(id) ?? short(id)}"`);
  return [...names, ...(ids.length > NAMED ? [`${ids.length - NAMED} more`] : [])].join(", ");
}

/** What a line below a task is: `warning` wants somebody to look. */
export type TaskTone = "plain" | "warning" | "error";

export interface TaskDetail {
  readonly text: string;
  readonly tone: TaskTone;
}

function waits(task: GroupTask, index: BoardIndex): TaskDetail[] {
  const failures = index.failures.get(task.taskId) ?? [];
  const failed = new Set(failures.map((failure) => failure.dependencyId));
  const blockers = list(task.blockers).filter((id) => !failed.has(id));
  return [
    ...failures.map((failure): TaskDetail => ({
      text: `cannot become ready: ${named(index, [failure.dependencyId])} is ${statusWords(failure.status)}`,
      tone: "error",
    })),
    ...(blockers.length > 0
      ? [{ text: `waits for ${named(index, blockers)}`, tone: "plain" as const }]
      : []),
  ];
}

function abandoned(view: BoardView, task: GroupTask, index: BoardIndex): TaskDetail[] {
  const owner = task.assignee == null ? undefined : index.members.get(task.assignee);
  if (!owner || owner.isRoot || owner.status === "running" || owner.status === "starting") {
    return [];
  }
  const how = owner.status == null ? "?" : statusWords(owner.status);
  const text = `nobody is at it: ${memberName(view, task.assignee)} is ${how}`;
  return [{ text, tone: "warning" }];
}

/** What is in a task's way, or came of it; a line each. */
export function taskDetails(
  view: BoardView,
  task: GroupTask,
  index: BoardIndex = indexOf(view),
): TaskDetail[] {
  const told: TaskDetail[] = [];
  switch (sectionOf(task)) {
    case "waiting":
      told.push(...waits(task, index));
      break;
    case "blocked":
      told.push({ text: oneLine(task.reason, 200), tone: "error" });
      break;
    case "cancelled":
      told.push({ text: oneLine(task.reason, 120), tone: "plain" });
      break;
    case "done":
      told.push({ text: oneLine(task.summary, 160), tone: "plain" });
      break;
    case "active":
      told.push(...abandoned(view, task, index));
      break;
    default:
  }
  for (const conflict of index.conflicts.get(task.taskId) ?? []) {
    const others = list(conflict.taskIds).filter((id) => id !== task.taskId);
    const text = `${named(index, others)} changes ${oneLine(conflict.path, 80)}, too`;
    told.push({ text, tone: "warning" });
  }
  return told.filter((detail) => detail.text !== "");
}

/** Who has it, that somebody is at it, and whether the work is complete without it. */
export function taskFacts(view: BoardView, task: GroupTask): string[] {
  return [
    ...(task.assignee == null ? [] : [memberName(view, task.assignee)]),
    ...(task.status === "in_progress" ? ["in progress"] : []),
    ...(task.required === false ? ["optional"] : isOver(sectionOf(task)) ? [] : ["required"]),
  ];
}

export interface SectionTasks {
  readonly name: TaskSection;
  readonly title: string;
  readonly tasks: readonly GroupTask[];
  /** So many that were over before these are left out. */
  readonly before: number;
}

/** The tasks by section, in the order of the sections; an empty one has none. */
export function sections(view: BoardView): SectionTasks[] {
  const by = grouped(view.tasks, (task) => [sectionOf(task)]);
  return SECTIONS.map(({ name, title }) => {
    const tasks = by.get(name) ?? [];
    const before = isOver(name) ? Math.max(0, tasks.length - OVER) : 0;
    return { name, title, tasks: tasks.slice(before), before };
  });
}

function countsIn(view: BoardView): Partial<GroupCounts> {
  const { group } = view as { group?: Partial<Group> };
  return group?.counts ?? {};
}

/** How many tasks there are, and how they stand. */
export function countsOf(view: BoardView): string {
  const counts = countsIn(view);
  const total = counts.total ?? 0;
  const parts: [number, string][] = [
    [counts.ready ?? 0, "ready"],
    [(counts.claimed ?? 0) + (counts.inProgress ?? 0), "active"],
    [counts.blocked ?? 0, "blocked"],
    [Math.max(0, (counts.pending ?? 0) - (counts.ready ?? 0)), "waiting"],
    [counts.completed ?? 0, "done"],
    [counts.cancelled ?? 0, "cancelled"],
  ];
  const told = parts.filter(([count]) => count > 0).map(([count, word]) => `${count} ${word}`);
  return plural(total, "task") + (told.length > 0 ? `: ${told.join(", ")}` : "");
}

/** What is left to be done; undefined where there is nothing at all. */
export function requiredOf(view: BoardView): string | undefined {
  const unfinished = list(view.group?.requiredUnfinished).length;
  if (unfinished > 0) {
    return `${unfinished} required not done`;
  }
  return (countsIn(view).total ?? 0) > 0 ? "all that is required is done" : undefined;
}

export function memberLine(member: GroupMember): string {
  const name = oneLine(member.name, 40);
  return member.status == null ? name : `${name} (${statusWords(member.status)})`;
}

/** From whom, to whom, what: a message to this session. */
export function messageLine(view: BoardView, message: GroupMessage): string {
  const to = message.to === "group" ? "all" : memberName(view, view.root);
  const read = message.seen ? "" : "  not read yet";
  return `${oneLine(message.senderName, 40)} → ${to}: ${oneLine(message.text, 200)}${read}`;
}

export const NO_GROUP = "No group yet: the first task makes one.";
export const MORE_TASKS = "There are more tasks: `callboard group ID` lists all of them";
