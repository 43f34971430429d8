/** What a person does with an agent: writes to it, corrects it, stops it, answers it. */
import type { Agent, AgentInterruptResult, InterruptKind } from "@callboard/protocol";
import * as vscode from "vscode";
import type { App } from "../app";
import { agentName, agentState } from "../model/agents";
import { label, message, oneLine } from "../model/text";
import { CallError } from "../server/errors";
import { readAgents, rootOf } from "../team";
import type { AboutAgent, AgentsTree } from "../views/agentsTree";
import { Entry } from "../views/keyedTree";
import { askLine, askOne, tell } from "./asking";
import { sessionMeant } from "./chat";
import { register, type Command } from "./registry";

/** What a command of a menu was given: the agent's id. */
function givenId(given: unknown): string | undefined {
  if (typeof given === "string") {
    return given;
  }
  return given instanceof Entry ? (given.line.about as AboutAgent | undefined)?.id : undefined;
}

/**
 * The agent that a command is meant for, as it is now: the one that it was given, or one to be chosen.
 * @throws CallError, CancellationError
 */
async function agentMeant(
  app: App,
  given: unknown,
  title: string,
  fits: (agent: Agent) => boolean,
  none: string,
): Promise<Agent> {
  const id = givenId(given);
  const root = await rootOf(app, id ?? sessionMeant(app, undefined));
  const { agents } = await readAgents(app, root);
  if (id !== undefined) {
    const agent = agents.find((each) => each.agentId === id);
    if (!agent) {
      const why =
        id === root
          ? "This is the session itself: its chat is where you write to it or stop it."
          : "This agent is not there any more.";
      throw new CallError(0, why);
    }
    return agent;
  }
  const offered = agents.filter(fits);
  if (offered.length === 0) {
    throw new CallError(0, none);
  }
  return askOne(
    title,
    offered.map((agent) => ({
      label: label(agent.name, 60),
      description: label(agentState(agent).word),
      value: agent,
    })),
  );
}

const isOpen = (agent: Agent): boolean => agent.status !== "closed";
const NO_AGENT = "No agent works in this session. Whoever works in it starts them, or you do.";

async function write(app: App, given: unknown, goesOn: boolean): Promise<void> {
  const title = goesOn ? "Which agent is to go on?" : "Write to which agent?";
  const { agentId, ...agent } = await agentMeant(app, given, title, isOpen, NO_AGENT);
  const name = agentName(agent);
  const text = await askLine(goesOn ? `What should ${name} go on with?` : `Message to ${name}`);
  if (goesOn) {
    const { turnId } = await app.change("agent/continue", { agentId, text });
    tell(turnId == null ? `${name} reads it at its next step` : `${name} goes on`);
  } else {
    await app.change("agent/send", { agentId, text });
    tell(`left for ${name}: it is read at the next step, or when it is continued`);
  }
}

function outcome(name: string, result: AgentInterruptResult): string {
  switch (result.outcome) {
    case "delivered":
      return `${name} is told at its next step`;
    case "ignored":
      return `${name} winds down already; this was not passed on`;
    case "aborted":
      return `${name} is being stopped`;
    case "already_finished":
      return `no turn of ${name} runs`;
    default:
      return `${name}: ${oneLine(result.outcome, 60)}`;
  }
}

const INTERRUPTS = {
  steer: {
    which: "Correct which agent?",
    asks: (name: string) => `What should ${name} do instead?`,
  },
  cancel: { which: "Which agent is to stop?", asks: (name: string) => `Why should ${name} stop?` },
  abort: { which: "Stop which agent at once?", asks: undefined },
} as const;

async function interruptAgent(
  app: App,
  given: unknown,
  kind: InterruptKind & keyof typeof INTERRUPTS,
): Promise<void> {
  if (kind !== "abort" && app.server.handshake && !app.feature("agents.interrupts")) {
    throw new CallError(
      0,
      `This server cannot ${kind} agents: features = ["agents.interrupts"] in its config.toml switches ` +
        "that on. “Stop Agent at Once” works without it.",
    );
  }
  const { which, asks } = INTERRUPTS[kind];
  const runs = (agent: Agent): boolean => agent.turnId != null;
  const agent = await agentMeant(app, given, which, runs, "No agent of this session runs.");
  const name = agentName(agent);
  const reason = asks && (await askLine(asks(name)));
  const result = await app.change("agent/interrupt", {
    agentId: agent.agentId,
    kind,
    ...(reason === undefined ? {} : { reason }),
  });
  tell(outcome(name, result));
}

async function close(app: App, given: unknown): Promise<void> {
  const agent = await agentMeant(app, given, "Close which agent?", isOpen, NO_AGENT);
  const name = agentName(agent);
  if (!isOpen(agent)) {
    tell(`${name} is closed already`);
    return;
  }
  const yes = "Close";
  const picked = await vscode.window.showWarningMessage(
    message(`Close ${name}, and the agents below it, for good?`),
    { modal: true, detail: "What they did stays in the log. They cannot be continued." },
    yes,
  );
  if (picked === yes) {
    await app.change("agent/close", { agentId: agent.agentId });
    tell(`${name} is closed`);
  }
}

async function reply(app: App, given: unknown): Promise<void> {
  const asks = (each: Agent): boolean => each.question != null;
  const agent = await agentMeant(
    app,
    given,
    "Reply to which agent?",
    asks,
    "No agent asks anything.",
  );
  const name = agentName(agent);
  if (!agent.question) {
    tell(`${name} asks nothing`);
    return;
  }
  const { askId, text: question } = agent.question;
  const text = await askLine(`Reply to ${name}`, {
    about: `${name} asks: ${oneLine(question, 900)}`,
  });
  await app.change("agent/reply", { askId, text });
  tell(`replied to ${name}`);
}

/** Starts an agent below a session; with a task, it owns that from its first moment. */
export async function spawn(
  app: App,
  parentId: string,
  task?: { readonly taskId: string; readonly title: string },
): Promise<void> {
  const name = await askLine("A name for the agent", {
    ...(task ? { about: `It is to do "${oneLine(task.title, 100)}".` } : {}),
  });
  const brief = await askLine(`What is ${oneLine(name, 40)} to do?`, {
    ...(task ? { blank: true, about: "Nothing typed: the task alone tells it." } : {}),
  });
  await app.change("agent/spawn", {
    parentId,
    name,
    message: brief === "" && task ? task.title : brief,
    ...(task ? { taskId: task.taskId } : {}),
  });
  tell(`${oneLine(name, 40)} begins`);
}

export function registerAgents(context: vscode.ExtensionContext, app: App, tree: AgentsTree): void {
  const commands: Record<string, Command> = {
    "callboard.messageAgent": (given) => write(app, given, false),
    "callboard.continueAgent": (given) => write(app, given, true),
    "callboard.steerAgent": (given) => interruptAgent(app, given, "steer"),
    "callboard.cancelAgent": (given) => interruptAgent(app, given, "cancel"),
    "callboard.abortAgent": (given) => interruptAgent(app, given, "abort"),
    "callboard.closeAgent": (given) => close(app, given),
    "callboard.answerAgent": (given) => reply(app, given),
    "callboard.newAgent": (given) => spawn(app, givenId(given) ?? sessionMeant(app, undefined)),
    "callboard.refreshAgents": () => {
      tree.refresh();
    },
  };
  register(context, app, commands);
}
