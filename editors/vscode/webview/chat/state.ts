/** What the page was told, and how each message changes it. Pure. */
import type { ApprovalCard, Card, Everything, ToChat } from "../../src/shared/chat.js";

export interface ChatState extends Everything {
  cards: Card[];
  /** Where a card stands in `cards`, by its id. */
  at: ReadonlyMap<string, number>;
  /** Counts what was told as a whole: with each, the page begins anew. */
  begun: number;
  /** Counts what came in front. */
  earlier: number;
}

export const EMPTY: ChatState = {
  phase: { state: "loading" },
  cards: [],
  at: new Map(),
  older: false,
  queue: [],
  approvals: [],
  elsewhere: 0,
  context: [],
  look: { sendKey: "enter", fontSize: 0, showUsage: true },
  begun: 0,
  earlier: 0,
};

function placed(cards: Card[]): Pick<ChatState, "cards" | "at"> {
  return { cards, at: new Map(cards.map((card, index) => [card.id, index])) };
}

type News = Extract<ToChat, { type: "news" }>;

function news(state: ChatState, told: News): ChatState {
  let { cards, at } = state;
  let earlier = state.earlier;
  if (told.before && told.before.length > 0) {
    const fresh = told.before.filter((card) => !at.has(card.id));
    ({ cards, at } = placed([...fresh, ...cards]));
    earlier += 1;
  }
  if (told.cards || told.append) {
    cards = [...cards];
    const index = new Map(at);
    for (const card of told.cards ?? []) {
      const there = index.get(card.id);
      if (there === undefined) {
        index.set(card.id, cards.push(card) - 1);
      } else {
        cards[there] = card;
      }
    }
    for (const { id, text } of told.append ?? []) {
      const there = index.get(id);
      const card = there === undefined ? undefined : cards[there];
      if (there !== undefined && card && (card.kind === "answer" || card.kind === "thought")) {
        cards[there] = { ...card, text: card.text + text };
      }
    }
    at = index;
  }
  return { ...state, cards, at, earlier, older: told.older ?? state.older };
}

/** With an optional part set, or taken away. */
function withPart<K extends "head" | "plan">(
  state: ChatState,
  name: K,
  part: ChatState[K] | undefined,
): ChatState {
  const next = { ...state };
  if (part === undefined) {
    // eslint-disable-next-line @typescript-eslint/no-dynamic-delete
    delete next[name];
  } else {
    next[name] = part;
  }
  return next;
}

/** What the page shows after it was told something. */
export function apply(state: ChatState, told: ToChat): ChatState {
  switch (told.type) {
    case "all":
      return {
        ...told.all,
        ...placed(told.all.cards),
        begun: state.begun + 1,
        earlier: 0,
      };
    case "news":
      return news(state, told);
    case "phase":
      return { ...state, phase: told.phase };
    case "head":
      return withPart(state, "head", told.head);
    case "queue":
      return { ...state, queue: told.queue };
    case "plan":
      return withPart(state, "plan", told.plan);
    case "approvals":
      return { ...state, approvals: told.approvals, elsewhere: told.elsewhere };
    case "context":
      return { ...state, context: told.context };
    case "look":
      return { ...state, look: told.look };
    default:
      return state;
  }
}

/** The approvals that wait here, as they stand on the page. */
export function waiting(state: ChatState): ApprovalCard[] {
  const found: ApprovalCard[] = [];
  for (const card of state.cards) {
    if (card.kind === "tool" && card.approval && card.approval.answered === undefined) {
      found.push(card.approval);
    }
  }
  for (const approval of state.approvals) {
    if (approval.answered === undefined) {
      found.push(approval);
    }
  }
  return found;
}
