/** A tree view about the session that is open: it follows that one's tree, and only while it is seen. */
import * as vscode from "vscode";
import type { App } from "../app";
import { Live } from "../live";
import { oneLine } from "../model/text";
import { explain } from "../server/errors";
import { rootOf } from "../team";
import { KeyedTree, type Entry, type Line } from "./keyedTree";
import { onSeen } from "./seen";

/** What is shown of a tree. */
export interface Picture {
  readonly lines: readonly Line[];
  /** Beside the view's name. */
  readonly summary: string;
}

export interface TreeOptions<View> {
  readonly id: string;
  readonly types: readonly string[];
  read(root: string): Promise<View>;
  draw(view: View): Picture;
  /** Whether something of it grows with time. */
  runs?(view: View): boolean;
}

export class TreeOfSession<View> implements vscode.Disposable {
  readonly #tree = new KeyedTree();
  readonly #view: vscode.TreeView<Entry>;
  readonly #offs: (() => void)[];
  #root: string | undefined;
  #live: Live | undefined;
  #read: View | undefined;
  /** Which session is wanted; an older wish does not count any more. */
  #wish = 0;

  constructor(
    private readonly app: App,
    private readonly options: TreeOptions<View>,
  ) {
    this.#view = vscode.window.createTreeView(options.id, { treeDataProvider: this.#tree });
    this.#offs = [
      onSeen(app, this.#view, () => {
        this.#follow();
      }),
      app.on("server", () => {
        // What could not be told without one is asked of this one.
        if (!this.#live && app.server.state === "ready") {
          this.#follow();
        }
      }),
    ];
    this.#follow();
  }

  /** The root of the tree that is shown. */
  get root(): string | undefined {
    return this.#root;
  }

  /** What was read of it last. */
  get read(): View | undefined {
    return this.#read;
  }

  /** Asks for it all again. */
  refresh(): void {
    this.#live?.fetch();
  }

  dispose(): void {
    for (const off of this.#offs) {
      off();
    }
    this.#live?.detach();
    this.#view.dispose();
    this.#tree.dispose();
  }

  #follow(): void {
    if (!this.#view.visible) {
      this.#live?.detach();
      return;
    }
    const { focused } = this.app;
    this.#wish += 1;
    const wish = this.#wish;
    if (focused === undefined) {
      this.#show(undefined);
      return;
    }
    rootOf(this.app, focused).then(
      (root) => {
        if (wish === this.#wish && this.#view.visible) {
          this.#show(root);
        }
      },
      (fault: unknown) => {
        if (wish === this.#wish) {
          this.#show(undefined);
          this.#view.message = oneLine(explain(fault), 300);
        }
      },
    );
  }

  #show(root: string | undefined): void {
    if (root !== this.#root) {
      this.#live?.detach();
      this.#live = undefined;
      this.#read = undefined;
      this.#root = root;
    }
    if (root === undefined) {
      this.#tree.set([]);
      this.#view.message = "";
      this.#view.description = "";
      return;
    }
    this.#live ??= new Live({
      app: this.app,
      root,
      types: this.options.types,
      fetch: async () => {
        const read = await this.options.read(root);
        if (root === this.#root) {
          this.#read = read;
        }
      },
      changed: () => {
        this.#draw();
      },
      ticks: () => this.#read !== undefined && (this.options.runs?.(this.#read) ?? false),
    });
    this.#live.attach();
  }

  #draw(): void {
    const notice = this.#live?.notice();
    this.#view.message = notice === undefined ? "" : oneLine(notice, 300);
    if (this.#read !== undefined) {
      const { lines, summary } = this.options.draw(this.#read);
      this.#tree.set(lines);
      this.#view.description = summary;
    } else {
      this.#tree.set([]);
      this.#view.description = "";
    }
  }
}
