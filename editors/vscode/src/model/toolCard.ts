/** A tool call as a card: what it is, what came of it, and its output, cut. */
import type { Card, ChangeCard, Excerpt, Tone } from "../shared/chat";
import { approvalCard } from "./approvalCard";
import { changeCard } from "./changeCard";
import { excerpt } from "./excerpt";
import { placeLinks } from "./files";
import { list } from "./loose";
import { asText, duration, oneLine } from "./text";
import type { Item } from "./transcript";

type ToolCard = Extract<Card, { kind: "tool" }>;

/** Longer outputs are cut to so many lines. */
const LINES = 25;

/** Lines of the output of a tool that still runs, and how much of its end is looked at for them. */
const RUNNING_LINES = 8;
const RUNNING_LENGTH = 8192;

/** What a result's status is told as. */
const STATUS = new Map<string, readonly [Tone, string]>([
  ["ok", ["ok", "done"]],
  ["error", ["failed", "failed"]],
  ["denied", ["stopped", "denied"]],
  ["timed_out", ["failed", "timed out"]],
  ["superseded", ["stopped", "superseded"]],
  ["cancelled", ["stopped", "stopped"]],
  ["interrupted", ["stopped", "interrupted"]],
]);

/** Whether it waits for an answer. */
export function waits({ approval, result }: Item): boolean {
  return approval !== undefined && !result && (approval.state ?? "pending") === "pending";
}

function stateOf(item: Item): readonly [Tone, string] {
  const { result } = item;
  if (result) {
    const [tone, words] = STATUS.get(result.status) ?? ["failed", oneLine(result.status, 40)];
    const exit = tone === "failed" && result.exitCode ? `, exit ${asText(result.exitCode)}` : "";
    return [tone, words + exit];
  } else if (waits(item)) {
    return ["waiting", "waits for you"];
  }
  return item.partial ? ["stopped", "cut off"] : ["running", "running"];
}

function output(item: Item): Excerpt | undefined {
  const text = asText(item.text);
  const running = !item.result;
  const raw = running ? text.slice(-RUNNING_LENGTH) : text;
  const some = excerpt(raw, {
    room: running ? RUNNING_LINES : LINES,
    // Of a command the end matters; of what was read, the beginning.
    fromEnd: running || item.call?.kind === "execute",
  });
  const cut = running ? raw.length < text.length : hasMore(item);
  return some.lines.length > 0 ? { ...some, cut } : undefined;
}

/** Whether the log holds more of it than its event. */
export function hasMore({ blobs }: Item): boolean {
  return typeof blobs === "object" && Object.keys(blobs).length > 0;
}

/** How a call is shown. */
interface ToolLook {
  cwd?: string;
  verdict?(path: string, seq: number): "accepted" | "rejected" | undefined;
}

function changes(item: Item, look: ToolLook): ChangeCard[] {
  const changed = list(item.result?.changes);
  const room = Math.max(3, Math.floor(LINES / changed.length));
  return changed.map((change) => ({
    ...changeCard(change, { room }, look.cwd),
    // Nothing but an answer decides it: neither a diff that was closed nor a file that was saved.
    verdict: look.verdict?.(asText(change.path), item.resultSeq ?? 0) ?? "pending",
  }));
}

/** Its title says all of it. */
function isPlan({ call, result }: Item): boolean {
  return call?.name === "update_plan" && (!result || result.status === "ok");
}

export function toolCard(item: Item, look: ToolLook): ToolCard {
  const { call, result, approval } = item;
  const [tone, state] = stateOf(item);
  const name = oneLine(call?.name ?? result?.name, 80) || "a tool";
  const changed = changes(item, look);
  const card: ToolCard = {
    id: item.id,
    kind: "tool",
    title: oneLine(call?.title, 160) || name,
    name,
    tool: oneLine(call?.kind, 20) || "other",
    tone,
    state,
    changes: changed,
    files: placeLinks(result?.locations ?? call?.locations, look.cwd),
  };
  if (typeof result?.durationMs === "number" && result.durationMs >= 1000) {
    card.duration = duration(result.durationMs);
  }
  if (!result && item.at) {
    card.startedAt = item.at;
  }
  const shown = isPlan(item) || changed.length > 0 ? undefined : output(item);
  if (shown) {
    card.output = shown;
  }
  // One that nobody has answered when the call came to its end asks for nothing any more.
  const asked = approval && approvalCard(approval, look);
  if (asked && (asked.answered !== undefined || waits(item))) {
    card.approval = asked;
  }
  return card;
}
