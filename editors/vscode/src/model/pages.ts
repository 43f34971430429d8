/** Pages from before what is loaded, put in front of it: the result is as if all had been read in order. */
import { decide, forget, look } from "./handlers";
import { index, nothing, parts } from "./items";
import type { Change, Item, Known, Transcript } from "./transcript";

/** What the later events say of an item that they did not find. */
function catchUp(item: Item, known: Known): void {
  const approval = item.approval;
  const resolution = approval && known.decided.get(approval.approvalId);
  if (resolution) {
    decide(approval, resolution);
  }
}

/** Items that both know are tool calls: the earlier one has the call, the later one what came of it. */
function join(earlier: Item, later: Item): void {
  later.call ??= earlier.call;
  later.approval ??= earlier.approval;
  later.seq = earlier.seq;
  later.placed = earlier.placed;
  later.at = earlier.at;
  later.turnId ??= earlier.turnId;
}

/** Puts a prompt where a later event took it in. */
function admit(list: Item[], item: Item, by: { at: number; turnId: string | undefined }): void {
  item.turnId = by.turnId;
  item.placed = by.at;
  const at = list.findIndex(
    (other) => other.placed > item.placed || (other.placed === item.placed && other.seq > item.seq),
  );
  list.splice(at < 0 ? list.length : at, 0, item);
}

function queue(t: Transcript, before: Transcript): void {
  const { known } = t;
  const waiting: Item[] = [];
  for (const item of before.queue) {
    const content = known.updated.get(item.seq);
    if (content) {
      const { text, attachments } = parts(content);
      item.text = text;
      item.attachments = attachments;
    }
    const admitted = known.admitted.get(item.seq);
    if (admitted) {
      if (item.trigger !== "mention") {
        admit(t.items, item, admitted);
      }
    } else if (!known.dropped.has(item.seq)) {
      waiting.push(item);
    }
  }
  t.queue = [...waiting, ...t.queue];
}

function turn(t: Transcript, before: Transcript): void {
  const earlier = before.turn;
  const later = t.turn;
  if (t.known.turn || !earlier || (later && (later.id ?? earlier.id) !== earlier.id)) {
    t.known.turn ||= before.known.turn;
    return;
  }
  t.turn = earlier;
  t.known.turn = before.known.turn;
  if (later) {
    earlier.cancelling ||= later.cancelling;
    if (later.parked !== undefined) {
      earlier.parked = later.parked;
    }
  }
  look(t, nothing());
}

/** Takes over what is not known yet: the later word stands. */
function keep<K, V>(now: Map<K, V>, earlier: Map<K, V>): void {
  for (const [key, value] of earlier) {
    if (!now.has(key)) {
      now.set(key, value);
    }
  }
}

function addAll<T>(now: Set<T>, earlier: Set<T>): void {
  for (const value of earlier) {
    now.add(value);
  }
}

function know(t: Transcript, before: Transcript): void {
  const now = t.known;
  const then = before.known;
  for (const name of ["title", "mode", "model"] as const) {
    if (!now[name]) {
      t[name] = before[name];
      now[name] = then[name];
    }
  }
  keep(now.admitted, then.admitted);
  keep(now.updated, then.updated);
  keep(now.decided, then.decided);
  addAll(now.dropped, then.dropped);
  addAll(now.gonePrompts, then.gonePrompts);
  now.gone.push(...then.gone);
  for (const approvalId of before.asking) {
    if (!now.decided.has(approvalId)) {
      t.asking.add(approvalId);
    }
  }
}

/** Puts what was before, made of all events up to those of `t`, in front. */
export function put(t: Transcript, before: Transcript): Change {
  forget(before, t.known);
  const all: Item[] = [];
  const seen = new Set<string>();
  for (const item of before.items) {
    catchUp(item, t.known);
    const later = t.byId.get(item.id);
    if (later) {
      join(item, later);
      seen.add(later.id);
    }
    all.push(later ?? item);
  }
  t.items = t.items.filter((item) => !seen.has(item.id));
  queue(t, before);
  t.items = [...all, ...t.items];
  index(t);
  t.plans = [...before.plans, ...t.plans];
  t.plan = t.plans.at(-1)?.entries ?? [];
  know(t, before);
  turn(t, before);
  keep(t.speakers, before.speakers);
  addAll(t.said, before.said);
  addAll(t.ended, before.ended);
  if (before.firstSeq !== undefined) {
    t.firstSeq = before.firstSeq;
  }
  return { ...nothing(), reset: true, queue: true, head: true };
}
