/** Runs a program to its end, or to the end of its time, and never through a shell. */
import { execFile } from "node:child_process";
import { spawnable } from "../server/command_line";
import { environment, type ProcessOptions } from "../server/process";
import type { Ran } from "./server";

/** Most (bytes) that is taken in of what it says. */
const MOST = 1024 * 1024;

export function run(
  cmd: readonly string[],
  limitMs: number,
  options: Pick<ProcessOptions, "cwd" | "env">,
): Promise<Ran> {
  return new Promise((resolve) => {
    try {
      const { file, args, verbatim } = spawnable(cmd, process.platform, process.env["ComSpec"]);
      const child = execFile(
        file,
        args,
        {
          cwd: options.cwd,
          env: environment(process.env, options.env, process.platform),
          timeout: limitMs,
          killSignal: "SIGKILL",
          maxBuffer: MOST,
          windowsHide: true,
          windowsVerbatimArguments: verbatim,
        },
        (fault, stdout, stderr) => {
          const late = fault?.killed === true ? `it took longer than ${limitMs / 1000} s` : "";
          const failed = fault === null ? 0 : typeof fault.code === "number" ? fault.code : -1;
          const broken = failed === -1 && stderr === "" ? (fault?.message ?? "") : stderr;
          resolve({ code: failed, stdout, stderr: late === "" ? broken : late });
        },
      );
      child.stdin?.end();
    } catch (fault) {
      resolve({ code: -1, stdout: "", stderr: fault instanceof Error ? fault.message : "" });
    }
  });
}
