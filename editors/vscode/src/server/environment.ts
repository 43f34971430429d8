/** What a supervisor is asked for, and what it is built on. */
import type { HandshakeResult, InitializeParams, JsonObject } from "@callboard/protocol";
import type { Log } from "../log";
import type { CancelToken, Client, ClientHandlers, Exit } from "./client";
import type { Found, Located } from "./locate";

export type ServerState = "stopped" | "starting" | "ready" | "waiting" | "failed";

/** What a supervisor is built on; tests give their own. */
export interface SupervisorEnvironment {
  log: Log;
  locate(): Promise<Located>;
  start(found: Found, handlers: ClientHandlers): Client;
  /** Params of `initialize`. */
  initialize(): InitializeParams;
  /** In which the server is looked for. */
  folders(): readonly string[];
  /** ms, of a clock that only goes forward. */
  now(): number;
  /** @returns what takes it back */
  later(ms: number, fn: () => void): () => void;
  /** The state, or whether it is silent, is another one. */
  changed(): void;
  ready(handshake: HandshakeResult): void;
  notification(method: string, params: JsonObject): void;
  request(method: string, params: JsonObject, token: CancelToken): Promise<object>;
  exited(exit: Exit, expected: boolean): void;
}

export interface RequestOptions {
  /** When the server dies first, it is not asked of the next one: it fails with kind `serverGone`. */
  once?: boolean;
  /** Gives it up: it fails with kind `requestCancelled`. */
  signal?: AbortSignal;
  /** It waits for something that may take long, as `session/wait` does: a server is not silent for it. */
  patient?: boolean;
}

export interface Failure {
  message: string;
  /** What the server wrote to stderr last. */
  lines: string[];
  /** It could be started, and said why it does not serve. */
  refused: boolean;
  /** It had not begun to serve. */
  starting: boolean;
}
