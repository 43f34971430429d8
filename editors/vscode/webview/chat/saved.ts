/** What the page keeps for the one that will stand here after it: it may be taken down whenever it is hidden. */
import type { FromChat } from "../../src/shared/chat.js";
import type { Host } from "../shared/host.js";

export interface Sending {
  key: string;
  text: string;
  session: string;
}

interface Kept {
  /** Whose chat it is: an editor tab comes up again with it. */
  sessionId?: string;
  drafts: Record<string, string>;
  history: Record<string, string[]>;
  /** Cards that were folded or unfolded by hand. */
  folds: Record<string, boolean>;
  /** Where the person was in the list; absent at its end. */
  place?: { session: string; card: string; offset: number };
  sending: Sending[];
}

const LIMITS = { drafts: 20, history: 20, entries: 100, folds: 500 };
/** Writing is put off for so long (ms): a key is not the time for it. */
const DELAY = 300;

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function recordOf<T>(value: unknown, is: (each: unknown) => each is T): Record<string, T> {
  const found: Record<string, T> = {};
  if (isRecord(value)) {
    for (const [name, each] of Object.entries(value)) {
      if (is(each)) {
        found[name] = each;
      }
    }
  }
  return found;
}

const isString = (value: unknown): value is string => typeof value === "string";
const isBoolean = (value: unknown): value is boolean => typeof value === "boolean";
const isStrings = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every(isString);

function isSending(value: unknown): value is Sending {
  return (
    isRecord(value) &&
    isString(value["key"]) &&
    isString(value["text"]) &&
    isString(value["session"])
  );
}

function read(raw: unknown): Kept {
  const from = isRecord(raw) ? raw : {};
  const sending = from["sending"];
  const place = from["place"];
  const kept: Kept = {
    drafts: recordOf(from["drafts"], isString),
    history: recordOf(from["history"], isStrings),
    folds: recordOf(from["folds"], isBoolean),
    sending: Array.isArray(sending) ? sending.filter(isSending) : [],
  };
  if (isString(from["sessionId"])) {
    kept.sessionId = from["sessionId"];
  }
  if (
    isRecord(place) &&
    isString(place["session"]) &&
    isString(place["card"]) &&
    typeof place["offset"] === "number"
  ) {
    kept.place = { session: place["session"], card: place["card"], offset: place["offset"] };
  }
  return kept;
}

/** Puts a value at the end of a record, and leaves out the oldest. */
function put<T>(
  record: Record<string, T>,
  name: string,
  value: T | undefined,
  limit: number,
): void {
  // eslint-disable-next-line @typescript-eslint/no-dynamic-delete
  delete record[name];
  if (value !== undefined) {
    record[name] = value;
  }
  for (const oldest of Object.keys(record).slice(0, -limit)) {
    // eslint-disable-next-line @typescript-eslint/no-dynamic-delete
    delete record[oldest];
  }
}

export class Saved {
  private readonly kept: Kept;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly host: Host<FromChat>) {
    this.kept = read(host.kept());
    // What the state is read for last: the page is about to go.
    const flush = (): void => {
      if (this.timer !== undefined) {
        this.write();
      }
    };
    window.addEventListener("pagehide", flush);
    document.addEventListener("visibilitychange", flush);
  }

  get sessionId(): string | undefined {
    return this.kept.sessionId;
  }

  set sessionId(id: string | undefined) {
    if (id === this.kept.sessionId) {
      return;
    }
    if (id === undefined) {
      delete this.kept.sessionId;
    } else {
      this.kept.sessionId = id;
    }
    this.write();
  }

  draft(session: string): string {
    return this.kept.drafts[session] ?? "";
  }

  setDraft(session: string, text: string): void {
    put(this.kept.drafts, session, text === "" ? undefined : text, LIMITS.drafts);
    this.soon();
  }

  history(session: string): readonly string[] {
    return this.kept.history[session] ?? [];
  }

  remember(session: string, text: string): void {
    const before = this.history(session);
    if (text.trim() !== "" && before.at(-1) !== text) {
      put(this.kept.history, session, [...before, text].slice(-LIMITS.entries), LIMITS.history);
      this.soon();
    }
  }

  fold(id: string): boolean | undefined {
    return this.kept.folds[id];
  }

  setFold(id: string, open: boolean): void {
    put(this.kept.folds, id, open, LIMITS.folds);
    this.soon();
  }

  get place(): Kept["place"] {
    return this.kept.place;
  }

  setPlace(place: Kept["place"]): void {
    if (place) {
      this.kept.place = place;
    } else {
      delete this.kept.place;
    }
    this.soon();
  }

  get sending(): readonly Sending[] {
    return this.kept.sending;
  }

  /** What is on its way is kept at once: it stands nowhere else until the log has it. */
  setSending(sending: readonly Sending[]): void {
    this.kept.sending = [...sending];
    this.write();
  }

  private soon(): void {
    this.timer ??= setTimeout(() => {
      this.write();
    }, DELAY);
  }

  private write(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.host.keep(this.kept);
  }
}
