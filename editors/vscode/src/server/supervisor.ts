/**
 * Keeps one server running: starts it with the first use, starts it again when it has died, gives up when that
 * does not help, and asks anew what was not answered. What changes something carries a key, so a repetition
 * does nothing twice.
 */
import type {
  HandshakeResult,
  JsonObject,
  Notifications,
  Requests as Methods,
} from "@callboard/protocol";
import { guard } from "../listeners";
import { asking } from "./asking";
import type { CancelToken, Client, Exit } from "./client";
import { Deaths } from "./deaths";
import { againAndAgain, hopeless, why, type Ending } from "./endings";
import type { Failure, RequestOptions, ServerState, SupervisorEnvironment } from "./environment";
import { CallError, explain } from "./errors";
import { anotherProgram, greeting } from "./greeting";
import type { Found, Located } from "./locate";
import { Requests, type Pending } from "./requests";
import { Silence } from "./silence";

export type { Failure, RequestOptions, ServerState, SupervisorEnvironment } from "./environment";

/** A server that has not answered `initialize` by then (ms) is ended. */
const PATIENCE_MS = 20_000;
/** How long (ms) a server may take to go. */
const GRACE_MS = 2000;

const ENDED = "the server was ended";

export class Supervisor {
  state: ServerState = "stopped";
  found: Found | undefined;
  handshake: HandshakeResult | undefined;
  /** Why it is waiting or has failed. */
  failure: Failure | undefined;
  readonly #env: SupervisorEnvironment;
  readonly #silence: Silence;
  readonly #requests: Requests;
  #client: Client | undefined;
  /** Of starts: only the last one goes on once the server is found. */
  #launches = 0;
  readonly #deaths = new Deaths();
  #untimed: (() => void) | undefined;
  /** The end of the server that runs is wanted. */
  #stopping = false;
  /** And no other one is. */
  #leaving = false;
  /** Why the server that runs does not serve. */
  #refusal: CallError | undefined;
  /** It did not answer in time. */
  #late = false;

  constructor(env: SupervisorEnvironment) {
    this.#env = env;
    this.#silence = new Silence({
      now: () => env.now(),
      later: (ms, fn) => env.later(ms, fn),
      due: () => this.#requests.due,
      changed: () => {
        this.#changed();
      },
    });
    this.#requests = new Requests(() => {
      this.#silence.settled();
    });
  }

  /** It owes an answer, and nothing has come from it for a while. */
  get silent(): boolean {
    return this.#silence.silent;
  }

  /** The number of the process that runs. */
  get pid(): number | undefined {
    return this.#client?.alive() === true ? this.#client.pid : undefined;
  }

  #changed(): void {
    guard(this.#env.log, () => {
      this.#env.changed();
    });
  }

  #become(state: ServerState): void {
    this.state = state;
    this.#changed();
  }

  /** Without arguments it takes back what was to come. */
  #timer(ms?: number, fn?: () => void): void {
    this.#untimed?.();
    this.#untimed = undefined;
    if (ms !== undefined && fn) {
      this.#untimed = this.#env.later(ms, () => {
        this.#untimed = undefined;
        fn();
      });
    }
  }

  #fail(message: string, ending?: Ending): void {
    const lines = ending?.exit.stderr ?? [];
    const refused = ending?.refusal !== undefined;
    const starting = ending?.starting ?? true;
    this.#timer();
    this.failure = { message, lines, refused, starting };
    this.#env.log.error(message);
    this.#become("failed");
    // That there is none was told just now, when it failed; not again of each that waited.
    this.#requests.refuse(this.#requests.waiting(), message, { kind: "noServer", told: true });
  }

  /** Starts the server, if none was started yet. One that has failed wants `restart`. */
  start(): void {
    if (this.state === "stopped" && !this.#leaving) {
      void this.#launch();
    }
  }

  /** Ends the server that runs, if one does, and starts another. */
  restart(): void {
    if (this.#leaving) {
      return;
    }
    this.#deaths.forget();
    this.failure = undefined;
    this.#timer();
    if (this.#client?.alive() === true) {
      this.#stopping = true;
      this.#refusal = undefined;
      this.#late = false;
      // One that says nothing will not answer this either.
      this.#client.stop(this.silent ? 0 : GRACE_MS);
    } else {
      void this.#launch();
    }
  }

  async #locate(): Promise<Located> {
    try {
      return await this.#env.locate();
    } catch (fault) {
      return { fault: explain(fault) };
    }
  }

  async #launch(): Promise<void> {
    this.#launches += 1;
    const launch = this.#launches;
    this.#stopping = false;
    this.#become("starting");
    const located = await this.#locate();
    if (launch !== this.#launches) {
      return; // another start, or the end, has overtaken this one
    } else if ("fault" in located) {
      this.found = undefined;
      this.#fail(located.fault);
      return;
    }
    this.found = located.found;
    const params = this.#env.initialize();
    const client = this.#env.start(located.found, {
      notification: (method, params) => {
        this.#env.notification(method, params);
      },
      request: (method, params, token) => this.#asked(method, params, token),
      heard: () => {
        this.#silence.heard();
      },
      exit: (exit) => {
        this.#exited(exit);
      },
    });
    this.#client = client;
    this.#timer(PATIENCE_MS, () => {
      this.#late = true;
      client.kill();
    });
    client.request("initialize", params, (fault, result) => {
      if (this.#stopping || this.#refusal) {
        return; // it is not this one that is waited for
      } else if (fault) {
        this.#refuse(fault);
      } else {
        this.#greeted(result);
      }
    });
  }

  #asked(method: string, params: JsonObject, token: CancelToken): Promise<object> {
    if (this.state !== "starting") {
      return this.#env.request(method, params, token);
    }
    if (!this.#refusal) {
      this.#refuse(anotherProgram(this.found?.cmd[0])); // as one that gives back what it reads
    }
    return Promise.reject(new CallError(-32002, "the client has not been greeted"));
  }

  #refuse(fault: CallError): void {
    this.#timer();
    this.#refusal = fault;
    this.#client?.stop(GRACE_MS);
  }

  #greeted(result: unknown): void {
    const greeted = greeting(result, this.found?.cmd[0]);
    if ("refusal" in greeted) {
      this.#refuse(greeted.refusal);
      return;
    }
    const { handshake } = greeted;
    this.#timer();
    this.handshake = handshake;
    this.failure = undefined;
    this.#client?.notify("initialized", {});
    this.#become("ready");
    guard(this.#env.log, () => {
      this.#env.ready(handshake);
    });
    for (const pending of this.#requests.waiting()) {
      this.#ask(pending);
    }
  }

  #ask(pending: Pending): void {
    if (this.state === "ready" && this.#client) {
      this.#requests.ask(pending, this.#client);
      this.#silence.asked();
    } else {
      this.#requests.wait(pending);
    }
  }

  /**
   * Asks the server, as soon as there is one.
   * @throws CallError, of kind `noServer` when none can be had
   */
  request<M extends keyof Methods>(
    method: M,
    params: Methods[M]["params"],
    options: RequestOptions = {},
  ): Promise<Methods[M]["result"]> {
    return asking(method, params, options, this.#requests, (pending) => {
      this.start();
      if (this.state === "failed" || this.#leaving) {
        const message = this.failure?.message ?? ENDED;
        this.#requests.refuse([pending], message, { kind: "noServer" });
      } else {
        this.#ask(pending);
      }
    });
  }

  /** Tells the server, if one is there. */
  notify<M extends keyof Notifications>(method: M, params: Notifications[M]["params"]): void {
    if (this.state === "ready") {
      this.#client?.notify(method, params);
    }
  }

  #exited(exit: Exit): void {
    this.#timer();
    const expected = this.#stopping;
    const ending: Ending = {
      cmd: this.found?.cmd ?? [],
      exit,
      refusal: this.#refusal,
      late: this.#late ? PATIENCE_MS / 1000 : undefined,
      starting: this.state === "starting",
      guess: this.found?.guess === true,
    };
    this.#client = undefined;
    this.#refusal = undefined;
    this.#late = false;
    this.#stopping = false;
    this.state = "waiting"; // whoever asks from here on waits for the next one
    const once = this.#requests.takeBack();
    this.#silence.reset();
    guard(this.#env.log, () => {
      this.#env.exited(exit, expected);
    });
    if (this.#leaving) {
      this.#left();
    } else if (expected) {
      void this.#launch();
    } else {
      this.#goOn(ending);
    }
    this.#requests.refuse(once, "the server has ended", { kind: "serverGone" });
  }

  /** @param ending of a server that nobody wanted to end */
  #goOn(ending: Ending): void {
    const { exit, refusal } = ending;
    const fault = hopeless(ending, this.#env.folders());
    if (fault !== undefined) {
      this.#fail(fault, ending);
      return;
    }
    const pause = this.#deaths.another(this.#env.now());
    if (pause === undefined) {
      this.#fail(againAndAgain(ending, this.#deaths.count), ending);
      return;
    }
    const message = why(ending);
    this.failure = {
      message,
      lines: exit.stderr,
      refused: refusal !== undefined,
      starting: ending.starting,
    };
    this.#env.log.warn(`${message}; it is started again`);
    this.#become("waiting");
    this.#timer(pause, () => {
      void this.#launch();
    });
  }

  #left(): void {
    this.#become("stopped");
    this.#requests.refuse(this.#requests.waiting(), ENDED, { kind: "noServer" });
  }

  /** Ends the server for good; resolves when it has gone. It may take `graceMs` before it is made to go. */
  async leave(graceMs: number): Promise<void> {
    this.#timer();
    this.#launches += 1;
    this.#leaving = true;
    this.#stopping = true;
    if (this.#client) {
      await this.#client.leave(graceMs);
    } else {
      this.#left();
    }
  }
}
