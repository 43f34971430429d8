/** Diffs, put where a person sees them. */
import * as vscode from "vscode";
import { message } from "../model/text";
import type { DiffContent } from "./diffContent";
import type { DiffDocuments } from "./diffDocuments";

/** Gives the texts of a diff to the addresses at which they stand. */
export function fill(documents: DiffDocuments, { left, right }: DiffContent): void {
  for (const pane of [left, right]) {
    if (pane?.text !== undefined) {
      documents.put(pane.uri, pane.text);
    }
  }
}

/** Puts a diff where the person looks. */
export async function display(
  documents: DiffDocuments,
  content: DiffContent,
  options: vscode.TextDocumentShowOptions = {},
): Promise<void> {
  const { title, left, right, note } = content;
  fill(documents, content);
  const how = { preview: true, ...options };
  if (left) {
    await vscode.commands.executeCommand("vscode.diff", left.uri, right.uri, title, how);
  } else {
    await vscode.window.showTextDocument(right.uri, how);
  }
  if (note !== undefined) {
    void vscode.window.showInformationMessage(message(note));
  }
}
