/**
 * What a server writes, as messages that the library can take.
 *
 * Not its own `StreamMessageReader`: that one takes frames of any size, keeps without a bound what is no
 * frame, looks through all of it with every chunk, goes on after what it could not read, and reads on however
 * much waits to be handled.
 */
import type { Log } from "../log";
import {
  AbstractMessageReader,
  type DataCallback,
  type Disposable,
  type Message,
} from "vscode-jsonrpc/node";
import { oneLine } from "../model/text";
import { FrameReader } from "./framing";

/** So many messages, or so many bytes of them, may wait; the server says no more until half of them are handled. */
const MESSAGES = 1000;
const BYTES = 8 * 1024 * 1024;

export interface InboxHandlers {
  /** Read no more, or read on. */
  hold(held: boolean): void;
  /** What it says is not the protocol. Told in its turn: what came before it is handled first. */
  refused(garbage: string): void;
  received(message: object): void;
}

export class Inbox extends AbstractMessageReader {
  readonly #reader = new FrameReader();
  #waiting: (Buffer | { fault: string })[] = [];
  #first = 0;
  #bytes = 0;
  #held = false;
  #deaf = false;
  #draining = false;
  #callback: DataCallback | undefined;
  #afterwards: (() => void)[] = [];

  constructor(
    private readonly handlers: InboxHandlers,
    private readonly log: Log,
    private readonly room: { messages: number; bytes: number } = {
      messages: MESSAGES,
      bytes: BYTES,
    },
  ) {
    super();
  }

  override listen(callback: DataCallback): Disposable {
    this.#callback = callback;
    return {
      dispose: () => {
        this.#callback = undefined;
      },
    };
  }

  feed(chunk: Buffer): void {
    if (this.#deaf) {
      return;
    }
    const { bodies, fault } = this.#reader.feed(chunk);
    for (const body of bodies) {
      this.#bytes += body.length;
      this.#waiting.push(body);
    }
    if (fault !== undefined) {
      this.#deaf = true;
      this.#waiting.push({ fault });
    }
    this.#weigh();
    this.#drain();
  }

  /** Calls it when all that was read by now is handled. */
  whenEmpty(fn: () => void): void {
    this.#afterwards.push(fn);
    this.#drain();
  }

  get #count(): number {
    return this.#waiting.length - this.#first;
  }

  #weigh(): void {
    const { messages, bytes } = this.room;
    const most = this.#held ? 0.5 : 1;
    const held = this.#count > messages * most || this.#bytes > bytes * most;
    if (held !== this.#held) {
      this.#held = held;
      this.handlers.hold(held);
    }
  }

  /**
   * One message in each round of the event loop, so that all else has its turn; the library handles it in the
   * same round.
   */
  #drain(): void {
    if (!this.#draining && (this.#count > 0 || this.#afterwards.length > 0)) {
      this.#draining = true;
      setImmediate(() => {
        this.#draining = false;
        try {
          if (this.#count > 0) {
            this.#handle();
          } else {
            this.#afterwards.shift()?.();
          }
        } finally {
          this.#drain(); // whatever went wrong with one
        }
      });
    }
  }

  #next(): Buffer | { fault: string } | undefined {
    const next = this.#waiting[this.#first];
    this.#first += 1;
    if (this.#first > 1000 || this.#first === this.#waiting.length) {
      this.#waiting.splice(0, this.#first);
      this.#first = 0;
    }
    return next;
  }

  #handle(): void {
    const next = this.#next();
    if (next === undefined) {
      return;
    }
    if (!Buffer.isBuffer(next)) {
      this.handlers.refused(next.fault);
      return;
    }
    this.#bytes -= next.length;
    this.#weigh();
    const message = parsed(next);
    if (message === undefined) {
      this.#deaf = true;
      this.#waiting = [];
      this.#first = 0;
      this.handlers.refused(next.toString("utf8", 0, 200));
      return;
    }
    const fit = fitting(message, this.log);
    if (fit) {
      this.handlers.received(fit);
      this.#callback?.(fit);
    }
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function parsed(body: Buffer): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The message in a shape that the library does not stumble over; undefined where it means nothing. */
function fitting(message: Record<string, unknown>, log: Log): Message | undefined {
  const { id, method, error } = message;
  const jsonrpc = "2.0";
  if (id != null && typeof id !== "string" && typeof id !== "number") {
    log.warn("a message of the server has an id that is none");
    return undefined;
  }
  const fit: Record<string, unknown> = id == null ? { jsonrpc } : { jsonrpc, id };
  if (method == null) {
    if (id == null) {
      log.warn(`the server says what nobody asked: ${oneLine(JSON.stringify(error ?? null), 200)}`);
      return undefined;
    }
    const answer =
      error == null ? { result: message["result"] ?? null } : { error: failure(error) };
    return { ...fit, ...answer } as unknown as Message;
  }
  if (typeof method !== "string") {
    log.warn("a message of the server has no name");
    return undefined;
  }
  const params = isObject(message["params"]) ? message["params"] : {};
  if (method === "$/cancelRequest" && !["string", "number"].includes(typeof params["id"])) {
    return undefined;
  }
  return { ...fit, method, params } as unknown as Message;
}

/** The library makes an `Error` of it, which has no room for anything else. */
function failure(error: unknown): object {
  const { code, message, data } = isObject(error) ? error : { code: 0, message: error, data: {} };
  return {
    code: typeof code === "number" ? code : 0,
    message: typeof message === "string" ? message : "",
    data: isObject(data) ? data : {},
  };
}
