/** What to tell of a server that has ended, and whether another start may help. */
import { PROTOCOL_VERSION } from "@callboard/protocol";
import { oneLine } from "../model/text";
import type { Exit } from "./client";
import type { CallError } from "./errors";
import { missing } from "./locate";

export interface Ending {
  cmd: readonly string[];
  exit: Exit;
  /** It answered `initialize` with an error. */
  refusal?: CallError | undefined;
  /** It did not answer within so many seconds. */
  late?: number | undefined;
  /** It had not begun to serve. */
  starting: boolean;
  /** Nobody knew whether it is Callboard. */
  guess: boolean;
}

export const RESTART = "“Callboard: Restart Server” tries again.";

/** How it ended. */
export function why({ cmd, exit, refusal, late }: Ending): string {
  const program = oneLine(cmd.join(" "), 200);
  if (refusal) {
    return refusal.explained();
  } else if (exit.garbage !== undefined) {
    return `${program} is no Callboard server: it printed "${oneLine(exit.garbage, 80)}"`;
  } else if (late !== undefined) {
    return `${program} did not answer within ${late} s`;
  } else if (exit.signal !== null) {
    return `the server was ended by ${exit.signal}`;
  }
  return `the server (${program}) ended with code ${exit.code ?? "?"}`;
}

/** What a Python without Callboard says, and what stands for Python where Windows has none. */
const NO_CALLBOARD = /No module named|Python was not found/;

function isMissing(ending: Ending): boolean {
  const { guess, starting, refusal, exit } = ending;
  return guess && starting && !refusal && exit.stderr.some((line) => NO_CALLBOARD.test(line));
}

const UPDATE =
  `The extension speaks version ${PROTOCOL_VERSION}. Update both to the same release: the wheel carries its ` +
  "extension (callboard editor install vscode).";

/**
 * Why no other start is of use, and the way out; undefined where one may be.
 * @param folders in which the server was looked for
 */
export function hopeless(ending: Ending, folders: readonly string[]): string | undefined {
  const { cmd, refusal, exit } = ending;
  if (exit.fault !== undefined) {
    return (
      `the server ${oneLine(cmd[0], 200)} could not be started: ${oneLine(exit.fault, 200)}\n` +
      "Set callboard.server.path, then “Callboard: Restart Server”."
    );
  } else if (isMissing(ending)) {
    return missing(folders);
  } else if (refusal?.kind === "unsupportedVersion") {
    return `${why(ending)}\n${UPDATE}`;
  } else if (refusal && refusal.data["retryable"] !== true) {
    return `${why(ending)}\n${RESTART}`;
  } else if (exit.garbage !== undefined) {
    return `${why(ending)}\nSet callboard.server.path, or correct what it names; then “Callboard: Restart Server”.`;
  }
  return undefined;
}

export function againAndAgain(ending: Ending, times: number): string {
  return `${why(ending)}; so it went ${times} times in a row. ${RESTART} “Callboard: Doctor” says more.`;
}
