/** Some lines of a text that may be long: no more than those is looked at closely. */
import { visible } from "./text";

/** Of one line so many characters are shown, unless it is told otherwise. */
export const WIDTH = 400;

export interface Some {
  /** Fit to be shown; none of a text that says nothing. */
  lines: string[];
  /** Lines before them. */
  above: number;
  /** Lines after them. */
  below: number;
}

function shown(line: string, width: number): string {
  if (line.length <= width) {
    return visible(line);
  }
  const seen = Array.from(visible(line.slice(0, 4 * width)));
  const all = seen.length <= width && line.length <= 4 * width;
  return all ? seen.join("") : `${seen.slice(0, width).join("")} …`;
}

function isLineEnd(code: number): boolean {
  return code === 10 || code === 13;
}

/** Where lines begin, and where the text ends without the blank lines at its end. */
function starts(raw: string): { begins: number[]; end: number } {
  let end = raw.length;
  while (end > 0 && isLineEnd(raw.charCodeAt(end - 1))) {
    end -= 1;
  }
  const begins = [0];
  for (let at = raw.indexOf("\n"); at >= 0 && at < end; at = raw.indexOf("\n", at + 1)) {
    begins.push(at + 1);
  }
  return { begins, end };
}

export interface Cut {
  /** Lines at the most. */
  room: number;
  /** Characters of a line. */
  width?: number;
  /** The last ones, not the first. */
  fromEnd?: boolean;
  /** Lines at the beginning that do not count, told by their text and number (from 1). */
  skip?: (line: string, number: number) => boolean;
}

export function excerpt(raw: string, { room, width = WIDTH, fromEnd = false, skip }: Cut): Some {
  const { begins, end } = starts(raw);
  if (end === 0) {
    return { lines: [], above: 0, below: 0 };
  }
  const line = (i: number): string => {
    const next = begins[i + 1];
    const text = raw.slice(begins[i], next === undefined ? end : next - 1);
    return text.endsWith("\r") ? text.slice(0, -1) : text;
  };
  let first = 0;
  while (first < begins.length && skip?.(line(first), first + 1)) {
    first += 1;
  }
  const from = fromEnd ? Math.max(first, begins.length - room) : first;
  const to = Math.min(begins.length, from + room);
  const lines: string[] = [];
  for (let i = from; i < to; i++) {
    lines.push(shown(line(i), width));
  }
  return { lines, above: from - first, below: begins.length - to };
}
