/** A tree view of lines that have ids: told the whole each time, it has only those drawn that look different. */
import * as vscode from "vscode";

export interface Line {
  /** Of the tree; what is open and chosen keeps to it. */
  readonly id: string;
  /** Plain text, cleaned already. */
  readonly label: string;
  readonly description?: string;
  readonly tooltip?: string;
  readonly icon: string;
  /** A colour of the theme, beside what the words say. */
  readonly color?: string;
  /** Words by which menus know what can be done. */
  readonly context: string;
  readonly command?: vscode.Command;
  readonly children: readonly Line[];
  /** What is below it is shown when it is asked for. */
  readonly closed?: boolean;
  /** What it is about, for commands. */
  readonly about?: unknown;
}

/** A line as VS Code knows it: the same object as long as the line is there. */
export class Entry {
  readonly children: Entry[] = [];

  constructor(
    public line: Line,
    readonly parent: Entry | undefined,
  ) {}
}

function looksLike(a: Line, b: Line): boolean {
  return (
    a.label === b.label &&
    a.description === b.description &&
    a.tooltip === b.tooltip &&
    a.icon === b.icon &&
    a.color === b.color &&
    a.context === b.context &&
    a.children.length > 0 === b.children.length > 0
  );
}

export class KeyedTree implements vscode.TreeDataProvider<Entry> {
  readonly #changed = new vscode.EventEmitter<Entry | Entry[] | undefined>();
  readonly onDidChangeTreeData = this.#changed.event;
  readonly #top: Entry[] = [];

  /** The first entry, as one to be shown. */
  get first(): Entry | undefined {
    return this.#top[0];
  }

  /** What is shown from now on. */
  set(lines: readonly Line[]): void {
    const drawn: Entry[] = [];
    if (this.#sync(this.#top, lines, undefined, drawn)) {
      this.#changed.fire(undefined);
    } else if (drawn.length > 0) {
      this.#changed.fire(drawn);
    }
  }

  /** Brings entries to what the lines are; collects those to be drawn. @returns whether others are there now */
  #sync(
    entries: Entry[],
    lines: readonly Line[],
    parent: Entry | undefined,
    drawn: Entry[],
  ): boolean {
    const known = new Map(entries.map((entry) => [entry.line.id, entry]));
    const next = lines.map((line) => known.get(line.id) ?? new Entry(line, parent));
    const same = next.length === entries.length && next.every((entry, at) => entry === entries[at]);
    entries.splice(0, entries.length, ...next);
    for (const [at, entry] of next.entries()) {
      const line = lines[at];
      if (line) {
        const alike = looksLike(entry.line, line);
        entry.line = line;
        const below: Entry[] = [];
        const others = this.#sync(entry.children, line.children, entry, below);
        if (others || !alike) {
          drawn.push(entry); // with all that is below it
        } else {
          drawn.push(...below);
        }
      }
    }
    return !same;
  }

  getTreeItem(entry: Entry): vscode.TreeItem {
    const { line } = entry;
    const item = new vscode.TreeItem(
      line.label,
      line.children.length === 0
        ? vscode.TreeItemCollapsibleState.None
        : line.closed
          ? vscode.TreeItemCollapsibleState.Collapsed
          : vscode.TreeItemCollapsibleState.Expanded,
    );
    item.id = line.id;
    item.iconPath = new vscode.ThemeIcon(
      line.icon,
      line.color === undefined ? undefined : new vscode.ThemeColor(line.color),
    );
    item.contextValue = line.context;
    if (line.description !== undefined) {
      item.description = line.description;
    }
    // A string, and so never taken for markdown.
    item.tooltip = line.tooltip ?? [line.label, line.description ?? ""].join("  ").trim();
    item.accessibilityInformation = {
      label: [line.label, line.description ?? ""].filter((part) => part !== "").join(", "),
    };
    if (line.command) {
      item.command = line.command;
    }
    return item;
  }

  getChildren(entry?: Entry): Entry[] {
    return entry ? entry.children : this.#top;
  }

  getParent(entry: Entry): Entry | undefined {
    return entry.parent;
  }

  dispose(): void {
    this.#changed.dispose();
  }
}
