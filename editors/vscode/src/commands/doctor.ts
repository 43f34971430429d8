/** “Callboard: Doctor”: a document that says what is there, and what to do about the rest. */
import * as vscode from "vscode";
import type { App } from "../app";
import { changedSettings, setting, wrongSettings } from "../config";
import { report } from "../doctor/findings";
import { run } from "../doctor/run";
import { doctorFindings, serverFindings, storeFindings, type World } from "../doctor/server";
import { settingsFindings, windowFindings } from "../doctor/window";
import { CallError } from "../server/errors";
import { locate } from "../server/locate";
import { thisMachine } from "../server/machine";
import type { Documents } from "../views/documents";
import { register } from "./registry";

/** How long (ms) the server that runs may take to tell of its store. */
const ASK_MS = 5000;

export function registerDoctor(
  context: vscode.ExtensionContext,
  app: App,
  documents: Pick<Documents, "show">,
): void {
  register(context, app, {
    "callboard.doctor": async () => {
      const text = await vscode.window.withProgress(
        { location: vscode.ProgressLocation.Window, title: "Callboard: looking at what it needs" },
        () => examined(context, app),
      );
      await documents.show("What Callboard needs.md", text, "markdown");
    },
  });
}

function folders(): string[] {
  return (vscode.workspace.workspaceFolders ?? [])
    .filter(({ uri }) => uri.scheme === "file")
    .map(({ uri }) => uri.fsPath);
}

/** All that is found, as Markdown. */
export async function examined(context: vscode.ExtensionContext, app: App): Promise<string> {
  const world = worldOf(app);
  const located = await locate(
    { path: setting("server.path"), args: setting("server.args") },
    thisMachine(folders()),
  );
  const [findings, own, store] = await Promise.all([
    serverFindings(world, located),
    doctorFindings(world, located),
    storeFindings(world),
  ]);
  const { version } = context.extension.packageJSON as { version?: unknown };
  return report([
    {
      title: "This window",
      findings: windowFindings({
        editor: vscode.env.appName,
        version: vscode.version,
        extension: typeof version === "string" ? version : "?",
        remote: vscode.env.remoteName,
        trusted: app.trusted,
        folders: folders(),
      }),
    },
    { title: "Server", findings },
    { title: "Store", findings: store },
    { title: "What the server found (callboard doctor)", findings: own },
    {
      title: "Settings",
      findings: settingsFindings({
        changed: changedSettings().map((name) => [name, setting(name)] as const),
        wrong: wrongSettings(),
        env: { ...process.env, ...setting("server.env") },
      }),
    },
  ]);
}

function worldOf(app: App): World {
  const { server } = app;
  return {
    trusted: app.trusted,
    silent: server.silent,
    state: server.state,
    handshake: server.handshake,
    failure: server.failure,
    run: (cmd, limitMs) => run(cmd, limitMs, { cwd: folders()[0], env: setting("server.env") }),
    ask: async () => {
      const given = new AbortController();
      const timer = setTimeout(() => {
        given.abort();
      }, ASK_MS);
      try {
        const options = { once: true, signal: given.signal };
        const [info, diagnostics] = await Promise.all([
          app.request("server/info", {}, options),
          app.request("server/diagnostics", {}, options),
        ]);
        return { info, diagnostics };
      } catch (fault) {
        throw given.signal.aborted
          ? new CallError(0, `it did not answer within ${ASK_MS / 1000} s`)
          : fault;
      } finally {
        clearTimeout(timer);
      }
    },
  };
}
