/** Going back to before a turn: what it takes, and what it leaves. Pure. */
import type { Event, SessionRewindResult, Turn } from "@callboard/protocol";
import type { Step } from "./changes";
import { list, plural } from "./loose";
import { age } from "./rows";
import { asText, oneLine } from "./text";
import { ms } from "./time";

/** A turn that one can go back to before. */
export interface Checkpoint {
  readonly turn: Turn;
  readonly label: string;
  readonly description: string;
  readonly detail: string;
}

const ASKED = 120;
const ANSWERED = 160;

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

/** What messages of people say, by the seq of their events. */
export function saidBySeq(events: readonly Event[]): Map<number, string> {
  const said = new Map<number, string>();
  for (const event of events) {
    const data: unknown = event.data;
    const content = isObject(data) ? data["content"] : undefined;
    const texts = (Array.isArray(content) ? content : [])
      .filter((block) => isObject(block) && block["type"] === "text")
      .map((block: Record<string, unknown>) => asText(block["text"]));
    const text = texts.join(" ").trim();
    if (text !== "") {
      said.set(event.seq, text);
    }
  }
  return said;
}

const ENDS: Partial<Record<string, string>> = {
  failed: "failed",
  cancelled: "stopped",
  interrupted: "stopped",
};

/** The turns as choices, the newest first. `now` is in ms since the epoch. */
export function checkpoints(
  turns: readonly Turn[],
  said: ReadonlyMap<number, string>,
  now: number,
): Checkpoint[] {
  return turns
    .map((turn) => {
      const asked = list(turn.trigger.seqs)
        .map((seq) => said.get(seq) ?? "")
        .filter((text) => text !== "")
        .join(" / ");
      const when = age(turn.startedAt, now);
      const facts = [when === "now" ? "now" : `${when} ago`, ENDS[turn.state] ?? ""];
      return {
        turn,
        label:
          oneLine(asked, ASKED) || `Turn ${turn.index + 1} (${oneLine(turn.trigger.kind, 20)})`,
        description: facts.filter((fact) => fact !== "" && fact !== " ago").join(" · "),
        detail: oneLine(turn.finalText ?? "", ANSWERED),
      };
    })
    .reverse();
}

const PATHS_SHOWN = 3;

/** What a rewind did, and what it did not. `short` tells a path from where the person works. */
export function rewound(result: SessionRewindResult, short: (path: string) => string): string {
  const parts = [
    `Went back: ${plural(result.turns, "turn")} taken back, of which the agent knows nothing any more.`,
    "Files are as they were left.",
  ];
  const paths = list(result.changedPaths);
  const shown = paths.slice(0, PATHS_SHOWN).map((path) => oneLine(short(path), 80));
  const more = paths.length - shown.length + (result.morePaths ?? 0);
  if (shown.length > 0) {
    const rest = more > 0 ? ` and ${more} more` : "";
    parts.push(`These had been changed: ${shown.join(", ")}${rest}.`);
  }
  const commands = result.commands ?? 0;
  if (commands > 0) {
    parts.push(
      `${plural(commands, "command")} ran; what ${commands === 1 ? "it" : "they"} did stands.`,
    );
  }
  return parts.join(" ");
}

/** Whether a change was made in the turns that a rewind has taken back, by the session or by its agents. */
export function isTakenBack(step: Step, turn: Turn, result: SessionRewindResult): boolean {
  if (step.sessionId === turn.sessionId) {
    return step.seq >= result.beforeSeq && step.seq < result.eventSeq;
  }
  const [made, began] = [ms(step.at), ms(turn.startedAt)];
  return made !== undefined && began !== undefined && made >= began;
}
