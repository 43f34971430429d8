/**
 * An extension that is installed in tests only: runs a bundled suite inside the extension host that it is
 * in, and writes what came of it. The environment names both files; without it nothing happens.
 */
import { renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";

import type { Outcome, Result } from "../runner";

interface Suite {
  run: (ran: (so: Result[]) => void) => Promise<Outcome>;
}

export async function activate(): Promise<void> {
  const suite = process.env["EXTHOST_TESTS"];
  const result = process.env["EXTHOST_RESULT"];
  if (suite === undefined || result === undefined) return;
  let outcome: Outcome;
  try {
    const loaded = createRequire(suite)(suite) as Suite;
    outcome = await loaded.run((tests) => {
      write(`${result}.so-far`, tests);
    });
  } catch (fault) {
    outcome = { tests: [], fault: fault instanceof Error ? String(fault.stack) : String(fault) };
  }
  write(result, outcome);
}

/** At once, since it is waited for. */
function write(file: string, what: unknown): void {
  writeFileSync(`${file}.part`, JSON.stringify(what));
  renameSync(`${file}.part`, file);
}
