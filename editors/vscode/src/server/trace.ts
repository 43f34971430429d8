/** What passes between the two sides, written down for whoever asks for it: short, and without secrets. */
import type { Log } from "../log";
import { isSecretName, HIDDEN, masked } from "./secrets";

/** The setting `callboard.trace.server`. */
export type Tracing = "off" | "messages" | "verbose";

/** Of a text so many characters are told, of a list so many items, of a message so many characters. */
const TEXT = 200;
const ITEMS = 20;
const MESSAGE = 4000;
const DEPTH = 8;

/** A value with everything long cut, and every secret put out of sight; what is made of it is small. */
export function abridged(value: unknown, depth = 0): unknown {
  if (typeof value === "string") {
    const shown = masked(value.slice(0, TEXT));
    return value.length > TEXT ? `${shown}… (${value.length} characters)` : shown;
  }
  if (typeof value !== "object" || value === null) {
    return value;
  }
  if (depth >= DEPTH) {
    return "…";
  }
  if (Array.isArray(value)) {
    const items = value.slice(0, ITEMS).map((item) => abridged(item, depth + 1));
    return value.length > ITEMS ? [...items, `… (${value.length} items)`] : items;
  }
  const out: Record<string, unknown> = {};
  for (const [name, item] of Object.entries(value)) {
    const secret = typeof item === "string" && isSecretName(name);
    out[name] = secret ? HIDDEN : abridged(item, depth + 1);
  }
  return out;
}

interface Traced {
  id?: string | number | null;
  method?: unknown;
  params?: unknown;
  result?: unknown;
  error?: unknown;
}

export class Tracer {
  /** Methods of requests without an answer, by whose they are and by id. */
  readonly #asked = new Map<string, { method: string; at: number }>();

  constructor(
    private readonly log: Log,
    private readonly tracing: () => Tracing,
    private readonly now: () => number,
  ) {}

  #tell(arrow: "-->" | "<--", message: Traced, level: Tracing): void {
    const { id, method, error } = message;
    const other = arrow === "-->" ? "<--" : "-->";
    let line: string;
    if (typeof method === "string") {
      line = id === undefined ? method : `${method} (${id ?? ""})`;
      if (id !== undefined) {
        this.#asked.set(`${arrow}${id ?? ""}`, { method, at: this.now() });
      }
    } else {
      const key = `${other}${id ?? ""}`;
      const asked = this.#asked.get(key);
      this.#asked.delete(key);
      const took = asked ? `${asked.method} after ${Math.round(this.now() - asked.at)} ms` : "?";
      line = `${error === undefined ? "result" : "error"} (${id ?? ""}) of ${took}`;
    }
    if (level === "verbose") {
      const body = JSON.stringify(abridged(message.params ?? error ?? message.result ?? null));
      line += ` ${body.length > MESSAGE ? `${body.slice(0, MESSAGE)}…` : body}`;
    }
    this.log.info(`${arrow} ${line}`);
  }

  sent(message: object): void {
    this.#pass("-->", message);
  }

  received(message: object): void {
    this.#pass("<--", message);
  }

  #pass(arrow: "-->" | "<--", message: Traced): void {
    const level = this.tracing();
    if (level !== "off") {
      this.#tell(arrow, message, level);
    } else if (this.#asked.size > 0) {
      this.#asked.clear();
    }
  }
}
