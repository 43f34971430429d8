/**
 * What a file was before a session changed it, and how that is put back: into its document, so that it can be
 * undone, or on disk, and never where the session had no business.
 */
import * as fs from "node:fs/promises";
import * as vscode from "vscode";
import type { Tracked } from "./changes";
import { exists, inside, onDisk, refusal, write, type Form } from "./disk";
import { documentOf, holds, put, textIn } from "./documents";
import { before, isBetter, type Before } from "./model/before";
import type { ChangedFile } from "./model/changes";
import { contentOf, type Text } from "./model/patch";
import { oneLine } from "./model/text";

export interface Comparison {
  /** What the change was looked for in; undefined: there is no such file. */
  readonly now: Text | undefined;
  /** Why it cannot be told what the file is. */
  readonly fault: string | undefined;
  /** The document that it was taken from, which has changes that are not saved. */
  readonly unsaved: vscode.TextDocument | undefined;
  /** The change is on disk, and not in the open document, which has changes of its own. */
  readonly aside: boolean;
  /** Of what is on disk. */
  readonly form: Form | undefined;
  readonly before: Before;
}

const NOTHING: Before = { text: undefined, failed: [], taken: 0 };

/** Looks for a change in a file as it is now: in the editor, where that has more than the disk. */
export async function compare(file: ChangedFile): Promise<Comparison> {
  const document = await documentOf(file.path);
  const disk = await onDisk(file.path);
  const inDocument = document?.isDirty ? before(textIn(document), file.chain) : undefined;
  const onlyDisk = "fault" in disk ? undefined : before(disk.text, file.chain);
  if (
    document &&
    inDocument &&
    (inDocument.failed.length === 0 || !onlyDisk || !isBetter(onlyDisk, inDocument))
  ) {
    const now = textIn(document);
    return {
      now,
      fault: undefined,
      unsaved: document,
      aside: false,
      form: undefined,
      before: inDocument,
    };
  }
  return {
    now: "fault" in disk ? undefined : disk.text,
    fault: "fault" in disk ? disk.fault : undefined,
    unsaved: undefined,
    aside: inDocument !== undefined,
    form: "fault" in disk ? undefined : disk.form,
    before: onlyDisk ?? NOTHING,
  };
}

/** What could not be taken back, as "hunk 2 (lines 4 to 9) was changed since". */
export function missed(comparison: Comparison): string | undefined {
  const { failed } = comparison.before;
  if (comparison.fault !== undefined) {
    return comparison.fault;
  } else if (failed.length > 2) {
    return `${failed[0]?.why ?? ""}, and ${failed.length - 1} more`;
  }
  return failed.length > 0 ? failed.map((each) => each.why).join(", ") : undefined;
}

/** What came of it: nothing was done, or what was done is not all. */
export type PutBack = { readonly fault: string } | { readonly note: string | undefined };

const DONE: PutBack = { note: undefined };

function done(note?: string): PutBack {
  return { note };
}

function outcome(fault: string | undefined, note?: string): PutBack {
  return fault === undefined ? done(note) : { fault };
}

/** Deletes a file, into the bin where there is one. */
async function discard(file: string): Promise<string | undefined> {
  const uri = vscode.Uri.file(file);
  try {
    await vscode.workspace.fs.delete(uri, { useTrash: true });
    return undefined;
  } catch {
    try {
      await fs.unlink(file); // there is no bin, as on most servers
      return undefined;
    } catch (fault) {
      return refusal(fault);
    }
  }
}

async function remove(comparison: Comparison, real: string): Promise<PutBack> {
  if (comparison.now === undefined) {
    return DONE;
  } else if (comparison.before.failed.length > 0) {
    return { fault: "it was changed since it was made, so it stays" };
  } else if (comparison.aside || comparison.unsaved) {
    return { fault: "its editor has changes that are not saved, so it stays" };
  }
  return outcome(await discard(real));
}

/** The document of a file, opened if need be, if it has exactly what is on disk and can hold another text. */
async function faithful(
  real: string,
  now: Text,
  text: Text,
): Promise<vscode.TextDocument | undefined> {
  try {
    const document =
      (await documentOf(real)) ?? (await vscode.workspace.openTextDocument(vscode.Uri.file(real)));
    const same = !document.isDirty && document.getText() === contentOf(now);
    return same && holds(document, text) ? document : undefined;
  } catch {
    return undefined; // the editor does not open it as text; the disk will do
  }
}

async function isOnDisk(file: string, text: Text): Promise<boolean> {
  const disk = await onDisk(file);
  return !("fault" in disk) && disk.text !== undefined && contentOf(disk.text) === contentOf(text);
}

/** Through its document if that can be, else on disk, and in any case exactly. */
async function replace(
  real: string,
  comparison: Comparison,
  now: Text,
  text: Text,
): Promise<string | undefined> {
  try {
    await fs.access(real, fs.constants.W_OK);
  } catch (fault) {
    return refusal(fault);
  }
  const document = await faithful(real, now, text);
  if (document && (await put(document, text)) && (await document.save())) {
    if (await isOnDisk(real, text)) {
      return undefined;
    }
    // What runs on saving has changed it: what was before is what was asked for.
  }
  return write(real, text, comparison.form);
}

async function change(comparison: Comparison, real: string): Promise<PutBack> {
  const { before: old, now, unsaved } = comparison;
  if (old.text === undefined) {
    return remove(comparison, real);
  } else if (now === undefined) {
    return outcome(await write(real, old.text));
  } else if (old.taken === 0) {
    return { fault: missed(comparison) ?? "nothing of the change is in it any more" };
  } else if (unsaved) {
    return (await put(unsaved, old.text))
      ? done("its editor had changes that were not saved, so it was not saved")
      : { fault: "the editor did not take it" };
  }
  return outcome(
    await replace(real, comparison, now, old.text),
    comparison.aside
      ? "that is on disk; your editor has changes of its own and was left alone"
      : undefined,
  );
}

/** A file that was moved goes back to its name. */
async function moveBack(
  oldPath: string,
  comparison: Comparison,
  real: string,
  folders: readonly string[],
): Promise<PutBack> {
  const old = await inside(oldPath, folders);
  const { text, failed } = comparison.before;
  if (old === undefined) {
    return { fault: `${oneLine(oldPath, 80)} is not in a folder of the session` };
  } else if (await exists(old)) {
    return { fault: `there is another ${oneLine(oldPath, 80)} now` };
  } else if (failed.length > 0 || comparison.now === undefined || text === undefined) {
    return { fault: missed(comparison) ?? "the file is not there any more" };
  } else if (comparison.aside || comparison.unsaved) {
    return { fault: "its editor has changes that are not saved, so it stays" };
  }
  const fault = await write(old, text, comparison.form);
  return outcome(fault ?? (await discard(real)));
}

/** Puts back what a file was before. What cannot be put back stays as it is. `file` has its diffs whole. */
export async function putBack(tracked: Tracked, file: ChangedFile): Promise<PutBack> {
  if (file.state === "rejected") {
    return { fault: "it was put back already" };
  } else if (file.operation === "nothing") {
    return DONE;
  }
  const folders = tracked.foldersOf(file);
  const real = await inside(file.path, folders);
  if (real === undefined) {
    return { fault: "it is not in a folder of the session, or a link leads out of it" };
  }
  const comparison = await compare(file);
  if (comparison.fault !== undefined) {
    return { fault: comparison.fault };
  } else if (file.oldPath !== undefined) {
    return moveBack(file.oldPath, comparison, real, folders);
  }
  const result = await change(comparison, real);
  const lost = missed(comparison);
  if ("fault" in result || lost === undefined) {
    return result;
  }
  const left = `not taken back: ${lost}`;
  return done(result.note === undefined ? left : `${left}; ${result.note}`);
}
