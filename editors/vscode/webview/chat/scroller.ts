/** Follows the end of the list while the person is there, and keeps the place of one who is not. */

export interface Moves {
  /** The person has gone up from the end. */
  left(): void;
  /** The person is at the end again. */
  reached(): void;
  /** The person has come to rest: this card is the first in view, so far (px) from the top. */
  rested(card: string, offset: number): void;
  /** The person has come near to the top. */
  top(): void;
}

/** So near to the end (px) is at the end, and to the top at the top. */
const NEAR = 24;
const NEAR_TOP = 120;
/** Left free (px) above what asks. */
const ROOM = 8;

export class Scroller {
  private following = true;
  private before = 0;
  /** The approval whose beginning was gone to. */
  private asked: string | undefined;
  private wanted: { card: string; offset: number } | undefined;
  private rest: ReturnType<typeof setTimeout> | undefined;
  private readonly sizes: ResizeObserver;
  private readonly ending = new AbortController();

  constructor(
    private readonly box: HTMLElement,
    inner: HTMLElement,
    private readonly moves: Moves,
  ) {
    this.sizes = new ResizeObserver(() => {
      this.settle();
    });
    this.sizes.observe(inner);
    this.sizes.observe(box);
    const { signal } = this.ending;
    box.addEventListener(
      "scroll",
      () => {
        this.scrolled();
      },
      { signal, passive: true },
    );
    for (const kind of ["wheel", "touchmove", "keydown", "pointerdown"]) {
      // A place that is still being gone to gives way to the person.
      box.addEventListener(
        kind,
        () => {
          this.wanted = undefined;
        },
        { signal, passive: true },
      );
    }
  }

  dispose(): void {
    this.sizes.disconnect();
    this.ending.abort();
    clearTimeout(this.rest);
  }

  toEnd(): void {
    this.wanted = undefined;
    this.asked = undefined;
    this.box.scrollTop = this.box.scrollHeight;
    this.follow();
  }

  /** The end is not followed any more: the person looks at something else. */
  stay(): void {
    this.leave();
  }

  /** The first card in view, and where it stands. */
  mark(): { id: string; top: number } | undefined {
    const top = this.box.getBoundingClientRect().top;
    for (const card of this.box.querySelectorAll<HTMLElement>("[data-card]")) {
      const place = card.getBoundingClientRect();
      if (place.bottom > top) {
        return { id: card.dataset["card"] ?? "", top: place.top - top };
      }
    }
    return undefined;
  }

  /** Puts a card where it stood, after others came above it. */
  hold(id: string, top: number): void {
    const card = this.find(id);
    if (card) {
      const now = card.getBoundingClientRect().top - this.box.getBoundingClientRect().top;
      this.box.scrollTop += now - top;
      this.before = this.box.scrollTop;
    }
  }

  restore(card: string, offset: number): void {
    this.leave();
    this.wanted = { card, offset };
    this.settle();
  }

  private find(id: string): HTMLElement | null {
    return this.box.querySelector<HTMLElement>(`[data-card="${CSS.escape(id)}"]`);
  }

  private settle(): void {
    if (this.following) {
      this.goOn();
    } else if (this.wanted) {
      this.hold(this.wanted.card, this.wanted.offset);
    }
  }

  /**
   * To the end; but where something asks that is taller than the view, to its beginning, once: its buttons are
   * of no use to somebody who has not seen what it is about. Until it is answered the list then stays.
   */
  private goOn(): void {
    const { box } = this;
    const asks = box.querySelector<HTMLElement>("[data-approval]");
    if (asks === null || asks.offsetHeight + ROOM < box.clientHeight) {
      this.asked = undefined;
      box.scrollTop = box.scrollHeight;
    } else if (this.asked !== asks.dataset["approval"]) {
      this.asked = asks.dataset["approval"];
      box.scrollTop += asks.getBoundingClientRect().top - box.getBoundingClientRect().top - ROOM;
    }
    this.before = box.scrollTop;
  }

  private atEnd(): boolean {
    return this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < NEAR;
  }

  private scrolled(): void {
    const { scrollTop } = this.box;
    const up = scrollTop < this.before - 1;
    this.before = scrollTop;
    if (this.following) {
      // The list may have grown since: only going up is leaving.
      if (up && !this.atEnd()) {
        this.leave();
      }
    } else if (this.atEnd() && !this.wanted) {
      this.follow();
    }
    if (up && scrollTop < NEAR_TOP && !this.following) {
      this.moves.top();
    }
    if (!this.following) {
      clearTimeout(this.rest);
      this.rest = setTimeout(() => {
        const mark = this.following ? undefined : this.mark();
        if (mark) {
          this.moves.rested(mark.id, mark.top);
        }
      }, 200);
    }
  }

  private leave(): void {
    if (this.following) {
      this.following = false;
      this.moves.left();
    }
  }

  private follow(): void {
    if (!this.following) {
      this.following = true;
      this.moves.reached();
    }
    this.settle();
  }
}
