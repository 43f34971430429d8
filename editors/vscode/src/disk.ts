/**
 * What files hold on disk, and how they are written. Texts are as in `model/patch`; they are decoded as the
 * server does it, so that its diffs fit.
 */
import { randomUUID } from "node:crypto";
import type { Stats } from "node:fs";
import * as fs from "node:fs/promises";
import * as path from "node:path";
import { contentOf, textOf, type Text } from "./model/patch";

/** Larger files are not read at once; neither does the server. */
export const MAX_BYTES = 16 * 1024 * 1024;
const SNIFF = 8192;
/** No system has longer paths. */
const LONGEST = 4096;

export type Encoding = "utf-8" | "utf-16le" | "utf-16be" | "latin1";

/** How a text is spelled as bytes. */
export interface Form {
  readonly encoding: Encoding;
  /** It begins with a byte order mark. */
  readonly marked: boolean;
}

export type OnDisk =
  | { readonly text: Text; readonly form: Form }
  /** There is no such file. */
  | { readonly text: undefined; readonly form: undefined }
  /** Why it cannot be told. */
  | { readonly fault: string };

const NOTHING: OnDisk = { text: undefined, form: undefined };

function codeOf(fault: unknown): unknown {
  return fault instanceof Error && "code" in fault ? fault.code : undefined;
}

const REASONS: Partial<Record<string, string>> = {
  EACCES: "you may not read or write it",
  EPERM: "the system does not allow it",
  EROFS: "its disk is read-only",
  ENOSPC: "the disk is full",
  EBUSY: "another program uses it",
  ENAMETOOLONG: "its name is too long",
  EEXIST: "something else is in its place",
  ENOTDIR: "a part of its path is no folder",
  EISDIR: "it is a folder",
  ELOOP: "its links go round in a circle",
};

/** What the system refused, in words. */
export function refusal(fault: unknown): string {
  const code = codeOf(fault);
  const known = typeof code === "string" ? REASONS[code] : undefined;
  return known ?? (fault instanceof Error ? fault.message : String(fault));
}

function isMissing(fault: unknown): boolean {
  return codeOf(fault) === "ENOENT";
}

function kindOf(stat: Stats): string {
  return stat.isDirectory() ? "a folder" : "something else";
}

const MARKS = { "utf-8": [0xef, 0xbb, 0xbf], "utf-16le": [0xff, 0xfe], "utf-16be": [0xfe, 0xff] };
const UTF_32 = [
  [0xff, 0xfe, 0, 0],
  [0, 0, 0xfe, 0xff],
];

function begins(data: Uint8Array, mark: readonly number[]): boolean {
  return mark.every((byte, i) => data[i] === byte);
}

function tried(data: Uint8Array, encoding: string): string | undefined {
  try {
    return new TextDecoder(encoding, { fatal: true, ignoreBOM: true }).decode(data);
  } catch {
    return undefined;
  }
}

/** A file's bytes as text: by its mark, else UTF-8, else Latin-1 (which keeps every byte). */
export function decode(data: Buffer): OnDisk {
  if (UTF_32.some((mark) => begins(data, mark))) {
    return { fault: "it is spelled in UTF-32" };
  }
  for (const encoding of ["utf-8", "utf-16le", "utf-16be"] as const) {
    if (begins(data, MARKS[encoding])) {
      const decoded = tried(data.subarray(MARKS[encoding].length), encoding);
      if (decoded !== undefined) {
        return { text: textOf(decoded), form: { encoding, marked: true } };
      }
      break;
    }
  }
  if (data.subarray(0, SNIFF).includes(0)) {
    return { fault: "it is not text" };
  }
  const decoded = tried(data, "utf-8");
  return decoded === undefined
    ? { text: textOf(data.toString("latin1")), form: { encoding: "latin1", marked: false } }
    : { text: textOf(decoded), form: { encoding: "utf-8", marked: false } };
}

/** A text as bytes; undefined where its encoding does not have all of its characters. */
export function encode(content: string, form: Form): Buffer | undefined {
  switch (form.encoding) {
    case "latin1":
      return /[^\0-\xff]/.test(content) ? undefined : Buffer.from(content, "latin1");
    case "utf-8":
      return Buffer.from(form.marked ? `\ufeff${content}` : content, "utf8");
    case "utf-16le":
      return Buffer.from(`\ufeff${content}`, "utf16le");
    case "utf-16be":
      return Buffer.from(`\ufeff${content}`, "utf16le").swap16();
  }
}

export async function onDisk(file: string): Promise<OnDisk> {
  try {
    const stat = await fs.stat(file);
    if (!stat.isFile()) {
      return { fault: `it is no file but ${kindOf(stat)}` };
    } else if (stat.size > MAX_BYTES) {
      return { fault: `it has more than ${MAX_BYTES / 1024 / 1024} MiB` };
    }
    return decode(await fs.readFile(file));
  } catch (fault) {
    return isMissing(fault) ? NOTHING : { fault: refusal(fault) };
  }
}

/** With all links resolved; undefined where there is no such thing. */
export async function realPath(file: string): Promise<string | undefined> {
  try {
    return await fs.realpath(file);
  } catch {
    return undefined;
  }
}

export async function exists(file: string): Promise<boolean> {
  try {
    await fs.lstat(file);
    return true;
  } catch {
    return false;
  }
}

/** With all links resolved, as far as it exists. */
async function resolved(file: string): Promise<string> {
  const rest: string[] = [];
  for (let here = path.normalize(file); ; here = path.dirname(here)) {
    const real = await realPath(here);
    if (real !== undefined || path.dirname(here) === here) {
      return path.join(real ?? here, ...rest);
    }
    rest.unshift(path.basename(here));
  }
}

async function isDangling(file: string): Promise<boolean> {
  return (await exists(file)) && (await realPath(file)) === undefined;
}

/** Where a path leads to, if that is in one of the folders. */
export async function inside(
  file: string,
  folders: readonly string[],
): Promise<string | undefined> {
  const odd = file.includes("\0") || file.length > LONGEST || !path.isAbsolute(file);
  if (odd || file.split(/[\\/]/).includes("..")) {
    return undefined;
  }
  if (await isDangling(file)) {
    return undefined; // a link to what is not there: whatever is written goes where nobody looked
  }
  const real = await resolved(file);
  for (const folder of folders) {
    const root = await realPath(folder);
    const below = root === undefined ? ".." : path.relative(root, real);
    const out = below === ".." || below.startsWith(`..${path.sep}`) || path.isAbsolute(below);
    if (below !== "" && !out) {
      return real;
    }
  }
  return undefined;
}

/**
 * Writes a text, beside its place first: there is never half of it. `file` is given with all links resolved.
 * @returns why it could not be written
 */
export async function write(file: string, text: Text, form?: Form): Promise<string | undefined> {
  const data = encode(contentOf(text), form ?? { encoding: "utf-8", marked: false });
  if (!data) {
    return `it cannot be spelled in ${form?.encoding ?? "utf-8"}`;
  }
  const beside = `${file}.callboard-${randomUUID().slice(0, 8)}`;
  try {
    await fs.mkdir(path.dirname(file), { recursive: true });
    const mode = await fs.stat(file).then(
      (stat) => stat.mode & 0o7777,
      () => undefined,
    );
    await fs.writeFile(beside, data, { flag: "wx", mode: mode ?? 0o644, flush: true });
    if (mode !== undefined) {
      await fs.chmod(beside, mode);
    }
    await fs.rename(beside, file);
    return undefined;
  } catch (fault) {
    await fs.rm(beside, { force: true }).catch(() => undefined);
    return refusal(fault);
  }
}
