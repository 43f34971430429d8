/** Stops what runs: says what that is and what it leaves alone, and offers more force when it takes too long. */
import type { Agent, CancelScope, SessionCancelResult } from "@callboard/protocol";
import * as vscode from "vscode";
import type { App } from "../app";
import { explain } from "../server/errors";
import { PATIENCE_MS } from "../stopping";

/**
 * @param what `turn`, `queue` or `tree`; `choose` asks when more than the turn could be meant; `group` is
 * the whole tree from its root; `force` is for what was asked to stop and has not
 * @throws CallError
 */
export async function interrupt(
  app: App,
  sessionId: string,
  what: CancelScope | "choose" | "group" | "force",
): Promise<void> {
  if (what === "force") {
    await force(app, sessionId);
  } else if (what === "group") {
    const root = app.sessions.byId.get(sessionId)?.rootId ?? sessionId;
    await cancel(app, root, "tree");
  } else if (what === "choose") {
    await choose(app, sessionId);
  } else {
    await cancel(app, sessionId, what);
  }
}

function counted(count: number, one: string, many: string): string {
  return count === 1 ? `1 ${one}` : `${count} ${many}`;
}

/** The agents below a session that run, where the server has any. */
export async function runningBelow(app: App, sessionId: string): Promise<Agent[]> {
  if (!app.feature("agents")) {
    return [];
  }
  const found: Agent[] = [];
  let cursor: string | undefined;
  do {
    const page = await app.request("agent/list", {
      rootId: sessionId,
      ...(cursor === undefined ? {} : { cursor }),
    });
    for (const agent of page.data) {
      const below =
        agent.rootId === sessionId || agent.path.some((step) => step.sessionId === sessionId);
      const runs = agent.status === "running" || agent.status === "starting";
      if (agent.agentId !== sessionId && below && runs) {
        found.push(agent);
      }
    }
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return found;
}

async function choose(app: App, sessionId: string): Promise<void> {
  const session = app.sessions.byId.get(sessionId);
  const below = await runningBelow(app, sessionId).catch(() => []);
  const isMember = session?.parentId != null;
  if (below.length === 0 && !isMember) {
    await cancel(app, sessionId, "turn");
    return;
  }
  const agents = counted(below.length, "agent", "agents");
  const choices: (vscode.QuickPickItem & { run: () => Promise<void> })[] = [
    {
      label: "$(debug-stop) This turn",
      description: below.length > 0 ? `${agents} below it go on` : "others go on",
      run: () => cancel(app, sessionId, "turn"),
    },
  ];
  if (below.length > 0) {
    choices.push({
      label: "$(debug-disconnect) This turn and its agents",
      description: `stops ${agents}, and drops what waits here`,
      run: () => cancel(app, sessionId, "tree"),
    });
  }
  if (isMember) {
    choices.push({
      label: "$(organization) The whole group",
      description: "stops the lead and all of its agents",
      run: () => interrupt(app, sessionId, "group"),
    });
  }
  const picked = await vscode.window.showQuickPick(choices, {
    title: "Stop",
    placeHolder: "What is to stop?",
  });
  await picked?.run();
}

async function cancel(app: App, sessionId: string, scope: CancelScope): Promise<void> {
  const queued = app.sessions.byId.get(sessionId)?.queueLength ?? 0;
  const agents = await runningBelow(app, sessionId).catch(() => []);
  const result = await app.change("session/cancel", { sessionId, scope });
  void vscode.window.setStatusBarMessage(`Callboard ${told(scope, agents, queued, result)}`, 5000);
  const active = result.state === "cancelling" || (scope === "tree" && agents.length > 0);
  if (scope !== "queue" && active) {
    watch(app, sessionId, scope, result.turnId ?? undefined);
  }
  app.refresh(sessionId);
}

function told(
  scope: CancelScope,
  agents: readonly Agent[],
  queued: number,
  result: SessionCancelResult,
): string {
  const dropped = result.dropped?.length ?? 0;
  const many = counted(agents.length, "agent", "agents");
  if (scope === "queue") {
    return dropped > 0
      ? `dropped ${counted(dropped, "message", "messages")}; the turn goes on`
      : "has nothing that waits here";
  }
  if (scope === "tree") {
    const drops =
      dropped > 0
        ? ` and drops ${counted(dropped, "message that waits", "messages that wait")}`
        : "";
    return `stops the turn and ${many}${drops}`;
  }
  if (result.state === "idle") {
    return agents.length > 0
      ? `has no turn here; ${many} below it run`
      : "has no turn that runs here";
  }
  const rest = [
    ...(queued > 0 ? [`${counted(queued, "message", "messages")} still wait`] : []),
    ...(agents.length > 0 ? [`${many} go on`] : []),
  ];
  return `stops this turn${rest.length > 0 ? `; ${rest.join(", ")}` : ""}`;
}

/** Whether a session below it is at work, as far as this window has heard. */
function knownToRunBelow(app: App, sessionId: string): boolean {
  const below = new Set([sessionId]);
  // Those that began first come first: a parent before what works for it.
  const known = [...app.sessions.byId.values()].sort((a, b) =>
    a.sessionId < b.sessionId ? -1 : 1,
  );
  for (const session of known) {
    if (session.parentId != null && below.has(session.parentId)) {
      below.add(session.sessionId);
      if (session.activeTurnId != null) {
        return true;
      }
    }
  }
  return false;
}

/** Remembers since when something stops, until it has. */
function watch(app: App, sessionId: string, scope: CancelScope, turnId: string | undefined): void {
  const stop = { scope, turnId, since: new Date().toISOString() };
  app.stopping.set(sessionId, stop);
  app.tell("sessions", undefined);
  const offs = [
    app.on("sessions", () => {
      check();
    }),
    app.on("turnEnded", (end) => {
      if (end.sessionId === sessionId) {
        check();
      }
    }),
  ];
  const over = (): void => {
    for (const off of offs) {
      off();
    }
    clearTimeout(timer);
    if (app.stopping.get(sessionId) === stop) {
      app.stopping.delete(sessionId);
      app.tell("sessions", undefined);
    }
  };
  /** The turn that was there; one that began since is not meant. */
  const runs = (): boolean =>
    turnId !== undefined && app.sessions.byId.get(sessionId)?.activeTurnId === turnId;
  const check = (): void => {
    if (!runs() && (scope !== "tree" || !knownToRunBelow(app, sessionId))) {
      over();
    }
  };
  const timer = setTimeout(() => {
    late().catch((fault: unknown) => {
      app.log.warn(explain(fault));
      over();
    });
  }, PATIENCE_MS);
  const late = async (): Promise<void> => {
    const { session } = await app.request("session/get", { sessionId });
    app.putSession(session);
    const left = scope === "tree" ? await runningBelow(app, sessionId) : [];
    if (!runs() && left.length === 0) {
      over();
      return;
    }
    const what = runs() ? "The turn" : counted(left.length, "agent", "agents");
    const forceStop = "Force Stop";
    const picked = await vscode.window.showWarningMessage(
      `${what} has not stopped after ${PATIENCE_MS / 1000} s.`,
      forceStop,
    );
    if (picked === forceStop) {
      over();
      await force(app, sessionId, scope);
    }
  };
}

/** @throws CallError */
async function force(app: App, sessionId: string, scope?: CancelScope): Promise<void> {
  const meant = scope ?? app.stopping.get(sessionId)?.scope ?? "turn";
  const session = app.sessions.byId.get(sessionId);
  const targets =
    meant === "tree" ? (await runningBelow(app, sessionId)).map((agent) => agent.agentId) : [];
  if (session?.parentId != null) {
    targets.unshift(sessionId);
  }
  for (const agentId of targets) {
    await app.change("agent/interrupt", { agentId, kind: "abort", reason: "stopped by force" });
  }
  if (session?.parentId == null && session?.activeTurnId != null) {
    await app.change("session/cancel", { sessionId, scope: meant });
    const restart = "Restart Server";
    const picked = await vscode.window.showWarningMessage(
      "It was asked again. When that does not help, restarting the server ends the turn; its log stays.",
      restart,
    );
    if (picked === restart) {
      await vscode.commands.executeCommand("callboard.restartServer");
    }
  } else {
    void vscode.window.setStatusBarMessage(
      `Callboard force stop: ${counted(targets.length, "agent", "agents")}`,
      5000,
    );
  }
}
