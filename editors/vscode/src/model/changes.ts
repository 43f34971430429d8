/**
 * The files that a session and its agents changed, as the results of their tool calls tell it. Pure.
 *
 * A rewind takes turns out of a session, but files stay as they were left: so its changes stay here, too.
 */
import type { BlobRef, Event, FileChange } from "@callboard/protocol";
import {
  mergeReview,
  newReview,
  noteVerdict,
  readReview,
  trimReview,
  verdictOf,
  type Review,
  type Verdict,
} from "./review";

/** One change of one file. */
export interface Step {
  readonly sessionId: string;
  readonly seq: number;
  readonly pos: number;
  readonly at: string;
  readonly callId: string;
  readonly change: FileChange;
  /** Where the diff is, while `change.diff` holds a part of it only. */
  blob: BlobRef | undefined;
}

export type ChangeState = "new" | Verdict;

/** What all of a chain of changes did together; a later server may say other things. */
export type Operation = FileChange["operation"] | "nothing";

export interface ChangedFile {
  readonly path: string;
  /** From where it was moved. */
  readonly oldPath: string | undefined;
  readonly operation: Operation;
  readonly added: number;
  readonly removed: number;
  readonly state: ChangeState;
  /** What is shown, the oldest first: what nobody has settled; if there is no such thing, all. */
  readonly chain: readonly Step[];
  /** All, the oldest first. */
  readonly steps: readonly Step[];
  /** Why its diffs do not hold all of the change. */
  readonly partial: string | undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function count(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

/** The changes that a tool result tells, each as it must be: what a peer sends may be anything. */
export function fileChanges(changes: unknown): FileChange[] {
  if (!Array.isArray(changes)) {
    return [];
  }
  return changes.filter(isObject).flatMap((change) => {
    const { path, operation, diff, oldPath } = change;
    if (typeof path !== "string" || path === "") {
      return [];
    }
    return {
      path,
      operation: typeof operation === "string" ? operation : "modify",
      diff: typeof diff === "string" ? diff : "",
      added: count(change["added"]),
      removed: count(change["removed"]),
      oldPath: typeof oldPath === "string" ? oldPath : null,
      truncated: change["truncated"] === true,
    };
  });
}

function blobOf(data: Record<string, unknown>, pointer: string): BlobRef | undefined {
  const blobs = data["_blobs"];
  const ref = isObject(blobs) && Object.hasOwn(blobs, pointer) ? blobs[pointer] : undefined;
  return isObject(ref) && typeof ref["blobId"] === "string"
    ? { blobId: ref["blobId"], bytes: count(ref["bytes"]) }
    : undefined;
}

/** What two operations come to, one after the other. */
export function merged(first: Operation | undefined, second: Operation): Operation {
  switch (first) {
    case undefined:
    case "nothing":
      return second;
    case "create":
      return second === "delete" ? "nothing" : "create";
    case "delete":
      return second === "delete" ? "delete" : "modify";
    default:
      return second === "create" || (second === "modify" && first === "move") ? first : second;
  }
}

function partialOf(chain: readonly Step[]): string | undefined {
  for (const { change } of chain) {
    if (change.truncated) {
      return "its diff is too large and was cut";
    }
    const empty = change.diff === "" && change.added + change.removed === 0;
    if (empty && change.operation === "modify") {
      return "it has no diff (it may be no text)";
    }
  }
  return undefined;
}

/** What a chain of changes did to a file. */
function told(
  path: string,
  steps: readonly Step[],
  chain: readonly Step[],
  state: ChangeState,
): ChangedFile {
  let operation: Operation | undefined;
  let oldPath: string | undefined;
  let [added, removed] = [0, 0];
  for (const { change } of chain) {
    operation = merged(operation, change.operation);
    added += change.added;
    removed += change.removed;
    if (change.oldPath && change.oldPath !== path) {
      oldPath ??= change.oldPath;
    }
  }
  return {
    path,
    oldPath,
    operation: operation ?? "nothing",
    added,
    removed,
    state,
    chain,
    steps,
    partial: partialOf(chain),
  };
}

/** The paths that an event tells to have been written. */
export function writtenBy(event: Event): string[] {
  const data: unknown = event.data;
  const changes = event.type === "tool_result" && isObject(data) ? data["changes"] : undefined;
  return fileChanges(changes).flatMap(({ path, oldPath }) => (oldPath ? [path, oldPath] : [path]));
}

/** Of one session and its agents; any order of events will do, and twice is once. */
export class Changes {
  /** By `pos`. */
  #steps: Step[] = [];
  readonly #seen = new Set<string>();
  readonly #reviews = new Map<string, Review>();
  /** The last seq seen, by session. */
  readonly #heads = new Map<string, number>();

  /** Takes in an event. */
  add(event: Event): void {
    const id = event.sessionId;
    this.#heads.set(id, Math.max(this.#heads.get(id) ?? 0, event.seq));
    if (event.type === "session_forked") {
      // What stands before it is the history of another session.
      this.#steps = this.#steps.filter((step) => step.sessionId !== id || step.seq > event.seq);
      return;
    }
    const key = `${id} ${event.seq}`;
    if (event.type !== "tool_result" || this.#seen.has(key) || !isObject(event.data)) {
      return;
    }
    this.#seen.add(key);
    const data: Record<string, unknown> = event.data;
    fileChanges(data["changes"]).forEach((change, i) => {
      this.#insert({
        sessionId: id,
        seq: event.seq,
        pos: event.pos,
        at: event.at,
        callId: typeof data["callId"] === "string" ? data["callId"] : "",
        change,
        blob: blobOf(data, `/changes/${i}/diff`),
      });
    });
  }

  #insert(step: Step): void {
    let at = this.#steps.length;
    while (at > 0 && (this.#steps[at - 1]?.pos ?? 0) > step.pos) {
      at -= 1;
    }
    this.#steps.splice(at, 0, step);
  }

  #review(sessionId: string): Review {
    const review = this.#reviews.get(sessionId) ?? newReview();
    this.#reviews.set(sessionId, review);
    return review;
  }

  /** Takes over what the metadata of a session say of it. Nothing that was said is unsaid. */
  reviewed(sessionId: string, metadata: unknown): void {
    mergeReview(this.#review(sessionId), readReview(metadata, sessionId));
  }

  /** Takes over what was settled, once it is kept. */
  settled(sessionId: string, review: Review): void {
    mergeReview(this.#review(sessionId), review);
  }

  #verdict(step: Step): Verdict | undefined {
    const review = this.#reviews.get(step.sessionId);
    return review && verdictOf(review, step.change.path, step.seq);
  }

  /** The changed files, by path. */
  files(): ChangedFile[] {
    return this.#byPath().map(([path, steps]) => this.#fileOf(path, steps));
  }

  /** What steps that are named did to files, whatever was said of them, but for what was put back. */
  filesOf(isMeant: (step: Step) => boolean): ChangedFile[] {
    return this.#byPath().flatMap(([path, steps]) => {
      const chain = steps.filter((step) => isMeant(step) && this.#verdict(step) !== "rejected");
      return chain.length > 0 ? [told(path, steps, chain, "new")] : [];
    });
  }

  #byPath(): [path: string, steps: Step[]][] {
    const byPath = new Map<string, Step[]>();
    for (const step of this.#steps) {
      const { path, oldPath } = step.change;
      const before = oldPath && oldPath !== path ? byPath.get(oldPath) : undefined;
      if (oldPath && before) {
        // It was moved: what was changed before goes along.
        const all = [...before, ...(byPath.get(path) ?? [])];
        byPath.set(
          path,
          all.sort((a, b) => a.pos - b.pos),
        );
        byPath.delete(oldPath);
      }
      const steps = byPath.get(path) ?? [];
      steps.push(step);
      byPath.set(path, steps);
    }
    return [...byPath].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  }

  #fileOf(path: string, steps: readonly Step[]): ChangedFile {
    const waiting = steps.filter((step) => !this.#verdict(step));
    const last = steps.at(-1);
    const state = waiting.length > 0 || !last ? "new" : (this.#verdict(last) ?? "new");
    return told(path, steps, waiting.length > 0 ? waiting : steps, state);
  }

  /** The sessions whose calls changed something. */
  sessions(): string[] {
    return [...new Set(this.#steps.map((step) => step.sessionId))];
  }

  /** The reviews of the sessions that are concerned as they are once files, as they are given, are settled. */
  settle(files: readonly ChangedFile[], said: Verdict): Map<string, Review> {
    const touched = new Map<string, Review>();
    for (const step of files.flatMap((file) => file.chain)) {
      const review = touched.get(step.sessionId) ?? newReview();
      if (!touched.has(step.sessionId)) {
        mergeReview(review, this.#review(step.sessionId));
        touched.set(step.sessionId, review);
      }
      noteVerdict(review, step.change.path, step.seq, said);
    }
    for (const [id, review] of touched) {
      const waiting = this.#steps
        .filter((step) => step.sessionId === id && !verdictOf(review, step.change.path, step.seq))
        .map((step) => step.seq);
      const first = waiting.length > 0 ? waiting.reduce((a, b) => Math.min(a, b)) : undefined;
      trimReview(review, first, this.#heads.get(id) ?? 0);
    }
    return touched;
  }
}
