/** What a page says is checked before anything is done with it: it may be another one than ours by then. */
import type { CancelScope, Delivery } from "@callboard/protocol";
import type { ChatCommand, FileLink, FromChat } from "../shared/chat";
import { CHAT_COMMANDS } from "../shared/chat";

type Fields = Record<string, unknown>;

/** Longest text (UTF-16 units) that a page may send; what is longer is no prompt that a person typed. */
export const LONGEST = 1_000_000;

const isText = (value: unknown): value is string =>
  typeof value === "string" && value.length <= LONGEST;

const isSeq = (value: unknown): value is number => Number.isSafeInteger(value);

function oneOf<T extends string>(values: readonly T[]): (value: unknown) => value is T {
  return (value): value is T => (values as readonly unknown[]).includes(value);
}

const isDelivery = oneOf<Delivery>(["auto", "queue", "steer"]);
const isScope = oneOf<CancelScope>(["turn", "queue", "tree"]);
const isChatCommand = oneOf<ChatCommand>(CHAT_COMMANDS);

function isFile(value: unknown): value is FileLink {
  if (typeof value !== "object" || value === null) {
    return false;
  }
  const { path, label, line } = value as Fields;
  return isText(path) && isText(label) && (line === undefined || isSeq(line));
}

const optional =
  (check: (value: unknown) => boolean) =>
  (value: unknown): boolean =>
    value === undefined || check(value);

/** What each message holds. */
const SHAPES: { [T in FromChat["type"]]: Record<string, (value: unknown) => boolean> } = {
  ready: {},
  send: { key: isText, text: isText, delivery: isDelivery },
  answer: { approvalId: isText, optionId: isText, note: optional(isText) },
  cancel: { scope: isScope },
  interrupt: { what: oneOf(["choose", "group", "force"]) },
  older: {},
  retry: {},
  openFile: { file: isFile },
  openDiff: { cardId: isText, path: isText },
  openApprovalDiff: { approvalId: isText },
  openWhole: { cardId: isText },
  queueEdit: { eventSeq: isSeq, text: isText },
  queueRemove: { eventSeq: isSeq },
  queueSteer: { eventSeq: isSeq },
  rewind: { turnId: isText },
  copy: { text: isText },
  chip: { id: isText, do: oneOf(["toggle", "remove"]) },
  findFiles: { query: isText },
  attach: { file: isFile },
  openLink: { href: isText },
  focused: { focused: (value) => typeof value === "boolean" },
  command: { command: isChatCommand },
};

/** A message as it came; undefined when it is none of ours. */
export function fromChat(value: unknown): FromChat | undefined {
  if (typeof value !== "object" || value === null) {
    return undefined;
  }
  const fields = value as Fields;
  const { type } = fields;
  if (typeof type !== "string" || !Object.hasOwn(SHAPES, type)) {
    return undefined;
  }
  const shape = SHAPES[type as FromChat["type"]];
  return Object.entries(shape).every(([name, check]) => check(fields[name]))
    ? (value as FromChat)
    : undefined;
}
