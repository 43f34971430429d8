/** What a person says of changed files: that they accept them, or that what was before is put back. */
import * as vscode from "vscode";
import type { Tracked } from "../changes";
import type { ChangedFile } from "../model/changes";
import { inside } from "../disk";
import { plural } from "../model/loose";
import { message, oneLine } from "../model/text";
import { putBack } from "../reverting";

/** How long (ms) a word stands in the status bar. */
const SAID_MS = 5000;

/** Says something that needs no answer, where it is in nobody's way. */
export function mention(text: string): void {
  vscode.window.setStatusBarMessage(`Callboard: ${text.replaceAll("$(", "$ (")}`, SAID_MS);
}

export function nameIn(tracked: Tracked, file: ChangedFile): string {
  return message(tracked.short(file.path), 60);
}

function named(tracked: Tracked, files: readonly ChangedFile[]): string {
  const [first] = files;
  return first && files.length === 1 ? nameIn(tracked, first) : plural(files.length, "file");
}

/**
 * Notes that files, as they are given, are accepted.
 * @returns whether anything was settled
 * @throws CallError
 */
export async function accept(tracked: Tracked, files: readonly ChangedFile[]): Promise<boolean> {
  if (files.length === 0) {
    mention("nothing is new");
    return false;
  }
  await tracked.settle(files, "accepted");
  mention(`accepted ${named(tracked, files)}`);
  return true;
}

/** So many notes are told at once. */
const TOLD = 5;

async function told(
  tracked: Tracked,
  settled: readonly ChangedFile[],
  notes: readonly { file: ChangedFile; why: string }[],
): Promise<void> {
  const what = settled.length === 0 ? "nothing" : named(tracked, settled);
  const [first] = notes;
  if (!first) {
    mention(`put back ${what}`);
    return;
  }
  const lines = notes
    .slice(0, TOLD)
    .map(({ file, why }) => `${nameIn(tracked, file)}: ${oneLine(why, 200)}`);
  const more = notes.length > TOLD ? ` And ${notes.length - TOLD} more.` : "";
  const show = "Show Diff";
  const said = `Put back ${what}. ${lines.join(". ")}.${more}`;
  if ((await vscode.window.showWarningMessage(message(said), show)) === show) {
    await vscode.commands.executeCommand("callboard.showDiff", tracked.id, first.file.path);
  }
}

/** So many names of files stand in a question. */
const ASKED = 20;

/**
 * Whether files that lie elsewhere than in the folders of this window are to be written, too. A session may come
 * from anywhere, and with it the folder that it says it works in.
 */
async function mayWrite(tracked: Tracked, files: readonly ChangedFile[]): Promise<boolean> {
  const folders = (vscode.workspace.workspaceFolders ?? []).map(({ uri }) => uri.fsPath);
  const elsewhere: string[] = [];
  for (const file of files) {
    const { path } = file;
    // What lies in no folder of the session is not written, whatever is answered.
    const may = await inside(path, tracked.foldersOf(file));
    if (may !== undefined && (await inside(path, folders)) === undefined) {
      elsewhere.push(oneLine(path, 200));
    }
  }
  if (elsewhere.length === 0) {
    return true;
  }
  const go = "Put Back";
  const more = elsewhere.length > ASKED ? [`and ${elsewhere.length - ASKED} more`] : [];
  const chosen = await vscode.window.showWarningMessage(
    `Put back ${plural(elsewhere.length, "file")} outside of the folders of this window?`,
    { modal: true, detail: [...elsewhere.slice(0, ASKED), ...more].join("\n") },
    go,
  );
  return chosen === go;
}

/**
 * Puts back what files were before, as far as that can be done, and says what could not.
 * @returns whether anything was settled
 * @throws CallError
 */
export async function reject(tracked: Tracked, files: readonly ChangedFile[]): Promise<boolean> {
  if (files.length === 0) {
    mention("nothing is new");
    return false;
  }
  if (!(await mayWrite(tracked, files))) {
    return false;
  }
  await tracked.reach();
  await tracked.whole(files);
  const settled: ChangedFile[] = [];
  const notes: { file: ChangedFile; why: string }[] = [];
  for (const file of files) {
    const result = await putBack(tracked, file);
    const why = "fault" in result ? result.fault : result.note;
    if (why !== undefined) {
      notes.push({ file, why });
    }
    if (!("fault" in result)) {
      settled.push(file);
    }
  }
  if (settled.length > 0) {
    await tracked.settle(settled, "rejected");
  }
  void told(tracked, settled, notes);
  return settled.length > 0;
}

/** Asks before all is accepted or put back. @returns whether the person wants it */
export async function wanted(verb: string, count: number, detail: string): Promise<boolean> {
  const said = `${verb.charAt(0)}${verb.slice(1).toLowerCase()} ${plural(count, "file")}?`;
  return (await vscode.window.showWarningMessage(said, { modal: true, detail }, verb)) === verb;
}
