/**
 * Subscriptions that outlive servers: each goes on from its cursor at the next one, so that whoever follows
 * sees every event once and in order.
 */
import type {
  Event,
  EventBatch,
  EventDelta,
  EventReset,
  Scope,
  SubscribeResult,
} from "@callboard/protocol";
import type { Log } from "../log";
import { CallError, explain, kindOf } from "./errors";
import type { Supervisor } from "./supervisor";

export interface Follow {
  scope: Scope;
  /** "now", "start", or the cursor after which it begins. */
  cursor: string;
  types?: readonly string[];
  deltas?: boolean;
  onEvents: (events: readonly Event[], batch: EventBatch) => void;
  onDelta?: (delta: EventDelta) => void;
  /** What was asked for is there, at the beginning and after each new start. */
  onLive?: () => void;
  /** Nothing comes for now, since the store can do nothing; it is asked again by itself. */
  onStalled?: (fault: CallError) => void;
  /** Nothing more comes: the cursor is of no use any more, or there is nothing to follow. */
  onLost?: (fault: CallError) => void;
}

interface Following {
  readonly wanted: Follow;
  /** That was reached. */
  cursor: string;
  /** Of the subscription. */
  id: string | undefined;
  closed: boolean;
  /** Of the requests for it: only the answer to the last one counts. */
  generation: number;
  /** So often it was refused in a row, and what asks again. */
  stalls: number;
  again?: ReturnType<typeof setTimeout> | undefined;
}

/** After how long (ms) it is asked again, each time that it was refused for a while; the last one stays. */
export const AGAIN_MS: readonly number[] = [1000, 2000, 4000, 8000, 15_000];

/**
 * Batches of a subscription that nobody knows (yet) are kept, up to so many: the server sends no more without an
 * acknowledgement.
 */
const EARLY = 1000;

type Message =
  | { method: "event/batch"; params: EventBatch }
  | { method: "event/delta"; params: EventDelta }
  | { method: "event/reset"; params: EventReset };

export class Feed {
  #all: Following[] = [];
  readonly #byId = new Map<string, Following>();
  /** What came before the answer to `event/subscribe` was handled. */
  readonly #early = new Map<string, Message[]>();
  /** Subscriptions that have ended. */
  readonly #over = new Set<string>();

  constructor(
    private readonly server: Pick<Supervisor, "state" | "request" | "notify">,
    private readonly log: Log,
  ) {}

  #forget(following: Following): void {
    following.closed = true;
    clearTimeout(following.again);
    this.#all = this.#all.filter((other) => other !== following);
  }

  #unsubscribe(id: string): void {
    this.#byId.delete(id);
    this.#early.delete(id);
    this.#over.add(id);
    this.server.request("event/unsubscribe", { subscriptionId: id }, { once: true }).catch(() => {
      // A server that is gone sends nothing either.
    });
  }

  #subscribe(following: Following): void {
    following.generation += 1;
    clearTimeout(following.again);
    const { generation, wanted } = following;
    const current = (): boolean => !following.closed && generation === following.generation;
    const params = {
      scope: wanted.scope,
      from: following.cursor,
      deltas: wanted.deltas === true,
      ...(wanted.types ? { types: [...wanted.types] } : {}),
    };
    this.server.request("event/subscribe", params, { once: true }).then(
      (result) => {
        const fault = unreadable(result);
        if (!current()) {
          if (!fault) {
            this.#unsubscribe(result.subscriptionId);
          }
        } else if (fault) {
          this.#refused(following, fault);
        } else {
          this.#subscribed(following, result);
        }
      },
      (fault: unknown) => {
        if (current()) {
          this.#refused(following, fault);
        }
      },
    );
  }

  #refused(following: Following, fault: unknown): void {
    const kind = kindOf(fault);
    if (kind === "noServer" || kind === "serverGone") {
      return; // the next server is asked
    }
    this.log.warn(`subscription of ${following.wanted.scope.kind}: ${explain(fault)}`);
    const told = fault instanceof CallError ? fault : new CallError(0, explain(fault));
    if (told.passing) {
      this.#stalled(following, told);
      return;
    }
    this.#forget(following);
    this.#told(() => {
      following.wanted.onLost?.(told);
    });
  }

  /** A full disk, say: whoever makes room there need not come back here for it. */
  #stalled(following: Following, fault: CallError): void {
    const wait = AGAIN_MS[Math.min(following.stalls, AGAIN_MS.length - 1)];
    following.stalls += 1;
    following.again = setTimeout(() => {
      if (this.server.state === "ready") {
        this.#subscribe(following);
      }
    }, wait);
    this.#told(() => {
      following.wanted.onStalled?.(fault);
    });
  }

  #subscribed(following: Following, { subscriptionId, cursor }: SubscribeResult): void {
    following.id = subscriptionId;
    following.cursor = cursor;
    following.stalls = 0;
    this.#byId.set(subscriptionId, following);
    this.#told(() => {
      following.wanted.onLive?.();
    });
    const early = this.#early.get(subscriptionId) ?? [];
    this.#early.delete(subscriptionId);
    for (const message of early) {
      this.#handle(message);
    }
  }

  /** Follows a scope from a cursor on, as soon as there is a server. */
  follow(wanted: Follow): () => void {
    const following: Following = {
      wanted,
      cursor: wanted.cursor,
      id: undefined,
      closed: false,
      generation: 0,
      stalls: 0,
    };
    this.#all.push(following);
    if (this.server.state === "ready") {
      this.#subscribe(following);
    }
    return () => {
      if (!following.closed) {
        this.#forget(following);
        const { id } = following;
        following.id = undefined;
        if (id !== undefined) {
          this.#unsubscribe(id);
        }
      }
    };
  }

  /** A new server is there: everybody goes on from where they were. */
  resume(): void {
    this.#byId.clear();
    this.#early.clear();
    this.#over.clear();
    for (const following of [...this.#all]) {
      following.id = undefined;
      following.stalls = 0;
      this.#subscribe(following);
    }
  }

  /** What one that follows fails at keeps nothing from the others. */
  #told(fn: () => void): void {
    try {
      fn();
    } catch (fault) {
      this.log.error(fault instanceof Error ? (fault.stack ?? fault.message) : String(fault));
    }
  }

  #keep(message: Message): void {
    const id = message.params.subscriptionId;
    const early = this.#early.get(id) ?? [];
    this.#early.set(id, early);
    if (message.method !== "event/delta" && early.length < EARLY) {
      early.push(message);
    }
  }

  #batch(following: Following, batch: EventBatch): void {
    const { cursor, subscriptionId } = batch;
    if (typeof cursor === "string") {
      following.cursor = cursor;
    }
    this.#told(() => {
      following.wanted.onEvents(Array.isArray(batch.events) ? batch.events : [], batch);
    });
    // Also when that has failed: it would not go better the next time, and without it nothing more comes.
    if (following.id === subscriptionId) {
      this.server.notify("event/ack", { subscriptionId, cursor });
    }
  }

  #reset(following: Following, { reason, resumeFrom, subscriptionId }: EventReset): void {
    this.log.info(`subscription of ${following.wanted.scope.kind} was reset: ${reason}`);
    this.#byId.delete(subscriptionId);
    this.#over.add(subscriptionId);
    following.id = undefined;
    if (typeof resumeFrom === "string") {
      following.cursor = resumeFrom;
    }
    // After a shutdown the next server is asked.
    if (reason !== "shutdown") {
      this.#subscribe(following);
    }
  }

  #handle(message: Message): void {
    const id = message.params.subscriptionId;
    const following = this.#byId.get(id);
    if (typeof id !== "string" || this.#over.has(id)) {
      return;
    } else if (!following) {
      this.#keep(message);
    } else if (message.method === "event/batch") {
      this.#batch(following, message.params);
    } else if (message.method === "event/reset") {
      this.#reset(following, message.params);
    } else {
      const { params } = message;
      this.#told(() => {
        following.wanted.onDelta?.(params);
      });
    }
  }

  /** @returns whether it is of a subscription; what is not is for somebody else */
  notification(method: string, params: object): boolean {
    if (method !== "event/batch" && method !== "event/delta" && method !== "event/reset") {
      return false;
    }
    this.#handle({ method, params } as Message);
    return true;
  }
}

function unreadable(result: SubscribeResult): CallError | undefined {
  return typeof result.subscriptionId === "string" && typeof result.cursor === "string"
    ? undefined
    : new CallError(0, "the server gave no subscription that can be read", { kind: "unreadable" });
}
