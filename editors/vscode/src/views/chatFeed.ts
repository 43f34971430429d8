/**
 * What a page of a chat is told: everything when it comes up, and then what is new, joined over a
 * twentieth of a second. Nothing is kept for a page that is not there: the next one is told everything.
 */
import type { App } from "../app";
import { approvalsOf } from "../model/approvals";
import type { CardLook } from "../model/cards";
import { approvalCard, card, lookOf, planCard, queueCards, settled } from "../model/cards";
import type { Change, Item } from "../model/items";
import { visible } from "../model/text";
import { explain } from "../server/errors";
import { readReview, REVIEW_KEY, verdictOf } from "../model/review";
import type { OpenSession, SessionUpdate } from "../session";
import type {
  ApprovalCard,
  Card,
  ContextChip,
  Everything,
  FileLink,
  Look,
  ToChat,
} from "../shared/chat";
import { headCard } from "./chatHead";
import { phaseOf } from "./chatPhase";

/** For so long (ms) what is new is collected. */
export const NEWS_MS = 50;

/** So many cards are told at first, and with each wish for older ones. */
export const WINDOW = 200;

/** So many cards are told above one that was searched for. */
const ABOVE = 20;

export interface ChatFeedEnvironment {
  app: App;
  post(message: ToChat): void;
  /** Calls a function later, unless that is taken back. */
  later(ms: number, fn: () => void): () => void;
  look(): Look;
  context(): ContextChip[];
}

interface News {
  items: Set<string>;
  all: boolean;
  phase: boolean;
  head: boolean;
  queue: boolean;
  approvals: boolean;
}

const nothingNew = (): News => ({
  items: new Set(),
  all: false,
  phase: false,
  head: false,
  queue: false,
  approvals: false,
});

export class ChatFeed {
  open: OpenSession | undefined;
  /** The page is there, and was told everything. */
  #there = false;
  /** The first card that it was told of. */
  #first: string | undefined;
  /** Texts that stream, as far as it was told of them. */
  readonly #streamed = new Map<string, string>();
  /** What was decided of changes, as the page was told it. */
  #review: string | undefined;
  #news = nothingNew();
  #cancel: (() => void) | undefined;
  #unlisten: (() => void) | undefined;
  #fetching = false;
  /** Seq of the event that the person wants to see, until the page was told of it. */
  #sought: number | undefined;
  readonly #off: (() => void)[];

  constructor(private readonly env: ChatFeedEnvironment) {
    const { app } = env;
    this.#off = [
      app.on("server", () => {
        this.#note({ phase: true, head: true });
      }),
      app.on("approvals", () => {
        this.#note({ approvals: true });
      }),
      app.on("sessions", () => {
        this.#reviewed();
        this.#note({ head: true });
      }),
    ];
  }

  /** Shows another session, or none. */
  show(sessionId: string | undefined): void {
    if (this.open?.id === sessionId) {
      return;
    }
    this.#leave();
    this.#sought = undefined;
    if (sessionId !== undefined) {
      this.open = this.env.app.use(sessionId);
      this.#unlisten = this.open.listen((update) => {
        this.#updated(update);
      });
    }
    this.#note({ all: true });
  }

  #leave(): void {
    this.#unlisten?.();
    this.#unlisten = undefined;
    if (this.open) {
      this.env.app.release(this.open.id);
      this.open = undefined;
    }
  }

  /** The page has come up, for the first time or again. */
  ready(): void {
    this.#there = true;
    this.#tellAll();
  }

  /** The page is gone, or cannot be seen. */
  hidden(): void {
    this.#there = false;
    this.#drop();
    this.#streamed.clear();
  }

  close(): void {
    this.hidden();
    this.#leave();
    for (const off of this.#off) {
      off();
    }
  }

  contextChanged(): void {
    this.#post({ type: "context", context: this.env.context() });
  }

  lookChanged(): void {
    this.#post({ type: "look", look: this.env.look() });
  }

  files(query: string, files: FileLink[]): void {
    this.#post({ type: "files", query, files });
  }

  /** Says something that is no part of the session's state. */
  say(message: ToChat): void {
    this.#post(message);
  }

  /**
   * Tells of the cards before those that the page has.
   * @throws CallError
   */
  async older(): Promise<void> {
    const { open } = this;
    if (!open || this.#fetching) {
      return;
    }
    this.#fetching = true;
    try {
      this.#flush();
      if (this.#firstIndex(open) < WINDOW) {
        await open.loadOlder();
        // That told of a change; what came in front is told here, and nothing else has changed by it.
      }
    } finally {
      this.#fetching = false;
    }
    if (open !== this.open || !this.#there) {
      return;
    }
    this.#tellBefore(open, Math.max(0, this.#firstIndex(open) - WINDOW));
    void this.#seek();
  }

  /** Tells of the cards from `start` to those that the page has. */
  #tellBefore(open: OpenSession, start: number): void {
    const { items } = open.transcript;
    const end = this.#firstIndex(open);
    this.#first = items[start]?.id ?? this.#first;
    // The card that was the first may need a heading no more.
    this.#post({
      type: "news",
      before: this.#cards(open, start, end),
      cards: this.#cards(open, end, Math.min(end + 1, items.length)),
      older: start > 0 || !open.atStart,
    });
    this.#note({ queue: true, head: true });
  }

  /** Brings what an event of the session says into view and marks it, as soon as it is there. */
  find(seq: number): void {
    this.#sought = seq;
    void this.#seek();
  }

  /** What is to be brought into view, as soon as that can be done. */
  #wanted(): { open: OpenSession; seq: number } | undefined {
    const { open } = this;
    const seq = this.#sought;
    const ready = this.#there && !this.#fetching && !this.#news.all;
    return ready && seq !== undefined && open?.phase === "live" ? { open, seq } : undefined;
  }

  /** Loads the pages back to the one with the event that is wanted. Never rejects. */
  async #seek(): Promise<void> {
    const wanted = this.#wanted();
    if (!wanted) {
      return; // it goes on once everything was told
    }
    const { open, seq } = wanted;
    this.#fetching = true;
    try {
      while (this.#sought === seq && (open.transcript.firstSeq ?? 0) > seq) {
        if (!(await open.loadOlder())) {
          break;
        }
      }
    } catch (fault) {
      this.#sought = undefined;
      this.env.app.log.warn(`what was found in ${open.id} cannot be loaded: ${explain(fault)}`);
    } finally {
      this.#fetching = false;
    }
    const now = this.#wanted();
    if (now?.open !== open || now.seq !== seq) {
      void this.#seek(); // another one is wanted by now
      return;
    }
    this.#sought = undefined;
    this.#flush();
    const at = placeOf(open.transcript.items, seq);
    const item = open.transcript.items[at];
    if (item) {
      if (at < this.#firstIndex(open)) {
        this.#tellBefore(open, Math.max(0, at - ABOVE));
      }
      this.#post({ type: "found", cardId: item.id });
    }
  }

  #firstIndex(open: OpenSession): number {
    const at = open.transcript.items.findIndex((item) => item.id === this.#first);
    return at < 0 ? 0 : at;
  }

  #updated(update: SessionUpdate): void {
    if (update.phase) {
      this.#note({ phase: true });
    }
    if (update.outbox) {
      this.#note({ queue: true });
    }
    if (update.change) {
      this.#changed(update.change);
    }
  }

  #changed(change: Change): void {
    if (change.reset && !this.#fetching) {
      this.#note({ all: true });
    }
    if (!this.#there) {
      return;
    }
    for (const id of change.items) {
      this.#news.items.add(id);
    }
    this.#note({
      head: change.head === true,
      queue: change.queue === true,
      approvals: change.items.length > 0 && this.#asks(),
    });
  }

  /** What the person has decided of changes may be another: here, in another window, or in another editor. */
  #reviewed(): void {
    const { open } = this;
    const kept = JSON.stringify(open?.session?.metadata?.[REVIEW_KEY]);
    if (!open || !this.#there || kept === this.#review) {
      return;
    }
    this.#review = kept;
    for (const item of open.transcript.items) {
      if ((item.result?.changes?.length ?? 0) > 0) {
        this.#news.items.add(item.id);
      }
    }
  }

  /** Whether something here waits for an answer: then a card may have come that has taken it in. */
  #asks(): boolean {
    return this.open !== undefined && approvalsOf(this.env.app.approvals, this.open.id).length > 0;
  }

  #note(news: Partial<Omit<News, "items">>): void {
    if (!this.#there) {
      return;
    }
    const kept = this.#news;
    kept.all ||= news.all ?? false;
    kept.phase ||= news.phase ?? false;
    kept.head ||= news.head ?? false;
    kept.queue ||= news.queue ?? false;
    kept.approvals ||= news.approvals ?? false;
    this.#cancel ??= this.env.later(NEWS_MS, () => {
      this.#cancel = undefined;
      this.#flush();
    });
  }

  #drop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#news = nothingNew();
  }

  #flush(): void {
    const news = this.#news;
    this.#drop();
    if (!this.#there) {
      return;
    }
    if (news.all) {
      this.#tellAll();
      return;
    }
    const { open } = this;
    if (news.phase) {
      this.#post({ type: "phase", phase: phaseOf(this.env.app, open) });
    }
    if (open) {
      this.#tellItems(open, news.items);
      if (news.queue) {
        this.#post({
          type: "queue",
          queue: queueCards(open.transcript, open.outbox, open.session?.cwd),
        });
      }
      if (news.head) {
        this.#post({ type: "head", head: headCard(this.env.app, open) });
        this.#post({ type: "plan", plan: planCard(open.transcript) });
      }
    }
    if (news.approvals) {
      this.#post({ type: "approvals", ...this.#approvals() });
    }
  }

  #tellItems(open: OpenSession, ids: ReadonlySet<string>): void {
    if (ids.size === 0) {
      return;
    }
    const { items } = open.transcript;
    const look = this.#cardLook(open);
    const append: { id: string; text: string }[] = [];
    const cards: Card[] = [];
    for (let at = this.#firstIndex(open); at < items.length; at += 1) {
      const item = items[at];
      if (item && ids.has(item.id)) {
        this.#first ??= item.id;
        const piece = this.#piece(item);
        if (piece === undefined) {
          cards.push(this.#card(open, at, item, look));
        } else if (piece !== "") {
          append.push({ id: item.id, text: piece });
        }
      }
    }
    if (cards.length > 0 || append.length > 0) {
      this.#post({
        type: "news",
        ...(cards.length > 0 ? { cards } : {}),
        ...(append.length > 0 ? { append } : {}),
      });
    }
  }

  /** What a text that streams has gone on with; undefined when all of it has to be told. */
  #piece(item: Item): string | undefined {
    const told = this.#streamed.get(item.id);
    if (told === undefined || !streams(item)) {
      return undefined;
    }
    const text = spoken(item);
    if (!text.startsWith(told)) {
      return undefined;
    }
    this.#streamed.set(item.id, text);
    return visible(text.slice(told.length));
  }

  #card(open: OpenSession, at: number, item: Item, look: CardLook): Card {
    if (streams(item)) {
      this.#streamed.set(item.id, spoken(item));
    } else {
      this.#streamed.delete(item.id);
    }
    return card(item, open.transcript.items[at - 1], look);
  }

  #cardLook(open: OpenSession): CardLook {
    const review = readReview(open.session?.metadata, open.id);
    return {
      ...lookOf(open.session, open.transcript),
      verdict: (path, seq) => verdictOf(review, path, seq),
      onFault: (message) => {
        this.env.app.log.error(message);
      },
    };
  }

  #cards(open: OpenSession, start: number, end: number): Card[] {
    const look = this.#cardLook(open);
    return open.transcript.items
      .slice(start, end)
      .map((item, offset) => this.#card(open, start + offset, item, look));
  }

  /** What waits and stands at no card of the page: of agents, or of calls before its window. */
  #approvals(): { approvals: ApprovalCard[]; elsewhere: number } {
    const { app } = this.env;
    const { open } = this;
    const all = app.approvals.pending;
    if (!open) {
      return { approvals: [], elsewhere: all.length };
    }
    const here = approvalsOf(app.approvals, open.id);
    const shown = new Set<string>();
    for (const item of open.transcript.items.slice(this.#firstIndex(open))) {
      if (item.approval && !item.result) {
        shown.add(item.approval.approvalId);
      }
    }
    const look = this.#cardLook(open);
    return {
      approvals: here
        .filter((approval) => !shown.has(approval.approvalId))
        .map((approval) => approvalCard(approval, look)),
      elsewhere: all.length - here.length,
    };
  }

  #tellAll(): void {
    this.#drop();
    this.#streamed.clear();
    this.#review = JSON.stringify(this.open?.session?.metadata?.[REVIEW_KEY]);
    const { app } = this.env;
    const { open } = this;
    const everything: Everything = {
      phase: phaseOf(app, open),
      cards: [],
      older: false,
      queue: [],
      approvals: [],
      elsewhere: 0,
      context: this.env.context(),
      look: this.env.look(),
    };
    if (open) {
      const { items } = open.transcript;
      const start = Math.max(0, items.length - WINDOW);
      this.#first = items[start]?.id;
      everything.cards = this.#cards(open, start, items.length);
      everything.older = start > 0 || (open.phase === "live" && !open.atStart);
      everything.queue = queueCards(open.transcript, open.outbox, open.session?.cwd);
      const head = headCard(app, open);
      const plan = planCard(open.transcript);
      if (head) {
        everything.head = head;
      }
      if (plan) {
        everything.plan = plan;
      }
    }
    Object.assign(everything, this.#approvals());
    this.#post({ type: "all", all: everything });
    void this.#seek();
  }

  #post(message: ToChat): void {
    if (this.#there) {
      this.env.post(message);
    }
  }
}

/** Where the item stands that tells an event, or else what comes before it; -1 where nothing does. */
function placeOf(items: readonly Item[], seq: number): number {
  const told = items.findLastIndex((item) => item.seq === seq || item.resultSeq === seq);
  return told >= 0 ? told : items.findLastIndex((item) => item.placed <= seq);
}

/** Text goes on only in what is said and thought; a running tool shows its last lines, and is told anew. */
function streams(item: Item): boolean {
  return item.streaming === true && (item.kind === "answer" || item.kind === "thought");
}

function spoken(item: Item): string {
  return settled(item.text);
}
