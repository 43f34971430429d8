/** What the editor holds of files, saved or not: the server asks for it before it reads the disk. */
import type { ReadFileParams, ReadFileResult } from "@callboard/protocol";
import * as vscode from "vscode";
import { wellFormed } from "./model/text";
import { CallError } from "./server/errors";

/** Answers `client/readFile`. @throws CallError with kind `pathNotFound` for a file that is not open. */
export function readBuffer(params: ReadFileParams): Promise<ReadFileResult> {
  const uri = vscode.Uri.parse(params.uri);
  const document = vscode.workspace.textDocuments.find(
    (each) => each.uri.scheme === "file" && each.uri.fsPath === uri.fsPath && !each.isClosed,
  );
  if (!document) {
    return Promise.reject(
      new CallError(-31702, `no editor of this window holds ${params.uri}`, {
        kind: "pathNotFound",
        retryable: false,
      }),
    );
  }
  const { range } = params;
  const part = range
    ? new vscode.Range(range.start.line, range.start.character, range.end.line, range.end.character)
    : undefined;
  return Promise.resolve({ text: wellFormed(document.getText(part)), version: document.version });
}
