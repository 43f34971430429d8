// Writes the pages of the webviews as the extension makes them, with their bundles, into a folder that is
// served as ORIGIN: node test/webview/pages.mjs DIR ORIGIN
import { build } from "esbuild";
import { createRequire } from "node:module";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundles, forHost } from "../../esbuild.mjs";

const here = fileURLToPath(new URL("../..", import.meta.url));
const [folder, origin] = process.argv.slice(2);

await bundles(folder, false);

const scratch = await mkdtemp(join(tmpdir(), "callboard-pages-"));
try {
  await build({
    ...forHost,
    entryPoints: [join(here, "src/views/chatPage.ts")],
    outfile: join(scratch, "page.cjs"),
    alias: { ...forHost.alias, vscode: join(here, "test/webview/vscode.ts") },
  });
  const { pageOf } = createRequire(import.meta.url)(join(scratch, "page.cjs"));
  const webview = {
    cspSource: origin,
    asWebviewUri: (uri) => uri.replace("extension/dist/webview", origin),
  };
  for (const [name, title] of [
    ["chat", "Callboard chat"],
    ["board", "Callboard task board"],
  ]) {
    const html = pageOf({ extensionUri: "extension" }, webview, { name, title });
    await writeFile(join(folder, "webview", `${name}.html`), html);
  }
} finally {
  await rm(scratch, { recursive: true, force: true });
}
