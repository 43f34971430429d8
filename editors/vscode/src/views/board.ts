/** Task boards in editor tabs, one for each tree. A tab that is not seen follows nothing. */
import * as vscode from "vscode";
import type { App } from "../app";
import { actOnTask, addTask, writeToGroup } from "../commands/taskActions";
import { Live } from "../live";
import { boardOf, moveOf } from "../model/board";
import { sessionName } from "../model/store";
import { taskText } from "../model/taskCard";
import { taskOf, type BoardView } from "../model/tasks";
import { oneLine } from "../model/text";
import { CallError, explain } from "../server/errors";
import type { FromBoard, ToBoard } from "../shared/board";
import { TASK_EVENTS, readBoard } from "../team";
import { fromBoard } from "./boardMessages";
import { pageOf, tabIcon, webviewOptions } from "./chatPage";
import type { Chats } from "./chats";

export const BOARD_EDITOR = "callboard.board";

class BoardPanel {
  readonly #live: Live;
  #view: BoardView | undefined;
  /** The page is there and has said so. */
  #ready = false;

  constructor(
    private readonly app: App,
    private readonly chats: Chats,
    readonly root: string,
    readonly panel: vscode.WebviewPanel,
  ) {
    this.#live = new Live({
      app,
      root,
      types: TASK_EVENTS,
      fetch: async () => {
        this.#view = await readBoard(app, root);
      },
      changed: () => {
        this.#draw();
      },
    });
    panel.webview.onDidReceiveMessage((value: unknown) => {
      void this.#received(value);
    });
    panel.onDidChangeViewState(() => {
      this.#look();
    });
    this.#look();
  }

  /** Follows while it is seen; a page that was hidden is made anew, and says so. */
  #look(): void {
    if (this.panel.visible) {
      this.#live.attach();
    } else {
      this.#ready = false;
      this.#live.detach();
    }
  }

  closed(): void {
    this.#live.detach();
  }

  #post(message: ToBoard): void {
    if (this.#ready) {
      void this.panel.webview.postMessage(message);
    }
  }

  #draw(): void {
    const known = this.app.sessions.byId.get(this.root);
    const title = sessionName(known ?? { sessionId: this.root });
    this.panel.title = `Tasks: ${oneLine(title, 40)}`;
    const notice = this.#live.notice();
    this.#post({
      type: "board",
      ...(this.#view
        ? { board: boardOf({ ...this.#view, title }, this.app.feature("agents")) }
        : {}),
      ...(notice === undefined ? {} : { notice: oneLine(notice, 300) }),
    });
  }

  async #received(value: unknown): Promise<void> {
    const message = fromBoard(value);
    if (!message) {
      this.app.log.warn("a board's page has sent what no page of ours sends");
    } else if (message.type === "ready") {
      this.#ready = true;
      this.#draw();
    } else {
      await this.#do(message);
    }
  }

  /** Never rejects: what came of it is said on the page. */
  async #do(message: Exclude<FromBoard, { type: "ready" }>): Promise<void> {
    try {
      const text = await this.#perform(message);
      if (text !== undefined) {
        this.#post({ type: "said", text, failed: false });
      }
    } catch (fault) {
      if (!(fault instanceof vscode.CancellationError)) {
        this.app.log.error(explain(fault));
        this.#post({ type: "said", text: oneLine(explain(fault), 600), failed: true });
      }
    } finally {
      this.#live.fetch();
    }
  }

  async #perform(message: Exclude<FromBoard, { type: "ready" }>): Promise<string | undefined> {
    const { app } = this;
    if (message.type === "refresh") {
      return undefined;
    } else if (message.type === "chat") {
      await this.chats.open(this.root);
      return undefined;
    }
    const view = (this.#view ??= await readBoard(app, this.root));
    if (message.type === "add") {
      return addTask(app, view);
    } else if (message.type === "write") {
      return writeToGroup(app, view);
    }
    const task = taskOf(view, message.taskId);
    if (!task) {
      throw new CallError(0, "This task is not on the board any more.");
    } else if (message.type === "show") {
      await this.chats.documents.show(oneLine(task.title, 60), taskText(view, task));
      return undefined;
    } else if (message.type === "do") {
      return actOnTask(app, view, task, message.verb);
    }
    const move = moveOf(task, message.to);
    if ("why" in move) {
      throw new CallError(0, move.why);
    }
    return actOnTask(app, view, task, move.verb);
  }
}

export class Boards implements vscode.Disposable {
  readonly #panels = new Map<string, BoardPanel>();
  readonly #registered: vscode.Disposable;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly app: App,
    private readonly chats: Chats,
  ) {
    this.#registered = vscode.window.registerWebviewPanelSerializer(BOARD_EDITOR, {
      deserializeWebviewPanel: (panel, state: unknown) => {
        const root = rootIn(state);
        if (root === undefined || this.#panels.has(root)) {
          panel.dispose();
        } else {
          this.#adopt(panel, root);
        }
        return Promise.resolve();
      },
    });
  }

  /** Shows the board of a tree, where it is or in a tab of its own. */
  open(root: string): void {
    const there = this.#panels.get(root);
    if (there) {
      there.panel.reveal();
      return;
    }
    const panel = vscode.window.createWebviewPanel(
      BOARD_EDITOR,
      "Tasks",
      vscode.ViewColumn.Active,
      { ...webviewOptions(this.context), retainContextWhenHidden: false },
    );
    this.#adopt(panel, root);
  }

  #adopt(panel: vscode.WebviewPanel, root: string): void {
    this.app.start();
    panel.iconPath = tabIcon(this.context);
    panel.webview.options = webviewOptions(this.context);
    const board = new BoardPanel(this.app, this.chats, root, panel);
    this.#panels.set(root, board);
    panel.onDidDispose(() => {
      this.#panels.delete(root);
      board.closed();
    });
    panel.webview.html = pageOf(this.context, panel.webview, {
      name: "board",
      title: "Tasks",
      state: { root },
    });
  }

  dispose(): void {
    this.#registered.dispose();
    for (const { panel } of [...this.#panels.values()]) {
      panel.dispose();
    }
  }
}

/** What a page has kept of itself for the next start of the window. */
function rootIn(state: unknown): string | undefined {
  if (typeof state === "object" && state !== null && "root" in state) {
    const { root } = state;
    return typeof root === "string" && root.length < 100 ? root : undefined;
  }
  return undefined;
}
