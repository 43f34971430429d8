/** What agents have used: of each, and of all together. What is not known is told as a lower bound. Pure. */
import type { Agent, Session, Usage } from "@callboard/protocol";

import { cost, tokens } from "./rows";
import { count } from "./text";

/** Of several, with what they cost by currency. */
export interface UsageTotal {
  tokens?: number;
  readonly costs: Map<string, number>;
  partial: boolean;
}

function saidOf(
  known: number | undefined,
  costs: ReadonlyMap<string, number>,
  partial: boolean,
): string | undefined {
  const parts = known === undefined ? [] : [`${count(known)} tokens`];
  for (const [currency, amount] of [...costs].sort(([a], [b]) => (a < b ? -1 : 1))) {
    parts.push(cost(amount, currency));
  }
  return parts.length > 0 ? `${partial ? "at least " : ""}${parts.join(", ")}` : undefined;
}

/** Undefined where nothing is known. */
export function said(usage: Usage | null | undefined): string | undefined {
  if (!usage) {
    return undefined;
  }
  const costs = new Map(usage.cost == null ? [] : [[usage.currency ?? "USD", usage.cost]]);
  return saidOf(tokens(usage), costs, usage.partial ?? false);
}

export function saidOfTotal(total: UsageTotal): string | undefined {
  return saidOf(total.tokens, total.costs, total.partial);
}

/** What the root and all agents used, as far as it is known. */
export function totalOf(view: {
  readonly root: Session;
  readonly agents: readonly Agent[];
}): UsageTotal {
  const total: UsageTotal = { costs: new Map(), partial: false };
  function add(usage: Usage | null | undefined, ran: boolean): void {
    const known = tokens(usage);
    if (!usage || known === undefined) {
      total.partial ||= ran;
      return;
    }
    total.tokens = (total.tokens ?? 0) + known;
    if (usage.cost != null) {
      const currency = usage.currency ?? "USD";
      total.costs.set(currency, (total.costs.get(currency) ?? 0) + usage.cost);
    }
    total.partial ||= usage.partial ?? false;
  }
  add(view.root.usage, view.root.lastOutcome != null);
  for (const agent of view.agents) {
    add(agent.usage, agent.status !== "starting");
  }
  if (total.tokens === undefined) {
    total.partial = false;
  }
  return total;
}
