/** One server process and the JSON-RPC that is spoken with it. */
import type { JsonObject } from "@callboard/protocol";
import {
  CancellationTokenSource,
  createMessageConnection,
  ResponseError,
  type CancellationToken,
  type Logger,
  type MessageConnection,
} from "vscode-jsonrpc/node";
import type { Log } from "../log";
import type { Answered, Client, ClientHandlers } from "./client";
import { Complaints } from "./complaints";
import { CallError, errorFrom } from "./errors";
import { frame } from "./framing";
import { Inbox } from "./inbox";
import { Process, type ProcessEnd, type ProcessOptions } from "./process";
import { Tracer, type Tracing } from "./trace";
import { Writer } from "./writer";

export type { Answered, CancelToken, Client, ClientHandlers, Exit } from "./client";

export interface ClientOptions extends ProcessOptions {
  log: Log;
  tracing?: () => Tracing;
  /** Of what waits to be handled. */
  room?: { messages: number; bytes: number };
}

class Connection implements Client {
  readonly #log: Log;
  readonly #process: Process;
  readonly #inbox: Inbox;
  readonly #writer: Writer;
  readonly #complaints: Complaints;
  readonly #rpc: MessageConnection;
  #garbage: string | undefined;
  #gone = false;
  #grace: NodeJS.Timeout | undefined;
  readonly #whenGone: (() => void)[] = [];

  constructor(
    cmd: readonly string[],
    private readonly handlers: ClientHandlers,
    options: ClientOptions,
  ) {
    const { log } = options;
    this.#log = log;
    this.#complaints = new Complaints(log);
    const tracer = new Tracer(log, options.tracing ?? (() => "off"), () => performance.now());
    this.#inbox = new Inbox(
      {
        hold: (held) => {
          this.#process.hold(held);
        },
        refused: (garbage) => {
          this.#refuse(garbage);
        },
        received: (message) => {
          tracer.received(message);
          handlers.heard();
        },
      },
      log,
      options.room,
    );
    this.#writer = new Writer((message, body) => {
      tracer.sent(message);
      this.#process.write(frame(body));
    });
    this.#rpc = createMessageConnection(this.#inbox, this.#writer, quiet(log));
    this.#rpc.onNotification((method, params) => {
      this.#notification(method, params as unknown as JsonObject);
    });
    this.#rpc.onRequest((method, params, token) =>
      this.#asked(method, params as unknown as JsonObject, token),
    );
    this.#rpc.listen();
    this.#process = new Process(cmd, options, {
      stdout: (chunk) => {
        handlers.heard();
        this.#inbox.feed(chunk);
      },
      stderr: (chunk) => {
        this.#complaints.add(chunk);
      },
      exit: (end) => {
        this.#inbox.whenEmpty(() => {
          this.#exited(end);
        });
      },
    });
  }

  get pid(): number {
    return this.#process.pid;
  }

  alive(): boolean {
    return !this.#gone;
  }

  #notification(method: string, params: JsonObject): void {
    try {
      this.handlers.notification(method, params);
    } catch (fault) {
      this.#failed(method, fault);
    }
  }

  #failed(method: string, fault: unknown): void {
    const why = fault instanceof Error ? (fault.stack ?? fault.message) : String(fault);
    this.#log.error(`${method} could not be handled: ${why}`);
  }

  async #asked(method: string, params: JsonObject, token: CancellationToken): Promise<unknown> {
    try {
      return await this.handlers.request(method, params, {
        get cancelled() {
          return token.isCancellationRequested;
        },
        onCancelled: (listener) => {
          token.onCancellationRequested(listener);
        },
      });
    } catch (fault) {
      if (fault instanceof CallError) {
        return new ResponseError(fault.code || -32603, fault.message, fault.data);
      }
      this.#failed(method, fault);
      return new ResponseError(-32603, `the client failed at ${method}`);
    }
  }

  request(method: string, params: object, answered: Answered): () => void {
    if (this.#gone) {
      return () => undefined;
    }
    const source = new CancellationTokenSource();
    const settle = (fault: CallError | undefined, result: unknown): void => {
      source.dispose();
      if (!this.#gone) {
        answered(fault, result);
      }
    };
    const asked = this.#rpc.sendRequest<unknown>(method, params, source.token);
    const unwritten = this.#writer.fault;
    asked.then(
      (result) => {
        settle(undefined, result);
      },
      (fault: unknown) => {
        settle(errorFrom(fault), undefined);
      },
    );
    if (unwritten !== undefined) {
      this.#log.error(`${method} cannot be written: ${unwritten}`);
      queueMicrotask(() => {
        settle(new CallError(-32602, unwritten, { kind: "invalidParams" }), undefined);
      });
    }
    return () => {
      if (!this.#gone) {
        source.cancel();
      }
    };
  }

  notify(method: string, params: object): void {
    if (!this.#gone) {
      void this.#rpc.sendNotification(method, params);
      if (this.#writer.fault !== undefined) {
        this.#log.error(`${method} cannot be written: ${this.#writer.fault}`);
      }
    }
  }

  /** What it says is not the protocol: nothing more of it is of use. */
  #refuse(garbage: string): void {
    this.#garbage ??= garbage;
    this.#process.terminate();
  }

  #exited(end: ProcessEnd): void {
    this.#log.info(
      `the server ${this.pid} ended: ${end.fault ?? end.signal ?? `code ${end.code ?? "?"}`}`,
    );
    this.#gone = true;
    clearTimeout(this.#grace);
    this.#rpc.dispose();
    this.handlers.exit({
      ...end,
      ...(this.#garbage === undefined ? {} : { garbage: this.#garbage }),
      stderr: this.#complaints.lines(),
    });
    for (const told of this.#whenGone) {
      told();
    }
  }

  kill(): void {
    this.#process.kill("SIGKILL");
  }

  #endIn(ms: number): void {
    clearTimeout(this.#grace);
    this.#grace = setTimeout(() => {
      this.#process.terminate();
    }, ms);
  }

  stop(graceMs: number): void {
    if (!this.#gone) {
      this.request("shutdown", {}, () => {
        this.notify("exit", {});
        this.#process.hangUp();
      });
      this.#endIn(graceMs);
    }
  }

  leave(graceMs: number): Promise<void> {
    if (this.#gone) {
      return Promise.resolve();
    }
    this.request("shutdown", {}, () => undefined);
    this.notify("exit", {});
    this.#process.hangUp();
    this.#endIn(graceMs);
    return new Promise((resolve) => {
      this.#whenGone.push(resolve);
    });
  }
}

/** What the library has to say is for the log. */
function quiet(log: Log): Logger {
  const warn = (text: string): void => {
    log.warn(text);
  };
  const debug = (text: string): void => {
    log.debug(text);
  };
  return { error: warn, warn, info: debug, log: debug };
}

/** Starts a server. That it cannot be started is told by `exit`, later. */
export function startClient(
  cmd: readonly string[],
  handlers: ClientHandlers,
  options: ClientOptions,
): Client {
  const client = new Connection(cmd, handlers, options);
  options.log.info(`started ${cmd.join(" ")} as ${client.pid}`);
  return client;
}
