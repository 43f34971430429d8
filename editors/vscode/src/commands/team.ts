/** All about the agents of a session and the tasks that they share. */
import type * as vscode from "vscode";
import type { App } from "../app";
import { agentsTree } from "../views/agentsTree";
import { Boards } from "../views/board";
import type { Chats } from "../views/chats";
import { tasksTree } from "../views/tasksTree";
import { registerAgents } from "./agents";
import { registerTasks } from "./tasks";

export function registerTeam(context: vscode.ExtensionContext, app: App, chats: Chats): void {
  const agents = agentsTree(app);
  const tasks = tasksTree(app);
  const boards = new Boards(context, app, chats);
  context.subscriptions.push(agents, tasks, boards);
  registerAgents(context, app, agents);
  registerTasks(context, app, chats, boards, tasks);
}
