/**
 * What a person does to a task, in the place of its root. Whatever is asked for first is asked here, so that
 * the tree and the board do the same in the same words.
 */
import type { GroupMember, GroupTask } from "@callboard/protocol";
import * as vscode from "vscode";
import type { App } from "../app";
import { list, plural } from "../model/loose";
import { isOver, memberLine, sectionOf, withTitles, type BoardView } from "../model/tasks";
import { label, oneLine } from "../model/text";
import { CallError } from "../server/errors";
import type { TaskVerb } from "../shared/board";
import { spawn } from "./agents";
import { askLine, askOne, type Offer } from "./asking";

function called(title: unknown): string {
  return `"${oneLine(title, 60)}"`;
}

/** A refusal in the words of the board: what could not be done, and why. */
async function tried<T>(view: BoardView, doing: string, change: Promise<T>): Promise<T> {
  try {
    return await change;
  } catch (fault) {
    if (fault instanceof CallError) {
      const why = withTitles(view, fault.message);
      throw new CallError(fault.code, `Cannot ${doing}: ${why}`, fault.data);
    }
    throw fault;
  }
}

/**
 * Does something to a task, and tells what came of it.
 * @throws CallError, CancellationError
 */
export async function actOnTask(
  app: App,
  view: BoardView,
  task: GroupTask,
  verb: TaskVerb,
): Promise<string> {
  const name = called(task.title);
  const about = { rootId: view.root, taskId: task.taskId };
  switch (verb) {
    case "claim":
      await tried(view, `claim ${name}`, app.change("group/taskClaim", about));
      return `this session has ${name} now`;
    case "start":
      await tried(view, `start ${name}`, app.change("group/taskStart", about));
      return `${name} is in progress`;
    case "complete": {
      const summary = await askLine(`What came of ${name}?`);
      const change = app.change("group/taskComplete", { ...about, summary });
      await tried(view, `complete ${name}`, change);
      return `${name} is done`;
    }
    case "block": {
      const reason = await askLine(`What blocks ${name}?`);
      await tried(view, `block ${name}`, app.change("group/taskBlock", { ...about, reason }));
      return `${name} is blocked`;
    }
    case "release":
      await tried(view, `give ${name} back`, app.change("group/taskRelease", about));
      return `nobody has ${name} now`;
    case "cancel": {
      const reason = await askLine(`Why is ${name} cancelled?`, {
        blank: true,
        about: "Enter alone gives no reason.",
      });
      const change = app.change("group/taskCancel", {
        ...about,
        ...(reason === "" ? {} : { reason }),
      });
      await tried(view, `cancel ${name}`, change);
      return `${name} is cancelled`;
    }
    case "assign":
      return assign(app, view, task);
    case "spawn":
      await tried(view, `start an agent on ${name}`, spawn(app, view.root, task));
      return `an agent begins ${name}`;
  }
}

function memberOffer(member: GroupMember): Offer<GroupMember> {
  const line = member.isRoot ? `${oneLine(member.name, 60)} (this session)` : memberLine(member);
  return { label: label(line), value: member };
}

async function assign(app: App, view: BoardView, task: GroupTask): Promise<string> {
  const name = called(task.title);
  const members = list(view.group?.members);
  const member = await askOne(`Who is to do ${name}?`, members.map(memberOffer));
  const who = oneLine(member.name, 40);
  const change = app.change("group/taskReassign", {
    rootId: view.root,
    taskId: task.taskId,
    agentId: member.agentId,
  });
  await tried(view, `give ${name} to ${who}`, change);
  return `${who} has ${name} now`;
}

/** So many tasks are offered as what must be done before another. */
const OFFERED = 200;

/**
 * Makes a task; where others are open, asks which of them must be done before it.
 * @throws CallError, CancellationError
 */
export async function addTask(app: App, view: BoardView): Promise<string> {
  const title = await askLine("What is to be done?");
  const open = view.tasks.filter((task) => !isOver(sectionOf(task))).slice(-OFFERED);
  let before: readonly Offer<string>[] = [];
  if (open.length > 0) {
    const offers = open.map((task) => ({
      label: label(task.title, 80),
      description: sectionOf(task),
      value: task.taskId,
    }));
    const picked = await vscode.window.showQuickPick(offers, {
      title: `What must be done before ${called(title)}?`,
      placeHolder: "Nothing chosen: it can be begun at once",
      canPickMany: true,
      ignoreFocusOut: true,
    });
    if (!picked) {
      throw new vscode.CancellationError();
    }
    before = picked;
  }
  const change = app.change("group/taskCreate", {
    rootId: view.root,
    title,
    ...(before.length > 0 ? { dependencies: before.map((offer) => offer.value) } : {}),
  });
  await tried(view, `make the task ${called(title)}`, change);
  return `${called(title)} is on the board`;
}

/**
 * Writes to the group, or to one of several members.
 * @throws CallError, CancellationError
 */
export async function writeToGroup(app: App, view: BoardView): Promise<string> {
  const others = list(view.group?.members).filter((member) => !member.isRoot);
  const member =
    others.length === 0
      ? undefined
      : await askOne<GroupMember | undefined>("To whom?", [
          { label: "Everybody", value: undefined },
          ...others.map(memberOffer),
        ]);
  const to = member ? oneLine(member.name, 40) : "the group";
  const text = await askLine(`Message to ${to}`);
  const change = app.change("group/messageSend", {
    rootId: view.root,
    text,
    ...(member ? { to: "agent", agentId: member.agentId } : { to: "group" }),
  });
  const { recipients } = await tried(view, `write to ${to}`, change);
  const count = list(recipients).length;
  return count === 0
    ? "Nobody else takes part yet, so nobody reads it"
    : `Sent to ${plural(count, "member")}; read at the next step of each`;
}
