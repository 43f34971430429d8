/** Open documents of files: found, and changed so that it can be undone. */
import { diffArrays } from "diff";
import * as vscode from "vscode";
import { onDisk, realPath } from "./disk";
import { contentOf, textOf, type Text } from "./model/patch";

/** The open document of a file, by its name or by whatever else leads to the same file. */
export async function documentOf(file: string): Promise<vscode.TextDocument | undefined> {
  const open = vscode.workspace.textDocuments.filter((each) => each.uri.scheme === "file");
  const named = open.find((each) => each.uri.fsPath === file);
  if (named) {
    return named;
  }
  const real = (await realPath(file)) ?? file;
  for (const each of open) {
    if ((await realPath(each.uri.fsPath)) === real) {
      return each;
    }
  }
  return undefined;
}

/** The text of a document, as it would be written, but for a byte order mark. */
export function textIn(document: vscode.TextDocument): Text {
  return textOf(document.getText());
}

/** A text with the line ends that a document would give it. */
function asIn(document: vscode.TextDocument, content: string): string {
  const end = document.eol === vscode.EndOfLine.CRLF ? "\r\n" : "\n";
  return content.replace(/\r\n|\r|\n/g, end);
}

/** Whether a document can hold a text as it is: it has one kind of line end, whatever the text has. */
export function holds(document: vscode.TextDocument, text: Text): boolean {
  const content = contentOf(text);
  return asIn(document, content) === content;
}

/** The edits that make one text of another: only where lines differ, so that cursors stay. */
function edits(document: vscode.TextDocument, text: Text): vscode.TextEdit[] {
  const found: vscode.TextEdit[] = [];
  const old = textIn(document);
  let offset = 0;
  let start: number | undefined;
  let instead = "";
  const finish = (): void => {
    if (start !== undefined) {
      const range = new vscode.Range(document.positionAt(start), document.positionAt(offset));
      found.push(vscode.TextEdit.replace(range, instead));
      start = undefined;
      instead = "";
    }
  };
  for (const part of diffArrays([...old], [...text])) {
    const content = part.value.join("");
    if (!part.added && !part.removed) {
      finish();
      offset += content.length;
      continue;
    }
    start ??= offset;
    if (part.added) {
      instead += content;
    } else {
      offset += content.length;
    }
  }
  finish();
  return found;
}

/**
 * Puts a text into a document, as one change that can be undone. It is not saved.
 * @returns whether the editor took it
 */
export async function put(document: vscode.TextDocument, text: Text): Promise<boolean> {
  const edit = new vscode.WorkspaceEdit();
  edit.set(document.uri, edits(document, text));
  return vscode.workspace.applyEdit(edit);
}

/** Whether a document has what its file has. */
export async function inStep(document: vscode.TextDocument): Promise<boolean> {
  const disk = await onDisk(document.uri.fsPath);
  return (
    !("fault" in disk) && disk.text !== undefined && contentOf(disk.text) === document.getText()
  );
}
