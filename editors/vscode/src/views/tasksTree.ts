/** The tasks of the open session's group, by how they stand. */
import type { GroupTask } from "@callboard/protocol";
import type { App } from "../app";
import { taskText } from "../model/taskCard";
import {
  MORE_TASKS,
  countsOf,
  indexOf,
  isOver,
  requiredOf,
  sectionOf,
  sections,
  taskDetails,
  taskFacts,
  type BoardIndex,
  type BoardView,
  type TaskSection,
} from "../model/tasks";
import { oneLine } from "../model/text";
import { TASK_EVENTS, readBoard } from "../team";
import type { Line } from "./keyedTree";
import { TreeOfSession, type Picture } from "./treeOfSession";

export const TASK_ICONS: Readonly<Record<TaskSection, readonly [icon: string, color?: string]>> = {
  ready: ["circle-large-outline", "charts.green"],
  active: ["play-circle", "charts.blue"],
  blocked: ["error", "testing.iconFailed"],
  waiting: ["watch"],
  done: ["pass", "testing.iconPassed"],
  cancelled: ["circle-slash"],
};

/** What a line of the tree is about. */
export interface AboutTask {
  readonly root: string;
  readonly taskId: string;
}

/** Words by which menus know what can be done with a task. */
function contextOf(view: BoardView, task: GroupTask): string {
  const section = sectionOf(task);
  return [
    "callboardTask",
    section,
    ...(isOver(section) ? [] : ["open"]),
    ...(task.status === "claimed" ? ["claimed"] : []),
    ...(task.assignee === view.root ? ["own"] : []),
  ].join(" ");
}

function taskLine(view: BoardView, task: GroupTask, index: BoardIndex): Line {
  const [icon, color] = TASK_ICONS[sectionOf(task)];
  const details = taskDetails(view, task, index).map((detail) => detail.text);
  const about: AboutTask = { root: view.root, taskId: task.taskId };
  return {
    id: task.taskId,
    label: oneLine(task.title, 200),
    description: [...taskFacts(view, task), ...details].join(" · "),
    tooltip: taskText(view, task),
    icon,
    ...(color === undefined ? {} : { color }),
    context: contextOf(view, task),
    command: { command: "callboard.showTask", title: "Show", arguments: [about] },
    children: [],
    about,
  };
}

/** A board without tasks shows nothing: the view says then how to begin. */
export function picture(view: BoardView): Picture {
  const index = indexOf(view);
  const lines: Line[] = sections(view)
    .filter((section) => section.tasks.length > 0)
    .map(({ name, title, tasks, before }) => ({
      id: `section:${name}`,
      label: `${title} (${tasks.length + before})`,
      ...(before > 0 ? { description: `the latest ${tasks.length}` } : {}),
      icon: TASK_ICONS[name][0],
      context: "callboardTaskSection",
      closed: isOver(name),
      children: tasks.map((task) => taskLine(view, task, index)),
    }));
  if (view.more) {
    lines.push({ id: "more", label: MORE_TASKS, icon: "info", context: "", children: [] });
  }
  const required = requiredOf(view);
  const parts = [countsOf(view), ...(required === undefined ? [] : [required])];
  return { lines, summary: view.tasks.length > 0 ? parts.join(" · ") : "" };
}

export type TasksTree = TreeOfSession<BoardView>;

export function tasksTree(app: App): TasksTree {
  return new TreeOfSession(app, {
    id: "callboard.tasks",
    types: TASK_EVENTS,
    read: (root) => readBoard(app, root),
    draw: picture,
  });
}
