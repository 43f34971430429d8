// Bundles tests, as the extension is bundled.
//   node test/bundle.mjs unit DIR [FILE...]     what `node --test` runs, vscode being test/unit/vscode_stub.ts
//   node test/bundle.mjs exthost DIR [FILE...]  suites for a real extension host
import { build } from "esbuild";
import { globSync } from "node:fs";
import { basename, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { forHost } from "../esbuild.mjs";

const here = fileURLToPath(new URL("..", import.meta.url));

const kinds = {
  unit: {
    files: "test/unit/**/*.test.ts",
    options: {
      alias: { ...forHost.alias, vscode: join(here, "test/unit/vscode_stub.ts") },
      jsx: "automatic",
      jsxImportSource: "preact",
    },
  },
  exthost: { files: "test/exthost/suite/*.ts", options: { external: ["vscode"] } },
};

/** The bundles, as many as there are files, in the order of those. */
export async function bundleTests(kind, folder, files = []) {
  const { files: pattern, options } = kinds[kind];
  const root = join(here, pattern.split("/*")[0]);
  const wanted = files.length > 0 ? files : globSync(pattern, { cwd: here }).sort();
  const named = wanted.map((file) => {
    const path = resolve(here, file);
    const inside = relative(root, path);
    return [(inside.startsWith("..") ? basename(path) : inside).replace(/\.ts$/, ""), path];
  });
  await build({
    ...forHost,
    ...options,
    entryPoints: Object.fromEntries(named),
    outdir: folder,
    outExtension: { ".js": ".cjs" },
    sourcemap: "inline",
    sourcesContent: false,
  });
  return named.map(([name]) => join(folder, `${name}.cjs`));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [kind, folder, ...files] = process.argv.slice(2);
  try {
    for (const file of await bundleTests(kind, folder, files)) console.log(file);
  } catch {
    process.exitCode = 1; // esbuild has told
  }
}
