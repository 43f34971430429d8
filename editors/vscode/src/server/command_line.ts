/** What is started for a command line. On Windows a batch file runs only in a `cmd.exe`, which reads its own way. */

export interface Spawnable {
  file: string;
  args: string[];
  /** The arguments are quoted already. */
  verbatim: boolean;
}

/** What acts on `cmd.exe`. */
const ACTS = /[()\][%!^"`<>&|;, *?]/g;

/** An argument as programs on Windows take their command line apart. */
function quoted(argument: string): string {
  const inner = argument.replace(/(\\*)"/g, '$1$1\\"').replace(/(\\*)$/, "$1$1");
  return `"${inner}"`;
}

/**
 * An argument for a batch file. Twice out of reach: `cmd.exe` reads the line, and the batch file, which
 * hands on what it was given, has it read again.
 */
function batchArgument(argument: string): string {
  return quoted(argument).replace(ACTS, "^$&").replace(ACTS, "^$&");
}

/**
 * How a command line is started, without a shell in between.
 * @throws Error with words for the person, where an argument cannot be handed on
 */
export function spawnable(
  cmd: readonly string[],
  platform: NodeJS.Platform,
  comspec = "cmd.exe",
): Spawnable {
  const [file = "", ...args] = cmd;
  if (platform !== "win32" || !/\.(?:cmd|bat)$/i.test(file)) {
    return { file, args, verbatim: false };
  }
  const bad = cmd.find((each) => /[\0\r\n]/.test(each));
  if (bad !== undefined) {
    throw new Error("an argument with a line end in it cannot be given to a batch file");
  }
  const line = [file.replaceAll("/", "\\").replace(ACTS, "^$&"), ...args.map(batchArgument)].join(
    " ",
  );
  return { file: comspec, args: ["/d", "/s", "/c", `"${line}"`], verbatim: true };
}
