import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import { App } from "./app";
import { readBuffer } from "./buffers";
import { registerApprovals } from "./commands/approvals";
import { registerChanges, type Reviewing } from "./commands/changes";
import { registerChat } from "./commands/chat";
import { registerDoctor } from "./commands/doctor";
import { registerServer } from "./commands/server";
import { registerSessions } from "./commands/sessions";
import { registerTeam } from "./commands/team";
import { followKeys } from "./contextKeys";
import { channelLog } from "./log";
import { OWN_CLIENTS } from "./model/approvalCard";
import { counts } from "./model/store";
import { Chats } from "./views/chats";
import { Notifications } from "./views/notifications";
import { SessionsTree } from "./views/sessionsTree";
import { statusBar } from "./views/statusBar";
import { serverEnvironment } from "./wiring";

/** What tests, and other extensions, get of this one. */
export interface Api {
  app: App;
  chats: Chats;
  reviewing: Reviewing;
  sessions: SessionsTree;
}

/** Under this key a window keeps whether something ran or waited when it was here last. */
const LIVE = "callboard.live";

let running: App | undefined;

export function activate(context: vscode.ExtensionContext): Api {
  const channel = vscode.window.createOutputChannel("Callboard", { log: true });
  const log = channelLog(channel);
  const clientId = OWN_CLIENTS + randomBytes(12).toString("hex");
  const app = new App({
    log,
    server: serverEnvironment(clientId, log),
    buffers: readBuffer,
    clientId,
    trusted: () => vscode.workspace.isTrusted,
  });
  running = app;
  const chats = new Chats(context, app);
  const reviewing = registerChanges(context, app, (sessionId) => chats.isVisible(sessionId));
  const sessions = new SessionsTree(context, app, (sessionId) =>
    reviewing.changes.lines(sessionId),
  );
  context.subscriptions.push(
    channel,
    chats,
    sessions,
    followKeys(app),
    statusBar(app),
    new Notifications(app, chats),
  );
  registerChat(context, app, chats);
  registerApprovals(context, app, chats);
  registerSessions(context, app, chats, sessions);
  registerTeam(context, app, chats);
  registerServer(context, app, channel);
  registerDoctor(context, app, chats.documents);
  rememberLive(context, app);
  // The server starts with the first use; where something went on without this window, that is now.
  if (context.workspaceState.get(LIVE) === true) {
    app.start();
  }
  return { app, chats, reviewing, sessions };
}

export async function deactivate(): Promise<void> {
  await running?.leave();
  running = undefined;
}

function rememberLive(context: vscode.ExtensionContext, app: App): void {
  let was = context.workspaceState.get<boolean>(LIVE);
  const look = (): void => {
    const live = counts(app.sessions).running > 0 || app.approvals.pending.length > 0;
    if (app.sessions.loaded && live !== was) {
      was = live;
      void context.workspaceState.update(LIVE, live);
    }
  };
  const offs = [app.on("sessions", look), app.on("approvals", look)];
  context.subscriptions.push({
    dispose: () => {
      for (const off of offs) {
        off();
      }
    },
  });
}
