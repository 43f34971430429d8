/** A server that runs, as its supervisor knows it. */
import type { JsonObject } from "@callboard/protocol";
import type { CallError } from "./errors";

/** Whether the server still waits for the answer to what it asked. */
export interface CancelToken {
  readonly cancelled: boolean;
  onCancelled(listener: () => void): void;
}

export interface Exit {
  /** null: a signal ended it. */
  code: number | null;
  signal: NodeJS.Signals | null;
  /** It could not be started. */
  fault?: string;
  /** What came in place of a frame. */
  garbage?: string;
  /** Its last lines. */
  stderr: string[];
}

export interface ClientHandlers {
  notification(method: string, params: JsonObject): void;
  /** Answers when it can; a `CallError` is an answer as well. */
  request(method: string, params: JsonObject, token: CancelToken): Promise<object>;
  /** Something has come, whatever it is. */
  heard(): void;
  /** Once, whatever ended it, after all that it said was handled. */
  exit(exit: Exit): void;
}

export type Answered = (fault: CallError | undefined, result: unknown) => void;

export interface Client {
  readonly pid: number;
  alive(): boolean;
  /**
   * Asks. `answered` is not called when the process ends first: `exit` is.
   * @returns asks that the request is given up; its answer still comes
   */
  request(method: string, params: object, answered: Answered): () => void;
  notify(method: string, params: object): void;
  kill(): void;
  /** Ends the server in order, and by force when it has not gone after `graceMs`; `exit` tells of it. */
  stop(graceMs: number): void;
  /** As `stop`, at once: there is no later. Resolves when it has gone. */
  leave(graceMs: number): Promise<void>;
}
