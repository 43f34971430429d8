/**
 * The changes of a session and of its agents, read from the log and followed while somebody looks at them; and
 * what is said of them, kept in the metadata of the sessions that made them.
 */
import type { Event, EventBatch, Scope, SessionCreated } from "@callboard/protocol";
import { isKnownEvent } from "@callboard/protocol";
import type { App } from "./app";
import { Listeners } from "./listeners";
import { Changes, writtenBy, type ChangedFile, type Step } from "./model/changes";
import { mergeReview, readReview, writeReview, type Review, type Verdict } from "./model/review";
import { CallError, explain, kindOf } from "./server/errors";

/** So often what was said is written, while others write to the same metadata. Each time one of them is done. */
const MAX_TRIES = 20;

const TYPES = [
  "session_created",
  "agent_spawned",
  "session_forked",
  "session_updated",
  "session_deleted",
  "tool_result",
];

/** Whether they are the same changes, as far as a person can see. */
export function isSame(a: ChangedFile, b: ChangedFile): boolean {
  return (
    a.state === b.state && a.chain.length === b.chain.length && a.chain.at(-1) === b.chain.at(-1)
  );
}

/** A session, with its agents; an agent for itself. */
function scopeOf(app: App, id: string): Scope {
  const isAgent = app.sessions.byId.get(id)?.parentId != null;
  return { kind: isAgent ? "session" : "tree", id };
}

/**
 * Tells when a session, or an agent of it, writes files.
 * @returns what ends it
 */
export function watchWrites(
  app: App,
  id: string,
  written: (paths: readonly string[]) => void,
): () => void {
  return app.feed.follow({
    scope: scopeOf(app, id),
    cursor: "now",
    types: ["tool_result"],
    onEvents: (events) => {
      const paths = events.flatMap((event) => writtenBy(event));
      if (paths.length > 0) {
        written([...new Set(paths)]);
      }
    },
  });
}

/** Why nothing can be read or kept for now; undefined where a server is there, or may come by itself. */
function noServer(app: App): CallError | undefined {
  const { state, failure } = app.server;
  return state === "failed"
    ? new CallError(0, `Nothing was done: ${failure?.message ?? "there is no server"}`, {
        kind: "noServer",
      })
    : undefined;
}

/** The changes of one session. */
export class Tracked {
  /** All that there is has been read. */
  loaded = false;
  /** Why it is not followed any more. */
  fault: string | undefined;
  title: string | undefined;
  readonly #model = new Changes();
  /** By session: where it may change files, the first is where it works. */
  readonly #folders = new Map<string, string[]>();
  /** Of agents, by session. */
  readonly #names = new Map<string, string>();
  readonly #listeners: Listeners<undefined>;
  readonly #waiting: { done: () => void; refused: (fault: CallError) => void }[] = [];
  readonly #closeFeed: () => void;
  readonly #offServer: () => void;
  #files: readonly ChangedFile[] | undefined;

  constructor(
    private readonly app: App,
    readonly id: string,
  ) {
    this.#listeners = new Listeners(app.log);
    this.#offServer = app.on("server", () => {
      const none = noServer(app);
      if (none) {
        for (const { refused } of this.#waiting.splice(0)) {
          refused(none);
        }
      }
    });
    this.#closeFeed = app.feed.follow({
      scope: scopeOf(app, id),
      cursor: "start",
      types: TYPES,
      onEvents: (events, batch) => {
        this.#events(events, batch);
      },
      onLost: (fault) => {
        this.fault = explain(fault);
        this.#tell();
      },
    });
  }

  close(): void {
    this.#closeFeed();
    this.#offServer();
    this.#listeners.clear();
  }

  #created(sessionId: string, created: SessionCreated): void {
    this.#folders.set(sessionId, [created.cwd, ...(created.additionalDirectories ?? [])]);
    this.#model.reviewed(sessionId, created.metadata);
    if (sessionId === this.id) {
      this.title = created.title ?? undefined;
    }
  }

  #event(event: Event): void {
    const { sessionId } = event;
    if (isKnownEvent(event)) {
      switch (event.type) {
        case "session_created":
          this.#created(sessionId, event.data);
          break;
        case "agent_spawned":
          this.#created(sessionId, event.data.session);
          this.#names.set(sessionId, event.data.name);
          break;
        case "session_updated": {
          const { title, metadata } = event.data.changes;
          if (sessionId === this.id && typeof title === "string") {
            this.title = title;
          }
          this.#model.reviewed(sessionId, metadata);
          break;
        }
        case "session_deleted":
          if (sessionId === this.id) {
            this.fault = "this session was deleted";
          }
      }
    }
    this.#model.add(event);
  }

  #events(events: readonly Event[], batch: EventBatch): void {
    for (const event of events) {
      this.app.guard(() => {
        this.#event(event);
      });
    }
    const wasLoaded = this.loaded;
    this.loaded ||= batch.caughtUp;
    if (events.length > 0 || this.loaded !== wasLoaded) {
      this.#tell();
    }
  }

  #tell(): void {
    this.#files = undefined;
    this.#listeners.tell(undefined);
    if (this.loaded || this.fault !== undefined) {
      for (const { done } of this.#waiting.splice(0)) {
        done();
      }
    }
  }

  /** @returns what takes it back */
  listen(listener: () => void): () => void {
    return this.#listeners.on(listener);
  }

  /**
   * Resolves when all has been read, or cannot be.
   * @throws CallError where no server is to be had: what waits is not done by surprise after a later start
   */
  whenLoaded(): Promise<void> {
    if (this.loaded || this.fault !== undefined) {
      return Promise.resolve();
    }
    const none = noServer(this.app);
    return none
      ? Promise.reject(none)
      : new Promise((done, refused) => this.#waiting.push({ done, refused }));
  }

  /**
   * Makes sure that what is said of changes can be kept, before anything is done for it.
   * @throws CallError where it cannot
   */
  async reach(): Promise<void> {
    await this.app.request("session/get", { sessionId: this.id });
  }

  /** The changed files, by path. */
  files(): readonly ChangedFile[] {
    this.#files ??= this.#model.files();
    return this.#files;
  }

  file(path: string): ChangedFile | undefined {
    return this.files().find((file) => file.path === path);
  }

  /** Those that nobody has accepted or rejected yet. */
  pending(): ChangedFile[] {
    return this.files().filter((file) => file.state === "new");
  }

  /** The next file that nobody has said anything of, from the first again after the last. */
  next(path: string): ChangedFile | undefined {
    const pending = this.pending().filter((file) => file.path !== path);
    return pending.find((file) => file.path > path) ?? pending[0];
  }

  /** What steps that are named did to files, whatever was said of them. */
  filesOf(isMeant: (step: Step) => boolean): ChangedFile[] {
    return this.#model.filesOf(isMeant);
  }

  /** Where the sessions that changed a file may do so. */
  foldersOf(file: ChangedFile): string[] {
    return file.chain.flatMap((step) => this.#folders.get(step.sessionId) ?? []);
  }

  /** The agents that changed a file. */
  agentsOf(file: ChangedFile): string[] {
    const names = file.chain.map((step) => this.#names.get(step.sessionId));
    return [...new Set(names.filter((name) => name !== undefined))];
  }

  /** The path as it is told: from where the session works. */
  short(path: string): string {
    const cwd = this.#folders.get(this.id)?.[0];
    return cwd !== undefined && /^[\\/]./.test(path.slice(cwd.length)) && path.startsWith(cwd)
      ? path.slice(cwd.length + 1)
      : path;
  }

  /**
   * Has the diffs of files whole: events hold only a part of what is large.
   * @throws CallError
   */
  async whole(files: readonly ChangedFile[]): Promise<void> {
    for (const step of files.flatMap((file) => file.chain)) {
      await this.#fetch(step);
    }
  }

  async #fetch(step: Step): Promise<void> {
    const parts: Buffer[] = [];
    let offset = 0;
    for (let eof = step.blob === undefined; step.blob && !eof;) {
      const { blobId } = step.blob;
      const piece = await this.app.request("blob/read", { blobId, offset });
      const data = Buffer.from(piece.dataBase64, "base64");
      parts.push(data);
      offset += data.length;
      eof = piece.eof || data.length === 0;
    }
    if (step.blob) {
      step.change.diff = Buffer.concat(parts).toString("utf8");
      step.blob = undefined;
    }
  }

  /**
   * Notes that a person accepted or rejected files, as they are given; once it is kept, that holds here, too.
   * @throws CallError when it cannot be kept
   */
  async settle(files: readonly ChangedFile[], verdict: Verdict): Promise<void> {
    const reviews = this.#model.settle(files, verdict);
    await Promise.all([...reviews].map(([id, review]) => this.#keep(id, review)));
    for (const [id, review] of reviews) {
      this.#model.settled(id, review);
    }
    this.#tell();
  }

  /**
   * Writes what was said of a session's changes, beside whatever else its metadata hold. When another editor
   * writes between the reading and the writing, both are done anew, so that nothing it said is lost.
   */
  async #keep(sessionId: string, review: Review): Promise<void> {
    for (let tries = 1; ; tries++) {
      const { session } = await this.app.request("session/get", { sessionId });
      mergeReview(review, readReview(session.metadata, sessionId));
      try {
        await this.app.change("session/update", {
          sessionId,
          metadata: writeReview(session.metadata, sessionId, review),
          ifUnchangedSince: session.headSeq,
        });
        return;
      } catch (fault) {
        if (kindOf(fault) !== "sessionChanged" || tries === MAX_TRIES) {
          throw fault;
        }
      }
    }
  }
}

/** The sessions whose changes somebody looks at. */
export class ChangesInUse {
  readonly #open = new Map<string, { tracked: Tracked; users: number }>();

  constructor(private readonly app: App) {}

  /** Each `use` wants its `release`. */
  use(id: string): Tracked {
    let entry = this.#open.get(id);
    if (!entry) {
      entry = { tracked: new Tracked(this.app, id), users: 0 };
      this.#open.set(id, entry);
    }
    entry.users += 1;
    return entry.tracked;
  }

  release(tracked: Tracked): void {
    const entry = this.#open.get(tracked.id);
    if (entry?.tracked === tracked) {
      entry.users -= 1;
      if (entry.users === 0) {
        this.#open.delete(tracked.id);
        tracked.close();
      }
    }
  }

  /** Lines that came and went by a session, where somebody looks at it; undefined where it is not known. */
  lines(id: string): { added: number; removed: number } | undefined {
    const tracked = this.#open.get(id)?.tracked;
    const files = tracked?.loaded
      ? tracked.files().filter(({ state }) => state !== "rejected")
      : [];
    return files.length === 0
      ? undefined
      : files.reduce(
          (sum, file) => ({ added: sum.added + file.added, removed: sum.removed + file.removed }),
          { added: 0, removed: 0 },
        );
  }

  /**
   * Does something with the changes of a session, once all has been read.
   * @throws CallError where there is no server, or no such session
   */
  async with<T>(id: string, act: (tracked: Tracked) => T | Promise<T>): Promise<T> {
    const tracked = this.use(id);
    try {
      if (!tracked.loaded) {
        await this.app.request("session/get", { sessionId: id });
      }
      await tracked.whenLoaded();
      return await act(tracked);
    } finally {
      this.release(tracked);
    }
  }

  close(): void {
    for (const { tracked } of this.#open.values()) {
      tracked.close();
    }
    this.#open.clear();
  }
}
