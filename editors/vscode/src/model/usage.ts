/** What a session and its agents have used, in a line or as a table. What is not known is `?`, never 0. */
import type { Session, SessionUsageResult, Usage, UsageSum } from "@callboard/protocol";
import { cost } from "./rows";
import { sessionName } from "./store";
import { count, oneLine } from "./text";

const UNKNOWN = "?";
const HEADINGS = ["", "runs", "requests", "tokens in", "cached", "out", "cost"];

/** Tokens and cost in a line, as far as they are known. */
export function usageLine(usage: Usage | null | undefined): string {
  const told: string[] = [];
  if (usage?.inputTokens != null || usage?.outputTokens != null) {
    told.push(`${figure(usage.inputTokens)} in, ${figure(usage.outputTokens)} out`);
  }
  if (typeof usage?.cost === "number") {
    const amount = String(Number(usage.cost.toPrecision(4)));
    const currency = oneLine(usage.currency ?? "USD", 8);
    told.push(currency === "USD" ? `$${amount}` : `${amount} ${currency}`);
  }
  return told.join(" · ");
}

function figure(n: number | null | undefined): string {
  return typeof n === "number" ? count(n) : UNKNOWN;
}

function spent(sum: UsageSum): string {
  const costs = sum.costs ?? [];
  const { usage } = sum;
  if (costs.length > 0) {
    return costs.map((each) => cost(each.amount, each.currency)).join(" + ");
  }
  return usage.cost ? cost(usage.cost, usage.currency) : UNKNOWN;
}

function row(name: string, sum: UsageSum): string[] {
  const { usage } = sum;
  return [
    name,
    figure(sum.runs),
    figure(usage.requests),
    figure(usage.inputTokens),
    figure(usage.cacheReadTokens),
    figure(usage.outputTokens),
    spent(sum),
  ];
}

function unknown(what: string, runs: number): string {
  return `${what}: unknown or incomplete for ${runs} run${runs === 1 ? "" : "s"}.`;
}

const NO_CELL = /\p{Mn}|\p{Me}/u;
const TWO_CELLS =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;

/** Cells that a text takes where all characters are of one width. */
export function cells(text: string): number {
  let taken = 0;
  for (const char of text) {
    taken += NO_CELL.test(char) ? 0 : TWO_CELLS.test(char) ? 2 : 1;
  }
  return taken;
}

function align(rows: string[][]): string[] {
  const widths = HEADINGS.map((_, i) => Math.max(...rows.map((each) => cells(each[i] ?? ""))));
  return rows.map((each) =>
    each
      .map((cell, i) => {
        const space = " ".repeat((widths[i] ?? 0) - cells(cell));
        return i === 0 ? cell + space : space + cell;
      })
      .join("  ")
      .trimEnd(),
  );
}

/** The lines of the table, the first of them the headings; and below it what is to be known of it. */
export function usageLines(result: SessionUsageResult, session?: Session): string[] {
  const { tree } = result;
  const rows = [
    HEADINGS,
    ...result.models.map(({ model, total }) =>
      row(oneLine(model ?? "(model not known)", 40), total),
    ),
    row("this session", result.total),
  ];
  if (result.sessions.length > 1) {
    for (const each of result.sessions) {
      if (each.sessionId !== result.sessionId) {
        rows.push(row(`  ${oneLine(sessionName(each), 40)}`, each.total));
      }
    }
    rows.push(row("with all agents below it", tree));
  }
  const lines = align(rows);
  if (result.moreSessions) {
    lines.push(`${result.moreSessions} more agents are counted, but not named.`);
  }
  if (tree.unknownTokens) {
    lines.push(unknown("Tokens", tree.unknownTokens));
  }
  if (tree.unknownCost) {
    lines.push(unknown("Cost", tree.unknownCost));
  }
  const context = session?.usage?.contextTokens;
  if (context != null) {
    lines.push(`The last request took ${count(context)} tokens of context.`);
  }
  return lines;
}
