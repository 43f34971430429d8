/** What a text was before a chain of changes, and what it would be after one that waits. Pure. */
import type { FileChange } from "@callboard/protocol";
import { merged, type Operation, type Step } from "./changes";
import { apply, hunkName, parse, reverse, type HunkFailure, type Text } from "./patch";

export interface Untaken {
  readonly step: Step;
  /** None when nothing of the step could be taken back. */
  readonly failure: HunkFailure | undefined;
  /** As in "hunk 2 (lines 4 to 9) was changed since". */
  readonly why: string;
}

export interface Before {
  /** None: there was no such file, whatever could be taken back. */
  readonly text: Text | undefined;
  /** What could not be taken back, the newest first. */
  readonly failed: readonly Untaken[];
  /** So many hunks were. */
  readonly taken: number;
}

const FAULTS = {
  changed: "was changed since",
  ambiguous: "is in the file more than once",
} as const;

interface Going {
  readonly failed: Untaken[];
  taken: number;
}

/** Why none of a step can be taken back. */
function blocked(
  text: Text | undefined,
  step: Step,
  hunks: number | undefined,
): string | undefined {
  const { change } = step;
  if (hunks === 0 && change.added + change.removed > 0) {
    return "its diff is empty";
  } else if (!text && change.operation !== "delete") {
    return "the file is not there any more";
  } else if (text && change.operation === "delete") {
    return "the file is there again";
  }
  return undefined;
}

/** Takes one step back. */
function back(text: Text | undefined, step: Step, going: Going): Text | undefined {
  const { change } = step;
  const none = (why: string): Text | undefined => {
    going.failed.push({ step, failure: undefined, why });
    return text;
  };
  if (change.truncated) {
    return none("its diff was cut");
  } else if (step.blob) {
    return none("its diff is not loaded");
  }
  const parsed = parse(change.diff);
  if ("why" in parsed) {
    return none(parsed.why);
  }
  const { hunks } = parsed.patch;
  const why = blocked(text, step, hunks.length);
  if (why !== undefined) {
    return none(why);
  }
  const result = reverse(text ?? [], parsed.patch);
  for (const failure of [...result.failed].reverse()) {
    const named = `${hunkName(failure.hunk)} ${FAULTS[failure.fault]}`;
    going.failed.push({ step, failure, why: named });
  }
  going.taken += hunks.length - result.failed.length;
  if (change.operation === "create") {
    if (result.text.length === 0) {
      going.taken += hunks.length === 0 ? 1 : 0;
      return undefined;
    } else if (result.failed.length === 0) {
      return none("the file has more in it now");
    }
  }
  return result.text;
}

/**
 * The text of a file before a chain of changes (the oldest first), taken back from the newest to the oldest.
 * `text` is as it is now; undefined: there is no such file.
 */
export function before(text: Text | undefined, chain: readonly Step[]): Before {
  let operation: Operation | undefined;
  for (const step of chain) {
    operation = merged(operation, step.change.operation);
  }
  if (text === undefined && operation === "create") {
    return { text: undefined, failed: [], taken: 0 }; // it is gone already
  }
  const going: Going = { failed: [], taken: 0 };
  let here = text;
  for (const step of [...chain].reverse()) {
    here = back(here, step, going);
  }
  const made = chain[0]?.change.operation === "create";
  return { text: made ? undefined : here, failed: going.failed, taken: going.taken };
}

/** Whether less was left standing, or more was taken back. */
export function isBetter(a: Before, b: Before): boolean {
  return a.failed.length < b.failed.length || a.taken > b.taken;
}

export type Proposed =
  | { readonly text: Text | undefined }
  /** Why it cannot be told. */
  | { readonly why: string };

/** What a file would be after a change that waits; no text: it would be gone. `now` is what is called "the file". */
export function proposed(text: Text | undefined, change: FileChange, now: string): Proposed {
  if (change.truncated) {
    return { why: "the change is too large, its diff was cut" };
  } else if (change.operation === "delete") {
    return { text: undefined };
  } else if (change.operation === "create" && text) {
    return { why: "the file is there already" };
  }
  const parsed = parse(change.diff);
  if ("why" in parsed) {
    return parsed;
  }
  const result = apply(text ?? [], parsed.patch);
  const failure = result.failed[0];
  return failure ? { why: `${hunkName(failure.hunk)} does not fit ${now}` } : { text: result.text };
}
