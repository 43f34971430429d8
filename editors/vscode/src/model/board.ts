/** The task board as its page shows it, and what a card's move into another column means. Pure. */
import type { GroupTask } from "@callboard/protocol";
import type { Board, Column, ColumnName, TaskCard, TaskVerb } from "../shared/board";
import { list } from "./loose";
import {
  MORE_TASKS,
  countsOf,
  indexOf,
  isOver,
  memberLine,
  memberName,
  messageLine,
  requiredOf,
  sectionOf,
  sections,
  taskDetails,
  type BoardIndex,
  type BoardView,
} from "./tasks";
import { oneLine } from "./text";

/** So many messages are shown. */
const MESSAGES = 5;
/** So many tasks of a column are shown; the tree of tasks has all. */
export const SHOWN = 200;

/** What may be done with a task now, in the place of the root; agents are not started by every server. */
export function verbsOf(view: BoardView, task: GroupTask, agents: boolean): TaskVerb[] {
  const section = sectionOf(task);
  switch (section) {
    case "ready":
      return ["claim", "assign", ...(agents ? ["spawn" as const] : []), "cancel"];
    case "active":
      if (task.assignee !== view.root) {
        return ["assign", "cancel"];
      }
      return [
        ...(task.status === "claimed" ? ["start" as const] : []),
        "complete",
        "block",
        "release",
        "assign",
        "cancel",
      ];
    case "blocked":
      return ["assign", "cancel"];
    case "waiting":
      return ["cancel"];
    default:
      return [];
  }
}

/** What a card's move into a column is, or why there is no such move. */
export function moveOf(task: GroupTask, to: ColumnName): { verb: TaskVerb } | { why: string } {
  const from = sectionOf(task);
  const title = `"${oneLine(task.title, 60)}"`;
  if (isOver(from)) {
    return { why: `${title} is over: make another task for what is left` };
  }
  switch (to) {
    case "cancelled":
      return { verb: "cancel" };
    case "waiting":
      return { why: "A task waits by itself, until what it depends on is done" };
    case "active":
      if (from === "ready") {
        return { verb: "claim" };
      }
      return from === "blocked"
        ? { verb: "assign" }
        : { why: `${title} still waits for other tasks, so nobody can begin it` };
    case "ready":
      return from === "active"
        ? { verb: "release" }
        : { why: `${title} cannot be made ready: give it to somebody, or cancel it` };
    case "done":
    case "blocked":
      if (from !== "active") {
        return { why: `Nobody has ${title}: it is claimed before it can be ${to}` };
      }
      return { verb: to === "done" ? "complete" : "block" };
  }
}

function cardOf(view: BoardView, task: GroupTask, index: BoardIndex, agents: boolean): TaskCard {
  return {
    id: task.taskId,
    title: oneLine(task.title, 200),
    ...(task.assignee == null ? {} : { owner: memberName(view, task.assignee) }),
    facts: [
      ...(task.status === "in_progress" ? ["in progress"] : []),
      // That it is required goes without saying.
      ...(task.required === false ? ["optional"] : []),
    ],
    notes: taskDetails(view, task, index),
    verbs: verbsOf(view, task, agents),
  };
}

export function boardOf(view: BoardView, agents: boolean): Board {
  const index = indexOf(view);
  const required = requiredOf(view);
  const columns = sections(view).map(({ name, title, tasks, before }): Column => ({
    name,
    title,
    count: tasks.length + before,
    cards: tasks.slice(0, SHOWN).map((task) => cardOf(view, task, index, agents)),
    before,
    after: Math.max(0, tasks.length - SHOWN),
  }));
  return {
    title: oneLine(view.title, 60),
    counts: countsOf(view),
    ...(required === undefined
      ? {}
      : { required: { text: required, done: list(view.group?.requiredUnfinished).length === 0 } }),
    members: list(view.group?.members).map(memberLine),
    columns,
    messages: view.messages.slice(0, MESSAGES).map((message) => messageLine(view, message)),
    empty: view.group === undefined,
    ...(view.more ? { more: MORE_TASKS } : {}),
  };
}
