/** What goes wrong with a request, and what that means to a person: its words, and the way out. */
import type { ErrorKind, JsonObject } from "@callboard/protocol";
import { asText } from "../model/text";

/** What no server says, since it is said of one. */
export type OwnKind =
  /** None can be had. */
  | "noServer"
  /** It died before it answered, and the request is not to be asked again. */
  | "serverGone"
  /** Its answer cannot be read. */
  | "unreadable";

/** A later server may send kinds that this version does not know. */
export type CallErrorKind = ErrorKind | OwnKind | (string & {});

/** A request that was not answered with what was asked for. */
export class CallError extends Error {
  override readonly name = "CallError";

  constructor(
    readonly code: number,
    message: string,
    readonly data: JsonObject = {},
  ) {
    super(message);
  }

  get kind(): CallErrorKind | undefined {
    const kind = this.data["kind"];
    return typeof kind === "string" ? kind : undefined;
  }

  /** That there is no server was told to the person when it failed, not again for each that waited. */
  get told(): boolean {
    return this.data["told"] === true;
  }

  /** The server says that the same may go well later: its store is full, or busy. */
  get passing(): boolean {
    return this.data["retryable"] === true;
  }

  explained(): string {
    const way = WAYS.get(this.kind ?? "");
    const message = this.message.trim() || "the server gave no reason";
    return way === undefined || message.includes(way) ? message : `${message}\n${way}`;
  }
}

/** Ways out, by the kind that the server tells; where its own words have none. */
const WAYS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    sessionNotFound:
      "It was deleted, or is in another store. The sessions view shows those that are there.",
    sessionClosed: "Begin another one with “Callboard: New Session”.",
    sessionArchived: "Bring it back from the sessions view.",
    authRequired: "Set the key of the model; “Callboard: Doctor” says what is found.",
    modelUnavailable: "“Callboard: Select Model” picks another one.",
    featureDisabled: "It is switched off in the configuration of Callboard.",
  }),
);

/** In the words that a person is told. */
export function explain(fault: unknown): string {
  if (fault instanceof CallError) {
    return fault.explained();
  }
  return fault instanceof Error ? fault.message : asText(fault);
}

export function kindOf(fault: unknown): CallErrorKind | undefined {
  return fault instanceof CallError ? fault.kind : undefined;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What a peer sent as an error, whatever it is. */
export function errorFrom(value: unknown): CallError {
  if (!isObject(value)) {
    return new CallError(0, asText(value));
  }
  const { code, message, data } = value;
  return new CallError(
    typeof code === "number" ? code : 0,
    asText(message),
    isObject(data) ? data : {},
  );
}
