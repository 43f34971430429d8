/**
 * When approvals came and went here. For a moment after that nothing answers one: a key or a click was meant
 * for what stood there before, or for nothing of the kind.
 */
import type { ApprovalCard } from "../../src/shared/chat.js";

/** For how long, in ms. */
export const HOLD_MS = 300;

function brief(title: string): string {
  return title.length > 60 ? `${title.slice(0, 59)}…` : title;
}

export class Arrivals {
  private readonly came = new Map<string, { at: number; title: string }>();
  private ended: { title: string; at: number } | undefined;

  /** Takes in what waits now; tells what is new. */
  update(waiting: readonly ApprovalCard[], now: number): ApprovalCard[] {
    const fresh = waiting.filter((each) => !this.came.has(each.approvalId));
    const there = new Set(waiting.map((each) => each.approvalId));
    for (const [id, each] of this.came) {
      if (!there.has(id)) {
        this.came.delete(id);
        this.ended = { title: each.title, at: now };
      }
    }
    for (const each of fresh) {
      this.came.set(each.approvalId, { at: now, title: each.title });
    }
    return fresh;
  }

  /** How many ms more this one is not answered. */
  rest(approvalId: string, now: number): number {
    const since = Math.max(
      this.came.get(approvalId)?.at ?? Number.NEGATIVE_INFINITY,
      this.ended?.at ?? Number.NEGATIVE_INFINITY,
    );
    return Math.max(0, since + HOLD_MS - now);
  }

  /** Why this one is not answered right now; nothing when it is. */
  hold(approval: ApprovalCard, now: number): string | undefined {
    const title = brief(approval.title);
    if (this.ended && now - this.ended.at < HOLD_MS) {
      const ended = brief(this.ended.title);
      return `"${ended}" has just ended, so that was not taken for "${title}". Do it again if you mean it.`;
    }
    const came = this.came.get(approval.approvalId);
    if (came && now - came.at < HOLD_MS) {
      return `"${title}" has only just come, so that was not taken for it. Do it again if you mean it.`;
    }
    return undefined;
  }
}
