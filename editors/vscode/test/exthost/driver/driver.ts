/**
 * An extension that is installed in tests only: runs a bundled suite inside the extension host that it is
 * in, and writes what came of it. The environment names both files; without it nothing happens.
 */
import { renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";

import type { Outcome } from "../runner";

export async function activate(): Promise<void> {
  const suite = process.env["EXTHOST_TESTS"];
  const result = process.env["EXTHOST_RESULT"];
  if (suite === undefined || result === undefined) return;
  let outcome: Outcome;
  try {
    const loaded = createRequire(suite)(suite) as { run: () => Promise<Outcome> };
    outcome = await loaded.run();
  } catch (fault) {
    outcome = { tests: [], fault: fault instanceof Error ? String(fault.stack) : String(fault) };
  }
  // At once, since it is waited for.
  writeFileSync(`${result}.part`, JSON.stringify(outcome));
  renameSync(`${result}.part`, result);
}
