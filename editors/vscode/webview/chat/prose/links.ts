/** Which targets of links are followed, and what they mean. Pure. */
import type { FileLink } from "../../../src/shared/chat.js";

const WEB = /^(?:https?:\/\/|mailto:)/i;
const SCHEME = /^[a-z][a-z0-9+.-]*:/i;
const DRIVE = /^[a-z]:[\\/]/i;

export type Target = { kind: "web"; href: string } | { kind: "file"; file: FileLink };

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** What a link of a text leads to; nothing where it is not to be followed. */
export function target(href: string): Target | undefined {
  const raw = href.trim();
  if (WEB.test(raw)) {
    return { kind: "web", href: raw };
  }
  const path = decoded(raw);
  // A scheme that only shows once it is decoded is one all the same; two slashes name a host.
  if (raw === "" || /^[#?]/.test(raw) || /^[\\/]{2}/.test(path)) {
    return undefined;
  }
  if (
    (SCHEME.test(raw) || SCHEME.test(path)) &&
    !DRIVE.test(path) &&
    !/^[^:/\\]+\.[^:/\\]+:\d+/.test(path)
  ) {
    return undefined;
  }
  if (/[\u0000-\u001f]/.test(path)) {
    return undefined;
  }
  const match = /^(.+?)(?:#L(\d+).*|:(\d+)(?::\d+)?(?:-\d+)?|#.*)?$/.exec(path);
  const name = match?.[1] ?? path;
  const line = Number(match?.[2] ?? match?.[3] ?? 0);
  return { kind: "file", file: { label: name, path: name, ...(line > 0 ? { line } : {}) } };
}

/** The host that a text claims to lead to, when it looks like an address. */
export function claimed(text: string): string | undefined {
  const match = /^(?:https?:\/\/)?(?:[^\s/@]*@)?((?:[\w-]+\.)+[a-z]{2,})(?:[:/?#]|$)/i.exec(
    text.trim(),
  );
  return match?.[1]?.toLowerCase();
}
