/** What is said to a session, with what, and by which model: from anywhere in the window. */
import type { ModelInfo } from "@callboard/protocol";
import * as vscode from "vscode";
import type { App } from "../app";
import { modeOptions, otherOptions } from "../model/options";
import { count, label } from "../model/text";
import { usageLine } from "../model/usage";
import { CallError } from "../server/errors";
import type { Chats } from "../views/chats";
import { interrupt } from "./interrupt";
import { optionChoices, type Choice } from "./options";
import { register } from "./registry";
import { newSession } from "./say";

/** The session that a command is meant for: the one it was given, or the one that is looked at. */
export function sessionMeant(app: App, given: unknown): string {
  if (typeof given === "string") {
    return given;
  }
  if (typeof given === "object" && given !== null && "sessionId" in given) {
    const { sessionId } = given;
    if (typeof sessionId === "string") {
      return sessionId;
    }
  }
  if (app.focused === undefined) {
    throw new CallError(0, "No session is open. Begin one, or open one from the list of sessions.");
  }
  return app.focused;
}

const MODES = [
  { mode: "ask", detail: "Reads and answers; changes nothing" },
  { mode: "plan", detail: "Reads and makes a plan; changes nothing" },
  { mode: "work", detail: "Changes files and runs commands, as far as it is allowed" },
] as const;

export function registerChat(context: vscode.ExtensionContext, app: App, chats: Chats): void {
  register(context, app, {
    "callboard.newSession": async () => {
      const sessionId = await newSession(app);
      await chats.open(sessionId);
    },
    "callboard.focusChat": async () => {
      const chat = chats.current;
      await chats.open(chat?.sessionId ?? app.focused);
    },
    "callboard.openChatInEditor": async (given) => {
      await chats.open(sessionMeant(app, given), { in: "editor" });
    },
    "callboard.openParent": async (given) => {
      const parent = app.sessions.byId.get(sessionMeant(app, given))?.parentId;
      if (parent == null) {
        throw new CallError(0, "This session was started by no agent.");
      }
      await chats.open(parent);
    },
    "callboard.sendSelection": async () => {
      const editor = vscode.window.activeTextEditor;
      if (!editor) {
        throw new CallError(0, "No editor has the focus: select something in a file first.");
      }
      const { document, selection } = editor;
      const chat = await chats.open(chats.current?.sessionId ?? app.focused);
      if (document.uri.scheme === "file") {
        chat.context.add(document.uri, selection);
      } else {
        // What is on no disk goes along as text.
        const text = document.getText(selection.isEmpty ? undefined : selection);
        chat.say({ type: "insert", text: `\`\`\`${document.languageId}\n${text}\n\`\`\`\n` });
      }
    },
    "callboard.addFile": async (given, all) => {
      const chosen = await filesFor(given, all);
      const chat = await chats.open(chats.current?.sessionId ?? app.focused);
      for (const uri of chosen) {
        chat.context.add(uri);
      }
    },
    "callboard.selectModel": async (given) => {
      await selectModel(app, sessionMeant(app, given));
    },
    "callboard.selectMode": async (given) => {
      await selectMode(app, sessionMeant(app, given));
    },
    "callboard.showUsage": async (given) => {
      await showUsage(app, sessionMeant(app, given));
    },
    "callboard.interrupt": async (given) => {
      await interrupt(app, sessionMeant(app, given), "choose");
    },
    "callboard.interruptGroup": async (given) => {
      await interrupt(app, sessionMeant(app, given), "group");
    },
    "callboard.forceStop": async (given) => {
      await interrupt(app, sessionMeant(app, given), "force");
    },
  });
}

async function filesFor(given: unknown, all: unknown): Promise<vscode.Uri[]> {
  const several = Array.isArray(all) ? all.filter((each) => each instanceof vscode.Uri) : [];
  if (several.length > 0) {
    return several;
  }
  const one = given instanceof vscode.Uri ? given : vscode.window.activeTextEditor?.document.uri;
  if (one?.scheme === "file") {
    return [one];
  }
  const picked = await vscode.window.showOpenDialog({
    canSelectMany: true,
    openLabel: "Add to Chat",
    ...(vscode.workspace.workspaceFolders?.[0]
      ? { defaultUri: vscode.workspace.workspaceFolders[0].uri }
      : {}),
  });
  return picked ?? [];
}

async function selectMode(app: App, sessionId: string): Promise<void> {
  const known = app.sessions.byId.get(sessionId);
  const isSet = ({ mode }: (typeof MODES)[number]): boolean => mode === known?.mode;
  const choices: Choice[] = [
    // What is set stands first: Enter alone changes nothing.
    ...[...MODES]
      .sort((a, b) => Number(isSet(b)) - Number(isSet(a)))
      .map((each) => ({
        label: isSet(each) ? `$(check) ${each.mode}` : each.mode,
        detail: each.detail,
        pick: async () => {
          const { mode } = each;
          app.putSession((await app.change("session/update", { sessionId, mode })).session);
        },
      })),
    ...optionChoices(app, sessionId, modeOptions(known)),
  ];
  const picked = await vscode.window.showQuickPick(choices, {
    title: "Mode",
    placeHolder: "What the agent may do",
  });
  await picked?.pick?.();
}

async function selectModel(app: App, sessionId: string): Promise<void> {
  const models: ModelInfo[] = [];
  let cursor: string | undefined;
  do {
    const page = await app.request("model/list", cursor === undefined ? {} : { cursor });
    models.push(...page.data);
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  const known = app.sessions.byId.get(sessionId);
  const options = optionChoices(app, sessionId, otherOptions(known));
  if (models.length + options.length === 0) {
    throw new CallError(0, "No model was found. “Callboard: Doctor” says what is looked for.");
  }
  const current = known?.model ?? models.find((each) => each.selected)?.modelId;
  const ofCallboard = [...models]
    .sort(
      (a, b) =>
        Number(b.modelId === current) - Number(a.modelId === current) ||
        Number(b.available) - Number(a.available),
    )
    .map((model) => ({
      label: `${model.modelId === current ? "$(check) " : ""}${label(model.modelId, 100)}`,
      ...(model.available
        ? model.contextWindow == null
          ? {}
          : { description: `${count(model.contextWindow)} tokens of context` }
        : { detail: `not available: ${label(model.reason ?? "no reason was given", 200)}` }),
      pick: () => setModel(app, sessionId, model),
    }));
  const choices: Choice[] =
    options.length === 0
      ? ofCallboard
      : [...options, { label: "Models", kind: vscode.QuickPickItemKind.Separator }, ...ofCallboard];
  const picked = await vscode.window.showQuickPick(choices, {
    title: "Model",
    placeHolder: "It answers from the next turn on",
    matchOnDescription: true,
    matchOnDetail: true,
  });
  await picked?.pick?.();
}

async function setModel(app: App, sessionId: string, model: ModelInfo): Promise<void> {
  if (!model.available) {
    throw new CallError(
      0,
      `${model.modelId} cannot be used: ${model.reason ?? "no reason was given"}`,
    );
  }
  const { session } = await app.change("session/update", { sessionId, model: model.modelId });
  app.putSession(session);
}

async function showUsage(app: App, sessionId: string): Promise<void> {
  const used = await app.request("session/usage", { sessionId });
  const items: vscode.QuickPickItem[] = [
    { label: "This session", description: usageLine(used.total.usage) || "nothing yet" },
    { label: "With its agents", description: usageLine(used.tree.usage) || "nothing yet" },
    { label: "Models", kind: vscode.QuickPickItemKind.Separator },
    ...used.models.map(({ model, total }) => ({
      label: label(model ?? "unknown model", 80),
      description: usageLine(total.usage),
    })),
    { label: "Sessions", kind: vscode.QuickPickItemKind.Separator },
    ...used.sessions.map((each) => ({
      label: label(each.title ?? each.sessionId, 60),
      description: usageLine(each.total.usage),
    })),
  ];
  await vscode.window.showQuickPick(items, {
    title: "Usage",
    placeHolder: "Tokens and cost, as far as the providers tell them",
  });
}
