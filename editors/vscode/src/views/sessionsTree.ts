/** The view of all sessions: those that need somebody first, always as the store has them. */
import * as fs from "node:fs/promises";
import * as vscode from "vscode";
import type { App } from "../app";
import { onSettings, setting } from "../config";
import { SessionListing } from "../listing";
import { plural } from "../model/loose";
import {
  NO_FILTER,
  sessionList,
  type ListNode,
  type MoreNode,
  type SessionFilter,
} from "../model/sessionList";
import { serverState, whyNotStarted } from "../model/serverState";
import { oneLine } from "../model/text";
import { listItem, type ChangedLines } from "./sessionItem";

export const SESSIONS_VIEW = "callboard.sessions";

/** Under this key a window keeps what its list leaves out. */
const FILTER = "callboard.sessions.filter";
/** So many more come with "Show more". */
const MORE = 20;
/** What happens within so long (ms) is drawn at once. */
const TOGETHER_MS = 100;
/** VS Code reads the list so long (ms) after it was told of a change; a line cannot be shown meanwhile. */
const SETTLED_MS = 500;
/** Ages are told in minutes. */
const MINUTE_MS = 60_000;

export class SessionsTree implements vscode.TreeDataProvider<ListNode>, vscode.Disposable {
  readonly listing: SessionListing;
  readonly #view: vscode.TreeView<ListNode>;
  readonly #changed = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.#changed.event;
  readonly #disposables: vscode.Disposable[] = [];
  readonly #offs: (() => void)[];
  #parents: ReadonlyMap<ListNode, ListNode> = new Map();
  #nodes: readonly ListNode[] = [];
  #drawn = "";
  #drawnAt = 0;
  #due: NodeJS.Timeout | undefined;
  #selecting: NodeJS.Timeout | undefined;
  #filter: SessionFilter;
  #folders: readonly string[] = [];
  /** How many more than at first a group shows. */
  readonly #extra = new Map<string, number>();

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly app: App,
    private readonly changedLines: ChangedLines = () => undefined,
  ) {
    this.#filter = filterIn(context.workspaceState.get(FILTER));
    this.listing = new SessionListing(app, () => this.#folders);
    this.#view = vscode.window.createTreeView(SESSIONS_VIEW, { treeDataProvider: this });
    this.#describe();
    this.#disposables.push(
      this.#view,
      this.#changed,
      this.#view.onDidChangeVisibility(({ visible }) => {
        this.#seen(visible);
      }),
      this.#view.onDidExpandElement(({ element }) => {
        void this.#opened(element);
      }),
      vscode.workspace.onDidChangeWorkspaceFolders(() => {
        void this.#findFolders();
      }),
      onSettings(["sessions.groupBy", "sessions.recentCount", "usage.show"], () => {
        this.refresh();
      }),
      ...this.#whileSomebodyIsThere(),
    );
    this.#offs = [
      app.on("sessions", () => {
        void this.listing.follow();
        this.refresh();
      }),
      app.on("approvals", () => {
        this.#badge();
        this.refresh();
      }),
      app.on("server", () => {
        this.refresh();
      }),
      app.on("focused", () => {
        this.#selectSoon();
      }),
    ];
    this.#badge();
    this.#seen(this.#view.visible);
    void this.#findFolders();
  }

  dispose(): void {
    clearTimeout(this.#due);
    clearTimeout(this.#selecting);
    for (const off of this.#offs) {
      off();
    }
    vscode.Disposable.from(...this.#disposables).dispose();
  }

  /** Those of the window, their links resolved. */
  get folders(): readonly string[] {
    return this.#folders;
  }

  get filter(): SessionFilter {
    return this.#filter;
  }

  /** What the list shows is narrowed, or not any more; asks for what it shows then. */
  async show(filter: SessionFilter): Promise<void> {
    this.#filter = filter;
    await this.context.workspaceState.update(FILTER, filter);
    this.#describe();
    this.refresh();
    if (filter.words !== "" && this.app.sessions.more) {
      await this.listing.named(filter.words);
    }
  }

  /** Shows more of a group, asking for older ones where all that are known are shown. */
  async more(node: MoreNode): Promise<void> {
    this.#extra.set(node.group, (this.#extra.get(node.group) ?? 0) + MORE);
    if (node.open && node.count < MORE) {
      await this.listing.next(node.group === "archived");
    }
    this.refresh();
  }

  getTreeItem(node: ListNode): vscode.TreeItem {
    return listItem(node, this.#look());
  }

  getChildren(node?: ListNode): ListNode[] {
    if (!node) {
      this.#draw();
      return [...this.#nodes];
    }
    return node.kind === "group" ? [...node.children] : [];
  }

  getParent(node: ListNode): ListNode | undefined {
    return this.#parents.get(node);
  }

  /** Something may look different; what comes together is drawn once, and what looks the same is not. */
  refresh(): void {
    if (!this.#view.visible || this.#due !== undefined) {
      return;
    }
    this.#due = setTimeout(() => {
      this.#due = undefined;
      this.app.guard(() => {
        if (this.#draw()) {
          this.#changed.fire(undefined);
          this.#selectSoon();
        }
      });
    }, TOGETHER_MS);
  }

  #look(): Parameters<typeof listItem>[1] {
    return { now: Date.now(), usage: setting("usage.show"), changed: this.changedLines };
  }

  /** @returns whether it looks different */
  #draw(): boolean {
    const { app } = this;
    const first = setting("sessions.recentCount");
    const nodes =
      app.sessions.loaded && app.trusted
        ? sessionList([...app.sessions.byId.values()], {
            folders: this.#folders,
            approvals: app.approvals,
            filter: this.#filter,
            groupBy: setting("sessions.groupBy"),
            shown: (group) => first + (this.#extra.get(group) ?? 0),
            more: this.listing.more,
            moreArchived: this.listing.moreArchived,
          })
        : [];
    const parents = new Map<ListNode, ListNode>();
    const look = this.#look();
    const lines: unknown[] = [];
    const walk = (nodes: readonly ListNode[], parent?: ListNode): void => {
      for (const node of nodes) {
        const { label, description, tooltip, contextValue, iconPath, id } = listItem(node, look);
        lines.push([id, label, description, tooltip, contextValue, iconPath, parent?.kind]);
        if (parent) {
          parents.set(node, parent);
        }
        if (node.kind === "group") {
          walk(node.children, node);
        }
      }
    };
    walk(nodes);
    const drawn = JSON.stringify(lines);
    const other = drawn !== this.#drawn;
    if (other) {
      this.#nodes = nodes;
      this.#parents = parents;
      this.#drawn = drawn;
    }
    this.#drawnAt = Date.now();
    this.#view.message = nodes.length === 0 ? "" : trouble(app);
    return other;
  }

  /** A list that somebody looks at is the first use of a server. */
  #seen(visible: boolean): void {
    if (visible) {
      this.app.start();
      this.refresh();
    }
  }

  async #opened(node: ListNode): Promise<void> {
    const archived = node.kind === "group" && node.id === "archived";
    if (archived && this.listing.moreArchived && !node.children.some((c) => c.kind === "session")) {
      try {
        await this.listing.next(true);
      } catch (fault) {
        // The line that leads to them stays, and says what is wrong when it is chosen.
        this.app.log.warn(`the archived sessions cannot be listed: ${String(fault)}`);
      }
    }
  }

  /**
   * "3 m" is to be right for whoever reads it, and there is to be no timer: whoever looks at the list also
   * does something.
   */
  #whileSomebodyIsThere(): vscode.Disposable[] {
    const look = (): void => {
      if (this.#view.visible && Date.now() - this.#drawnAt > MINUTE_MS) {
        this.refresh();
      }
    };
    return [
      vscode.window.onDidChangeWindowState(look),
      vscode.window.onDidChangeActiveTextEditor(look),
      vscode.window.onDidChangeTextEditorSelection(look),
    ];
  }

  async #findFolders(): Promise<void> {
    const folders = (vscode.workspace.workspaceFolders ?? []).filter(
      ({ uri }) => uri.scheme === "file",
    );
    // The server knows folders by their names without links.
    this.#folders = await Promise.all(
      folders.map(({ uri }) => fs.realpath(uri.fsPath).catch(() => uri.fsPath)),
    );
    this.refresh();
    await this.listing.foldersChanged();
  }

  /** The session that the person looks at is the one that is selected, as soon as the list stands still. */
  #selectSoon(): void {
    clearTimeout(this.#selecting);
    this.#selecting = setTimeout(() => {
      this.#select();
    }, SETTLED_MS);
  }

  #select(): void {
    const { focused } = this.app;
    if (focused === undefined || !this.#view.visible) {
      return;
    }
    const already = this.#view.selection.some(
      (node) => node.kind === "session" && node.row.session.sessionId === focused,
    );
    const node = already ? undefined : findSession(this.#nodes, focused);
    if (node) {
      // A list that is drawn anew meanwhile does not know the node any more.
      void Promise.resolve(this.#view.reveal(node, { select: true, focus: false })).catch(() => 0);
    }
  }

  #badge(): void {
    const waiting = this.app.approvals.pending.length;
    this.#view.badge =
      waiting === 0
        ? undefined
        : { value: waiting, tooltip: `${plural(waiting, "approval")} to answer` };
  }

  #describe(): void {
    const { everywhere, words } = this.#filter;
    this.#view.description = [
      ...(everywhere ? ["all folders"] : []),
      ...(words === "" ? [] : [`“${oneLine(words, 40)}”`]),
    ].join(", ");
  }
}

/** Why the list may be older than the store; an empty list says so by itself, with buttons. */
function trouble(app: App): string {
  switch (serverState(app)) {
    case "silent":
      return "The server does not answer. “Callboard: Restart Server” begins another one.";
    case "waiting":
    case "starting":
      return whyNotStarted(app.server.failure) ?? "Reconnecting to the server…";
    case "failed":
    case "notFound":
      return `${oneLine(app.server.failure?.message ?? "The server has ended.", 300)} “Callboard: Restart Server” tries again.`;
    default:
      return "";
  }
}

function findSession(nodes: readonly ListNode[], sessionId: string): ListNode | undefined {
  for (const node of nodes) {
    if (node.kind === "session" && node.row.session.sessionId === sessionId) {
      return node;
    }
    // What is folded stays so: nobody has asked for it.
    const below =
      node.kind === "group" && !node.folded ? findSession(node.children, sessionId) : undefined;
    if (below) {
      return below;
    }
  }
  return undefined;
}

function filterIn(kept: unknown): SessionFilter {
  if (typeof kept !== "object" || kept === null) {
    return NO_FILTER;
  }
  const { everywhere, words } = kept as Partial<Record<keyof SessionFilter, unknown>>;
  return { everywhere: everywhere === true, words: typeof words === "string" ? words : "" };
}
