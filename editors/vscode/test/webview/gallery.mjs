// Prints what the gallery holds, as JSON.
import { build } from "esbuild";
import { fileURLToPath } from "node:url";
import { common } from "../../esbuild.mjs";

const { outputFiles } = await build({
  ...common,
  entryPoints: [fileURLToPath(new URL("gallery.ts", import.meta.url))],
  format: "esm",
  write: false,
});
const code = Buffer.from(outputFiles[0].contents).toString("base64");
const { gallery } = await import(`data:text/javascript;base64,${code}`);
process.stdout.write(JSON.stringify(gallery));
