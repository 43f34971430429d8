// Two kinds of bundles: the extension, which runs in Node, and the pages of its webviews.
import { build } from "esbuild";
import { copyFile, mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const protocol = fileURLToPath(
  new URL("../../rpc_schema/generated/typescript/callboard.ts", import.meta.url),
);
const release = process.argv.includes("--release");

/** What every bundle has in common. */
export const common = {
  absWorkingDir: here,
  bundle: true,
  minify: release,
  sourcemap: !release,
  legalComments: "none",
  logLevel: "warning",
  alias: { "@callboard/protocol": protocol },
};

export async function bundles() {
  await build({
    ...common,
    entryPoints: ["src/extension.ts"],
    outfile: "dist/extension.cjs",
    platform: "node",
    target: "node20",
    format: "cjs",
    external: ["vscode"],
  });
  await build({
    ...common,
    entryPoints: { chat: "webview/chat/main.tsx", board: "webview/board/main.tsx" },
    outdir: "dist/webview",
    platform: "browser",
    target: "es2022",
    format: "iife",
    jsx: "automatic",
    jsxImportSource: "preact",
  });
  await mkdir(`${here}/dist/webview`, { recursive: true });
  for (const name of ["codicon.css", "codicon.ttf"]) {
    await copyFile(
      `${here}/node_modules/@vscode/codicons/dist/${name}`,
      `${here}/dist/webview/${name}`,
    );
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await bundles();
}
