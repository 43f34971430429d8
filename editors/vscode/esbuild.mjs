// Two kinds of bundles: the extension, which runs in Node, and the pages of its webviews.
//   node esbuild.mjs                 into dist, with source maps
//   node esbuild.mjs --release DIR   into DIR/dist, as packed
import { build } from "esbuild";
import { globSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { writeCodicons } from "./codicons.mjs";
import { writeNotices } from "./notices.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const protocol = fileURLToPath(
  new URL("../../rpc_schema/generated/typescript/callboard.ts", import.meta.url),
);

/** What every bundle has in common. */
export const common = {
  absWorkingDir: here,
  bundle: true,
  legalComments: "none",
  logLevel: "warning",
  alias: { "@callboard/protocol": protocol },
};

/** How code that runs in an extension host is bundled. */
export const forHost = { ...common, platform: "node", target: "node20", format: "cjs" };

/** How code that runs in a webview is bundled. */
export const forPage = {
  ...common,
  platform: "browser",
  target: "es2022",
  format: "iife",
  jsx: "automatic",
  jsxImportSource: "preact",
};

/** Writes all that the extension runs into `folder`; each folder of `webview` with a `main.tsx` is a page. */
export async function bundles(folder, release) {
  const kind = { minify: release, sourcemap: !release, metafile: true };
  const pages = join(folder, "webview");
  const built = await Promise.all([
    build({
      ...forHost,
      ...kind,
      entryPoints: ["src/extension.ts"],
      outfile: join(folder, "extension.cjs"),
      external: ["vscode"],
    }),
    build({
      ...forPage,
      ...kind,
      entryPoints: Object.fromEntries(
        globSync("webview/*/main.tsx", { cwd: here }).map((path) => [
          basename(dirname(path)),
          path,
        ]),
      ),
      outdir: pages,
    }),
  ]);
  await writeCodicons(pages);
  const metafiles = built.map(({ metafile }) => metafile);
  await writeNotices(join(folder, "third-party.txt"), metafiles, ["@vscode/codicons"]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [first, folder] = process.argv.slice(2);
  await bundles(join(folder ?? here, "dist"), first === "--release");
}
