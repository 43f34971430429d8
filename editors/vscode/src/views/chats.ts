/**
 * All chats of this window: the one in the side bar, and those in editor tabs. They are of one code, and any
 * number of them may show the same session.
 */
import * as vscode from "vscode";
import type { App } from "../app";
import { setting } from "../config";
import { oneLine } from "../model/text";
import { Chat } from "./chat";
import { tabIcon, webviewOptions } from "./chatPage";
import { Documents } from "./documents";

/** Of the view in the side bar, and of the editor tabs. */
export const CHAT_VIEW = "callboard.chat";
export const CHAT_EDITOR = "callboard.chatEditor";

/** Under this key a window keeps which session its side bar shows. */
const SHOWN = "callboard.shown";

export class Chats implements vscode.Disposable {
  readonly documents = new Documents();
  #view: { chat: Chat; view: vscode.WebviewView } | undefined;
  readonly #panels = new Map<vscode.WebviewPanel, Chat>();
  /** What the side bar's chat shows, also while that view is not there. */
  #shown: string | undefined;
  #last: Chat | undefined;
  readonly #registered: vscode.Disposable[] = [];
  /** Resolved when the side bar's chat is there. */
  #awaited: (() => void)[] = [];

  constructor(
    private readonly extension: vscode.ExtensionContext,
    readonly app: App,
  ) {
    this.#shown = extension.workspaceState.get<string>(SHOWN);
    app.focused = this.#shown;
    this.#registered.push(
      this.documents,
      vscode.window.registerWebviewViewProvider(CHAT_VIEW, {
        resolveWebviewView: (view) => {
          this.#resolve(view);
        },
      }),
      vscode.window.registerWebviewPanelSerializer(CHAT_EDITOR, {
        deserializeWebviewPanel: (panel, state: unknown) => {
          this.#adopt(panel, sessionIn(state));
          return Promise.resolve();
        },
      }),
    );
  }

  dispose(): void {
    this.#view?.chat.dispose();
    for (const panel of [...this.#panels.keys()]) {
      panel.dispose();
    }
    vscode.Disposable.from(...this.#registered).dispose();
  }

  /** The chat that had the focus last, or the one that there is. */
  get current(): Chat | undefined {
    return this.#last ?? this.#view?.chat ?? [...this.#panels.values()].at(-1);
  }

  get all(): Chat[] {
    return [...(this.#view ? [this.#view.chat] : []), ...this.#panels.values()];
  }

  /** Whether a session, or the tree that it is of, can be seen right now. */
  isVisible(sessionId: string): boolean {
    return this.all.some((chat) => chat.visible && chat.sessionId === sessionId);
  }

  /**
   * Shows a session where the person wants chats to be, or where it is shown already.
   * @param preserveFocus the person goes on where they are
   * @param seq of the event that is brought into view
   */
  async open(
    sessionId: string | undefined,
    options: { in?: "sidebar" | "editor"; preserveFocus?: boolean; seq?: number } = {},
  ): Promise<Chat> {
    this.app.start();
    const preserveFocus = options.preserveFocus === true;
    const there = [...this.#panels].find(
      ([, chat]) => sessionId !== undefined && chat.sessionId === sessionId,
    );
    const where = options.in ?? setting("chat.location");
    let chat: Chat;
    if (there && options.in !== "sidebar") {
      there[0].reveal(undefined, preserveFocus);
      chat = there[1];
    } else if (where === "editor") {
      chat = this.#openPanel(sessionId, preserveFocus);
    } else {
      chat = await this.#openView(sessionId, preserveFocus);
    }
    this.#focus(chat);
    if (options.seq !== undefined) {
      chat.find(options.seq);
    }
    if (!preserveFocus) {
      chat.say({ type: "focus" });
    }
    return chat;
  }

  async #openView(sessionId: string | undefined, preserveFocus: boolean): Promise<Chat> {
    this.#remember(sessionId);
    if (this.#view) {
      this.#view.chat.show(sessionId);
      this.#view.view.show(preserveFocus);
      return this.#view.chat;
    }
    const resolved = new Promise<void>((resolve) => {
      this.#awaited.push(resolve);
    });
    await vscode.commands.executeCommand(`${CHAT_VIEW}.focus`, { preserveFocus });
    await resolved;
    // `resolved` says that it is there; the compiler cannot know.
    const view = this.#view as { chat: Chat } | undefined;
    if (!view) {
      throw new Error("the chat's view was closed while it opened");
    }
    return view.chat;
  }

  #remember(sessionId: string | undefined): void {
    this.#shown = sessionId;
    void this.extension.workspaceState.update(SHOWN, sessionId);
  }

  #openPanel(sessionId: string | undefined, preserveFocus: boolean): Chat {
    const panel = vscode.window.createWebviewPanel(
      CHAT_EDITOR,
      "Callboard",
      { viewColumn: vscode.ViewColumn.Active, preserveFocus },
      { ...webviewOptions(this.extension), retainContextWhenHidden: false },
    );
    return this.#adopt(panel, sessionId);
  }

  #adopt(panel: vscode.WebviewPanel, sessionId: string | undefined): Chat {
    panel.iconPath = tabIcon(this.extension);
    const chat = new Chat(
      this.extension,
      this.app,
      {
        webview: panel.webview,
        place: "editor",
        visible: () => panel.visible,
        titled: (title) => {
          panel.title = title === undefined ? "Callboard" : oneLine(title, 40);
        },
      },
      { documents: this.documents },
      (focused) => {
        this.#focus(focused);
      },
    );
    this.#panels.set(panel, chat);
    panel.onDidDispose(() => {
      this.#panels.delete(panel);
      if (this.#last === chat) {
        this.#last = undefined;
      }
      chat.dispose();
    });
    panel.onDidChangeViewState(() => {
      if (!panel.visible) {
        chat.hidden();
      } else if (panel.active) {
        this.#focus(chat);
      }
    });
    chat.show(sessionId);
    this.app.start();
    return chat;
  }

  #resolve(view: vscode.WebviewView): void {
    const chat = new Chat(
      this.extension,
      this.app,
      {
        webview: view.webview,
        place: "view",
        visible: () => view.visible,
        // Its page says it.
        titled: () => undefined,
      },
      { documents: this.documents },
      (focused) => {
        this.#focus(focused);
      },
    );
    this.#view = { chat, view };
    view.onDidDispose(() => {
      chat.dispose();
      if (this.#view?.chat === chat) {
        this.#view = undefined;
      }
      if (this.#last === chat) {
        this.#last = undefined;
      }
    });
    view.onDidChangeVisibility(() => {
      if (!view.visible) {
        chat.hidden();
      }
    });
    chat.show(this.#shown);
    // That somebody looks at a chat is the first use.
    this.app.start();
    for (const there of this.#awaited.splice(0)) {
      there();
    }
  }

  #focus(chat: Chat): void {
    this.#last = chat;
    this.app.focused = chat.sessionId;
  }
}

/** What a page has kept of itself for the next start of the window. */
function sessionIn(state: unknown): string | undefined {
  if (typeof state === "object" && state !== null && "sessionId" in state) {
    const { sessionId } = state;
    return typeof sessionId === "string" && sessionId.length < 100 ? sessionId : undefined;
  }
  return undefined;
}
