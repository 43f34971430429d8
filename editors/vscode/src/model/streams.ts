/** Text that is not in the log yet: pieces of a message, numbered, and the draft that fills their holes. */
import type { Draft, Event, EventDelta } from "@callboard/protocol";
import { add, nothing, push, remove, touch } from "./items";
import { asText } from "./text";
import type { Change, EventOf, Item, Stream, Transcript } from "./transcript";

/** Characters of a running tool's output that are kept; its result has all of it. */
const OUTPUT_LIMIT = 64 * 1024;

type Spoken = "answer" | "thought";

export function streamId(kind: Spoken, messageId: string): string {
  return kind === "thought" ? `${messageId}:thought` : messageId;
}

function streamOf(t: Transcript, kind: string, messageId: string): Stream {
  const key = `${kind}:${messageId}`;
  let stream = t.streams.get(key);
  if (!stream) {
    stream = { next: 0, held: [] };
    t.streams.set(key, stream);
  }
  return stream;
}

/** No more comes of a message, or of a call's output. */
export function finish(t: Transcript, messageId: string): void {
  t.said.add(messageId);
  for (const kind of ["answer", "thought", "tool_output"]) {
    t.streams.delete(`${kind}:${messageId}`);
  }
}

/**
 * The turn is over. What streamed and did not come into the log is no part of what was said: a server that was
 * killed could not save it.
 */
export function cut(t: Transcript, change: Change, turnId: string): void {
  const kept: Item[] = [];
  for (const item of t.items) {
    if (item.seq === 0) {
      t.byId.delete(item.id);
      change.reset = true;
      continue;
    }
    kept.push(item);
    if (item.streaming) {
      delete item.streaming;
      item.partial = true;
      touch(change, item.id);
    }
  }
  if (change.reset) {
    t.items = kept;
  }
  t.streams.clear();
  t.ended.add(turnId);
}

/** The message is in the log: what it says takes the place of what was streamed. */
export function settle(
  t: Transcript,
  change: Change,
  event: EventOf<"message">,
  kind: Spoken,
  text: string,
): void {
  const { data } = event;
  const id = streamId(kind, data.messageId);
  const streamed = t.byId.get(id);
  if (text === "" && !streamed?.text) {
    remove(t, change, id);
    return;
  }
  const item = streamed ?? add(t, change, event, { id, kind });
  item.seq = event.seq;
  item.placed = event.seq;
  item.at = event.at;
  item.turnId = event.turnId ?? undefined;
  item.author = data.author;
  item.blobs = data._blobs;
  item.text = text || item.text;
  delete item.streaming;
  delete item.partial;
  if (data.partial) {
    item.partial = true;
  }
  touch(change, id);
}

/** The end of an output, from the beginning of a line where there is one. */
function ending(text: string): string {
  const last = text.slice(-OUTPUT_LIMIT);
  const begins = last.indexOf("\n");
  return `…${begins < 0 ? `\n${last}` : last.slice(begins)}`;
}

function output(t: Transcript, delta: EventDelta): Change | undefined {
  const item = t.byId.get(delta.messageId);
  if (!item) {
    t.early.push(delta);
    return undefined;
  } else if (item.result) {
    return undefined;
  }
  const stream = streamOf(t, delta.kind, delta.messageId);
  if (delta.index < stream.next) {
    return undefined;
  }
  // No draft has a tool's output: what is missing stays so until its result.
  item.text += (delta.index > stream.next ? "\n…\n" : "") + delta.text;
  if (item.text.length > 2 * OUTPUT_LIMIT) {
    item.text = ending(item.text);
  }
  item.streaming = true;
  stream.next = delta.index + (delta.count ?? 1);
  const change = nothing();
  touch(change, item.id);
  return change;
}

function streaming(
  t: Transcript,
  change: Change,
  kind: Spoken,
  from: { messageId: string; turnId: string },
): Item {
  const id = streamId(kind, from.messageId);
  return (
    t.byId.get(id) ??
    push(t, change, {
      id,
      kind,
      seq: 0,
      placed: Infinity,
      at: "",
      turnId: from.turnId,
      text: "",
    })
  );
}

function isDelta(piece: unknown): boolean {
  if (typeof piece !== "object" || piece === null) {
    return false;
  }
  const { text, index, messageId, turnId, kind }: Partial<Record<keyof EventDelta, unknown>> =
    piece;
  return (
    typeof text === "string" &&
    typeof index === "number" &&
    typeof messageId === "string" &&
    typeof turnId === "string" &&
    (kind === "answer" || kind === "thought" || kind === "tool_output")
  );
}

/** Whether a turn has begun and taken its prompts in: what it says stands below them. */
function isOpen(t: Transcript, turnId: string): boolean {
  return t.turn?.id === turnId && t.opening !== turnId;
}

/**
 * Takes in a piece of streamed text. Pieces behind a hole are held until the draft fills it; pieces that have
 * overtaken the event by which their turn, or their call, began, until `follow`.
 */
export function delta(t: Transcript, piece: EventDelta): Change | undefined {
  if (!isDelta(piece) || t.ended.has(piece.turnId) || t.said.has(piece.messageId)) {
    return undefined;
  } else if (!isOpen(t, piece.turnId)) {
    t.early.push(piece);
    return undefined;
  } else if (piece.kind === "tool_output") {
    return output(t, piece);
  }
  const kind: Spoken = piece.kind === "thought" ? "thought" : "answer";
  const stream = streamOf(t, kind, piece.messageId);
  const count = piece.count ?? 1;
  if (piece.index + count <= stream.next) {
    return undefined;
  }
  const change = nothing();
  if (piece.index !== stream.next) {
    stream.held.push(piece);
    change.hole = true;
    return change;
  }
  const thought = kind === "answer" && t.byId.get(streamId("thought", piece.messageId));
  if (thought && thought.streaming) {
    delete thought.streaming; // it was thought through
    touch(change, thought.id);
  }
  const item = streaming(t, change, kind, piece);
  item.streaming = true;
  item.text += piece.text;
  stream.next = piece.index + count;
  touch(change, item.id);
  return change;
}

function join(into: Change, more: Change | undefined): void {
  for (const id of more?.items ?? []) {
    touch(into, id);
  }
  if (more?.hole) {
    into.hole = true;
  }
}

function again(t: Transcript, pieces: EventDelta[], change: Change): void {
  for (const piece of pieces) {
    join(change, delta(t, piece));
  }
}

/** Sees whether an event lets the pieces in that came before it: before their turn, or their call. */
export function follow(t: Transcript, event: Event, change: Change): void {
  const told = (event.data as { turnId?: unknown } | null | undefined)?.turnId;
  const turnId = typeof told === "string" ? told : undefined;
  if (event.type === "turn_started") {
    t.opening = turnId;
    return;
  } else if (
    !event.turnId ||
    (t.early.length === 0 && t.earlyDraft === undefined && t.opening === undefined)
  ) {
    return;
  }
  if (t.opening === event.turnId) {
    t.opening = undefined;
  }
  const { early, earlyDraft } = t;
  t.early = [];
  t.earlyDraft = undefined;
  // Ids rise: what belongs to this turn, or to one before it, is not waited for when it is over.
  const over = (event.type === "turn_finished" ? turnId : undefined) ?? "";
  if (earlyDraft && earlyDraft.turnId > over) {
    join(change, draft(t, earlyDraft));
  }
  again(
    t,
    early.filter((piece) => piece.turnId > over),
    change,
  );
}

/**
 * What has streamed so far, as the server tells it. Fills holes, and begins what was under way when the session
 * was opened. One that has overtaken the events by which its turn began waits for them.
 */
export function draft(t: Transcript, saved: Draft | null | undefined): Change {
  const change = nothing();
  if (!saved) {
    for (const stream of t.streams.values()) {
      stream.held = [];
    }
    return change;
  } else if (t.ended.has(saved.turnId) || t.said.has(saved.messageId)) {
    return change;
  } else if (!isOpen(t, saved.turnId)) {
    t.earlyDraft = saved;
    return change;
  }
  for (const kind of ["thought", "answer"] as const) {
    const stream = streamOf(t, kind, saved.messageId);
    const next = saved.nextIndex[kind] ?? 0;
    if (next > stream.next) {
      const item = streaming(t, change, kind, saved);
      item.text = asText(saved[kind]);
      item.streaming = true;
      stream.next = next;
      touch(change, item.id);
    }
    const held = stream.held;
    stream.held = [];
    again(t, held, change);
  }
  return change;
}
