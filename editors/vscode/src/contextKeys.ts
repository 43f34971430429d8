/** What `when` clauses of the manifest ask for. Each key is set here, and only when its value is another. */
import * as vscode from "vscode";
import type { App } from "./app";
import { serverState } from "./model/serverState";

/** All keys that there are. */
export const CONTEXT_KEYS = [
  "callboard.chatFocused",
  "callboard.diffProposed",
  "callboard.diffVisible",
  "callboard.feature.agents",
  "callboard.feature.groups",
  "callboard.feature.interrupts",
  "callboard.hasPendingApproval",
  "callboard.serverSeen",
  "callboard.serverState",
  "callboard.sessionOpen",
  "callboard.sessionRunning",
] as const;
export type ContextKey = (typeof CONTEXT_KEYS)[number];

const known = new Map<ContextKey, string | boolean>();

export function setKey(key: ContextKey, value: string | boolean): void {
  if (known.get(key) !== value) {
    known.set(key, value);
    void vscode.commands.executeCommand("setContext", key, value);
  }
}

/** Keeps those keys right that tell of server and sessions. */
export function followKeys(app: App): vscode.Disposable {
  const server = (): void => {
    const state = serverState(app);
    // Until its sessions are listed nobody can say that there are none.
    setKey("callboard.serverState", state === "ready" && !app.sessions.loaded ? "starting" : state);
    setKey("callboard.feature.agents", app.feature("agents"));
    setKey("callboard.feature.groups", app.feature("groups"));
    setKey("callboard.feature.interrupts", app.feature("agents.interrupts"));
  };
  const session = (): void => {
    const { focused } = app;
    const status = focused === undefined ? undefined : app.sessions.byId.get(focused)?.status;
    if (app.sessions.loaded && known.get("callboard.serverState") === "starting") {
      server();
    }
    setKey("callboard.sessionOpen", focused !== undefined);
    setKey("callboard.sessionRunning", status === "running" || status === "waiting_approval");
  };
  const approvals = (): void => {
    setKey("callboard.hasPendingApproval", app.approvals.pending.length > 0);
  };
  // A window that was loaded again keeps nothing of what was known before.
  known.clear();
  server();
  session();
  approvals();
  const offs = [
    app.on("server", server),
    app.on("sessions", session),
    app.on("focused", session),
    app.on("approvals", approvals),
  ];
  return new vscode.Disposable(() => {
    for (const off of offs) {
      off();
    }
  });
}
