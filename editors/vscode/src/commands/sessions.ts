/** What is done with a session as a whole. */
import type { Session } from "@callboard/protocol";
import * as vscode from "vscode";
import type { App } from "../app";
import { NO_FILTER, type MoreNode } from "../model/sessionList";
import { removeSession } from "../model/store";
import { oneLine } from "../model/text";
import { CallError } from "../server/errors";
import type { Chats } from "../views/chats";
import { filterSessions } from "../views/sessionFilter";
import { pickSession } from "../views/sessionPicker";
import { searchSessions } from "../views/sessionSearch";
import type { SessionsTree } from "../views/sessionsTree";
import { called } from "./called";
import { sessionMeant } from "./chat";
import { register, type Command } from "./registry";
import { exportSession, importSession } from "./sessionFiles";

export function registerSessions(
  context: vscode.ExtensionContext,
  app: App,
  chats: Chats,
  tree: SessionsTree,
): void {
  /** A command that changes the session which it is about, as the server then knows it. */
  const changing =
    (change: (sessionId: string) => Promise<Session | undefined>): Command =>
    async (given) => {
      const session = await change(sessionMeant(app, given));
      if (session) {
        app.putSession(session);
      }
    };

  register(context, app, {
    "callboard.openSession": async (given) => {
      const sessionId =
        given === undefined
          ? (await pickSession(app, tree.listing, "Open a session"))?.sessionId
          : sessionMeant(app, given);
      if (sessionId !== undefined) {
        await chats.open(sessionId);
      }
    },
    "callboard.searchSessions": async () => {
      await searchSessions(app, (sessionId, seq) =>
        chats.open(sessionId, seq === undefined ? {} : { seq }),
      );
    },
    "callboard.resumeSession": async () => {
      await resume(app, chats, tree.folders);
    },
    "callboard.filterSessions": async () => {
      await filterSessions(tree);
    },
    "callboard.showHiddenSessions": async () => {
      await tree.show({ ...NO_FILTER, everywhere: true });
    },
    "callboard.showMoreSessions": async (given) => {
      await tree.more(given as MoreNode);
    },
    "callboard.stopSession": async (given) => {
      await vscode.commands.executeCommand("callboard.interrupt", sessionMeant(app, given));
    },
    "callboard.renameSession": changing((sessionId) => rename(app, sessionId)),
    "callboard.archiveSession": changing(async (sessionId) => {
      const { session } = await app.change("session/archive", { sessionId });
      offerBack(app, session);
      return session;
    }),
    "callboard.unarchiveSession": changing(
      async (sessionId) => (await app.change("session/unarchive", { sessionId })).session,
    ),
    "callboard.pinSession": changing((sessionId) => pin(app, sessionId, true)),
    "callboard.unpinSession": changing((sessionId) => pin(app, sessionId, false)),
    "callboard.deleteSession": async (given) => {
      await deleteSession(app, sessionMeant(app, given));
    },
    "callboard.forkSession": async (given, atTurnId) => {
      const sessionId = sessionMeant(app, given);
      const { session } = await app.change("session/fork", {
        sessionId,
        ...(typeof atTurnId === "string" ? { atTurnId } : {}),
      });
      app.putSession(session);
      await chats.open(session.sessionId);
      tell(`This is a fork of ${called(app, sessionId)}: what is said here does not change it.`);
    },
    "callboard.exportSession": async (given) => {
      await exportSession(app, sessionMeant(app, given));
    },
    "callboard.importSession": async () => {
      const session = await importSession(app);
      if (session) {
        app.putSession(session);
        await chats.open(session.sessionId);
      }
    },
  });
}

function tell(text: string): void {
  void vscode.window.showInformationMessage(text);
}

async function rename(app: App, sessionId: string): Promise<Session | undefined> {
  const title = await vscode.window.showInputBox({
    title: "Rename Session",
    prompt: "Title of the session",
    value: oneLine(app.sessions.byId.get(sessionId)?.title ?? ""),
    validateInput: (typed) =>
      typed.trim() === "" ? "A title has at least one letter." : undefined,
  });
  if (title === undefined) {
    return undefined;
  }
  return (await app.change("session/update", { sessionId, title: title.trim() })).session;
}

async function pin(app: App, sessionId: string, pinned: boolean): Promise<Session> {
  return (await app.change("session/update", { sessionId, pinned })).session;
}

/** What is archived is out of sight: how to get it back is said where it went. */
function offerBack(app: App, { sessionId }: Session): void {
  const undo = "Undo";
  const said = `${called(app, sessionId)} is archived. It is under Archived in the list of sessions.`;
  void vscode.window
    .showInformationMessage(said, undo)
    .then((chosen) =>
      chosen === undo
        ? vscode.commands.executeCommand("callboard.unarchiveSession", sessionId)
        : undefined,
    );
}

async function deleteSession(app: App, sessionId: string): Promise<void> {
  const name = called(app, sessionId);
  const sure = "Delete for Good";
  const chosen = await vscode.window.showWarningMessage(
    `Delete ${name}?`,
    {
      modal: true,
      detail:
        "Its agents and all that was said go with it. Files stay as they are. This cannot be undone.",
    },
    sure,
  );
  if (chosen !== sure) {
    return;
  }
  await app.change("session/delete", { sessionId });
  removeSession(app.sessions, sessionId);
  app.tell("sessions", undefined);
}

/** Opens the newest session of the folders. */
async function resume(app: App, chats: Chats, folders: readonly string[]): Promise<void> {
  if (folders.length === 0) {
    throw new CallError(
      0,
      "No folder is open. “Callboard: Open a Session” shows those of all folders.",
    );
  }
  const pages = await Promise.all(
    folders.map((cwd) => app.request("session/list", { cwd, limit: 1 })),
  );
  const newest = pages
    .flatMap((page) => page.data)
    .sort((a, b) => (a.updatedAt < b.updatedAt ? 1 : -1))[0];
  if (newest) {
    app.putSession(newest);
    await chats.open(newest.sessionId);
    return;
  }
  const begin = "New Session";
  const all = "Open a Session";
  const chosen = await vscode.window.showInformationMessage(
    "This folder has no session yet.",
    begin,
    all,
  );
  if (chosen !== undefined) {
    const command = chosen === begin ? "callboard.newSession" : "callboard.openSession";
    await vscode.commands.executeCommand(command);
  }
}
