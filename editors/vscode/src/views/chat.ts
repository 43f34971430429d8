/** One chat: a session, the page that shows it, and what the person does there. */
import * as vscode from "vscode";
import type { App } from "../app";
import { setting } from "../config";
import { PromptContext } from "../context";
import { setKey } from "../contextKeys";
import type { ToChat } from "../shared/chat";
import type { ChatDoing } from "./chatActions";
import { act } from "./chatActions";
import { ChatFeed } from "./chatFeed";
import { fromChat } from "./chatMessages";
import { chatLook } from "./chatLook";
import { pageOf, webviewOptions } from "./chatPage";

/** What a chat is drawn into: a view, or a tab. */
export interface Surface {
  webview: vscode.Webview;
  /** What its colours are to go with. */
  place: "view" | "editor";
  visible(): boolean;
  /** The session has another name. */
  titled(title: string | undefined, sessionId: string | undefined): void;
}

export class Chat implements vscode.Disposable {
  readonly context: PromptContext;
  readonly #feed: ChatFeed;
  readonly #off: vscode.Disposable[] = [];
  readonly #offs: (() => void)[] = [];
  #title: string | undefined;

  constructor(
    extension: vscode.ExtensionContext,
    readonly app: App,
    readonly surface: Surface,
    private readonly doing: ChatDoing,
    private readonly focusGained: (chat: Chat) => void,
  ) {
    const { webview } = surface;
    this.context = new PromptContext(
      () => this.#roots(),
      () => setting("context.includeSelection"),
      () => {
        this.#feed.contextChanged();
      },
    );
    this.#feed = new ChatFeed({
      app,
      post: (message) => {
        void webview.postMessage(message);
      },
      later: (ms, fn) => {
        const timer = setTimeout(fn, ms);
        return () => {
          clearTimeout(timer);
        };
      },
      look: chatLook,
      context: () => this.context.chips(),
    });
    webview.options = webviewOptions(extension);
    this.#off.push(
      this.context,
      webview.onDidReceiveMessage((value: unknown) => {
        void this.#received(value);
      }),
      vscode.workspace.onDidChangeConfiguration((change) => {
        if (change.affectsConfiguration("callboard")) {
          this.#feed.lookChanged();
          this.#feed.contextChanged();
        }
      }),
    );
    this.#offs.push(
      app.on("sessions", () => {
        this.#retitle();
      }),
    );
    webview.html = pageOf(extension, webview, {
      name: "chat",
      title: "Callboard",
      state: { place: surface.place },
    });
  }

  get sessionId(): string | undefined {
    return this.#feed.open?.id;
  }

  get open(): ChatFeed["open"] {
    return this.#feed.open;
  }

  get visible(): boolean {
    return this.surface.visible();
  }

  show(sessionId: string | undefined): void {
    this.#feed.show(sessionId);
    this.#retitle();
  }

  /** Brings what an event of the session says into view. */
  find(seq: number): void {
    this.#feed.find(seq);
  }

  /** The page is gone or cannot be seen: it says `ready` when it is there again. */
  hidden(): void {
    this.#feed.hidden();
  }

  say(message: ToChat): void {
    this.#feed.say(message);
  }

  files(...found: Parameters<ChatFeed["files"]>): void {
    this.#feed.files(...found);
  }

  older(): Promise<void> {
    return this.#feed.older();
  }

  dispose(): void {
    this.#feed.close();
    for (const off of this.#offs) {
      off();
    }
    vscode.Disposable.from(...this.#off).dispose();
  }

  #roots(): string[] {
    const session = this.open?.session;
    return session
      ? [session.cwd, ...(session.additionalDirectories ?? [])]
      : (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
  }

  #retitle(): void {
    const title = this.open?.session?.title ?? undefined;
    if (title !== this.#title) {
      this.#title = title;
      this.surface.titled(title, this.sessionId);
    }
  }

  async #received(value: unknown): Promise<void> {
    const message = fromChat(value);
    if (!message) {
      this.app.log.warn("a chat's page has sent what no page of ours sends");
      return;
    }
    if (message.type === "ready") {
      this.#feed.ready();
    } else if (message.type === "focused") {
      setKey("callboard.chatFocused", message.focused);
      if (message.focused) {
        this.focusGained(this);
      }
    } else {
      await act(this, message, this.doing);
    }
  }
}
