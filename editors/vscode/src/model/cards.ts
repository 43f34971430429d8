/** What a page of a chat shows of a transcript. It only looks at what it is given. */
import type { Failure, Session } from "@callboard/protocol";
import { CallError } from "../server/errors";
import type { Card, PlanCard, QueuedCard, Severity, Tone } from "../shared/chat";
import { attachment } from "./files";
import { list } from "./loose";
import type { Outbox } from "./queue";
import type { Speaking } from "./speaker";
import { framed, heading } from "./speaker";
import { asText, duration, oneLine, visible } from "./text";
import { hasMore, toolCard } from "./toolCard";
import type { Item, Transcript } from "./transcript";
import { usageLine } from "./usage";

export { approvalCard } from "./approvalCard";

/** How things are shown. */
export interface CardLook extends Speaking {
  /** Paths below it are shown from there. */
  cwd?: string;
  /** What the person has decided of a change of this session. */
  verdict?(path: string, seq: number): "accepted" | "rejected" | undefined;
  /** Hears why an item could not be shown. */
  onFault?: (message: string) => void;
}

/** How what is said in a session is shown. */
export function lookOf(session: Session | undefined, t: Transcript): CardLook {
  const look: CardLook = {
    agent: asText(session?.parentId == null ? session?.profile : session.title) || "default",
    room: list(session?.members).length > 0,
    speakers: t.speakers,
  };
  if (session) {
    look.cwd = asText(session.cwd);
  }
  if (session?.parentId != null) {
    look.parent = session.parentId;
  }
  return look;
}

type Of<K extends Card["kind"]> = Extract<Card, { kind: K }>;

/** A text that is whole, without the blank lines around it; the indent of its first line says something. */
function whole(text: string): string {
  return visible(text.replace(/^(?:[ \t]*\r?\n)+/, "").trimEnd());
}

/**
 * What may be told of a text that streams: not the first half of what is shown as one, while the other is on its
 * way.
 */
export function settled(text: string): string {
  const last = text.charCodeAt(text.length - 1);
  const half = last === 0x0d || (last >= 0xd800 && last <= 0xdbff);
  return half ? text.slice(0, -1) : text;
}

function promptCard(item: Item, look: CardLook): Of<"prompt"> {
  return {
    id: item.id,
    kind: "prompt",
    text: whole(framed(item)?.body ?? asText(item.text)),
    steer: item.steer === true,
    attachments: list(item.attachments).map((each) => attachment(each, look.cwd)),
    cut: hasMore(item),
    ...(item.turnId === undefined ? {} : { turnId: item.turnId }),
  };
}

function saidCard(item: Item, kind: "answer" | "thought"): Of<"answer" | "thought"> {
  const streaming = item.streaming === true;
  const text = asText(item.text);
  return {
    id: item.id,
    kind,
    text: streaming ? visible(settled(text)) : whole(text),
    streaming,
    partial: item.partial === true,
    cut: hasMore(item),
  };
}

/** Kinds of failures after which a model has to be set up, or another one chosen. */
const NO_MODEL: ReadonlySet<string> = new Set(["authRequired", "modelUnavailable"]);

/** What failed in words with the way out, and in those of whoever looks for the cause. */
function failed(
  failure: Partial<Failure>,
  words?: string,
): { text: string; about: string; setup?: true } {
  const kind = asText(failure.kind);
  const message = words?.trim() ? words : asText(failure.message);
  const status = failure.httpStatus == null ? "" : `HTTP ${asText(failure.httpStatus)}`;
  const about = [kind, asText(failure.provider), status].filter((each) => each !== "");
  return {
    text: visible(new CallError(0, message, { kind }).explained()),
    about: oneLine(about.join(", "), 120),
    ...(NO_MODEL.has(kind) ? { setup: true } : {}),
  };
}

function errorCard(item: Item): Of<"error"> {
  const failure: Partial<Failure> = item.failure ?? {};
  return {
    id: item.id,
    kind: "error",
    ...failed(failure, asText(item.text)),
    retryable: failure.retryable === true,
  };
}

const OUTCOMES = new Map<string, readonly [Tone, string]>([
  ["completed", ["ok", "done"]],
  ["failed", ["failed", "failed"]],
  ["cancelled", ["stopped", "stopped"]],
  ["interrupted", ["stopped", "interrupted"]],
  ["timed_out", ["failed", "timed out"]],
]);

function turnCard(item: Item, before: Item | undefined): Of<"turn"> {
  const outcome = item.outcome ?? "ended";
  const [tone, words] = OUTCOMES.get(outcome) ?? ["plain", oneLine(outcome, 40)];
  const took = typeof item.durationMs === "number" ? duration(item.durationMs) : "";
  const told = [words, took, usageLine(item.usage)];
  const card: Of<"turn"> = {
    id: item.id,
    kind: "turn",
    tone,
    text: told.filter((each) => each !== "").join(" · "),
    turnId: asText(item.turnId),
  };
  if (item.failure && before?.kind !== "error") {
    card.failure = failed(item.failure);
  }
  return card;
}

const SEVERITIES = new Map<unknown, Severity>([
  ["info", "info"],
  ["warning", "warning"],
  ["error", "error"],
]);

/** A severity that nobody knows here is taken for a warning, so that it is not overlooked. */
function noticeCard(item: Item): Of<"notice"> {
  const shown: Of<"notice"> = { id: item.id, kind: "notice", text: visible(item.text) };
  if (item.severity === undefined) {
    return shown;
  }
  const about = visible(item.description).trim();
  return {
    ...shown,
    severity: SEVERITIES.get(item.severity) ?? "warning",
    ...(about === "" ? {} : { about }),
  };
}

function cardOf(item: Item, before: Item | undefined, look: CardLook): Card {
  switch (item.kind) {
    case "prompt":
      return promptCard(item, look);
    case "answer":
    case "thought":
      return saidCard(item, item.kind);
    case "tool":
      return toolCard(item, look);
    case "error":
      return errorCard(item);
    case "turn":
      return turnCard(item, before);
    default:
      return noticeCard(item);
  }
}

/** An item below the one before it: with a heading where another one begins to speak. */
export function card(item: Item, before: Item | undefined, look: CardLook): Card {
  try {
    const shown = cardOf(item, before, look);
    const speaker = heading(item, before, look);
    if (speaker !== undefined) {
      shown.speaker = speaker;
    }
    if (typeof item.at === "string" && item.at !== "") {
      shown.at = item.at;
    }
    return shown;
  } catch (fault) {
    // One that holds what nobody thought of must not keep the others from being seen.
    look.onFault?.(
      `${item.id} cannot be shown: ${asText(fault instanceof Error ? fault.message : fault)}`,
    );
    return {
      id: item.id,
      kind: "error",
      text: `A ${item.kind} that cannot be shown; “Callboard: Show Log” says why.`,
      about: "",
      retryable: false,
    };
  }
}

const STATUSES = new Set(["pending", "in_progress", "completed"]);

function isStatus(status: unknown): status is PlanCard["entries"][number]["status"] {
  return typeof status === "string" && STATUSES.has(status);
}

/** The plan, while there is something left of it or a turn runs. */
export function planCard(t: Transcript): PlanCard | undefined {
  const entries = t.plan.map(({ content, status, priority }) => ({
    text: oneLine(content, 200),
    status: isStatus(status) ? status : ("pending" as const),
    high: priority === "high",
  }));
  const done = entries.filter(({ status }) => status === "completed").length;
  if (entries.length === 0 || (done === entries.length && !t.turn)) {
    return undefined;
  }
  return { entries, done };
}

/** Of what is on its way no more is told than is shown: it may be megabytes. */
const SENDING_LENGTH = 4000;

function queuedCard(item: Item, cwd?: string): QueuedCard {
  const { author } = item;
  const mine = author?.kind === "person";
  return {
    id: item.id,
    eventSeq: item.seq,
    text: visible(item.text),
    delivery: item.steer ? "steer" : "queue",
    attachments: list(item.attachments).map((each) => {
      const shown = attachment(each, cwd);
      return typeof shown === "string" ? shown : shown.label;
    }),
    // What only stands in the log in part would lose its rest.
    editable: mine && item.trigger === "prompt" && !hasMore(item),
    ...(author && !mine ? { author: oneLine(author.name, 40) } : {}),
  };
}

/** What waits for a turn, and behind it what is on its way to the log. */
export function queueCards(t: Transcript, outbox: Outbox, cwd?: string): QueuedCard[] {
  const sending = outbox.sending.map(({ key, text, delivery }): QueuedCard => {
    const cut = text.length > SENDING_LENGTH;
    return {
      id: key,
      text: visible(settled(text.slice(0, SENDING_LENGTH))) + (cut ? "…" : ""),
      delivery,
      attachments: [],
      editable: false,
    };
  });
  return [...t.queue.map((item) => queuedCard(item, cwd)), ...sending];
}
