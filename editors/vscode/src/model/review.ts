/**
 * What a person has accepted or rejected of a session's changes, as its metadata keep it: so it survives
 * restarts, and other windows and editors see it. Pure.
 *
 *   metadata["callboard.review"] = {
 *     sessionId: "ses_...",  // a fork inherits metadata, but its events are numbered anew
 *     through: 40,           // all up to this seq is settled: accepted, unless a file says otherwise
 *     files: { "/abs/path": { through: 57, verdict: "accepted" | "rejected" } },
 *   }
 */
import type { JsonObject } from "@callboard/protocol";

export const REVIEW_KEY = "callboard.review";

/** So many rejected files are remembered as such below `through`; older ones are just settled. */
export const MAX_REJECTED = 100;

export type Verdict = "accepted" | "rejected";

export interface ReviewedFile {
  /** Seq of the last change that it is about. */
  readonly through: number;
  readonly verdict: Verdict;
}

export interface Review {
  through: number;
  readonly files: Map<string, ReviewedFile>;
}

export function newReview(): Review {
  return { through: 0, files: new Map() };
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function seqOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value >= 0
    ? Math.floor(value)
    : undefined;
}

/** What the metadata say. They come from anywhere: what is not as it should be counts as not there. */
export function readReview(metadata: unknown, sessionId: string): Review {
  const review = newReview();
  const kept = isObject(metadata) ? metadata[REVIEW_KEY] : undefined;
  if (!isObject(kept) || kept["sessionId"] !== sessionId) {
    return review;
  }
  review.through = seqOf(kept["through"]) ?? 0;
  const files = isObject(kept["files"]) ? kept["files"] : {};
  for (const [path, entry] of Object.entries(files)) {
    const through = isObject(entry) ? seqOf(entry["through"]) : undefined;
    if (isObject(entry) && through !== undefined) {
      const verdict = entry["verdict"] === "rejected" ? "rejected" : "accepted";
      review.files.set(path, { through, verdict });
    }
  }
  return review;
}

/** What was said of a change; undefined when nothing was. */
export function verdictOf(review: Review, path: string, seq: number): Verdict | undefined {
  const entry = review.files.get(path);
  if (entry && seq <= entry.through) {
    return entry.verdict;
  }
  return seq <= review.through ? "accepted" : undefined;
}

/**
 * Notes what was said of a file; what was said of later changes of it stands. `seq` is that of the last
 * change that was seen.
 */
export function noteVerdict(review: Review, path: string, seq: number, verdict: Verdict): void {
  const entry = review.files.get(path);
  if (!entry || seq >= entry.through) {
    review.files.set(path, { through: seq, verdict });
  }
}

/** Takes over what another window noted meanwhile. */
export function mergeReview(review: Review, other: Review): void {
  review.through = Math.max(review.through, other.through);
  for (const [path, entry] of other.files) {
    noteVerdict(review, path, entry.through, entry.verdict);
  }
}

/**
 * Keeps it small: raises `through` as far as nothing waits below it, and drops what it says as well.
 * `waiting` is the seq of the first change of which nothing was said, `head` the last seq that was seen.
 */
export function trimReview(review: Review, waiting: number | undefined, head: number): void {
  review.through = Math.max(review.through, waiting !== undefined ? waiting - 1 : head);
  const rejected: [path: string, through: number][] = [];
  for (const [path, entry] of review.files) {
    if (entry.through > review.through) {
      continue;
    }
    if (entry.verdict === "accepted") {
      review.files.delete(path);
    } else {
      rejected.push([path, entry.through]);
    }
  }
  rejected.sort((a, b) => a[1] - b[1]);
  for (const [path] of rejected.slice(0, Math.max(rejected.length - MAX_REJECTED, 0))) {
    review.files.delete(path);
  }
}

/** The metadata with it, all else in them as it was. */
export function writeReview(metadata: unknown, sessionId: string, review: Review): JsonObject {
  return {
    ...(isObject(metadata) ? metadata : {}),
    [REVIEW_KEY]: {
      sessionId,
      through: review.through,
      files: Object.fromEntries(review.files),
    },
  };
}
