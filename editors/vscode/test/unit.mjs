// Runs the unit tests, all or those named: node test/unit.mjs [test/unit/some.test.ts...]
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundleTests } from "./bundle.mjs";

const folder = mkdtempSync(join(tmpdir(), "callboard-units-"));
try {
  const files = await bundleTests("unit", folder, process.argv.slice(2));
  const node = ["--enable-source-maps", "--test", ...files];
  process.exitCode = spawnSync(process.execPath, node, { stdio: "inherit" }).status ?? 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
