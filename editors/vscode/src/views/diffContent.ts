/** What a diff shows: two sides, or only the diff and why; and what its title says. */
import type { Approval, FileChange } from "@callboard/protocol";
import * as path from "node:path";
import * as vscode from "vscode";
import type { Tracked } from "../changes";
import { onDisk } from "../disk";
import { documentOf, textIn } from "../documents";
import { proposed } from "../model/before";
import { fileChanges, type ChangedFile } from "../model/changes";
import { contentOf, type Text } from "../model/patch";
import { oneLine, visible } from "../model/text";
import { compare, missed, type Comparison } from "../reverting";
import { addressOf, type Side, type Subject } from "./diffDocuments";

/** A text of ours, at its address; or the file itself. */
export interface Pane {
  readonly uri: vscode.Uri;
  readonly text?: string;
}

export interface DiffContent {
  readonly title: string;
  /** None: only the right one, which is a diff. */
  readonly left?: Pane;
  readonly right: Pane;
  /** What a person should know before they judge. */
  readonly note?: string;
}

function nameOf(file: string): string {
  return oneLine(path.basename(file), 60);
}

function pane(subject: Subject, side: Side, file: string, text: Text | undefined): Pane {
  return { uri: addressOf(subject, side, file), text: contentOf(text ?? []) };
}

function onlyDiff(
  subject: Subject,
  file: string,
  changes: readonly FileChange[],
  why: string,
): DiffContent {
  const text = changes
    .map(({ operation, diff }) => (diff === "" ? `# ${operation}: no diff` : diff))
    .join("\n");
  return {
    title: `${nameOf(file)} (only the diff)`,
    right: { uri: addressOf(subject, "diff", file), text: visible(text) },
    note: `Only the diff of ${nameOf(file)} can be shown: ${why}.`,
  };
}

/** Why a file cannot be shown side by side. */
function unshowable(file: ChangedFile, comparison: Comparison): string | undefined {
  const { before, now, fault } = comparison;
  if (fault !== undefined) {
    return fault;
  } else if (file.operation === "nothing") {
    return "it was made and deleted again";
  } else if (now === undefined && before.text === undefined) {
    return "the file is not there any more";
  } else if (before.taken === 0 && before.text !== undefined) {
    return file.partial ?? missed(comparison);
  }
  return undefined;
}

/** What both sides are, in a word or two. */
function sides({ before, now, aside, unsaved }: Comparison): string {
  const left = before.text === undefined ? "no such file" : "before";
  const right =
    now === undefined ? "deleted" : aside ? "on disk" : unsaved ? "now, unsaved" : "now";
  return `${left} ↔ ${right}`;
}

/** A changed file beside what it was. `file` has its diffs whole. */
export async function changeContent(tracked: Tracked, file: ChangedFile): Promise<DiffContent> {
  const subject: Subject = { about: "change", sessionId: tracked.id, path: file.path };
  const comparison = await compare(file);
  const why = unshowable(file, comparison);
  if (why !== undefined) {
    const changes = file.chain.map((step) => step.change);
    return onlyDiff(subject, file.path, changes, why);
  }
  const { before, now, aside } = comparison;
  const lost = missed(comparison);
  const name = nameOf(file.path);
  const notes = [
    ...(lost === undefined ? [] : [`not taken back: ${lost}`]),
    ...(aside ? ["your editor has changes of its own, which are not saved"] : []),
  ];
  return {
    title: `${name} (${sides(comparison)}${lost === undefined ? "" : ", changed since"})`,
    left: pane(subject, "before", file.oldPath ?? file.path, before.text),
    right:
      now === undefined || aside
        ? pane(subject, "after", file.path, now)
        : { uri: vscode.Uri.file(file.path) },
    ...(notes.length > 0 ? { note: `${name}: ${notes.join("; ")}.` } : {}),
  };
}

export function proposedChanges(approval: Approval): FileChange[] {
  const subject = approval.subject as { type?: string; changes?: unknown };
  return subject.type === "fileChange" ? fileChanges(subject.changes) : [];
}

const WORDS: Partial<Record<string, readonly [now: string, then: string]>> = {
  create: ["no such file", "proposed"],
  delete: ["now", "proposed: deleted"],
  move: ["now", "proposed: moved here"],
};

/** A file as it is beside what it would be. */
export async function approvalContent(
  approval: Approval,
  index: number,
): Promise<DiffContent | undefined> {
  const changes = proposedChanges(approval);
  const change = changes[index];
  if (!change) {
    return undefined;
  }
  const { approvalId } = approval;
  const subject: Subject = { about: "approval", approvalId, index };
  const from = change.oldPath ?? change.path;
  const document = await documentOf(from);
  const disk = await onDisk(from);
  const unsaved = document?.isDirty === true;
  if (!unsaved && "fault" in disk) {
    return onlyDiff(subject, change.path, [change], disk.fault);
  }
  const now = unsaved ? textIn(document) : "fault" in disk ? undefined : disk.text;
  const then = proposed(now, change, unsaved ? "your unsaved file" : "the file as it is now");
  if ("why" in then) {
    return onlyDiff(subject, change.path, [change], then.why);
  }
  const [left, right] = WORDS[change.operation] ?? ["now", "proposed"];
  const which = changes.length > 1 ? `, ${index + 1} of ${changes.length}` : "";
  return {
    title: `${nameOf(change.path)} (${left} ↔ ${right}${which})`,
    left: pane(subject, "now", from, now),
    right: pane(subject, "proposed", change.path, then.text),
  };
}
