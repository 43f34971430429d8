/** A child process with its three pipes, of which nothing is left when it is to end. */
import { spawn as start, type ChildProcessWithoutNullStreams } from "node:child_process";
import { statSync } from "node:fs";
import { spawnable } from "./command_line";

/** A grandchild may hold the pipes open: so long (ms) what was written is waited for after the end. */
export const LINGER_MS = 300;
/** One that closes a pipe and lives on is of no use: so long (ms) its end is waited for. */
export const MUTE_MS = 2000;
/** From `SIGTERM` to `SIGKILL` (ms). */
export const TERM_MS = 1000;

export interface ProcessOptions {
  cwd?: string | undefined;
  /** What is added to the editor's environment; null takes away. */
  env?: Readonly<Record<string, string | number | null>> | undefined;
  lingerMs?: number;
  muteMs?: number;
  termMs?: number;
}

export interface ProcessEnd {
  /** null: a signal ended it, or it was never there. */
  code: number | null;
  signal: NodeJS.Signals | null;
  /** It could not be started. */
  fault?: string;
}

export interface ProcessHandlers {
  stdout(chunk: Buffer): void;
  stderr(chunk: Buffer): void;
  /** Once, after all that was written. */
  exit(end: ProcessEnd): void;
}

/** What an editor tells its own children, and what is not for those that a server starts. */
const OURS = /^(?:ELECTRON_|VSCODE_(?!PORTABLE$))/i;

/** The environment of a server. On Windows the case of names means nothing. */
export function environment(
  own: NodeJS.ProcessEnv,
  added: ProcessOptions["env"],
  platform: NodeJS.Platform,
): NodeJS.ProcessEnv {
  const all: NodeJS.ProcessEnv = {};
  for (const [name, value] of Object.entries(own)) {
    if (!OURS.test(name)) {
      all[name] = value;
    }
  }
  for (const [name, value] of Object.entries(added ?? {})) {
    for (const other of Object.keys(all)) {
      if (other === name || (platform === "win32" && other.toLowerCase() === name.toLowerCase())) {
        // eslint-disable-next-line @typescript-eslint/no-dynamic-delete -- names of variables are data
        delete all[other];
      }
    }
    if (value !== null) {
      all[name] = String(value);
    }
  }
  return all;
}

function started(cmd: readonly string[], options: ProcessOptions): ChildProcessWithoutNullStreams {
  const { file, args, verbatim } = spawnable(cmd, process.platform, process.env["ComSpec"]);
  if (
    options.cwd !== undefined &&
    statSync(options.cwd, { throwIfNoEntry: false })?.isDirectory() !== true
  ) {
    // The system would say that the program is not there.
    throw new Error(`the folder ${options.cwd} that it is to run in is not there`);
  }
  return start(file, args, {
    cwd: options.cwd,
    env: environment(process.env, options.env, process.platform),
    stdio: "pipe",
    shell: false,
    windowsHide: true,
    windowsVerbatimArguments: verbatim,
    // Of a group of its own: a Ctrl-C where the editor was started is not for the server, and what it leaves
    // can be ended with it.
    detached: process.platform !== "win32",
  });
}

export class Process {
  /** It is gone. */
  ended = false;
  /** undefined: it was never there. */
  readonly #child: ChildProcessWithoutNullStreams | undefined;
  readonly #options: ProcessOptions;
  #muted: NodeJS.Timeout | undefined;
  #ender: NodeJS.Timeout | undefined;
  #held = false;

  /** Starts a program. That it cannot be started is told by `exit` as well: later. */
  constructor(cmd: readonly string[], options: ProcessOptions, handlers: ProcessHandlers) {
    this.#options = options;
    let child: ChildProcessWithoutNullStreams;
    try {
      child = started(cmd, options);
    } catch (fault) {
      this.ended = true;
      const why = fault instanceof Error ? fault.message : String(fault);
      setImmediate(() => {
        handlers.exit({ code: null, signal: null, fault: why });
      });
      return;
    }
    if (child.pid === undefined) {
      this.ended = true; // and its pipes may not be there either
      child.once("error", (fault) => {
        handlers.exit({ code: null, signal: null, fault: fault.message });
      });
      return;
    }
    this.#child = child;
    this.#listen(child, handlers);
  }

  /** 0: it was never there. */
  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  #listen(child: ChildProcessWithoutNullStreams, handlers: ProcessHandlers): void {
    let end: ProcessEnd = { code: null, signal: null };
    let linger: NodeJS.Timeout | undefined;
    let over = false;
    const finish = (): void => {
      if (!over) {
        over = true;
        clearTimeout(linger);
        clearTimeout(this.#muted);
        clearTimeout(this.#ender);
        for (const stream of [child.stdin, child.stdout, child.stderr]) {
          stream.destroy();
        }
        handlers.exit(end);
      }
    };
    child.on("error", () => undefined); // a signal that could not be sent; the next one may be
    child.on("exit", (code, signal) => {
      this.ended = true;
      end = { code, signal };
      this.hold(false);
      linger = setTimeout(() => {
        setImmediate(finish); // what has come meanwhile is read first
      }, this.#options.lingerMs ?? LINGER_MS);
    });
    child.on("close", finish);
    child.stdout.on("data", (chunk: Buffer) => {
      handlers.stdout(chunk);
    });
    child.stdout.on("end", () => {
      this.#mute();
    });
    child.stderr.on("data", (chunk: Buffer) => {
      handlers.stderr(chunk);
    });
    // A pipe that breaks is told by the end of the process, or by its silence.
    child.stdin.on("error", () => {
      this.#mute();
    });
    child.stdout.on("error", () => {
      this.#mute();
    });
    child.stderr.on("error", () => undefined);
  }

  /** It says nothing, or hears nothing, any more. */
  #mute(): void {
    if (!this.ended && !this.#muted) {
      this.#muted = setTimeout(() => {
        this.kill("SIGKILL");
      }, this.#options.muteMs ?? MUTE_MS);
    }
  }

  write(data: Buffer): void {
    if (!this.ended && this.#child?.stdin.writable) {
      this.#child.stdin.write(data);
    }
  }

  /** Reads nothing more of what it says until it may: whoever says more than can be heard has to wait. */
  hold(held: boolean): void {
    if (held !== this.#held) {
      this.#held = held;
      if (held) {
        this.#child?.stdout.pause();
      } else {
        this.#child?.stdout.resume();
      }
    }
  }

  /** No more will be written: a server takes that for its end. */
  hangUp(): void {
    if (!this.ended) {
      this.#child?.stdin.end();
    }
  }

  /** Ends it: `SIGTERM` so that it may clean up, and `SIGKILL` when it has not gone after that. */
  terminate(): void {
    if (!this.ended) {
      this.hangUp();
      this.kill("SIGTERM");
      clearTimeout(this.#ender);
      this.#ender = setTimeout(() => {
        this.kill("SIGKILL");
      }, this.#options.termMs ?? TERM_MS);
    }
  }

  /** By its number, and while it is there; `SIGKILL` is for what it has started in its group as well. */
  kill(signal: NodeJS.Signals): void {
    const child = this.#child;
    if (this.ended || child?.pid === undefined) {
      return;
    }
    if (signal !== "SIGKILL") {
      child.kill(signal);
    } else if (process.platform === "win32") {
      // The programs that Python and npm put in front of the real one would leave that behind.
      start("taskkill", ["/pid", String(child.pid), "/t", "/f"], {
        windowsHide: true,
        stdio: "ignore",
      }).on("error", () => child.kill("SIGKILL"));
    } else {
      try {
        process.kill(-child.pid, "SIGKILL");
      } catch {
        child.kill("SIGKILL");
      }
    }
  }
}
