/** What the doctor finds out about the server: where it is, whether it fits, what it found itself. */
import type { Diagnostics, HandshakeResult, ServerInfo } from "@callboard/protocol";
import { PROTOCOL_VERSION } from "@callboard/protocol";
import { list, plural } from "../model/loose";
import { duration, oneLine } from "../model/text";
import { explain } from "../server/errors";
import type { Found, Located } from "../server/locate";
import type { Failure, ServerState } from "../server/supervisor";
import { finding, type Finding, type Level } from "./findings";

export interface Ran {
  code: number;
  stdout: string;
  stderr: string;
}

/** What is looked at; tests give their own. */
export interface World {
  trusted: boolean;
  silent: boolean;
  state: ServerState;
  handshake?: HandshakeResult | undefined;
  failure?: Failure | undefined;
  /** Runs a program. Never rejects. */
  run(cmd: readonly string[], limitMs: number): Promise<Ran>;
  /** Asks the server that runs. */
  ask(): Promise<{ info: ServerInfo; diagnostics: Diagnostics }>;
}

/** How long (ms) the server may take to tell its version, and what it found. */
const VERSION_MS = 15_000;
const DOCTOR_MS = 30_000;

const NOT_ASKED = "Not looked at in Restricted Mode: nothing is run there.";

/** Another command of the program that is the server; undefined where it cannot be told how. */
export function otherCommand(
  cmd: readonly string[],
  ...words: readonly string[]
): string[] | undefined {
  const at = cmd.lastIndexOf("serve");
  return at < 1 ? undefined : [...cmd.slice(0, at), ...words];
}

function lastLine(...outputs: readonly string[]): string {
  const said = outputs.find((each) => each.trim() !== "") ?? "";
  return oneLine(said.trim().split("\n").at(-1), 200);
}

async function version(world: World, found: Found): Promise<Finding> {
  const cmd = otherCommand(found.cmd, "version");
  if (!cmd) {
    return finding(
      "info",
      "Its version shows when it runs: callboard.server.args is not a plain `serve`.",
    );
  }
  const done = await world.run(cmd, VERSION_MS);
  const protocol = /protocol (\d+)/.exec(done.stdout)?.[1];
  if (done.code !== 0 || protocol === undefined) {
    const said = lastLine(done.stderr, done.stdout);
    return finding(
      "error",
      `${cmd.join(" ")} did not tell a version (exit code ${done.code}): ${said}`,
      found.guess
        ? "Install Callboard into that Python (pip install callboard), or name the server in the setting callboard.server.path."
        : "Run it in a terminal; install Callboard again if it is broken.",
    );
  }
  if (protocol !== /^\d+/.exec(PROTOCOL_VERSION)?.[0]) {
    return finding(
      "error",
      `${lastLine(done.stdout)}; this extension speaks protocol ${PROTOCOL_VERSION}`,
      "Use the extension that came with the server: “callboard editor install vscode” installs it.",
    );
  }
  return finding("ok", lastLine(done.stdout));
}

function running(world: World): Finding {
  const { handshake, failure } = world;
  if (!world.trusted) {
    return finding(
      "warn",
      "None is started in Restricted Mode: agents change files and run commands.",
      "“Callboard: Manage Workspace Trust” changes that.",
    );
  } else if (world.silent) {
    return finding(
      "error",
      "It runs, and does not answer.",
      "“Callboard: Restart Server” begins another one; what was said is in the log of the store.",
    );
  } else if (world.state === "ready" && handshake) {
    const { serverInfo, protocolVersion, storeId } = handshake;
    return finding(
      "ok",
      `It runs: version ${serverInfo.version ?? "?"}, protocol ${protocolVersion}, store ${storeId}`,
    );
  } else if (world.state === "stopped") {
    return finding("info", "Not started yet; it is, with the first thing that needs it.");
  } else if (world.state === "starting" || world.state === "ready") {
    return finding("info", "It is being started.");
  }
  const why =
    world.state === "waiting"
      ? "It ended, and is started again soon"
      : "It could not be kept running";
  const said = lastLine(list(failure?.lines).join("\n"));
  return finding(
    "error",
    `${why}: ${failure?.message ?? "no reason is known"}`,
    said === "" ? "" : `It said last: ${said}`,
    "“Callboard: Restart Server” tries again; “Callboard: Show Log” has all of it.",
  );
}

/** Where the server is, and whether it runs. */
export async function serverFindings(world: World, located: Located): Promise<Finding[]> {
  if ("fault" in located) {
    return [finding("error", located.fault), running(world)];
  }
  const { found } = located;
  const where = finding("ok", `${found.cmd.join(" ")} (found by ${found.how})`);
  const fits = world.trusted ? await version(world, found) : finding("info", NOT_ASKED);
  return [where, fits, running(world)];
}

const LEVELS: Readonly<Record<string, Level>> = { ok: "ok", warn: "warn", fail: "error" };

function check(line: string): Finding | undefined {
  let said: unknown;
  try {
    said = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (typeof said !== "object" || said === null || !("name" in said)) {
    return undefined;
  }
  const { name, status, found, advice } = said as Record<string, unknown>;
  // The extension is in an editor: which others there are is of no interest here.
  if (name === "Editors") {
    return undefined;
  }
  return finding(
    LEVELS[oneLine(status)] ?? "info",
    `${oneLine(name, 60)}: ${oneLine(found, 300)}`,
    oneLine(advice, 300),
  );
}

/** What the server itself looks at: store, model, keys, programs. */
export async function doctorFindings(world: World, located: Located): Promise<Finding[]> {
  if (!world.trusted) {
    return [finding("info", NOT_ASKED)];
  }
  const cmd = "found" in located && otherCommand(located.found.cmd, "doctor", "--json");
  if (!cmd) {
    return [
      finding(
        "info",
        "Not looked at: there is no server to ask, or callboard.server.args is not a plain `serve`.",
      ),
    ];
  }
  const done = await world.run(cmd, DOCTOR_MS);
  const findings = done.stdout.split("\n").flatMap((line) => check(line) ?? []);
  if (findings.length > 0) {
    return findings;
  }
  const said = lastLine(done.stderr, done.stdout);
  return [
    finding(
      "warn",
      `${cmd.join(" ")} told nothing (exit code ${done.code}): ${said}`,
      "Run it in a terminal.",
    ),
  ];
}

function size(bytes: number): string {
  return bytes < 1024 * 1024
    ? `${Math.ceil(bytes / 1024)} KiB`
    : `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

/** The store that the server has open, and who else has it. */
export async function storeFindings(world: World): Promise<Finding[]> {
  if (world.state !== "ready" || world.silent) {
    return [finding("info", "Not looked at: no server answers just now.")];
  }
  try {
    const { info, diagnostics } = await world.ask();
    const others = list(diagnostics.hosts).filter(
      (host) => host.alive && host.hostId !== info.hostId,
    );
    const held = list(diagnostics.leases);
    const on = Object.entries(info.features).filter(([, there]) => there);
    return [
      finding(
        "ok",
        `${info.storePath} (${size(diagnostics.storeBytes)}, SQLite ${info.sqliteVersion})`,
      ),
      finding(
        "ok",
        `${plural(diagnostics.sessions, "session")}, ${plural(diagnostics.events, "event")}`,
      ),
      finding(
        "ok",
        `Process ${info.pid}, up for ${duration(info.uptimeMs)}, ${size(diagnostics.memoryBytes)} of memory`,
      ),
      finding(
        "info",
        others.length === 0
          ? "No other server has it open."
          : `${plural(others.length, "other server")} has it open, too (${others.map((host) => `process ${host.pid}`).join(", ")}): that is as it should be.`,
      ),
      finding(
        "info",
        held.length === 0
          ? "No session is held by a server just now."
          : `Held just now: ${held.map((lease) => `${lease.sessionId} by ${lease.hostId}`).join(", ")}`,
      ),
      finding("info", `Features: ${on.map(([name]) => name).join(", ")}`),
      finding(
        info.model == null ? "warn" : "ok",
        `Model: ${info.model ?? "none"}${info.modelSource == null ? "" : ` (${info.modelSource})`}`,
      ),
      ...list(diagnostics.warnings).map((each) => finding("warn", each)),
    ];
  } catch (fault) {
    return [
      finding(
        "error",
        `The server does not tell of its store: ${explain(fault)}`,
        "“Callboard: Show Log” may say why.",
      ),
    ];
  }
}
