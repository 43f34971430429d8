/** What was looked at, what was found, and what to do about it; and all of that as a document. Pure. */
import { oneLine } from "../model/text";

export type Level = "ok" | "info" | "warn" | "error";

export interface Finding {
  readonly level: Level;
  readonly text: string;
  /** The way out. */
  readonly advice: readonly string[];
}

export interface Section {
  readonly title: string;
  readonly findings: readonly Finding[];
}

export function finding(level: Level, text: string, ...advice: string[]): Finding {
  return { level, text, advice: advice.filter((each) => each !== "") };
}

/** In words as well: a mark alone says nothing to whoever hears it. */
const MARKS: Readonly<Record<Level, string>> = {
  ok: "✓",
  info: "•",
  warn: "! Warning:",
  error: "✗ Problem:",
};

/** Longest text (characters) of a line. */
const WIDTH = 600;

/**
 * One line of Markdown in which nothing is a link, an image or HTML, whoever's words it holds. As little as
 * may be is changed: it is mostly read as it stands.
 */
export function plainly(text: string): string {
  return oneLine(text, WIDTH).replace(/\\*[<[]/g, (found) => {
    const slashes = found.slice(0, -1);
    return `${slashes}${slashes}\\${found.slice(-1)}`;
  });
}

function item({ level, text, advice }: Finding): string[] {
  return [`- ${MARKS[level]} ${plainly(text)}`, ...advice.map((each) => `  - ${plainly(each)}`)];
}

/** Says first whether there is anything to do. */
function summary(sections: readonly Section[]): string {
  const all = sections.flatMap((section) => section.findings);
  const problems = all.filter((each) => each.level === "error").length;
  const warnings = all.filter((each) => each.level === "warn").length;
  if (problems + warnings === 0) {
    return "Everything that was looked at is well.";
  }
  const say = (count: number, noun: string): string[] =>
    count === 0 ? [] : [`${count} ${noun}${count === 1 ? "" : "s"}`];
  return `${[...say(problems, "problem"), ...say(warnings, "warning")].join(" and ")}. What to do stands below each.`;
}

export function report(sections: readonly Section[]): string {
  const parts = ["# What Callboard needs", "", summary(sections)];
  for (const { title, findings } of sections) {
    parts.push("", `## ${title}`, "", ...findings.flatMap(item));
  }
  return `${parts.join("\n")}\n`;
}
