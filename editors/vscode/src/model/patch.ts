/**
 * Unified diffs: read, applied and taken back. Pure.
 *
 * A text is a list of lines with their ends: only "\n" ends one, as in every diff, and only the last line may
 * have none. So a missing end of line is a difference like any other, and an empty text is an empty list.
 */

/** Lines, each with its "\n", if it has one. */
export type Text = readonly string[];

export interface HunkLine {
  readonly mark: " " | "-" | "+";
  /** With its line end. */
  readonly text: string;
}

export interface Hunk {
  /** Which of the diff's hunks it is, from 1. */
  readonly index: number;
  /** As in the diff: 1-based; with a count of 0 the line that it comes after. */
  readonly oldStart: number;
  readonly oldCount: number;
  readonly newStart: number;
  readonly newCount: number;
  readonly lines: readonly HunkLine[];
}

export interface Patch {
  readonly hunks: readonly Hunk[];
}

/**
 * `changed`: what it is about is not in the text. `ambiguous`: it is there more than once, and not at its
 * place.
 */
export type HunkFault = "changed" | "ambiguous";

export interface HunkFailure {
  readonly hunk: Hunk;
  readonly fault: HunkFault;
}

export interface Patched {
  /** With all hunks that were found. */
  readonly text: Text;
  /** Those that were not, in order. */
  readonly failed: readonly HunkFailure[];
}

export function textOf(content: string): string[] {
  const text: string[] = [];
  for (let at = 0; at < content.length;) {
    const end = content.indexOf("\n", at);
    const stop = end < 0 ? content.length : end + 1;
    text.push(content.slice(at, stop));
    at = stop;
  }
  return text;
}

export function contentOf(text: Text): string {
  return text.join("");
}

const HEADER = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

interface Reading {
  readonly hunk: Hunk;
  readonly next: number;
}

/** Reads a hunk, whose header is the line `at`, up to its counts; undefined when it is damaged. */
function readHunk(
  header: RegExpExecArray,
  lines: Text,
  at: number,
  index: number,
): Reading | undefined {
  const [oldStart, oldCount, newStart, newCount] = [
    header[1],
    header[2] ?? "1",
    header[3],
    header[4] ?? "1",
  ].map(Number) as [number, number, number, number];
  const read: HunkLine[] = [];
  let next = at + 1;
  let old = 0;
  let fresh = 0;
  while (old < oldCount || fresh < newCount) {
    const line = lines[next];
    const mark = line?.[0];
    if (line === undefined || (mark !== " " && mark !== "-" && mark !== "+")) {
      return undefined;
    }
    old += mark === "+" ? 0 : 1;
    fresh += mark === "-" ? 0 : 1;
    if (!line.endsWith("\n")) {
      return undefined; // a line of a diff always ends; this one was cut
    }
    let text = line.slice(1);
    if (lines[next + 1]?.startsWith("\\")) {
      text = text.slice(0, -1);
      next += 1;
    }
    read.push({ mark, text });
    next += 1;
  }
  if (old > oldCount || fresh > newCount) {
    return undefined;
  }
  return { hunk: { index, oldStart, oldCount, newStart, newCount, lines: read }, next };
}

export type Parsed = { readonly patch: Patch } | { readonly why: string };

/** Reads the diff of one file. A diff that is damaged or cut is none: nothing may be half applied. */
export function parse(diff: string): Parsed {
  const lines = textOf(diff);
  const hunks: Hunk[] = [];
  let at = lines.findIndex((line) => line.startsWith("@@ "));
  while (at >= 0 && at < lines.length) {
    const header = HEADER.exec(lines[at] ?? "");
    if (!header) {
      return { why: `line ${at + 1} of the diff is no part of one` };
    }
    const index = hunks.length + 1;
    const reading = readHunk(header, lines, at, index);
    if (!reading) {
      return { why: `hunk ${index} of the diff is damaged` };
    }
    hunks.push(reading.hunk);
    at = reading.next;
  }
  return { patch: { hunks } };
}

/** One side of a hunk, without the lines that only the other one has. */
function side(hunk: Hunk, other: "-" | "+"): string[] {
  return hunk.lines.filter((line) => line.mark !== other).map((line) => line.text);
}

function withoutEnd(line: string): string {
  return line.endsWith("\n") ? line.slice(0, -1) : line;
}

/** Whether `wanted` stands at `at`; where `lenient`, the end of the last line of both may differ. */
function matches(text: Text, at: number, wanted: Text, lenient: boolean): boolean {
  if (at < 0 || at + wanted.length > text.length) {
    return false;
  }
  for (let i = 0; i < wanted.length; i++) {
    const line = wanted[i] ?? "";
    const there = text[at + i] ?? "";
    if (there === line) {
      continue;
    }
    const last = i === wanted.length - 1 && at + i === text.length - 1;
    if (!lenient || !last || withoutEnd(there) !== withoutEnd(line)) {
      return false;
    }
  }
  return true;
}

/**
 * Where a side of a hunk is: at its place, else wherever it is, if that is one place only. Before `low` are
 * the hunks that come earlier.
 */
function find(text: Text, wanted: Text, expected: number, low: number): number | HunkFault {
  if (wanted.length === 0) {
    // Nothing to know the place by: it is the place, in an empty text at least.
    return text.length === 0 ? 0 : "changed";
  }
  for (const lenient of [false, true]) {
    if (expected >= low && matches(text, expected, wanted, lenient)) {
      return expected;
    }
    let found: number | undefined;
    for (let at = low; at <= text.length - wanted.length; at++) {
      if (!matches(text, at, wanted, lenient)) {
        continue;
      }
      if (found !== undefined) {
        return "ambiguous";
      }
      found = at;
    }
    if (found !== undefined) {
      return found;
    }
  }
  return "changed";
}

function append(out: string[], lines: Text): void {
  for (const line of lines) {
    out.push(line);
  }
}

function put(text: Text, patch: Patch, from: "old" | "new"): Patched {
  const [gone, come] = from === "old" ? (["+", "-"] as const) : (["-", "+"] as const);
  const out: string[] = [];
  const failed: HunkFailure[] = [];
  let low = 0;
  let shift = 0;
  for (const hunk of patch.hunks) {
    const wanted = side(hunk, gone);
    const start = (from === "old" ? hunk.oldStart : hunk.newStart) - 1;
    const at = find(text, wanted, start + shift, low);
    if (typeof at === "string") {
      failed.push({ hunk, fault: at });
      continue;
    }
    append(out, text.slice(low, at));
    append(out, side(hunk, come));
    low = at + wanted.length;
    shift = at - start;
  }
  append(out, text.slice(low));
  const ended = out.map((line, i) =>
    i < out.length - 1 && !line.endsWith("\n") ? `${line}\n` : line,
  );
  return { text: ended, failed };
}

/** The text with the change in it. What of it is not found is left out, and named. */
export function apply(text: Text, patch: Patch): Patched {
  return put(text, patch, "old");
}

/** The text as it was before the change. */
export function reverse(text: Text, patch: Patch): Patched {
  return put(text, patch, "new");
}

/** Says which hunk it is, as "hunk 2 (lines 10 to 16)". */
export function hunkName(hunk: Hunk): string {
  const first = Math.max(hunk.newStart, 1);
  const last = Math.max(hunk.newStart + hunk.newCount - 1, first);
  const where = first === last ? `line ${first}` : `lines ${first} to ${last}`;
  return `hunk ${hunk.index} (${where})`;
}
