/** Views that are about the session that is open, and follow it only while somebody sees them. */
import type * as vscode from "vscode";
import type { App } from "../app";

/**
 * Calls `look` whenever a view comes into sight or goes out of it, and whenever another session is open.
 * @returns what ends that
 */
export function onSeen(app: App, view: vscode.TreeView<unknown>, look: () => void): () => void {
  const seen = view.onDidChangeVisibility(look);
  const off = app.on("focused", look);
  return () => {
    seen.dispose();
    off();
  };
}
