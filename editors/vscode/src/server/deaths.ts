/** How often servers ended by themselves, and so when the next one is started. */

/** Pauses (ms) before the first, second, ... new start. */
const BACK_OFF_MS = [1000, 2000, 4000, 8000] as const;
/** So many ends within so long (ms) are enough. */
const ENOUGH = BACK_OFF_MS.length + 1;
const WINDOW_MS = 180_000;

export class Deaths {
  /** When (ms). */
  #at: number[] = [];

  forget(): void {
    this.#at = [];
  }

  /**
   * Another one has ended.
   * @returns how long (ms) to wait before the next start; undefined where there is to be none
   */
  another(now: number): number | undefined {
    this.#at = [...this.#at.filter((at) => now - at < WINDOW_MS), now];
    return this.#at.length < ENOUGH ? BACK_OFF_MS[this.#at.length - 1] : undefined;
  }

  get count(): number {
    return this.#at.length;
  }
}
