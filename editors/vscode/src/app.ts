/**
 * The composition root: one server, one store, what of it this window follows. It knows no editor: what
 * it needs of one is given to it as an `Editor`.
 */
import type {
  Approval,
  ApprovalOption,
  HandshakeResult,
  Requests,
  Resolution,
  Session,
  TurnOutcome,
} from "@callboard/protocol";
import { followStore } from "./catalog";
import { Listeners, guard } from "./listeners";
import type { Log } from "./log";
import { answerer } from "./model/approvalCard";
import { newApprovals, removeApproval } from "./model/approvals";
import { counts, newSessions, putSession, removeSession } from "./model/store";
import { Questions, type BufferReader } from "./questions";
import { CallError, kindOf } from "./server/errors";
import { Feed } from "./server/feed";
import { Supervisor } from "./server/supervisor";
import type { RequestOptions, SupervisorEnvironment } from "./server/supervisor";
import { OpenSession } from "./session";
import type { Stop } from "./stopping";

/** What of the supervisor's environment belongs to the editor; the rest is the app's. */
export type ServerEnvironment = Omit<
  SupervisorEnvironment,
  "changed" | "ready" | "notification" | "request" | "exited" | "log"
>;

export interface Editor {
  log: Log;
  server: ServerEnvironment;
  buffers: BufferReader;
  clientId: string;
  /** No server may run where the person does not trust the folder. */
  trusted(): boolean;
}

export interface TurnEnd {
  sessionId: string;
  turnId: string;
  outcome: TurnOutcome;
}

export interface ApprovalEnd {
  approval: Approval | undefined;
  approvalId: string;
  resolution: Resolution | undefined;
}

interface Topics {
  /** The server's state is another one. */
  server: undefined;
  sessions: undefined;
  approvals: undefined;
  focused: undefined;
  turnEnded: TurnEnd;
  approvalEnded: ApprovalEnd;
}

export type Topic = keyof Topics;

/** What came of an answer. */
export type Answered = { taken: true } | { taken: false; message: string };

/** How long (ms) the window's end may wait for the server's: a running turn is brought to a safe place. */
const LEAVE_MS = 500;
const LEAVE_BUSY_MS = 2000;

/** Ends of an approval that make further answers useless. */
const OVER = new Set(["alreadyResolved", "approvalExpired", "approvalNotFound"]);

export class App {
  readonly log: Log;
  readonly clientId: string;
  readonly sessions = newSessions();
  readonly approvals = newApprovals();
  readonly server: Supervisor;
  readonly feed: Feed;
  readonly questions: Questions;
  /** By session. */
  readonly stopping = new Map<string, Stop>();
  /** Roots whose agents are known to be a group. */
  readonly groups = new Set<string>();
  /** A server was there before the one that is there. */
  greeted = false;
  readonly #topics: { [T in Topic]: Listeners<Topics[T]> };
  readonly #open = new Map<string, { session: OpenSession; users: number }>();
  readonly #refreshing = new Map<string, "once" | "again">();
  #focused: string | undefined;
  #keys = 0;
  #following = false;

  constructor(private readonly editor: Editor) {
    const log = editor.log;
    this.log = log;
    this.clientId = editor.clientId;
    this.#topics = {
      server: new Listeners(log),
      sessions: new Listeners(log),
      approvals: new Listeners(log),
      focused: new Listeners(log),
      turnEnded: new Listeners(log),
      approvalEnded: new Listeners(log),
    };
    this.questions = new Questions(this, editor.buffers);
    this.server = new Supervisor({
      ...editor.server,
      log,
      changed: () => {
        this.tell("server", undefined);
      },
      ready: (handshake) => {
        this.#ready(handshake);
      },
      notification: (method, params) => {
        this.#notification(method, params);
      },
      request: (method, params, token) => this.questions.asked(method, params, token),
      exited: () => {
        this.questions.forget();
      },
    });
    this.feed = new Feed(this.server, log);
  }

  /** Whether the person lets a server run here. */
  get trusted(): boolean {
    return this.editor.trusted();
  }

  /** The session that the person looks at, or looked at last. */
  get focused(): string | undefined {
    return this.#focused;
  }

  set focused(sessionId: string | undefined) {
    if (this.#focused !== sessionId) {
      this.#focused = sessionId;
      this.tell("focused", undefined);
    }
  }

  /** Starts the server with its first use; does nothing where none may run, or one does. */
  start(): void {
    if (!this.trusted) {
      return;
    }
    if (!this.#following) {
      this.#following = true;
      followStore(this);
    }
    this.server.start();
  }

  #ready(handshake: HandshakeResult): void {
    this.log.info(`server ${handshake.serverInfo.version ?? "?"}, store ${handshake.storeId}`);
    this.greeted = true;
    this.feed.resume();
    for (const { session } of this.#open.values()) {
      session.returned();
    }
  }

  #notification(method: string, params: object): void {
    if (!this.feed.notification(method, params) && method === "window/logMessage") {
      const message = (params as { message?: unknown }).message;
      this.log.info(`server: ${typeof message === "string" ? message : ""}`);
    }
  }

  on<T extends Topic>(topic: T, listener: (value: Topics[T]) => void): () => void {
    return this.#topics[topic].on(listener);
  }

  tell<T extends Topic>(topic: T, value: Topics[T]): void {
    this.#topics[topic].tell(value);
  }

  /** @returns a key that is unique: what is asked again with it does nothing twice */
  newKey(): string {
    this.#keys += 1;
    return `${this.clientId}.${this.#keys}`;
  }

  /**
   * Asks the server, starting it if need be. What changes something wants a key: see `change`.
   * @throws CallError
   */
  request<M extends keyof Requests>(
    method: M,
    params: Requests[M]["params"],
    options?: RequestOptions,
  ): Promise<Requests[M]["result"]> {
    if (!this.trusted) {
      return Promise.reject(
        new CallError(0, "In Restricted Mode no server runs. Trust the workspace first.", {
          kind: "noServer",
        }),
      );
    }
    this.start();
    return this.server.request(method, params, options);
  }

  /**
   * Asks for a change: with a key, so that the next server can be asked again when one dies before it has
   * answered.
   * @throws CallError
   */
  change<M extends keyof Requests>(
    method: M,
    params: Requests[M]["params"],
  ): Promise<Requests[M]["result"]> {
    return this.request(method, { ...params, idempotencyKey: this.newKey() });
  }

  feature(name: string): boolean {
    return this.server.handshake?.features[name] === true;
  }

  putSession(session: Session): void {
    putSession(this.sessions, session);
    this.tell("sessions", undefined);
  }

  /** Asks for a session anew; several wishes at a time are one request. */
  refresh(sessionId: string): void {
    if (this.#refreshing.has(sessionId)) {
      this.#refreshing.set(sessionId, "again");
      return;
    }
    this.#refreshing.set(sessionId, "once");
    void this.request("session/get", { sessionId })
      .then(
        ({ session }) => {
          // Here no options are none, and not left out.
          this.putSession({ options: [], ...session });
        },
        (fault: unknown) => {
          if (kindOf(fault) === "sessionNotFound") {
            removeSession(this.sessions, sessionId);
            this.tell("sessions", undefined);
          }
        },
      )
      .finally(() => {
        const again = this.#refreshing.get(sessionId) === "again";
        this.#refreshing.delete(sessionId);
        if (again) {
          this.refresh(sessionId);
        }
      });
  }

  /** Answers an approval. Whoever was first has won; others hear what came of it. */
  async answer(approval: Approval, option: ApprovalOption, feedback?: string): Promise<Answered> {
    const { approvalId } = approval;
    try {
      await this.change("approval/answer", {
        approvalId,
        optionId: option.optionId,
        ...(feedback === undefined ? {} : { feedback }),
      });
      this.settle(approvalId, undefined);
      return { taken: true };
    } catch (fault) {
      if (!(fault instanceof CallError)) {
        throw fault;
      }
      const resolution = resolutionIn(fault);
      if (fault.kind !== undefined && OVER.has(fault.kind)) {
        this.settle(approvalId, resolution);
      }
      if (fault.kind === "alreadyResolved") {
        const whom = answerer(resolution?.by) ?? "somebody else";
        const by = whom === "you" ? "you in another window" : whom;
        const what = resolution?.outcome ?? "answered";
        return { taken: false, message: `${approval.title} was ${what} by ${by} already` };
      }
      return { taken: false, message: fault.explained() };
    }
  }

  /** An approval waits no more. */
  settle(approvalId: string, resolution: Resolution | undefined): void {
    this.questions.withdraw(approvalId);
    const approval = removeApproval(this.approvals, approvalId);
    if (approval) {
      this.tell("approvals", undefined);
    }
    this.tell("approvalEnded", { approval, approvalId, resolution });
  }

  /** A session, followed while somebody looks at it. Each `use` wants its `release`. */
  use(sessionId: string): OpenSession {
    let entry = this.#open.get(sessionId);
    if (!entry) {
      entry = { session: new OpenSession(this, sessionId), users: 0 };
      this.#open.set(sessionId, entry);
      void entry.session.load();
    }
    entry.users += 1;
    return entry.session;
  }

  openIds(): string[] {
    return [...this.#open.keys()];
  }

  release(sessionId: string): void {
    const entry = this.#open.get(sessionId);
    if (entry) {
      entry.users -= 1;
      if (entry.users === 0) {
        this.#open.delete(sessionId);
        entry.session.close();
      }
    }
  }

  /** Ends the server because the window goes. Sessions go on where they were, with the next one. */
  async leave(): Promise<void> {
    const busy = counts(this.sessions).running > 0;
    await this.server.leave(busy ? LEAVE_BUSY_MS : LEAVE_MS);
  }

  /** Calls a function whose failure must keep nothing else from happening. */
  guard(fn: () => void): boolean {
    return guard(this.log, fn);
  }
}

function resolutionIn(fault: CallError): Resolution | undefined {
  const found = fault.data["resolution"];
  return typeof found === "object" && found !== null && "outcome" in found && "by" in found
    ? (found as Resolution)
    : undefined;
}
