// Packs the tests' own extension: node test/exthost/pack.mjs FILE
import vsce from "@vscode/vsce";
import { build } from "esbuild";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { forHost } from "../../esbuild.mjs";

const driver = fileURLToPath(new URL("driver/", import.meta.url));
const stage = await mkdtemp(join(tmpdir(), "callboard-driver-"));
try {
  await copyFile(join(driver, "package.json"), join(stage, "package.json"));
  await build({
    ...forHost,
    entryPoints: [join(driver, "driver.ts")],
    outfile: join(stage, "driver.cjs"),
    external: ["vscode"],
  });
  await vsce.createVSIX({
    cwd: stage,
    packagePath: resolve(process.argv[2]),
    dependencies: false,
    allowMissingRepository: true,
    skipLicense: true,
    allowStarActivation: true,
  });
} finally {
  await rm(stage, { recursive: true, force: true });
}
