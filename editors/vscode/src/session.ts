/**
 * A session that is open in this window: its transcript, followed live; the pages before it; what is said to
 * it. It is a view of the log: whatever happens to the server, it asks again from where it stopped.
 */
import type {
  Content,
  ContextItem,
  Delivery,
  Event,
  Session,
  SessionPromptResult,
} from "@callboard/protocol";
import { isKnownEvent } from "@callboard/protocol";
import type { App } from "./app";
import { Listeners } from "./listeners";
import type { Change, Transcript } from "./model/items";
import { newTranscript } from "./model/items";
import type { Outbox } from "./model/queue";
import { addOutgoing, newOutbox, settleOutgoing } from "./model/queue";
import { apply, delta, draft, merge } from "./model/reducer";
import { wellFormed } from "./model/text";
import { newest, older, sessionsBelow } from "./reading";
import { CallError, explain, kindOf } from "./server/errors";
import { AGAIN_MS } from "./server/feed";

export type SessionPhase = "loading" | "live" | "lost";

export interface SessionUpdate {
  /** What is new in the transcript. */
  change?: Change;
  /** It is another one. */
  phase?: SessionPhase;
  /** What is on its way to the server has changed. */
  outbox?: true;
}

export interface Prompt {
  text: string;
  delivery?: Delivery;
  context?: ContextItem[];
  /** More than the text: what of buffers is sent along. */
  content?: Content[];
  /** The member of a room that it is for. */
  to?: string;
}

/** Events after which more is known of a session than its text tells. */
const TELLING = new Set([
  "turn_started",
  "mode_changed",
  "model_changed",
  "external_options",
  "turn_parked",
]);

export class OpenSession {
  transcript: Transcript;
  readonly outbox: Outbox = newOutbox();
  phase: SessionPhase = "loading";
  /** Why it is lost. */
  fault: string | undefined;
  /** All of it is loaded. */
  atStart = false;
  /** The cursor before the first event that is loaded. */
  oldest: string | undefined;
  /** Of what is loaded: answers to what was asked before it count no more. */
  epoch = 0;
  readonly #listeners: Listeners<SessionUpdate>;
  #closeFeed: (() => void) | undefined;
  #loadingOlder: Promise<boolean> | undefined;
  #drafting = false;
  #draftsWanted = 0;
  /** Before which event others were missing when all was read last. */
  #gap: number | undefined;
  /** It is lost for want of a server. */
  #stranded = false;
  /** Reads it again when it could not be read for a while. */
  #again: ReturnType<typeof setTimeout> | undefined;

  constructor(
    readonly app: App,
    readonly id: string,
  ) {
    this.transcript = newTranscript(id);
    this.#listeners = new Listeners(app.log);
  }

  /** @returns what takes it back */
  listen(listener: (update: SessionUpdate) => void): () => void {
    return this.#listeners.on(listener);
  }

  /** What the server says of the session itself, as far as it is known. */
  get session(): Session | undefined {
    return this.app.sessions.byId.get(this.id);
  }

  #become(phase: SessionPhase, fault?: string): void {
    this.phase = phase;
    this.fault = fault;
    this.#listeners.tell({ phase });
  }

  #lose(fault: unknown): void {
    this.#stranded = kindOf(fault) === "noServer";
    this.#become("lost", explain(fault));
    if (fault instanceof CallError && fault.passing) {
      this.#again = setTimeout(() => void this.load(), AGAIN_MS.at(-1));
    }
  }

  /** A server is there again. */
  returned(): void {
    if (this.phase === "lost" && this.#stranded) {
      void this.load();
    }
  }

  /** Reads the session anew: the newest page, what streams, and then what comes. Never rejects. */
  async load(): Promise<void> {
    this.epoch += 1;
    clearTimeout(this.#again);
    const { epoch } = this;
    this.#loadingOlder = undefined;
    this.#drafting = false;
    this.#unfollow();
    this.#become("loading");
    try {
      const { session } = await this.app.request("session/get", { sessionId: this.id });
      if (epoch !== this.epoch) {
        return;
      }
      this.app.putSession(session);
      const page = await newest(this, session);
      if (epoch !== this.epoch) {
        return;
      }
      this.transcript = page.transcript;
      this.oldest = page.oldest;
      this.atStart = page.oldest === undefined;
      this.phase = "live";
      this.fault = undefined;
      this.#listeners.tell({
        phase: "live",
        change: { items: [], events: [], reset: true, queue: true, head: true },
      });
      this.#follow(page.cursor, epoch);
      if (page.plan) {
        void page.plan.then((change) => {
          if (epoch === this.epoch) {
            this.changed(change);
          }
        });
      }
    } catch (fault) {
      if (epoch === this.epoch) {
        this.#lose(fault);
      }
    }
  }

  #unfollow(): void {
    this.#closeFeed?.();
    this.#closeFeed = undefined;
  }

  #follow(cursor: string, epoch: number): void {
    let live = false;
    const ours = (fn: () => void): void => {
      if (epoch === this.epoch) {
        fn();
      }
    };
    this.#closeFeed = this.app.feed.follow({
      scope: { kind: "session", id: this.id },
      cursor,
      deltas: true,
      onEvents: (events) => {
        ours(() => {
          this.#events(events);
        });
      },
      onDelta: (piece) => {
        ours(() => {
          this.changed(delta(this.transcript, piece));
        });
      },
      // What streamed before this subscription, or while no server was there, stands in the draft, also when the
      // event of its turn has not come yet.
      onLive: () => {
        ours(() => {
          live = true;
          if (this.phase === "lost") {
            this.#become("live");
          }
          void this.#fetchDraft();
          void this.#learnAgents();
        });
      },
      onStalled: (fault) => {
        ours(() => {
          this.#become("lost", explain(fault));
        });
      },
      onLost: (fault) => {
        ours(() => {
          const kind = kindOf(fault);
          // One that was of no use from the first is not asked for again and again.
          if (live && (kind === "invalidCursor" || kind === "cursorExpired")) {
            void this.load();
          } else {
            this.#lose(fault);
          }
        });
      },
    });
  }

  /** The agents that began while nobody told this window of it: no listing of the store holds them. */
  async #learnAgents(): Promise<void> {
    if (!this.app.feature("agents")) {
      return;
    }
    try {
      for (const session of await sessionsBelow(this.app, this.id)) {
        this.app.putSession(session);
      }
    } catch (fault) {
      this.app.log.warn(`the agents of ${this.id} cannot be listed: ${explain(fault)}`);
    }
  }

  /** Takes an event into a transcript of this session. */
  apply(transcript: Transcript, event: Event): Change | undefined {
    const change = apply(transcript, event);
    if (change?.fault !== undefined) {
      this.app.log.error(`seq ${event.seq} of ${this.id} cannot be shown: ${change.fault}`);
    }
    return change;
  }

  /** Events are missing: all is read anew, but not again and again for the same ones. */
  #torn(seq: number): void {
    this.app.log.warn(`events of ${this.id} are missing before seq ${seq}`);
    if (this.#gap === seq) {
      this.#unfollow();
      this.#become("lost", "The server leaves out a part of this session.");
      return;
    }
    this.#gap = seq;
    void this.load();
  }

  #events(events: readonly Event[]): void {
    let merged: Change | undefined;
    let sent = false;
    for (const event of events) {
      const change = this.apply(this.transcript, event);
      if (change?.gap) {
        this.#torn(event.seq);
        return;
      }
      merged = merge(merged, change);
      if (isKnownEvent(event) && event.type === "message" && event.data.clientMessageId != null) {
        sent = settleOutgoing(this.outbox, event.data.clientMessageId) !== undefined || sent;
      }
      if (change && TELLING.has(event.type)) {
        this.app.refresh(event.sessionId);
      }
    }
    this.changed(merged);
    if (sent) {
      this.#listeners.tell({ outbox: true });
    }
    if (this.transcript.deleted) {
      this.#unfollow();
      this.#become("lost", "This session was deleted.");
    }
  }

  /** Tells of a change, and asks for what is missing. */
  changed(change: Change | undefined): void {
    if (!change) {
      return;
    }
    if (change.hole) {
      void this.#fetchDraft();
    }
    this.#listeners.tell({ change });
  }

  /** Asks for the draft; once more when it is wanted anew meanwhile: it may lack what is missing now. */
  async #fetchDraft(): Promise<void> {
    this.#draftsWanted += 1;
    if (this.#drafting) {
      return;
    }
    this.#drafting = true;
    const { epoch } = this;
    try {
      let wanted: number;
      do {
        wanted = this.#draftsWanted;
        const got = await this.app.request("session/get", { sessionId: this.id });
        if (epoch !== this.epoch) {
          return;
        }
        const change = draft(this.transcript, got.draft);
        // A piece that is still missing is asked for with the next one that comes.
        delete change.hole;
        this.changed(change);
      } while (wanted !== this.#draftsWanted);
    } catch (fault) {
      this.app.log.debug(`the draft of ${this.id}: ${explain(fault)}`);
    } finally {
      if (epoch === this.epoch) {
        this.#drafting = false;
      }
    }
  }

  /**
   * Loads the page before what is there.
   * @returns whether there was one
   * @throws CallError
   */
  loadOlder(): Promise<boolean> {
    this.#loadingOlder ??= this.#older().finally(() => {
      this.#loadingOlder = undefined;
    });
    return this.#loadingOlder;
  }

  async #older(): Promise<boolean> {
    const { epoch } = this;
    if (this.phase !== "live" || this.oldest === undefined) {
      return false;
    }
    const page = await older(this, this.oldest);
    if (epoch !== this.epoch) {
      return false;
    }
    this.oldest = page.oldest;
    this.atStart = page.oldest === undefined;
    this.changed(page.put(this.transcript));
    return true;
  }

  /**
   * Says something. It stands in the outbox until it is durable.
   * @throws CallError
   */
  async prompt(prompt: Prompt): Promise<SessionPromptResult> {
    const key = this.app.newKey();
    const delivery = prompt.delivery ?? "auto";
    addOutgoing(this.outbox, { key, text: prompt.text, delivery });
    this.#listeners.tell({ outbox: true });
    try {
      return await this.app.request("session/prompt", {
        sessionId: this.id,
        content: [{ type: "text", text: wellFormed(prompt.text) }, ...(prompt.content ?? [])],
        delivery,
        clientMessageId: key,
        idempotencyKey: key,
        ...(prompt.context ? { context: prompt.context } : {}),
        ...(prompt.to === undefined ? {} : { to: prompt.to }),
      });
    } finally {
      settleOutgoing(this.outbox, key);
      this.#listeners.tell({ outbox: true });
    }
  }

  /** Nobody looks at it any more. */
  close(): void {
    this.epoch += 1;
    clearTimeout(this.#again);
    this.#unfollow();
    this.#listeners.clear();
  }
}
