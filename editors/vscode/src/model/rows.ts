/** Sessions as rows of a list: what each says, which come first, and which are left out. Pure. */
import type { Session, Usage } from "@callboard/protocol";

import { approvalsOf, type Approvals } from "./approvals";
import { groupOf, GROUPS, newestFirst, type SessionGroup } from "./store";
import { count, oneLine } from "./text";
import { ms } from "./time";

export interface Row {
  readonly session: Session;
  readonly group: SessionGroup;
  /** It belongs to the folder in question. */
  readonly here: boolean;
}

export const HEADINGS: Readonly<Record<SessionGroup, string>> = {
  attention: "Needs you",
  running: "Running",
  idle: "Idle",
  archived: "Archived",
};

/** What a session is doing, in a word or two. */
export function stateOf(session: Session, group: SessionGroup): string {
  const { status, lastOutcome } = session;
  if (session.closed || status === "closed") {
    return "closed";
  } else if (group === "archived") {
    return "archived";
  } else if (group === "attention" || status === "waiting_approval" || status === "parked") {
    return "waits for you";
  } else if (status === "running") {
    return "running";
  } else if (lastOutcome === "failed" || lastOutcome === "timed_out") {
    return "failed";
  } else if (lastOutcome === "cancelled" || lastOutcome === "interrupted") {
    return "stopped";
  }
  return lastOutcome == null ? "new" : "done";
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How long ago (`now` in ms since the epoch) something was, in its largest unit. */
export function age(at: unknown, now: number): string {
  const then = typeof at === "string" ? ms(at) : undefined;
  if (then === undefined) {
    return "";
  }
  const passed = Math.max(0, now - then);
  if (passed < MINUTE) {
    return "now";
  } else if (passed < HOUR) {
    return `${Math.floor(passed / MINUTE)} m`;
  } else if (passed < DAY) {
    return `${Math.floor(passed / HOUR)} h`;
  } else if (passed < 60 * DAY) {
    return `${Math.floor(passed / DAY)} d`;
  } else if (passed < 365 * DAY) {
    return `${Math.floor(passed / DAY / 30)} months`;
  }
  return `${Math.floor(passed / DAY / 365)} y`;
}

export function cost(amount: number, currency?: string | null): string {
  const figure = amount.toFixed(amount > 0 && amount < 0.01 ? 4 : 2);
  return currency == null || currency === "USD"
    ? `$${figure}`
    : `${figure} ${oneLine(currency, 8)}`;
}

/** Tokens that are known, or undefined where none are. */
export function tokens(usage: Usage | null | undefined): number | undefined {
  if (usage?.inputTokens == null && usage?.outputTokens == null) {
    return undefined;
  }
  return (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0);
}

/** Tokens and cost, as far as they are known. */
export function used(usage: Usage | null | undefined): string {
  const known = tokens(usage);
  const parts = known === undefined ? [] : [`${count(known)} tokens`];
  if (usage?.cost != null) {
    parts.push(cost(usage.cost, usage.currency));
  }
  return parts.join(" ");
}

export interface RowsWanted {
  /** The folders whose sessions come first, their links resolved. */
  readonly folders: readonly string[];
  /** Those of other folders, too. */
  readonly all: boolean;
  readonly approvals: Approvals;
}

function inOrder(a: Row, b: Row): number {
  return (
    GROUPS.indexOf(a.group) - GROUPS.indexOf(b.group) ||
    Number(b.here) - Number(a.here) ||
    newestFirst(a.session, b.session)
  );
}

function groupFor(session: Session, approvals: Approvals): SessionGroup {
  const group = groupOf(session);
  const asks = group !== "archived" && approvalsOf(approvals, session.sessionId).length > 0;
  return asks ? "attention" : group;
}

/**
 * Sessions in the order in which a list shows them: group by group, in each those of the folders first, and
 * the pinned and newest of those. One that needs somebody is always shown. Where the folders have none, all
 * are. `hidden` counts those of other folders that are not.
 */
export function arrange(
  sessions: readonly Session[],
  wanted: RowsWanted,
): { shown: Row[]; hidden: number } {
  const roots = new Map<string, Session>();
  for (const session of sessions) {
    if (session.parentId == null && !roots.has(session.sessionId)) {
      roots.set(session.sessionId, session);
    }
  }
  const rows = [...roots.values()].map((session) => ({
    session,
    group: groupFor(session, wanted.approvals),
    here: wanted.folders.includes(session.cwd),
  }));
  const everywhere = wanted.all || !rows.some((row) => row.here);
  const shown = rows.filter((row) => everywhere || row.here || row.group === "attention");
  return { shown: shown.sort(inOrder), hidden: rows.length - shown.length };
}
