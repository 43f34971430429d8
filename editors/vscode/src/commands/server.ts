/** The server and its log: started anew, looked at, allowed. */
import * as vscode from "vscode";
import type { App } from "../app";
import { onSettings } from "../config";
import { setKey } from "../contextKeys";
import { serverState } from "../model/serverState";
import { CallError } from "../server/errors";
import { showActions } from "../views/statusBar";
import { register } from "./registry";

const WALKTHROUGH = "callboard.start";

export function registerServer(
  context: vscode.ExtensionContext,
  app: App,
  channel: Pick<vscode.OutputChannel, "show">,
): void {
  let following: (() => void) | undefined;
  register(context, app, {
    "callboard.restartServer": () => {
      restart(app);
    },
    "callboard.showLog": () => {
      channel.show(true);
    },
    "callboard.showActions": () => showActions(app),
    "callboard.manageTrust": () => vscode.commands.executeCommand("workbench.trust.manage"),
    "callboard.openWalkthrough": async () => {
      await vscode.commands.executeCommand(
        "workbench.action.openWalkthrough",
        `${context.extension.id}#${WALKTHROUGH}`,
        false,
      );
      // VS Code ticks a step only when its key comes to be true while the steps are known.
      const seen = (): void => {
        setKey("callboard.serverSeen", serverState(app) === "ready");
      };
      seen();
      following?.();
      following = app.on("server", seen);
    },
  });
  context.subscriptions.push(
    new vscode.Disposable(() => following?.()),
    // What was started by other settings is another server than the one that is wanted now.
    onSettings(["server"], () => {
      if (app.server.state !== "stopped") {
        app.log.info("settings of the server are others; it is started again");
        app.server.restart();
      }
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => {
      app.tell("server", undefined);
      app.start();
    }),
  );
}

function restart(app: App): void {
  if (!app.trusted) {
    throw new CallError(0, "In Restricted Mode no server runs. Trust the workspace first.");
  }
  if (app.server.state === "stopped") {
    app.start();
  } else {
    app.server.restart();
  }
}
