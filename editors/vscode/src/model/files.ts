/** Files, as they are named where the agent works. */
import { fileURLToPath } from "node:url";
import type { Location } from "@callboard/protocol";
import type { FileLink } from "../shared/chat";
import { list } from "./loose";
import { asText, oneLine } from "./text";

/** Longest name (characters) of a file. */
const WIDTH = 120;

/** A path as it is named in a folder. */
export function pathLabel(path: unknown, cwd?: string): string {
  const whole = asText(path);
  const sep = cwd?.includes("\\") ? "\\" : "/";
  const inside = cwd !== undefined && cwd !== "" && whole.startsWith(cwd + sep);
  return oneLine(inside ? whole.slice(cwd.length + 1) : whole, WIDTH);
}

export function fileLink(path: unknown, cwd?: string, line?: number | null): FileLink {
  const link: FileLink = { label: pathLabel(path, cwd), path: asText(path) };
  if (typeof line === "number" && line > 0) {
    link.line = line;
    link.label += `:${line}`;
  }
  return link;
}

/** So many places are named of one call. */
const PLACES = 12;

/** Where a call has looked, each place once. */
export function placeLinks(locations: readonly Location[] | undefined, cwd?: string): FileLink[] {
  const links = new Map<string, FileLink>();
  for (const { path, line } of list(locations).slice(0, PLACES)) {
    const link = fileLink(path, cwd, line);
    links.set(link.label, link);
  }
  return [...links.values()];
}

function pathOf(uri: string): string | undefined {
  try {
    return fileURLToPath(uri);
  } catch {
    return undefined; // a file of another machine, or none
  }
}

/** What went along with a prompt, told by its name or its URI. */
export function attachment(told: unknown, cwd?: string): FileLink | string {
  const [uri = "", range] = asText(told).split("#", 2);
  const path = uri.startsWith("file://") ? pathOf(uri) : undefined;
  if (path === undefined) {
    return oneLine(told, WIDTH);
  }
  const label = pathLabel(path, cwd);
  const line = /^L(\d+)/.exec(range ?? "")?.[1];
  return {
    label: range ? `${label} (${oneLine(range, 40)})` : label,
    path,
    ...(line === undefined ? {} : { line: Number(line) }),
  };
}
