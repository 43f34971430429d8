/** How an approval can be answered: which key chooses what, and who asks. Pure. */
import type { Approval, ApprovalOption, OptionKind } from "@callboard/protocol";

import { list } from "./loose";
import { oneLine } from "./text";

/** One way to answer, behind its key. */
export interface Choice {
  /** The key, as a digit. */
  readonly number: number;
  readonly action: string;
  readonly option: ApprovalOption;
  /** What the person is asked for with it. */
  readonly note?: "why" | "answer";
  /** What it does, in a word or two. */
  readonly short: string;
  readonly label: string;
}

interface Fixed {
  readonly action: string;
  readonly kind: OptionKind;
  readonly note?: "why";
  readonly short: string;
  readonly says: string;
}

/** The answers that every permission is made of, by their keys. */
export const FIXED: readonly Fixed[] = [
  { action: "once", kind: "allow_once", short: "once", says: "Allow once" },
  {
    action: "session",
    kind: "allow_session",
    short: "this session",
    says: "Allow for this session",
  },
  { action: "always", kind: "allow_always", short: "always", says: "Allow always" },
  { action: "deny", kind: "reject_once", short: "deny", says: "Deny" },
  {
    action: "deny_note",
    kind: "reject_once",
    short: "deny and say why",
    says: "Deny, say why",
    note: "why",
  },
  { action: "deny_always", kind: "reject_always", short: "never", says: "Deny always" },
];

/** The highest digit that a choice can have. */
export const KEYS = 9;

function labelOf(option: ApprovalOption, fixed: Fixed): string {
  if (fixed.note || option.kind === "reject_once") {
    return fixed.says;
  }
  const label = oneLine(option.name) || fixed.says;
  const writes = option.kind === "allow_always" || option.kind === "reject_always";
  return writes ? `${label} (writes a rule)` : label;
}

function named(option: ApprovalOption): string {
  return oneLine(option.name) || oneLine(option.kind);
}

export function isAllowing(option: ApprovalOption): boolean {
  return oneLine(option.kind).startsWith("allow");
}

function ofQuestion(approval: Approval): Choice[] {
  return list(approval.options)
    .slice(0, KEYS)
    .map((option, at) => ({
      number: at + 1,
      action: `option${at + 1}`,
      option,
      ...(isAllowing(option) && approval.subject.type === "form" ? { note: "answer" } : {}),
      short: named(option),
      label: named(option),
    }));
}

/**
 * What the approval offers, by key. A permission has its answers at the same keys always, and those of a
 * kind that is not known here behind them; a question has its options in their own order.
 */
export function choices(approval: Approval): Choice[] {
  if (approval.kind === "question") {
    return ofQuestion(approval);
  }
  const offered: Choice[] = [];
  const used = new Set<ApprovalOption>();
  for (const [at, fixed] of FIXED.entries()) {
    const option = list(approval.options).find((each) => each.kind === fixed.kind);
    if (option) {
      used.add(option);
      offered.push({
        number: at + 1,
        action: fixed.action,
        option,
        ...(fixed.note ? { note: fixed.note } : {}),
        short: fixed.short,
        label: labelOf(option, fixed),
      });
    }
  }
  const others = list(approval.options).filter((option) => !used.has(option));
  for (const [at, option] of others.slice(0, KEYS - FIXED.length).entries()) {
    const number = FIXED.length + at + 1;
    const label = named(option);
    offered.push({ number, action: `option${number}`, option, short: label, label });
  }
  return offered;
}

export function choice(approval: Approval, number: number): Choice | undefined {
  return choices(approval).find((each) => each.number === number);
}

/** The agents from below the root down to the one that asks; undefined when it is the root itself. */
export function who(approval: Approval): string | undefined {
  const names = list(approval.path)
    .slice(1)
    .map((step) => oneLine(step.name, 40));
  if (names.length > 0) {
    return names.join(" › ");
  }
  return approval.sessionId === approval.rootId ? undefined : "an agent";
}
