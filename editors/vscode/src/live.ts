/**
 * Keeps what is shown of a tree of sessions up to date: asks anew after events that matter, several of them with
 * one request, and only while somebody looks. Hidden, it follows nothing.
 */
import type { App } from "./app";
import { whyOld } from "./model/serverState";
import { explain, kindOf } from "./server/errors";

/** Events that come within so long (ms) after the first are one request, and requests are so far apart. */
const GATHER_MS = 120;
const APART_MS = 400;
const TICK_MS = 1000;

export interface LiveOptions {
  readonly app: App;
  readonly root: string;
  /** Of the events that matter. */
  readonly types: readonly string[];
  /** Asks for all that is shown, and keeps it. */
  fetch(): Promise<void>;
  /** What is shown is to be drawn again. */
  changed(): void;
  /** Whether something shown grows with time. */
  ticks?(): boolean;
}

export class Live {
  /** Why what is shown may be old. */
  fault: string | undefined;
  loaded = false;
  #attached = false;
  #offs: (() => void)[] = [];
  #fetching = false;
  #again = false;
  /** When it was asked last. */
  #asked = -Infinity;
  #gathering: NodeJS.Timeout | undefined;
  #ticking: NodeJS.Timeout | undefined;

  constructor(private readonly options: LiveOptions) {}

  get attached(): boolean {
    return this.#attached;
  }

  /** A timer runs. */
  get busy(): boolean {
    return this.#gathering !== undefined || this.#ticking !== undefined;
  }

  /** Begins to follow, if it does not yet. */
  attach(): void {
    if (this.#attached) {
      return;
    }
    this.#attached = true;
    const { app } = this.options;
    this.#follow();
    for (const topic of ["server", "approvals"] as const) {
      this.#offs.push(
        app.on(topic, () => {
          this.#draw();
        }),
      );
    }
    this.#draw();
  }

  #follow(): void {
    const { app, root, types } = this.options;
    let live = false;
    this.#offs.push(
      app.feed.follow({
        scope: { kind: "tree", id: root },
        cursor: "now",
        types,
        onEvents: () => {
          this.#wish();
        },
        onLive: () => {
          live = true;
          this.fetch();
        },
        onStalled: (fault) => {
          this.#told(explain(fault));
        },
        onLost: (fault) => {
          const lost = kindOf(fault);
          // A cursor that never was of use is not asked for again and again.
          if (this.#attached && live && (lost === "invalidCursor" || lost === "cursorExpired")) {
            this.#follow();
          } else {
            this.#told(explain(fault));
          }
        },
      }),
    );
  }

  /** Follows no more; what is shown stays as it is. */
  detach(): void {
    this.#attached = false;
    for (const off of this.#offs.splice(0)) {
      off();
    }
    clearTimeout(this.#gathering);
    this.#gathering = undefined;
    this.#time();
  }

  /** Asks soon, together with what else comes meanwhile. */
  #wish(): void {
    if (!this.#attached || this.#gathering) {
      return;
    }
    const since = performance.now() - this.#asked;
    this.#gathering = setTimeout(
      () => {
        this.#gathering = undefined;
        this.fetch();
      },
      Math.max(GATHER_MS, APART_MS - since),
    );
  }

  /** Asks now; while an answer is awaited, once more after it. */
  fetch(): void {
    if (!this.#attached) {
      return;
    } else if (this.#fetching) {
      this.#again = true;
      return;
    }
    this.#fetching = true;
    this.#asked = performance.now();
    this.options
      .fetch()
      .then(
        () => {
          this.loaded = true;
          this.#told(undefined);
        },
        (fault: unknown) => {
          this.#told(explain(fault));
        },
      )
      .finally(() => {
        this.#fetching = false;
        if (this.#again) {
          this.#again = false;
          this.#wish();
        }
      });
  }

  /** What to say above all else: why it may be old, or that nothing is there yet. */
  notice(): string | undefined {
    return whyOld(this.options.app, this);
  }

  #told(fault: string | undefined): void {
    this.fault = fault;
    this.#draw();
  }

  #draw(): void {
    if (this.#attached) {
      this.options.changed();
      this.#time();
    }
  }

  /** Has it drawn each second while it is seen and something on it grows with time. */
  #time(): void {
    const wanted = this.#attached && this.options.ticks?.() === true;
    if (wanted && !this.#ticking) {
      this.#ticking = setInterval(() => {
        this.#draw();
      }, TICK_MS);
    } else if (!wanted && this.#ticking) {
      clearInterval(this.#ticking);
      this.#ticking = undefined;
    }
  }
}
