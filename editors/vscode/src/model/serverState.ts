/** How the server stands, in one word: for views, `when` clauses and the status bar. Pure. */

import { oneLine } from "./text";

/** What is known of a server, as far as it is looked at here. */
export interface ServerLook {
  readonly trusted: boolean;
  readonly greeted: boolean;
  readonly server: {
    readonly state: "stopped" | "starting" | "ready" | "waiting" | "failed";
    /** It has been asked, and nothing has come for long. */
    readonly silent: boolean;
    readonly found?: { readonly guess?: boolean } | undefined;
    readonly failure?: ServerFailure | undefined;
  };
}

interface ServerFailure {
  readonly message: string;
  readonly lines: readonly string[];
  readonly starting: boolean;
}

/** Why a server that never began to serve does not, in a line; undefined for any other. */
export function whyNotStarted(failure: ServerFailure | undefined): string | undefined {
  if (failure?.starting !== true) {
    return undefined;
  }
  const last = oneLine(failure.lines.at(-1) ?? "", 200);
  const why = oneLine(failure.message, 200);
  return `The server does not start: ${why}${last === "" ? "" : `: ${last}`}`;
}

/** Why what a view shows may be old, or that nothing is there yet; undefined where all is well. */
export function whyOld(
  { trusted, server }: Omit<ServerLook, "greeted">,
  { fault, loaded }: { readonly fault: string | undefined; readonly loaded: boolean },
): string | undefined {
  if (!trusted) {
    return "In Restricted Mode no server runs. Trust the workspace first.";
  } else if (server.state === "failed") {
    return `No server: ${server.failure?.message ?? "the log says why"}`;
  } else if (server.state === "waiting") {
    return whyNotStarted(server.failure) ?? "The server has ended; it is started again…";
  } else if (server.silent) {
    return "The server does not answer.";
  } else if (fault !== undefined) {
    return `This may be old: ${fault}`;
  }
  return loaded ? undefined : "Loading…";
}

/**
 * - `untrusted`: none is started, since the folder is not trusted
 * - `notFound`: there is none, or what was taken for one is a Python without it
 * - `failed`: it could not be kept running
 * - `silent`: it runs, and does not answer
 * - `waiting`: it has ended, and is started again in a moment
 */
export type ServerState =
  "untrusted" | "stopped" | "starting" | "ready" | "silent" | "waiting" | "failed" | "notFound";

export function serverState({ trusted, greeted, server }: ServerLook): ServerState {
  if (!trusted) {
    return "untrusted";
  } else if (
    server.state === "failed" &&
    !greeted &&
    (!server.found || server.found.guess === true)
  ) {
    return "notFound";
  } else if (server.silent && (server.state === "ready" || server.state === "starting")) {
    return "silent";
  }
  return server.state;
}
