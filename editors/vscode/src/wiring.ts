/** What joins the server's supervisor with this editor: its clock, its settings, and who it is. */
import * as vscode from "vscode";
import { PROTOCOL_VERSION } from "@callboard/protocol";
import type { ServerEnvironment } from "./app";
import { setting } from "./config";
import { guard } from "./listeners";
import type { Log } from "./log";
import { startClient } from "./server/connection";
import { locate } from "./server/locate";
import { thisMachine } from "./server/machine";

/** Folders of this window that are on this machine. */
function folders(): vscode.WorkspaceFolder[] {
  return (vscode.workspace.workspaceFolders ?? []).filter(({ uri }) => uri.scheme === "file");
}

const paths = (): string[] => folders().map(({ uri }) => uri.fsPath);

/** @param clientId of this window, for as long as it is open */
export function serverEnvironment(clientId: string, log: Log): ServerEnvironment {
  return {
    locate: () =>
      locate({ path: setting("server.path"), args: setting("server.args") }, thisMachine(paths())),
    start: (found, handlers) =>
      startClient(found.cmd, handlers, {
        cwd: paths()[0],
        env: {
          ...(found.path === undefined ? {} : { PATH: found.path }),
          ...setting("server.env"),
        },
        log,
        tracing: () => setting("trace.server"),
      }),
    initialize: () => {
      const info = { name: vscode.env.appName, version: vscode.version };
      const workspaceFolders = folders().map(({ uri, name }) => ({ uri: uri.toString(), name }));
      return {
        processId: process.pid,
        clientInfo: info,
        rootUri: workspaceFolders[0]?.uri ?? null,
        workspaceFolders,
        capabilities: {},
        initializationOptions: {
          callboard: {
            protocolVersions: [PROTOCOL_VERSION],
            clientId,
            clientInfo: info,
            capabilities: { approvals: true, deltas: true, readFile: true },
          },
        },
      };
    },
    folders: paths,
    now: () => performance.now(),
    later: (ms, fn) => {
      const timer = setTimeout(() => {
        guard(log, fn);
      }, ms);
      return () => {
        clearTimeout(timer);
      };
    },
  };
}
