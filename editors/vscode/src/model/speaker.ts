/** Who speaks in an item of a transcript, and the heading above it that says so. */
import type { Framed } from "./frames";
import { openFrame } from "./frames";
import { asText, oneLine } from "./text";
import type { Item } from "./transcript";

export interface Speaking {
  /** What the agent is called. */
  agent: string;
  /** The session that its agent was started by. */
  parent?: string;
  /** Several agents speak here. */
  room: boolean;
  /** Who of them, by turn. */
  speakers: ReadonlyMap<string, string>;
}

/** The frame around what others said. */
export function framed(item: Item): Framed | undefined {
  const frame = item.kind === "prompt" ? openFrame(asText(item.text)) : undefined;
  const mine = !item.author || item.author.kind === "person";
  return frame && (!mine || frame.kind === "interrupt") ? frame : undefined;
}

function called(name: unknown): string {
  const shown = oneLine(name, 40);
  return shown === "" || shown === "default" ? "Agent" : shown;
}

/** Who has written a prompt. */
function writer(item: Item, look: Speaking): string {
  const { author } = item;
  if (!author || author.kind === "person") {
    return "You";
  } else if (author.kind === "agent") {
    return author.id != null && author.id === look.parent
      ? "From its parent"
      : `From ${called(author.name)}`;
  }
  const name = oneLine(author.name, 40);
  const kind = oneLine(author.kind, 20);
  return name === author.kind ? `From the ${name}` : `From ${kind} ${name}`;
}

/** Who speaks; absent for what nobody says. */
export function speakerOf(item: Item, look: Speaking): string | undefined {
  switch (item.kind) {
    case "prompt":
      return writer(item, look);
    case "answer":
    case "thought":
    case "tool":
      return called(
        look.room
          ? (item.author?.name ?? look.speakers.get(item.turnId ?? "") ?? look.agent)
          : look.agent,
      );
    default:
      return undefined;
  }
}

/** The heading of an item below the one before it: absent where nobody else begins to speak. */
export function heading(item: Item, before: Item | undefined, look: Speaking): string | undefined {
  const said = speakerOf(item, look);
  if (said === undefined) {
    return undefined;
  } else if (item.kind !== "prompt") {
    return before && speakerOf(before, look) === said ? undefined : said;
  }
  const frame = framed(item);
  if (!frame) {
    return said;
  }
  const kind = frame.kind === "interrupt" ? oneLine(frame.attributes.get("kind"), 20) : frame.kind;
  const status = oneLine(frame.attributes.get("status"), 20);
  const notes = [kind, status].filter((note) => note !== "");
  return notes.length > 0 ? `${said} (${notes.join(", ")})` : said;
}
