/**
 * Reviewing what a session changed: what a file was before beside what it is now. A tab is only a view: closing
 * one settles nothing, and one that somebody goes back to is filled anew.
 */
import * as vscode from "vscode";
import type { App } from "../app";
import { isSame, type ChangesInUse, type Tracked } from "../changes";
import type { ChangedFile } from "../model/changes";
import { plural } from "../model/loose";
import { message } from "../model/text";
import { CallError } from "../server/errors";
import { failed } from "../commands/registry";
import { changeContent } from "./diffContent";
import {
  activeTab,
  keyOf,
  shownAbout,
  shownIn,
  type About,
  type DiffDocuments,
} from "./diffDocuments";
import { display, fill } from "./diffDisplay";
import { mention, nameIn } from "./verdicts";

/** A session whose changes tabs show. */
interface Held {
  readonly tracked: Tracked;
  readonly off: () => void;
}

type ShownChange = About<"change">;

export class DiffReview implements vscode.Disposable {
  readonly #held = new Map<string, Held>();
  /** What each tab shows: what is settled is what was seen. */
  readonly #seen = new Map<string, ChangedFile>();
  #shown = new Map<string, ShownChange>();
  /** Those that are being filled, and those that are then to be filled again. */
  readonly #filling = new Map<string, "once" | "again">();

  constructor(
    private readonly app: App,
    private readonly changes: ChangesInUse,
    private readonly documents: DiffDocuments,
  ) {}

  dispose(): void {
    for (const { tracked, off } of this.#held.values()) {
      off();
      this.changes.release(tracked);
    }
    this.#held.clear();
  }

  /**
   * Shows a file as it was and as it is.
   * @param path as on the wire
   */
  async show(sessionId: string, path: string): Promise<void> {
    await this.changes.with(sessionId, async (tracked) => {
      const file = tracked.file(path);
      if (!file) {
        const why = tracked.fault ?? "It was not changed by this session.";
        throw new CallError(0, `${message(path, 80)}: ${why}`);
      }
      await tracked.whole([file]);
      const content = await changeContent(tracked, file);
      this.#seen.set(keyOf(subjectOf(tracked, file)), file);
      await display(this.documents, content);
      this.sync();
    });
  }

  /** The file that the active tab shows, as it was seen. */
  get current(): { sessionId: string; file: ChangedFile } | undefined {
    const shown = shownIn(activeTab());
    const file = shown && this.#seen.get(keyOf(shown));
    return shown?.about === "change" && file ? { sessionId: shown.sessionId, file } : undefined;
  }

  /** Shows the file after another; says so where there is none. */
  async next(tracked: Tracked, path: string): Promise<void> {
    const file = tracked.next(path);
    if (file) {
      await this.show(tracked.id, file.path);
    } else {
      mention("there is no other file that is new");
    }
  }

  /** A file is settled: where its diff was the one that is looked at, the next one comes. */
  async settled(tracked: Tracked, files: readonly ChangedFile[]): Promise<void> {
    const key = keyOf({ about: "change", sessionId: tracked.id, path: files[0]?.path ?? "" });
    const active = activeTab();
    const shown = shownIn(active);
    if (!active || !shown || keyOf(shown) !== key || files.length !== 1) {
      return;
    }
    const file = tracked.next(files[0]?.path ?? "");
    this.#shown.delete(key);
    if (!active.isDirty) {
      await vscode.window.tabGroups.close(active, true);
    }
    if (file) {
      await this.show(tracked.id, file.path);
    } else if (tracked.files().length > 1) {
      mention("that was the last file that was new");
    }
  }

  /** Fills a tab of which only the address is known. */
  restore(shown: ShownChange): void {
    const key = keyOf(shown);
    if (this.#filling.has(key)) {
      this.#filling.set(key, "again");
      return;
    }
    this.#filling.set(key, "once");
    this.changes
      .with(shown.sessionId, async (tracked) => {
        await this.#fill(tracked, shown);
      })
      .catch((fault: unknown) => failed(this.app, fault, "The diff cannot be shown"))
      .finally(() => {
        const again = this.#filling.get(key) === "again";
        this.#filling.delete(key);
        if (again && this.#shown.has(key)) {
          this.restore(shown);
        }
      });
  }

  async #fill(tracked: Tracked, shown: ShownChange): Promise<void> {
    const file = tracked.file(shown.path);
    if (!file) {
      return;
    }
    await tracked.whole([file]);
    const content = await changeContent(tracked, file);
    this.#seen.set(keyOf(shown), file);
    fill(this.documents, content);
  }

  #hold(sessionId: string): void {
    if (this.#held.has(sessionId)) {
      return;
    }
    const tracked = this.changes.use(sessionId);
    const off = tracked.listen(() => {
      this.#renew(tracked);
    });
    this.#held.set(sessionId, { tracked, off });
  }

  /** What is shown is another by now: its text before, and what a key settles, follow. */
  #renew(tracked: Tracked): void {
    for (const shown of this.#shown.values()) {
      const seen = this.#seen.get(keyOf(shown));
      const file = shown.sessionId === tracked.id ? tracked.file(shown.path) : undefined;
      if (file && seen && !isSame(file, seen)) {
        this.#fill(tracked, shown).catch((fault: unknown) =>
          failed(this.app, fault, "The diff cannot be brought up to date"),
        );
      }
    }
  }

  /** The tabs that there are are others. */
  sync(): void {
    const now = shownAbout("change");
    for (const [key, shown] of now) {
      this.#hold(shown.sessionId);
      if (!this.#seen.has(key)) {
        this.restore(shown);
      }
    }
    for (const [key, shown] of this.#shown) {
      if (!now.has(key)) {
        this.#closed(shown);
        this.#seen.delete(key);
      }
    }
    this.#shown = now;
    const sessions = new Set([...now.values()].map((shown) => shown.sessionId));
    for (const [id, { tracked, off }] of this.#held) {
      if (!sessions.has(id)) {
        off();
        this.changes.release(tracked);
        this.#held.delete(id);
      }
    }
  }

  /** A tab is gone: what was not settled waits. */
  #closed(shown: ShownChange): void {
    const tracked = this.#held.get(shown.sessionId)?.tracked;
    const file = tracked?.file(shown.path);
    if (tracked && file?.state === "new") {
      const others = tracked.pending().length - 1;
      const rest = others > 0 ? ` and ${plural(others, "file")}` : "";
      mention(`${nameIn(tracked, file)}${rest} still to be reviewed`);
    }
  }
}

function subjectOf(tracked: Tracked, file: ChangedFile): ShownChange {
  return { about: "change", sessionId: tracked.id, path: file.path };
}
