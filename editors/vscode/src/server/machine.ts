/** The machine that the extension runs on, as `locate` looks at it. */
import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { homedir } from "node:os";
import type { Machine } from "./locate";

/** How long (ms) a login shell may take to say its PATH. */
const SHELL_MS = 5000;

async function executable(path: string): Promise<boolean> {
  try {
    await access(path, process.platform === "win32" ? constants.F_OK : constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}

/** Around the PATH, since a shell may greet whoever starts it. */
const MARK = "callboard-path-8d1f";

/**
 * Asks a shell for the PATH that it has after it has read all its files.
 * @returns undefined where it does not say, or not in time
 */
export function shellPath(shell: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const child = execFile(
      shell,
      ["-i", "-l", "-c", `printf '%s' ${MARK} "$PATH" ${MARK}`],
      { timeout: SHELL_MS, killSignal: "SIGKILL", maxBuffer: 1024 * 1024 },
      (_fault, stdout) => {
        const [, path] = stdout.split(MARK);
        resolve(path === undefined || path === "" ? undefined : path);
      },
    );
    child.stdin?.end();
  });
}

let login: Promise<string | undefined> | undefined;

/** Asked once: shells can be slow, and what they say does not change while an editor runs. */
function loginPath(): Promise<string | undefined> {
  login ??= shellPath(process.env["SHELL"] ?? "/bin/zsh");
  return login;
}

/** @param folders that are open, the first one first */
export function thisMachine(folders: readonly string[]): Machine {
  return {
    folders,
    home: homedir(),
    env: process.env,
    platform: process.platform,
    executable,
    loginPath,
  };
}
