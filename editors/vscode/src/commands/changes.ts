/** Reviewing changes by commands: from a diff, the list, an editor, the chat or the palette. */
import * as vscode from "vscode";
import type { App } from "../app";
import { setKey } from "../contextKeys";
import { ChangesInUse, type Tracked } from "../changes";
import { realPath } from "../disk";
import type { ChangedFile } from "../model/changes";
import { CallError } from "../server/errors";
import { ApprovalDiffs } from "../views/approvalDiff";
import { ChangesTree, CHANGES_VIEW, isEntry } from "../views/changesTree";
import { DiffReview } from "../views/diff";
import { activeTab, DiffDocuments, shownIn } from "../views/diffDocuments";
import { accept, mention, reject, wanted } from "../views/verdicts";
import { WriteWatch } from "../views/writes";
import { register } from "./registry";
import { restoreCheckpoint } from "./rewind";

/** What others need of it. */
export interface Reviewing {
  readonly changes: ChangesInUse;
  readonly review: DiffReview;
  readonly approvals: ApprovalDiffs;
  readonly tree: ChangesTree;
}

/** Files that a command is about, with the session whose changes they are. */
interface Meant {
  readonly tracked: Tracked;
  readonly files: readonly ChangedFile[];
}

type Act = (meant: Meant) => Promise<void>;

function opened(app: App): string {
  const { focused } = app;
  if (focused === undefined) {
    throw new CallError(0, "No session is open. Open one from the sessions view first.");
  }
  return focused;
}

/** The changed file behind a path, by its name or by whatever else leads to the same file. */
async function fileAt(tracked: Tracked, path: string): Promise<ChangedFile | undefined> {
  const named = tracked.file(path);
  const real = await realPath(path);
  if (named || real === undefined) {
    return named;
  }
  for (const file of tracked.files()) {
    if ((await realPath(file.path)) === real) {
      return file;
    }
  }
  return undefined;
}

export function registerChanges(
  context: vscode.ExtensionContext,
  app: App,
  isVisible: (sessionId: string) => boolean,
): Reviewing {
  const changes = new ChangesInUse(app);
  const documents = new DiffDocuments((shown) => {
    if (shown.about === "change") {
      review.restore(shown);
    } else {
      approvals.restore(shown);
    }
  });
  const review = new DiffReview(app, changes, documents);
  const approvals = new ApprovalDiffs(app, documents, isVisible, look);
  const tree = new ChangesTree(app, changes);

  /** What keys and buttons can act on. */
  function look(): void {
    const shown = shownIn(activeTab());
    const proposed = shown?.about === "approval" && approvals.current !== undefined;
    const visible = shown?.about === "change" || proposed;
    setKey("callboard.diffVisible", visible);
    setKey("callboard.diffProposed", proposed);
  }

  function synced(): void {
    review.sync();
    approvals.sync();
    look();
  }

  /** The file that is given, that is shown, or of the editor that is active. */
  async function onFile(given: unknown, act: Act): Promise<void> {
    const shown = given === undefined || given instanceof vscode.Uri ? review.current : undefined;
    if (isEntry(given)) {
      await changes.with(given.sessionId, async (tracked) => {
        const file = tracked.file(given.path);
        await act({ tracked, files: file ? [file] : [] });
      });
    } else if (shown) {
      await changes.with(shown.sessionId, (tracked) => act({ tracked, files: [shown.file] }));
    } else {
      await changes.with(opened(app), async (tracked) => {
        const document = vscode.window.activeTextEditor?.document;
        const file = document && (await fileAt(tracked, document.uri.fsPath));
        if (!file) {
          throw new CallError(
            0,
            "This file was not changed by the session. The view “Changes” lists what was.",
          );
        }
        await act({ tracked, files: [file] });
      });
    }
  }

  async function acceptThem({ tracked, files }: Meant): Promise<void> {
    if (await accept(tracked, files)) {
      await review.settled(tracked, files);
    }
  }

  async function rejectThem({ tracked, files }: Meant): Promise<void> {
    if (await reject(tracked, files)) {
      await review.settled(tracked, files);
    }
    tree.look(); // what could not be put back was changed since
  }

  async function onAll(verb: string, detail: string, act: Act): Promise<void> {
    const shown = review.current;
    await changes.with(shown?.sessionId ?? opened(app), async (tracked) => {
      const files = tracked.pending();
      if (files.length === 0) {
        mention("nothing is new");
      } else if (await wanted(verb, files.length, detail)) {
        await act({ tracked, files });
      }
    });
  }

  register(context, app, {
    "callboard.openChanges": () => vscode.commands.executeCommand(`${CHANGES_VIEW}.focus`),
    "callboard.showDiff": async (sessionId, path) => {
      tree.look();
      await review.show(String(sessionId), String(path));
    },
    "callboard.showApprovalDiff": (approvalId) => approvals.show(String(approvalId)),
    "callboard.acceptFile": async (given) => {
      if (isEntry(given) || !(await approvals.answer(1))) {
        await onFile(given, acceptThem);
      }
    },
    "callboard.rejectFile": async (given) => {
      if (isEntry(given) || !(await approvals.answer(4))) {
        await onFile(given, rejectThem);
      }
    },
    "callboard.allowProposed": () => approvals.answer(1),
    "callboard.denyProposed": () => approvals.answer(4),
    "callboard.acceptAll": () =>
      onAll("Accept", "Nothing more is asked about what they are now.", acceptThem),
    "callboard.rejectAll": () =>
      onAll(
        "Put Back",
        "Each becomes what it was before the session changed it. What was changed since stays, and is told.",
        rejectThem,
      ),
    "callboard.nextChange": async () => {
      if (await approvals.next()) {
        return;
      }
      const shown = review.current;
      await changes.with(shown?.sessionId ?? opened(app), (tracked) =>
        review.next(tracked, shown?.file.path ?? ""),
      );
    },
    "callboard.restoreCheckpoint": (sessionId, turnId) =>
      restoreCheckpoint(
        app,
        changes,
        typeof sessionId === "string" ? sessionId : opened(app),
        typeof turnId === "string" ? turnId : undefined,
      ),
  });
  context.subscriptions.push(
    vscode.window.tabGroups.onDidChangeTabs(synced),
    vscode.window.tabGroups.onDidChangeTabGroups(synced),
    new WriteWatch(app),
    tree,
    review,
    approvals,
    documents,
    {
      dispose: () => {
        changes.close();
      },
    },
  );
  synced();
  return { changes, review, approvals, tree };
}
