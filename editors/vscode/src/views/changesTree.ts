/** The files that the open session and its agents changed; followed only while somebody sees the list. */
import * as vscode from "vscode";
import type { App } from "../app";
import type { ChangesInUse, Tracked } from "../changes";
import { changeRow, changesSummary, type ChangeRow } from "../model/changeRows";
import type { ChangedFile } from "../model/changes";
import { whyOld } from "../model/serverState";
import { oneLine } from "../model/text";
import { compare, missed } from "../reverting";
import { onSeen } from "./seen";

export const CHANGES_VIEW = "callboard.changes";

/** A file of the list. */
export interface ChangeEntry {
  readonly sessionId: string;
  readonly path: string;
  readonly row: ChangeRow;
}

export function isEntry(value: unknown): value is ChangeEntry {
  return typeof value === "object" && value !== null && "row" in value && "sessionId" in value;
}

/** The last line: not a file. */
const CAVEAT = "What commands wrote is not seen here";
const CAVEAT_WHOLE =
  "What commands and other programs wrote is not seen here: ask your version control.";

type Line = ChangeEntry | typeof CAVEAT;

/** So many files are compared with the disk, to tell which were changed since. */
const COMPARED = 100;

const ICONS: Partial<Record<string, readonly [icon: string, color: string]>> = {
  create: ["diff-added", "gitDecoration.addedResourceForeground"],
  modify: ["diff-modified", "gitDecoration.modifiedResourceForeground"],
  delete: ["diff-removed", "gitDecoration.deletedResourceForeground"],
  move: ["diff-renamed", "gitDecoration.renamedResourceForeground"],
};

function iconOf(file: ChangedFile | undefined): vscode.ThemeIcon {
  if (file?.state === "accepted") {
    return new vscode.ThemeIcon("check");
  } else if (file?.state === "rejected") {
    return new vscode.ThemeIcon("discard");
  }
  const [icon, color] = ICONS[file?.operation ?? ""] ?? ["diff-ignored", "foreground"];
  return new vscode.ThemeIcon(icon, new vscode.ThemeColor(color));
}

export class ChangesTree implements vscode.TreeDataProvider<Line>, vscode.Disposable {
  readonly #changed = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.#changed.event;
  readonly #view: vscode.TreeView<Line>;
  readonly #offs: (() => void)[];
  readonly #registered: vscode.Disposable;
  #tracked: Tracked | undefined;
  #off: (() => void) | undefined;
  #entries: ChangeEntry[] = [];
  /** What of a file was changed since, by path; and of which look at them. */
  #since = new Map<string, string>();
  #look = 0;

  constructor(
    private readonly app: App,
    private readonly changes: ChangesInUse,
  ) {
    this.#view = vscode.window.createTreeView<Line>(CHANGES_VIEW, { treeDataProvider: this });
    this.#offs = [
      onSeen(app, this.#view, () => {
        this.#follow();
      }),
      app.on("server", () => {
        this.#draw();
      }),
    ];
    this.#registered = vscode.Disposable.from(
      vscode.workspace.onDidSaveTextDocument((document) => {
        if (this.#tracked?.file(document.uri.fsPath)) {
          this.look();
        }
      }),
      vscode.window.onDidChangeWindowState(({ focused }) => {
        if (focused) {
          this.look(); // other programs may have written files meanwhile
        }
      }),
    );
    this.#follow();
  }

  dispose(): void {
    for (const off of this.#offs) {
      off();
    }
    this.#leave();
    vscode.Disposable.from(this.#registered, this.#view, this.#changed).dispose();
  }

  /** What the list shows now. */
  get rows(): readonly ChangeRow[] {
    return this.#entries.map((entry) => entry.row);
  }

  /** Looks again which files were changed since. */
  look(): void {
    if (this.#tracked) {
      void this.#compare(this.#tracked);
    }
  }

  #leave(): void {
    this.#off?.();
    this.#off = undefined;
    if (this.#tracked) {
      this.changes.release(this.#tracked);
      this.#tracked = undefined;
    }
  }

  #follow(): void {
    const id = this.#view.visible ? this.app.focused : undefined;
    if (id === this.#tracked?.id) {
      return;
    }
    this.#leave();
    this.#since.clear();
    if (id !== undefined) {
      const tracked = this.changes.use(id);
      this.#tracked = tracked;
      this.#off = tracked.listen(() => {
        this.#draw();
        this.look();
      });
      this.look();
    }
    if (id !== undefined || this.#view.visible) {
      this.#draw();
    }
  }

  /** Looks which files were changed since; the newest look counts. */
  async #compare(tracked: Tracked): Promise<void> {
    if (!tracked.loaded) {
      return;
    }
    this.#look += 1;
    const look = this.#look;
    const since = new Map<string, string>();
    for (const file of tracked.pending().slice(0, COMPARED)) {
      if (file.chain.some((step) => step.blob)) {
        continue; // its diff is large, and read when it is shown
      }
      const why = missed(await compare(file));
      if (look !== this.#look || tracked !== this.#tracked) {
        return;
      }
      if (why !== undefined) {
        since.set(file.path, why);
      }
    }
    const was = JSON.stringify([...this.#since]);
    this.#since = since;
    if (JSON.stringify([...since]) !== was) {
      this.#draw();
    }
  }

  #draw(): void {
    const tracked = this.#tracked;
    this.#entries = (tracked?.files() ?? []).map((file) => this.#entry(tracked as Tracked, file));
    const why = tracked && whyOld(this.app, tracked);
    this.#view.message = why === undefined ? "" : oneLine(why, 300);
    this.#view.description = changesSummary(tracked?.files() ?? []);
    this.#changed.fire(undefined);
  }

  #entry(tracked: Tracked, file: ChangedFile): ChangeEntry {
    const row = changeRow(file, {
      short: tracked.short(file.path),
      oldShort: file.oldPath === undefined ? undefined : tracked.short(file.oldPath),
      agents: tracked.agentsOf(file),
      since: this.#since.get(file.path),
    });
    return { sessionId: tracked.id, path: file.path, row };
  }

  getChildren(line?: Line): Line[] {
    return line || this.#entries.length === 0 ? [] : [...this.#entries, CAVEAT];
  }

  getTreeItem(line: Line): vscode.TreeItem {
    if (line === CAVEAT) {
      const item = new vscode.TreeItem("");
      item.id = "caveat";
      item.description = CAVEAT;
      item.tooltip = CAVEAT_WHOLE;
      item.contextValue = "callboardCaveat";
      item.accessibilityInformation = { label: CAVEAT_WHOLE };
      return item;
    }
    const { row, sessionId, path } = line;
    const item = new vscode.TreeItem(row.name);
    item.id = JSON.stringify([sessionId, path]);
    item.description = row.description;
    item.tooltip = row.tooltip; // a string, and so never taken for markdown
    item.iconPath = iconOf(this.#tracked?.file(path));
    item.contextValue = `callboardChange ${row.state}`;
    item.accessibilityInformation = { label: `${row.name}, ${row.description}` };
    item.command = {
      command: "callboard.showDiff",
      title: "Show Diff",
      arguments: [sessionId, path],
    };
    return item;
  }
}
