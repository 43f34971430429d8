/** Texts that are only read: the whole of what a card shows in part. */
import * as vscode from "vscode";

const SCHEME = "callboard-text";

/** So many documents are kept; one that was closed and fell out is made again when it is asked for. */
const KEPT = 50;

export class Documents implements vscode.TextDocumentContentProvider, vscode.Disposable {
  readonly #texts = new Map<string, string>();
  readonly #registered = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  #number = 0;

  dispose(): void {
    this.#registered.dispose();
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return (
      this.#texts.get(uri.toString()) ??
      "This text is not at hand any more. Open it from the chat again."
    );
  }

  /** Shows a text in an editor of its own. */
  async show(name: string, text: string, language?: string): Promise<void> {
    this.#number += 1;
    const file =
      name
        .replace(/[^\p{L}\p{N}._ -]+/gu, " ")
        .trim()
        .slice(0, 80) || "text";
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${this.#number}/${file}` });
    this.#texts.set(uri.toString(), text);
    for (const [oldest] of this.#texts) {
      if (this.#texts.size <= KEPT) {
        break;
      }
      this.#texts.delete(oldest);
    }
    let document = await vscode.workspace.openTextDocument(uri);
    if (language !== undefined) {
      document = await vscode.languages.setTextDocumentLanguage(document, language);
    }
    await vscode.window.showTextDocument(document, { preview: true });
  }
}
