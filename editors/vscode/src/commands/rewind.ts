/** Going back to before a turn: the agent knows nothing of it any more; files stay, unless they are put back. */
import type { SessionRewindResult, Turn } from "@callboard/protocol";
import * as vscode from "vscode";
import type { App } from "../app";
import type { ChangesInUse } from "../changes";
import { checkpoints, isTakenBack, rewound, saidBySeq } from "../model/rewind";
import { label, message } from "../model/text";
import { CallError } from "../server/errors";
import { reject, wanted } from "../views/verdicts";
import { failed } from "./registry";

/** So many messages are read, to say what turns were about; older ones are told by their numbers. */
const READ = 200;

async function turnsOf(app: App, sessionId: string): Promise<Turn[]> {
  const all: Turn[] = [];
  let cursor: string | undefined;
  do {
    const page = await app.request("session/turns", {
      sessionId,
      ...(cursor === undefined ? {} : { cursor }),
    });
    all.push(...page.data);
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return all;
}

async function chosen(app: App, sessionId: string, turns: readonly Turn[]): Promise<Turn> {
  const page = await app.request("event/list", {
    scope: { kind: "session", id: sessionId },
    types: ["message"],
    before: "now",
    limit: READ,
  });
  const items = checkpoints(turns, saidBySeq(page.data), Date.now()).map((checkpoint) => ({
    turn: checkpoint.turn,
    label: label(checkpoint.label),
    description: label(checkpoint.description),
    detail: label(checkpoint.detail),
  }));
  const picked = await vscode.window.showQuickPick(items, {
    title: "Go back to before which turn?",
    placeHolder: "It and all after it are taken back; files stay as they are",
    matchOnDetail: true,
  });
  if (!picked) {
    throw new vscode.CancellationError();
  }
  return picked.turn;
}

/** Puts back what was changed in turns that were taken back. */
export async function putFilesBack(
  changes: ChangesInUse,
  turn: Turn,
  result: SessionRewindResult,
): Promise<void> {
  await changes.with(turn.sessionId, async (tracked) => {
    const files = tracked.filesOf((step) => isTakenBack(step, turn, result));
    if (files.length === 0) {
      throw new CallError(0, "Nothing of what was changed can be put back, or it was already.");
    }
    const detail = `They become what they were before the turn: ${files
      .map((file) => message(tracked.short(file.path), 60))
      .slice(0, 10)
      .join(", ")}${files.length > 10 ? ", …" : ""}`;
    if (await wanted("Put Back", files.length, detail)) {
      await reject(tracked, files);
    }
  });
}

/**
 * @param turnId the turn, where it is known already
 * @throws CallError
 */
export async function restoreCheckpoint(
  app: App,
  changes: ChangesInUse,
  sessionId: string,
  turnId?: string,
): Promise<void> {
  const turns = await turnsOf(app, sessionId);
  if (turns.length === 0) {
    const forked = app.sessions.byId.get(sessionId)?.forkedFrom != null;
    throw new CallError(
      0,
      forked
        ? "This fork has no turn of its own to take back. Fork the session that it comes from instead."
        : "There is no turn to take back yet.",
    );
  }
  const turn =
    turns.find((each) => each.turnId === turnId) ?? (await chosen(app, sessionId, turns));
  const result = await app.change("session/rewind", { sessionId, beforeTurnId: turn.turnId });
  app.putSession(result.session);
  const back = "Put Files Back…";
  const offered = (result.changedPaths ?? []).length > 0 ? [back] : [];
  const said = message(rewound(result, (path) => vscode.workspace.asRelativePath(path)));
  // Nobody waits for an answer: the session is back already.
  void vscode.window
    .showInformationMessage(said, ...offered)
    .then((answer) => (answer === back ? putFilesBack(changes, turn, result) : undefined))
    .then(undefined, (fault: unknown) => failed(app, fault, "The files cannot be put back"));
}
