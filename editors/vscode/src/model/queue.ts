/**
 * What a person has said and no turn has taken in: on its way to the server, or waiting there. And what was
 * said before, for the composer's history.
 */
import type { Delivery } from "@callboard/protocol";

export interface Outgoing {
  /** Its idempotency key. */
  key: string;
  text: string;
  delivery: Delivery;
}

export interface Outbox {
  sending: Outgoing[];
}

export function newOutbox(): Outbox {
  return { sending: [] };
}

export function addOutgoing(box: Outbox, outgoing: Outgoing): void {
  box.sending.push(outgoing);
}

/** It is durable, or has failed: what it says stands in the log now, or is given back. */
export function settleOutgoing(box: Outbox, key: string): Outgoing | undefined {
  const at = box.sending.findIndex((outgoing) => outgoing.key === key);
  return at < 0 ? undefined : box.sending.splice(at, 1)[0];
}

export interface History {
  /** The oldest first. */
  entries: string[];
  /** Which one is shown. */
  at?: number | undefined;
  /** What stood there before. */
  draft?: string | undefined;
}

const LIMIT = 100;

export function newHistory(): History {
  return { entries: [] };
}

function leave(history: History): void {
  history.at = undefined;
  history.draft = undefined;
}

export function remember(history: History, text: string): void {
  leave(history);
  if (text.trim() === "" || history.entries.at(-1) === text) {
    return;
  }
  history.entries.push(text);
  if (history.entries.length > LIMIT) {
    history.entries.shift();
  }
}

/** The text before the one that is shown, given what the composer holds; nothing at the oldest. */
export function back(history: History, current: string): string | undefined {
  const at = (history.at ?? history.entries.length) - 1;
  if (at < 0) {
    return undefined;
  }
  if (history.at === undefined) {
    history.draft = current;
  }
  history.at = at;
  return history.entries[at];
}

/** The text after the one that is shown; nothing where there is nothing newer. */
export function forward(history: History): string | undefined {
  if (history.at === undefined) {
    return undefined;
  }
  const at = history.at + 1;
  if (at >= history.entries.length) {
    const draft = history.draft ?? "";
    leave(history);
    return draft;
  }
  history.at = at;
  return history.entries[at];
}
