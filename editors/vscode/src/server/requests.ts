/** What was asked and not answered yet, whichever server it is asked of in the end. */
import type { JsonObject } from "@callboard/protocol";
import type { Client } from "./client";
import { CallError } from "./errors";

export interface Pending {
  readonly method: string;
  readonly params: object;
  /** It is not asked again of another server. */
  readonly once: boolean;
  /** Its answer may take as long as it likes. */
  readonly patient: boolean;
  readonly answered: (fault: CallError | undefined, result: unknown) => void;
  /** Nobody wants to know any more. */
  dropped: boolean;
}

export class Requests {
  /** Not asked yet. */
  #queue: Pending[] = [];
  /** Asked and not answered, in order, with what gives it up. */
  readonly #asked = new Map<Pending, () => void>();

  /** @param settled something is not outstanding any more */
  constructor(private readonly settled: () => void) {}

  /** An answer is due that should come soon. */
  get due(): boolean {
    for (const pending of this.#asked.keys()) {
      if (!pending.patient) {
        return true;
      }
    }
    return false;
  }

  /** Keeps it for the next server. */
  wait(pending: Pending): void {
    this.#queue.push(pending);
  }

  /** Those that wait for a server, in order; they wait no more. */
  waiting(): Pending[] {
    return this.#queue.splice(0);
  }

  ask(pending: Pending, client: Client): void {
    if (pending.dropped) {
      return;
    }
    const giveUp = client.request(pending.method, pending.params, (fault, result) => {
      this.#asked.delete(pending);
      this.settled();
      if (!pending.dropped) {
        pending.answered(fault, result);
      }
    });
    this.#asked.set(pending, giveUp);
  }

  /** Nobody wants the answer any more. */
  drop(pending: Pending): void {
    pending.dropped = true;
    const giveUp = this.#asked.get(pending);
    if (giveUp) {
      this.#asked.delete(pending);
      giveUp();
      this.settled();
    } else {
      this.#queue = this.#queue.filter((other) => other !== pending);
    }
  }

  /**
   * What was asked of a server that is gone is asked of the next one, before all that came later.
   * @returns those that are not
   */
  takeBack(): Pending[] {
    const asked = [...this.#asked.keys()];
    this.#asked.clear();
    this.#queue = [...asked.filter((each) => !each.once), ...this.#queue];
    return asked.filter((each) => each.once);
  }

  /** Tells that no server will answer. */
  refuse(refused: readonly Pending[], message: string, data: JsonObject): void {
    for (const pending of refused) {
      if (!pending.dropped) {
        pending.answered(new CallError(0, message, data), undefined);
      }
    }
  }
}
