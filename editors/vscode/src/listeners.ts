import type { Log } from "./log";

/** Whoever wants to hear of something; what one of them throws keeps no other from hearing. */
export class Listeners<T> {
  readonly #listeners = new Set<(value: T) => void>();

  constructor(private readonly log: Log) {}

  /** @returns what takes it back */
  on(listener: (value: T) => void): () => void {
    const own = (value: T): void => {
      listener(value);
    };
    this.#listeners.add(own);
    return () => {
      this.#listeners.delete(own);
    };
  }

  tell(value: T): void {
    for (const listener of [...this.#listeners]) {
      guard(this.log, () => {
        listener(value);
      });
    }
  }

  clear(): void {
    this.#listeners.clear();
  }
}

/**
 * Calls a function; what it throws is logged, and keeps nothing else from happening.
 * @returns whether it went well
 */
export function guard(log: Log, fn: () => void): boolean {
  try {
    fn();
    return true;
  } catch (fault) {
    log.error(fault instanceof Error ? (fault.stack ?? fault.message) : String(fault));
    return false;
  }
}
