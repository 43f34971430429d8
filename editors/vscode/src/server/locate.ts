/** Where the server is: the setting, a folder's virtual environment, PATH, a Python that has it. */
import { posix, win32, type PlatformPath } from "node:path";
import { expanded, type Variables } from "./variables";

export interface Found {
  cmd: readonly string[];
  /** In words. */
  how: string;
  /** Whether it has Callboard shows when it is started. */
  guess?: boolean;
  /** It was found by a PATH that this process does not have, and is to be started with it. */
  path?: string;
}

/** `fault`: what was tried, and the way out. */
export type Located = { found: Found } | { fault: string };

export interface ServerSettings {
  /** `callboard.server.path`; empty: it is looked for. */
  path?: string | undefined;
  /** `callboard.server.args`; empty: `serve`. */
  args?: readonly string[] | undefined;
}

/** Of the machine, what is looked at. */
export interface Machine extends Variables {
  platform: NodeJS.Platform;
  /** Whether this is a file that can be run. */
  executable(path: string): Promise<boolean>;
  /** The PATH of the person's login shell, where the editor may have another one. */
  loginPath?(): Promise<string | undefined>;
}

/** What Windows takes for a program, when nothing says so. */
const EXTENSIONS = ".COM;.EXE;.BAT;.CMD";

function pathsOf(machine: Machine): PlatformPath {
  return machine.platform === "win32" ? win32 : posix;
}

/** A variable of the environment; on Windows in any case. */
function variable(machine: Machine, name: string): string | undefined {
  const exact = machine.env[name];
  if (exact !== undefined || machine.platform !== "win32") {
    return exact;
  }
  const key = Object.keys(machine.env).find((each) => each.toUpperCase() === name);
  return key === undefined ? undefined : machine.env[key];
}

/** The names that a program may have: on Windows with each of the endings of programs. */
function names(machine: Machine, name: string): string[] {
  if (machine.platform !== "win32") {
    return [name];
  }
  const extensions = (variable(machine, "PATHEXT") ?? EXTENSIONS).split(";").filter(Boolean);
  const has = extensions.some((each) => name.toLowerCase().endsWith(each.toLowerCase()));
  return has ? [name] : extensions.map((each) => name + each.toLowerCase());
}

async function first(machine: Machine, paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) {
    if (await machine.executable(path)) {
      return path;
    }
  }
  return undefined;
}

/** Where on a PATH a program is. What is not absolute there would depend on the folder that is open. */
function onPath(
  machine: Machine,
  name: string,
  path: string | undefined,
): Promise<string | undefined> {
  const paths = pathsOf(machine);
  const folders = (path ?? "")
    .split(paths.delimiter)
    .map((each) => (machine.platform === "win32" ? each.replaceAll('"', "") : each))
    .filter((each) => paths.isAbsolute(each));
  return first(
    machine,
    folders.flatMap((folder) => names(machine, name).map((each) => paths.join(folder, each))),
  );
}

async function named(settings: ServerSettings, machine: Machine, args: string[]): Promise<Located> {
  const setting = settings.path?.trim() ?? "";
  const path = expanded(setting, machine);
  const paths = pathsOf(machine);
  if ("fault" in path) {
    return {
      fault: `callboard.server.path is ${setting}: ${path.fault}. Correct the setting, or leave it out.`,
    };
  }
  let program: string | undefined;
  const [folder] = machine.folders;
  if (paths.isAbsolute(path.text)) {
    program = await first(machine, names(machine, path.text));
  } else if (!/[/\\]/.test(path.text)) {
    program = await onPath(machine, path.text, variable(machine, "PATH"));
  } else if (folder !== undefined) {
    program = await first(machine, names(machine, paths.join(folder, path.text)));
  }
  if (program === undefined) {
    return {
      fault:
        `callboard.server.path names ${setting}, which is not there or cannot be run. ` +
        "Correct the setting, or leave it out.",
    };
  }
  return { found: { cmd: [program, ...args], how: "callboard.server.path" } };
}

async function inFolders(machine: Machine): Promise<string | undefined> {
  const windows = machine.platform === "win32";
  const paths = pathsOf(machine);
  const program = windows ? ["Scripts", "callboard.exe"] : ["bin", "callboard"];
  return first(
    machine,
    machine.folders.flatMap((folder) =>
      [".venv", "venv"].map((name) => paths.join(folder, name, ...program)),
    ),
  );
}

async function withPath(
  machine: Machine,
  path: string | undefined,
  args: string[],
): Promise<Found | undefined> {
  const program = await onPath(machine, "callboard", path);
  return program === undefined ? undefined : { cmd: [program, ...args], how: "PATH" };
}

/** The PATH of a login shell matters where an editor that was started from a dock has not got it. */
async function withLoginPath(machine: Machine, args: string[]): Promise<Found | undefined> {
  const path = machine.platform === "darwin" ? await machine.loginPath?.() : undefined;
  const found = path === undefined ? undefined : await withPath(machine, path, args);
  return found && path !== undefined
    ? { ...found, how: "the PATH of the login shell", path }
    : undefined;
}

async function withPython(machine: Machine, args: string[]): Promise<Found | undefined> {
  for (const name of ["python3", "python"]) {
    const python = await onPath(machine, name, variable(machine, "PATH"));
    if (python !== undefined) {
      const how = "a Python that may have it";
      return { cmd: [python, "-m", "callboard", ...args], how, guess: true };
    }
  }
  return undefined;
}

/** Finds the command line of the server. */
export async function locate(settings: ServerSettings, machine: Machine): Promise<Located> {
  const args: string[] = [];
  for (const argument of settings.args?.length ? settings.args : ["serve"]) {
    const got = expanded(argument, machine);
    if ("fault" in got) {
      return { fault: `callboard.server.args has ${argument}: ${got.fault}. Correct the setting.` };
    }
    args.push(got.text);
  }
  if (settings.path !== undefined && settings.path.trim() !== "") {
    return named(settings, machine, args);
  }
  const program = await inFolders(machine);
  const found =
    program === undefined
      ? ((await withPath(machine, variable(machine, "PATH"), args)) ??
        (await withLoginPath(machine, args)) ??
        (await withPython(machine, args)))
      : { cmd: [program, ...args], how: "the virtual environment of this folder" };
  return found ? { found } : { fault: missing(machine.folders) };
}

/** @param folders in which it was looked for */
export function missing(folders: readonly string[]): string {
  const where = folders.length > 0 ? `no .venv or venv with it in ${folders.join(" or ")}, ` : "";
  return (
    `the server was not found: ${where}no “callboard” on PATH, and no Python that has it. ` +
    "Install it (pip install callboard), or name it in the setting callboard.server.path; " +
    "then “Callboard: Restart Server”."
  );
}
