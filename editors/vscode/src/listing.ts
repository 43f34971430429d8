/** What the view of sessions asks for beyond the newest of all: those of the folders, older and archived ones. */
import type { Requests, Session } from "@callboard/protocol";
import type { App } from "./app";
import { putSession } from "./model/store";
import { explain, kindOf } from "./server/errors";

/** Sessions of a page. */
const PAGE = 100;

type Wanted = Requests["session/list"]["params"];

export class SessionListing {
  /** There are archived ones that are not known yet. */
  moreArchived = false;
  #archivedCursor: string | undefined;
  #listings = 0;
  #asking = false;

  /**
   * @param folders those whose sessions are wanted however old they are, their links resolved
   */
  constructor(
    private readonly app: App,
    private readonly folders: () => readonly string[],
  ) {}

  /** There are older ones than those that are known. */
  get more(): boolean {
    return this.app.sessions.more;
  }

  /** The sessions are others: after each listing of the newest, the rest is asked for anew. */
  async follow(): Promise<void> {
    const { listings } = this.app.sessions;
    if (listings !== this.#listings) {
      this.#listings = listings;
      await this.#quietly(() => this.#besides());
    }
  }

  /** The folders of the window are others. */
  async foldersChanged(): Promise<void> {
    if (this.app.sessions.loaded) {
      await this.#quietly(() => this.#ofFolders());
    }
  }

  /**
   * The next page of older ones, or of archived ones.
   * @throws CallError
   */
  async next(archived: boolean): Promise<void> {
    if (this.#asking) {
      return;
    }
    this.#asking = true;
    try {
      await (archived ? this.#nextArchived() : this.#nextOlder());
    } finally {
      this.#asking = false;
      this.app.tell("sessions", undefined);
    }
  }

  /**
   * Those whose title holds these words, however old they are.
   * @throws CallError
   */
  async named(words: string): Promise<void> {
    this.#put((await this.#page({ query: words, limit: PAGE })).data);
    this.app.tell("sessions", undefined);
  }

  async #besides(): Promise<void> {
    // Whether there are any decides whether the group is there; they themselves are for whoever opens it.
    const archived = await this.#page({ archived: true, limit: 1 });
    this.moreArchived = archived.data.length > 0;
    this.#archivedCursor = undefined;
    await this.#ofFolders();
  }

  async #ofFolders(): Promise<void> {
    if (this.app.sessions.more) {
      for (const cwd of this.folders()) {
        this.#put((await this.#page({ cwd, limit: PAGE })).data);
      }
    }
    this.app.tell("sessions", undefined);
  }

  async #nextOlder(): Promise<void> {
    const { sessions } = this.app;
    if (!sessions.more || sessions.cursor === undefined) {
      return;
    }
    const { listings } = sessions;
    const page = await this.#page({ cursor: sessions.cursor, limit: PAGE });
    if (sessions.listings === listings) {
      this.#put(page.data);
      sessions.cursor = page.nextCursor ?? undefined;
      sessions.more = page.nextCursor != null;
    }
  }

  async #nextArchived(): Promise<void> {
    const cursor = this.#archivedCursor;
    const page = await this.#page({
      archived: true,
      limit: PAGE,
      ...(cursor === undefined ? {} : { cursor }),
    });
    this.#put(page.data);
    this.#archivedCursor = page.nextCursor ?? undefined;
    this.moreArchived = page.nextCursor != null;
  }

  #page(params: Wanted): Promise<Requests["session/list"]["result"]> {
    return this.app.request("session/list", params);
  }

  #put(sessions: readonly Session[]): void {
    for (const session of sessions) {
      // What is known already came by events, and is no older.
      if (!this.app.sessions.byId.has(session.sessionId)) {
        putSession(this.app.sessions, session);
      }
    }
  }

  /** Nobody has asked for it: a failure is for the log. The next server is asked again. */
  async #quietly(ask: () => Promise<void>): Promise<void> {
    try {
      await ask();
    } catch (fault) {
      if (!["serverGone", "noServer"].includes(kindOf(fault) ?? "")) {
        this.app.log.error(`the sessions cannot be listed: ${explain(fault)}`);
      }
    }
  }
}
