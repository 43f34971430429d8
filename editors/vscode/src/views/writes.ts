/** Whoever has something unsaved in a file that the open session writes is told so, once. */
import * as vscode from "vscode";
import type { App } from "../app";
import { watchWrites } from "../changes";
import { documentOf, inStep } from "../documents";
import { message } from "../model/text";

export class WriteWatch implements vscode.Disposable {
  readonly #told = new WeakSet<vscode.TextDocument>();
  readonly #off: () => void;
  #session: string | undefined;
  #close: (() => void) | undefined;

  constructor(private readonly app: App) {
    this.#off = app.on("focused", () => {
      this.#follow();
    });
    this.#follow();
  }

  dispose(): void {
    this.#off();
    this.#close?.();
  }

  #follow(): void {
    const { focused } = this.app;
    if (focused !== this.#session) {
      this.#session = focused;
      this.#close?.();
      this.#close =
        focused === undefined
          ? undefined
          : watchWrites(this.app, focused, (paths) => {
              for (const path of paths) {
                void this.#written(focused, path);
              }
            });
    }
  }

  async #written(sessionId: string, path: string): Promise<void> {
    const document = await documentOf(path);
    if (!document?.isDirty) {
      if (document) {
        this.#told.delete(document);
      }
      return;
    }
    if (this.#told.has(document) || (await inStep(document))) {
      return;
    }
    this.#told.add(document);
    const name = message(vscode.workspace.asRelativePath(document.uri), 60);
    const show = "Show Diff";
    const said = `${name} was changed on disk; its editor has changes that are not saved.`;
    if ((await vscode.window.showWarningMessage(said, show)) === show) {
      await vscode.commands.executeCommand("callboard.showDiff", sessionId, path);
    }
  }
}
