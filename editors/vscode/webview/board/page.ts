/** What all parts of the page share: the board as it was told last, and whom to tell what the person does. */
import type { Board, ColumnName, FromBoard, TaskCard, ToBoard } from "../../src/shared/board.js";
import type { Host } from "../shared/host.js";
import { announce } from "../shared/live.js";

/** From left to right: the way of a task, then what is off it. */
export const ORDER: readonly ColumnName[] = [
  "waiting",
  "ready",
  "active",
  "done",
  "blocked",
  "cancelled",
];

export interface Said {
  readonly text: string;
  readonly failed: boolean;
}

/** How long (ms) what went well stands there; what failed stands until it was seen. */
const PASSING_MS = 8000;

/** Where each thing that may be done puts a card. */
const LEADS: Readonly<Partial<Record<string, ColumnName>>> = {
  claim: "active",
  complete: "done",
  block: "blocked",
  release: "ready",
  cancel: "cancelled",
};

export class Page {
  board: Board | undefined;
  notice: string | undefined = "Loading…";
  said: Said | undefined;
  /** The card that Tab comes to. */
  current: string | undefined;
  readonly #drawn = new Set<() => void>();
  #passing: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly host: Host<FromBoard>,
    root: string,
  ) {
    host.keep({ root });
  }

  post(message: FromBoard): void {
    this.host.post(message);
  }

  onDraw(listener: () => void): void {
    this.#drawn.add(listener);
  }

  draw(): void {
    for (const listener of this.#drawn) {
      listener();
    }
  }

  hear(message: ToBoard): void {
    if (message.type === "said") {
      this.said = { text: message.text, failed: message.failed };
      clearTimeout(this.#passing);
      if (!message.failed) {
        this.#passing = setTimeout(() => {
          this.forget();
        }, PASSING_MS);
      }
      announce(message.text, message.failed ? "assertive" : "polite");
    } else {
      this.#tell(message.board, message.notice);
      this.board = message.board;
      this.notice = message.notice;
      const cards = this.columns().flatMap((column) => column.cards);
      if (!cards.some((card) => card.id === this.current)) {
        this.current = cards[0]?.id;
      }
    }
    this.draw();
  }

  /** Reads out what has changed, whoever changed it. */
  #tell(board: Board | undefined, notice: string | undefined): void {
    if (notice !== undefined && notice !== this.notice) {
      announce(notice);
    } else if (board && this.board && board.counts !== this.board.counts) {
      announce(board.counts);
    }
  }

  forget(): void {
    this.said = undefined;
    this.draw();
  }

  /** In the order in which they stand. */
  columns(): Board["columns"] {
    const columns = this.board?.columns ?? [];
    return ORDER.flatMap((name) => columns.filter((column) => column.name === name));
  }

  focusOn(id: string): void {
    if (this.current !== id) {
      this.current = id;
      this.draw();
    }
  }

  /** The card beside another one, as an arrow key goes; undefined where there is none. */
  beside(id: string, key: string): TaskCard | undefined {
    const columns = this.columns().filter((column) => column.cards.length > 0);
    const x = columns.findIndex((column) => column.cards.some((card) => card.id === id));
    const here = columns[x]?.cards ?? [];
    const y = here.findIndex((card) => card.id === id);
    const across = (to: number): TaskCard | undefined => {
      const cards = columns[to]?.cards ?? [];
      return cards[Math.min(y, cards.length - 1)];
    };
    switch (key) {
      case "ArrowUp":
        return here[y - 1];
      case "ArrowDown":
        return here[y + 1];
      case "ArrowLeft":
        return across(x - 1);
      case "ArrowRight":
        return across(x + 1);
      case "Home":
        return here[0];
      case "End":
        return here.at(-1);
      default:
        return undefined;
    }
  }

  /**
   * Puts a card into the next column on a side that it can go to; where there is none, into the one beside
   * it, and is told why that cannot be.
   */
  move(card: TaskCard, from: ColumnName, side: -1 | 1): void {
    const at = ORDER.indexOf(from);
    const there = side === 1 ? ORDER.slice(at + 1) : ORDER.slice(0, at).reverse();
    const reached = new Set<ColumnName | undefined>(
      card.verbs.map((verb) => (verb === "assign" && from === "blocked" ? "active" : LEADS[verb])),
    );
    const to = there.find((name) => reached.has(name)) ?? there[0];
    if (to === undefined) {
      announce("There is no column on that side");
    } else {
      this.post({ type: "move", taskId: card.id, to });
    }
  }
}
