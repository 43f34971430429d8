/**
 * A session as its events tell it: what was said, done and asked, in the order of the log.
 *
 * The same events give the same transcript, however they come: live, or page by page from the newest one back.
 */
import type { Approval, Event, EventType, Session } from "@callboard/protocol";
import { conversation, forget } from "./handlers";
import { newTranscript, notice, nothing, touch } from "./items";
import { session as about } from "./notices";
import { put } from "./pages";
import { follow } from "./streams";
import { asText } from "./text";
import type { Change, EventOf, Handler, Transcript } from "./transcript";

export { newTranscript } from "./transcript";
export type { Change, Item, ItemKind, RunningTurn, Transcript } from "./transcript";
export { parts } from "./items";
export { delta, draft } from "./streams";

// A map, since the type of an event may be any word, as "constructor".
const HANDLERS = new Map(Object.entries({ ...conversation, ...about }));

function handle(t: Transcript, event: Event, change: Change): void {
  const handler = HANDLERS.get(event.type) as Handler<EventType> | undefined;
  handler?.(t, event as EventOf<EventType>, change);
  follow(t, event, change);
}

/**
 * Takes in one event; nothing when it was taken in before. One that does not follow the last is told as a
 * `gap`, and changes nothing.
 */
export function apply(t: Transcript, event: Event): Change | undefined {
  const told: unknown = event;
  if (typeof told !== "object" || told === null) {
    return undefined;
  }
  const change = nothing();
  // Nothing else remains of the session, whatever was before.
  if (event.type === "session_deleted") {
    t.deleted = true;
    change.head = true;
    return change;
  }
  if (typeof event.seq !== "number") {
    return undefined;
  }
  if (t.firstSeq === undefined) {
    t.firstSeq = event.seq;
    t.lastSeq = event.seq - 1;
  }
  if (event.seq <= t.lastSeq) {
    return undefined;
  } else if (event.seq > t.lastSeq + 1) {
    change.gap = true;
    return change;
  }
  t.lastSeq = event.seq;
  change.events.push(event.type);
  try {
    handle(t, event, change);
  } catch (fault) {
    // One that holds what nobody thought of must not keep the others from being seen.
    change.fault = fault instanceof Error ? fault.message : asText(fault);
    notice(t, change, event, `Something that cannot be shown (${asText(event.type)})`);
  }
  return change;
}

/** Puts events from before those that are loaded, in their order, in front of them. */
export function older(t: Transcript, events: readonly Event[]): Change {
  const before = newTranscript(t.sessionId);
  for (const event of events) {
    if (t.firstSeq !== undefined && event.seq >= t.firstSeq) {
      break;
    }
    apply(before, event);
  }
  return before.firstSeq === undefined ? nothing() : put(t, before);
}

const FLAGS = ["reset", "queue", "head", "hole", "gap"] as const;

/** Joins what several events have changed, for one drawing. */
export function merge(into: Change | undefined, change: Change | undefined): Change | undefined {
  if (!into || !change) {
    return into ?? change;
  }
  for (const id of change.items) {
    touch(into, id);
  }
  into.events.push(...change.events);
  for (const flag of FLAGS) {
    if (change[flag]) {
      into[flag] = true;
    }
  }
  return into;
}

const RUNNING = new Set(["running", "waiting_approval", "parked"]);

/**
 * What the server tells of the session itself, as it was before, or with, the last event: where the events that
 * are loaded do not.
 */
export function seed(t: Transcript, session: Session): void {
  const { known } = t;
  t.title = session.title ?? undefined;
  if (session.closed) {
    t.closed = true;
  }
  if (!known.mode) {
    t.mode = session.mode;
  }
  if (!known.model) {
    t.model = session.model ?? undefined;
  }
  const state = session.status;
  if (!known.turn && !t.turn && RUNNING.has(state)) {
    t.turn = {
      id: session.activeTurnId ?? undefined,
      state,
      cancelling: false,
      ...(state === "parked" ? { parked: true } : {}),
    };
  }
}

/** Whether it is known what the plan is, or that there is none since. */
export function hasPlan(t: Transcript): boolean {
  return t.plans.length > 0;
}

/** The last plan that was made before what is loaded. */
export function earlierPlan(t: Transcript, event: Event): Change | undefined {
  const before = newTranscript(t.sessionId);
  apply(before, event);
  forget(before, t.known);
  if (hasPlan(t) || !hasPlan(before)) {
    return undefined;
  }
  t.plan = before.plan;
  t.plans = before.plans;
  return { ...nothing(), head: true };
}

/** The oldest approval of this session that waits for an answer. */
export function pending(t: Transcript): Approval | undefined {
  for (const { approval, result } of t.items) {
    if (approval && !result && (approval.state ?? "pending") === "pending") {
      return approval;
    }
  }
  return undefined;
}
