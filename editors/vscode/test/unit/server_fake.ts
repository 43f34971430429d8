// A supervisor's surroundings without processes and without time: servers that do what a test says, and a clock
// that goes when it is told to.
import type { InitializeParams, Requests } from "@callboard/protocol";
import type {
  Answered,
  CancelToken,
  Client,
  ClientHandlers,
  Exit,
} from "../../src/server/connection";
import { kindOf, type CallError } from "../../src/server/errors";
import type { Found, Located } from "../../src/server/locate";
import {
  Supervisor,
  type RequestOptions,
  type SupervisorEnvironment,
} from "../../src/server/supervisor";
import { Lines } from "./logs";

interface Sent {
  method: string;
  params: object;
  answered?: Answered | undefined;
  id?: number;
}

export class FakeClient implements Client {
  readonly sent: Sent[] = [];
  pid = 7;
  stopping: number | undefined;
  killed = 0;
  left: number | undefined;
  #ended = false;
  #last = 0;
  #whenGone: (() => void)[] = [];

  constructor(
    readonly found: Found,
    readonly handlers: ClientHandlers,
  ) {}

  alive(): boolean {
    return !this.#ended;
  }

  request(method: string, params: object, answered: Answered): () => void {
    const id = (this.#last += 1);
    this.sent.push({ id, method, params, answered });
    return () => {
      this.sent.push({ method: "$/cancelRequest", params: { id } });
    };
  }

  notify(method: string, params: object): void {
    this.sent.push({ method, params });
  }

  kill(): void {
    this.killed += 1;
  }

  stop(graceMs: number): void {
    this.stopping = graceMs;
  }

  leave(graceMs: number): Promise<void> {
    this.left = graceMs;
    return new Promise((resolve) => {
      this.#whenGone.push(resolve);
    });
  }

  /** The methods of what was sent, in order. */
  get methods(): string[] {
    return this.sent.map((each) => each.method);
  }

  of(method: string): Sent[] {
    return this.sent.filter((each) => each.method === method);
  }

  #answer(method: string, fault: CallError | undefined, result: unknown): void {
    const open = this.sent.find((each) => each.method === method && each.answered);
    if (!open?.answered) {
      throw new Error(`nobody asked for ${method}`);
    }
    const { answered } = open;
    open.answered = undefined;
    answered(fault, result);
  }

  /** Answers the oldest request of a method that was not answered; a word stands for an answer that says it. */
  answer(method: string, result: unknown): void {
    this.#answer(method, undefined, typeof result === "string" ? { said: result } : result);
  }

  refuse(method: string, fault: CallError): void {
    this.#answer(method, fault, undefined);
  }

  /** Answers `initialize` as Callboard does. */
  greet(handshake: object = {}): void {
    const callboard = {
      protocolVersion: "1.0",
      storeId: "store",
      serverInfo: { name: "callboard", version: "1" },
      features: {},
      ...handshake,
    };
    this.answer("initialize", { capabilities: { experimental: { callboard } } });
  }

  exit(exit: Partial<Exit> = {}): void {
    this.#ended = true;
    this.handlers.exit({ code: 1, signal: null, stderr: [], ...exit });
    for (const told of this.#whenGone) {
      told();
    }
  }
}

interface Timer {
  at: number;
  fn: (() => void) | undefined;
}

export class FakeServers {
  /** The newest last. */
  readonly clients: FakeClient[] = [];
  /** That the supervisor went through, "silent" and "heard" among them. */
  readonly states: string[] = [];
  readonly exits: { code: number | null; expected: boolean }[] = [];
  readonly heard: [string, object][] = [];
  readonly asked: [string, object, CancelToken][] = [];
  /** What `ask` came to: an answer, its word if it says one, or the kind of a fault. */
  readonly answers: [string, unknown][] = [];
  readonly log = new Lines();
  greeted = 0;
  found: Found = { cmd: ["/bin/callboard", "serve"], how: "PATH" };
  /** Why none is found. */
  fault: string | undefined;
  /** Finding takes until this resolves. */
  searching: Promise<void> = Promise.resolve();
  onReady: (() => void) | undefined;
  readonly supervisor: Supervisor;
  #time = 0;
  #timers: Timer[] = [];

  constructor(more: Partial<SupervisorEnvironment> = {}) {
    this.supervisor = new Supervisor({
      log: this.log,
      locate: async (): Promise<Located> => {
        await this.searching;
        return this.fault === undefined ? { found: this.found } : { fault: this.fault };
      },
      start: (found, handlers) => {
        const client = new FakeClient(found, handlers);
        this.clients.push(client);
        return client;
      },
      initialize: () => ({ hello: true }) as InitializeParams,
      folders: () => ["/project"],
      now: () => this.#time,
      later: (ms, fn) => {
        const timer: Timer = { at: this.#time + ms, fn };
        this.#timers.push(timer);
        return () => {
          timer.fn = undefined;
        };
      },
      changed: () => {
        const { state, silent } = this.supervisor;
        this.states.push(silent ? `${state}, silent` : state);
      },
      ready: () => {
        this.greeted += 1;
        this.onReady?.();
      },
      notification: (method, params) => {
        this.heard.push([method, params]);
      },
      request: (method, params, token) => {
        this.asked.push([method, params, token]);
        return Promise.resolve({ defer: true });
      },
      exited: ({ code }, expected) => {
        this.exits.push({ code, expected });
      },
      ...more,
    });
  }

  /** The newest server. */
  get client(): FakeClient {
    const client = this.clients.at(-1);
    if (!client) {
      throw new Error("no server was started");
    }
    return client;
  }

  /** Lets a server be found and started. */
  async begin(): Promise<FakeClient> {
    this.supervisor.start();
    await settled();
    return this.client;
  }

  /** Lets a server be ready. */
  async ready(): Promise<FakeClient> {
    const client = await this.begin();
    client.greet();
    return client;
  }

  /** Asks the supervisor for something, and keeps what is said to that. */
  ask(method: string, options?: RequestOptions, params: object = {}): void {
    // Methods that no server has keep tests short.
    this.supervisor.request(method as keyof Requests, params as never, options).then(
      (result) => {
        this.answers.push([method, (result as { said?: unknown }).said ?? result]);
      },
      (fault: unknown) => {
        this.answers.push([method, kindOf(fault)]);
      },
    );
  }

  /** In so many ms timers go off. */
  get pending(): number[] {
    return this.#timers
      .filter((timer) => timer.fn)
      .map((timer) => timer.at - this.#time)
      .sort((a, b) => a - b);
  }

  /** Time goes by, and whoever waits for something gets it. */
  async pass(ms: number): Promise<void> {
    const ends = this.#time + ms;
    for (;;) {
      await settled();
      const [next] = this.#timers
        .filter((timer) => timer.fn && timer.at <= ends)
        .sort((a, b) => a.at - b.at);
      if (!next?.fn) {
        break;
      }
      this.#time = Math.max(this.#time, next.at);
      const { fn } = next;
      next.fn = undefined;
      fn();
    }
    this.#time = ends;
    this.#timers = this.#timers.filter((timer) => timer.fn);
  }

  /** Time goes by while nothing can run, as while the machine sleeps. */
  sleep(ms: number): void {
    this.#time += ms;
  }
}

/** Lets all promises that can be kept be kept. */
export function settled(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
