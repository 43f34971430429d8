/** How an event becomes an item of a transcript. */
import type { Author, MessageContent } from "@callboard/protocol";
import { asText, told } from "./text";
import type { Change, EventOf, Item, ItemKind, Transcript, Waiting } from "./transcript";

export { newTranscript, nothing } from "./transcript";
export type { Change, Item, ItemKind, RunningTurn, Transcript } from "./transcript";

export function touch(change: Change, id: string): void {
  if (change.items.at(-1) !== id && !change.items.includes(id)) {
    change.items.push(id);
  }
}

export function push(t: Transcript, change: Change, item: Item): Item {
  t.items.push(item);
  t.byId.set(item.id, item);
  touch(change, item.id);
  return item;
}

/** As much of an event as its place in a transcript needs. */
export interface Happened {
  seq: number;
  eventId?: string;
  at: string;
  turnId?: string | null;
}

type NewItem = Omit<Partial<Item>, "seq" | "placed" | "at"> & { kind: ItemKind };

/** Puts an item of an event at the end. */
export function add(t: Transcript, change: Change, event: Happened, item: NewItem): Item {
  return push(t, change, {
    text: "",
    ...item,
    id: item.id ?? eventName(event),
    seq: event.seq,
    placed: event.seq,
    at: event.at,
    turnId: item.turnId ?? event.turnId ?? undefined,
  });
}

function eventName(event: Happened): string {
  return asText(event.eventId) || `seq ${event.seq}`;
}

export function notice(t: Transcript, change: Change, event: Happened, text: string): void {
  add(t, change, event, { kind: "notice", text });
}

export function remove(t: Transcript, change: Change, id: string): void {
  if (t.byId.delete(id)) {
    t.items = t.items.filter((item) => item.id !== id);
    change.reset = true;
  }
}

export function index(t: Transcript): void {
  t.byId = new Map(t.items.map((item) => [item.id, item]));
}

export interface Parts {
  text: string;
  thought: string;
  attachments: string[];
}

type Audience = "person" | "model";

function isFor(block: MessageContent, whom: Audience): boolean {
  return "_meta" in block && block._meta?.["audience"] === whom;
}

/** What the blocks of a message say. */
export function parts(content: readonly MessageContent[] | null | undefined): Parts {
  const blocks = content ?? [];
  const said: string[] = [];
  const thought: string[] = [];
  const attachments: string[] = [];
  const forPerson = blocks.some((block) => isFor(block, "person"));
  for (const block of blocks) {
    switch (block.type) {
      case "text":
        if (!(forPerson && isFor(block, "model"))) {
          said.push(asText(block.text));
        }
        break;
      case "thinking":
        thought.push(asText(block.text));
        break;
      case "image":
        attachments.push(`image (${asText(block.mimeType)})`);
        break;
      case "resource_link":
        attachments.push(asText(block.name ?? block.uri));
        break;
      case "resource":
        attachments.push(asText(block.uri));
        break;
      default:
    }
  }
  return { text: said.join("\n\n"), thought: thought.join("\n\n"), attachments };
}

type Waits = Omit<Partial<Item>, "seq" | "placed" | "at" | "kind" | "author"> & {
  trigger: Waiting;
  author: Author;
  text: string;
};

function prompt(event: Happened, item: Waits): Item {
  return {
    ...item,
    id: item.id === undefined ? eventName(event) : told(item.id),
    kind: "prompt",
    seq: event.seq,
    placed: event.seq,
    at: event.at,
  };
}

export type Trigger = EventOf<"message" | "directive" | "schedule_fired" | "member_mentioned">;

/** Events that wake an agent, each by what it needs to be told of. */
export const triggers = {
  message(event: EventOf<"message">): Item {
    const { data } = event;
    const { text, attachments } = parts(data.content);
    for (const each of data.context ?? []) {
      const range = each.range;
      const lines = range
        ? `#L${range.start.line + 1}-${Math.max(range.end.line, range.start.line + 1)}`
        : "";
      attachments.push(asText(each.uri) + lines);
    }
    return prompt(event, {
      id: data.messageId,
      trigger: "prompt",
      author: data.author,
      text,
      ...(data.delivery === "steer" ? { steer: true } : {}),
      attachments,
      blobs: data._blobs,
    });
  },
  directive(event: EventOf<"directive">): Item {
    const { data } = event;
    return prompt(event, {
      id: data.messageId,
      trigger: "directive",
      author: data.author,
      text: asText(data.text),
      blobs: data._blobs,
    });
  },
  schedule_fired(event: EventOf<"schedule_fired">): Item {
    const { data } = event;
    return prompt(event, {
      trigger: "schedule",
      author: { kind: "schedule", name: data.name, id: data.scheduleId },
      text: asText(data.prompt),
      blobs: data._blobs,
    });
  },
  member_mentioned(event: EventOf<"member_mentioned">): Item {
    const { data } = event;
    return prompt(event, {
      trigger: "mention",
      author: { kind: "agent", name: data.by, id: event.sessionId },
      text: `@${asText(data.name)}`,
    });
  },
};
