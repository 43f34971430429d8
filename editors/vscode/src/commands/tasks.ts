/** The task board of a group: makes one, opens it, and drives it from the tree. */
import type { GroupTask } from "@callboard/protocol";
import type * as vscode from "vscode";
import type { App } from "../app";
import { taskText } from "../model/taskCard";
import { taskOf, type BoardView } from "../model/tasks";
import { label, oneLine } from "../model/text";
import { sessionName } from "../model/store";
import { CallError } from "../server/errors";
import type { TaskVerb } from "../shared/board";
import { readBoard, rootOf } from "../team";
import type { Boards } from "../views/board";
import type { Chats } from "../views/chats";
import { Entry } from "../views/keyedTree";
import type { AboutTask, TasksTree } from "../views/tasksTree";
import { askLine, askOne, tell } from "./asking";
import { sessionMeant } from "./chat";
import { register, type Command } from "./registry";
import { newSession } from "./say";
import { actOnTask, addTask, writeToGroup } from "./taskActions";

function isAbout(given: unknown): given is AboutTask {
  return typeof given === "object" && given !== null && "root" in given && "taskId" in given;
}

/** The root whose board is meant: that of a line of the tree, or of the session that is looked at. */
async function rootMeant(app: App, given: unknown): Promise<string> {
  const about = given instanceof Entry ? given.line.about : given;
  return isAbout(about) ? about.root : rootOf(app, sessionMeant(app, about));
}

interface Meant {
  readonly view: BoardView;
  readonly task: GroupTask;
}

/**
 * The task that a command was given, as it is now.
 * @throws CallError
 */
async function taskMeant(app: App, given: unknown): Promise<Meant> {
  const about = given instanceof Entry ? given.line.about : given;
  if (!isAbout(about)) {
    throw new CallError(0, "Which task is meant? Do this from the tree of tasks, or on the board.");
  }
  const view = await readBoard(app, about.root);
  const task = taskOf(view, about.taskId);
  if (!task) {
    throw new CallError(0, "This task is not on the board any more.");
  }
  return { view, task };
}

/** The session whose tree gets a board: the one that is open, or one that begins. */
async function sessionForGroup(app: App): Promise<string> {
  const { focused } = app;
  if (focused === undefined) {
    return newSession(app);
  }
  const root = await rootOf(app, focused);
  const { group } = await app.request("group/get", { rootId: root });
  const name = sessionName(app.sessions.byId.get(root) ?? { sessionId: root });
  const here = group
    ? []
    : [
        {
          label: "$(comment-discussion) In the session that is open",
          description: label(name, 60),
          value: root,
        },
      ];
  const chosen = await askOne("New group", [
    ...here,
    { label: "$(add) In a new session", value: undefined },
  ]);
  return chosen ?? newSession(app);
}

async function newGroup(app: App, chats: Chats, boards: Boards): Promise<void> {
  const title = await askLine("What is the group to do first?", {
    about: "It is the first task of its board. Agents claim tasks, and are given them.",
  });
  const rootId = await sessionForGroup(app);
  await app.change("group/taskCreate", { rootId, title });
  await chats.open(rootId, { in: "sidebar", preserveFocus: true });
  boards.open(rootId);
  tell(`the board begins with "${oneLine(title, 60)}"`);
}

export function registerTasks(
  context: vscode.ExtensionContext,
  app: App,
  chats: Chats,
  boards: Boards,
  tree: TasksTree,
): void {
  const act =
    (verb: TaskVerb): Command =>
    async (given) => {
      const { view, task } = await taskMeant(app, given);
      tell(await actOnTask(app, view, task, verb));
    };
  register(context, app, {
    "callboard.newGroup": () => newGroup(app, chats, boards),
    "callboard.openTaskBoard": async (given) => {
      boards.open(await rootMeant(app, given));
    },
    "callboard.addTask": async (given) => {
      tell(await addTask(app, await readBoard(app, await rootMeant(app, given))));
    },
    "callboard.messageGroup": async (given) => {
      tell(await writeToGroup(app, await readBoard(app, await rootMeant(app, given))));
    },
    "callboard.showTask": async (given) => {
      const { view, task } = await taskMeant(app, given);
      await chats.documents.show(oneLine(task.title, 60), taskText(view, task));
    },
    "callboard.refreshTasks": () => {
      tree.refresh();
    },
    "callboard.claimTask": act("claim"),
    "callboard.startTask": act("start"),
    "callboard.completeTask": act("complete"),
    "callboard.blockTask": act("block"),
    "callboard.releaseTask": act("release"),
    "callboard.cancelTask": act("cancel"),
    "callboard.assignTask": act("assign"),
    "callboard.spawnTask": act("spawn"),
  });
}
