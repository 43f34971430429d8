/** Untrusted text, made fit to be shown. */

/** What is to be a text, as one: a peer may send anything in its place, and nothing here fails for it. */
export function asText(value: unknown): string {
  switch (typeof value) {
    case "string":
      return value;
    case "number":
    case "boolean":
    case "bigint":
      return String(value);
    case "undefined":
      return "";
    default:
      return value === null ? "" : "…";
  }
}

/** What must be a text, as an id must. Throws where it is none. */
export function told(value: unknown): string {
  if (typeof value !== "string") {
    throw new TypeError(`a text was expected, and not ${value === null ? "null" : typeof value}`);
  }
  return value;
}

const LONE = /\p{Surrogate}/gu;

// What acts on whoever shows it: control characters other than line ends and tabs, and marks that turn the
// direction of the text around them, with which a command would look like another one than is asked about.
const ACTS = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]/;
const SPELLED = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

function spell(char: string): string {
  const code = char.charCodeAt(0).toString(16).toUpperCase();
  return char <= "\x7f" ? `<${code.padStart(2, "0")}>` : `<U+${code.padStart(4, "0")}>`;
}

/** The text without half characters, which are none to whoever reads the wire. */
export function wellFormed(text: string): string {
  return text.replace(LONE, "\ufffd");
}

/**
 * The text with nothing in it that acts on whoever shows it: control characters other than line ends and tabs,
 * and marks that turn the direction of writing, are spelled out; half a character becomes U+FFFD.
 */
export function visible(value: unknown): string {
  const text = asText(value);
  if (!ACTS.test(text)) {
    return text;
  }
  return wellFormed(text).replaceAll("\r\n", "\n").replace(SPELLED, spell);
}

/** The lines of a text, fit to be shown. */
export function lines(value: unknown): string[] {
  return visible(value).split("\n");
}

/** The beginning of a text, and whether that is all of it. */
function beginning(text: string, width: number): { text: string; whole: boolean } {
  if (text.length <= width) {
    return { text, whole: true };
  }
  let at = 0;
  for (let i = 0; i < width && at < text.length; i++) {
    at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  }
  return { text: text.slice(0, at), whole: at >= text.length };
}

const BLANK = /[ \t\n\v\f\r]+/g;
const BLANK_BEFORE = /^[ \t\n\v\f\r]+/;

/** One line of at most `width` characters, whatever the text holds. */
export function oneLine(value: unknown, width?: number): string {
  let text = asText(value).replace(BLANK_BEFORE, "");
  // Of a text of megabytes, no more than what can be shown is looked at.
  const looked = width === undefined ? Infinity : 64 * width + 4096;
  const cut = text.length > looked;
  if (cut) {
    text = text.slice(0, looked);
  }
  text = visible(text).replace(BLANK, " ");
  text = text.endsWith(" ") ? text.slice(0, -1) : text;
  if (width === undefined) {
    return text;
  }
  const shown = beginning(text, width);
  if (shown.whole && !cut) {
    return text;
  }
  return `${beginning(shown.text, width - 1).text}…`;
}

/** The name of an icon, as labels and the status bar would draw one. */
const ICON = /\$\((?=[A-Za-z0-9-]+(?:~[A-Za-z]+)?\))/g;

/** One line, fit for a place in which the editor draws `$(icon)`: there it stays text. */
export function label(value: unknown, width?: number): string {
  return oneLine(value, width).replace(ICON, "\\$(");
}

/** One line, fit for a notification: there the editor makes links of `[text](command:…)`, which stay text. */
export function message(value: unknown, width?: number): string {
  return oneLine(value, width).replaceAll("](", "] (");
}

/** As 850 ms, 12 s, 3 m 20 s or 2 h 5 m. */
export function duration(ms: number): string {
  if (ms < 1000) {
    return `${Math.trunc(ms)} ms`;
  }
  const s = Math.round(ms / 1000);
  if (s < 60) {
    return `${s} s`;
  } else if (s < 3600) {
    return `${Math.floor(s / 60)} m ${s % 60} s`;
  }
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} m`;
}

/** As 950, 1.2k or 3.4M. */
export function count(n: number): string {
  if (n < 1000) {
    return String(Math.trunc(n));
  }
  return n < 999_950 ? `${(n / 1e3).toFixed(1)}k` : `${(n / 1e6).toFixed(1)}M`;
}
