/** When approvals came and ended here, so that no key answers what it was not typed for. Pure. */
import type { Approval } from "@callboard/protocol";

import { oneLine } from "./text";

/**
 * For how long (ms) after something else has ended, or this came, no key answers it: it was typed for what
 * stood there before, or for nothing of the kind.
 */
export const HOLD_MS = 300;

export interface Arrivals {
  /** Ms, by approval. */
  readonly came: Map<string, number>;
  /** The last one that ended. */
  ended?: { readonly root: string; readonly title: string; readonly at: number };
}

export function newArrivals(): Arrivals {
  return { came: new Map() };
}

/** Takes in what waits now, and tells which are new. */
export function updateArrivals(
  arrivals: Arrivals,
  before: readonly Approval[],
  after: readonly Approval[],
  now: number,
): Approval[] {
  const there = new Set(after.map((approval) => approval.approvalId));
  const fresh = after.filter((approval) => !arrivals.came.has(approval.approvalId));
  for (const approval of fresh) {
    arrivals.came.set(approval.approvalId, now);
  }
  for (const approval of before) {
    if (!there.has(approval.approvalId)) {
      arrivals.came.delete(approval.approvalId);
      arrivals.ended = { root: approval.rootId, title: approval.title, at: now };
    }
  }
  return fresh;
}

/** Why a key must not answer this approval right now; undefined when it may. */
export function hold(arrivals: Arrivals, approval: Approval, now: number): string | undefined {
  const title = oneLine(approval.title, 60);
  const { ended } = arrivals;
  if (ended && ended.root === approval.rootId && now - ended.at < HOLD_MS) {
    const before = oneLine(ended.title, 60);
    return `"${before}" has just ended, so that key was not taken for "${title}". Press it again if you mean it.`;
  }
  const came = arrivals.came.get(approval.approvalId);
  if (came !== undefined && now - came < HOLD_MS) {
    return `"${title}" has only just come, so that key was not taken for it. Press it again if you mean it.`;
  }
  return undefined;
}
