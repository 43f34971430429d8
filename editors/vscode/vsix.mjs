// Packs the extension as a .vsix, the same bytes for the same sources.
//   node vsix.mjs [FILE]      FILE is dist/callboard.vsix unless named
import vsce from "@vscode/vsce";
import { cp, mkdir, mkdtemp, readFile, rename, rm } from "node:fs/promises";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { bundles } from "./esbuild.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));

// The zip's times: the first that it can hold, in the zone that it does not name.
process.env.SOURCE_DATE_EPOCH = "315532800";
process.env.TZ = "UTC";

/** What is packed beside the bundles, where it is there: all that package.json lists in `files`. */
async function carried() {
  const { files } = JSON.parse(await readFile(join(here, "package.json"), "utf8"));
  return ["package.json", ...files.map((name) => name.replace(/\/\*\*$/, ""))].filter(
    (name) => name !== "dist" && existsSync(join(here, name)),
  );
}

async function pack(file) {
  const stage = await mkdtemp(join(tmpdir(), "callboard-vsix-"));
  const part = `${file}.${process.pid}`;
  try {
    for (const name of await carried()) {
      await cp(join(here, name), join(stage, name), { recursive: true });
    }
    await bundles(join(stage, "dist"), true);
    await mkdir(dirname(file), { recursive: true });
    await vsce.createVSIX({
      cwd: stage,
      packagePath: part,
      dependencies: false,
      allowMissingRepository: true,
      allowUnusedFilesPattern: true,
      rewriteRelativeLinks: false,
    });
    await rename(part, file);
  } finally {
    await rm(part, { force: true });
    await rm(stage, { recursive: true, force: true });
  }
}

await pack(resolve(process.argv[2] ?? join(here, "dist/callboard.vsix")));
