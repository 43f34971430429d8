/**
 * Whether a server that owes answers says anything at all. A process that was stopped, or that is stuck within a
 * message, does not end, and so nothing else would tell of it.
 */

/** A server that owes an answer and has said nothing for so long (ms) is silent. */
export const SILENT_MS = 10_000;

export interface SilenceEnvironment {
  now(): number;
  later(ms: number, fn: () => void): () => void;
  /** Whether an answer is due. */
  due(): boolean;
  changed(): void;
}

/** There is a timer only while something is due and the server is not silent yet. */
export class Silence {
  silent = false;
  #since = 0;
  #untimed: (() => void) | undefined;

  constructor(private readonly env: SilenceEnvironment) {}

  /** Something was asked. */
  asked(): void {
    if (!this.#untimed && !this.silent && this.env.due()) {
      this.#since = this.env.now();
      this.#wait(SILENT_MS);
    }
  }

  /** Something has come. */
  heard(): void {
    this.#since = this.env.now();
    if (this.silent) {
      this.#become(false);
      this.asked();
    }
  }

  /** Something is not due any more. */
  settled(): void {
    if (!this.env.due()) {
      this.reset();
    }
  }

  reset(): void {
    this.#untimed?.();
    this.#untimed = undefined;
    if (this.silent) {
      this.#become(false);
    }
  }

  #become(silent: boolean): void {
    this.silent = silent;
    this.env.changed();
  }

  #wait(ms: number): void {
    const due = this.env.now() + ms;
    this.#untimed = this.env.later(ms, () => {
      this.#untimed = undefined;
      const now = this.env.now();
      const rest = this.#since + SILENT_MS - now;
      if (rest > 0) {
        this.#wait(rest);
      } else if (now - due > SILENT_MS / 2) {
        // It is the machine that has slept, or this process; the server had no time to answer either.
        this.#since = now;
        this.#wait(SILENT_MS);
      } else {
        this.#become(true);
      }
    });
  }
}
