// The icons of the pages: of the codicons, those whose names stand somewhere in the sources. All of them
// would be a fifth of the whole package.
import { globSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import subsetFont from "subset-font";

const here = fileURLToPath(new URL(".", import.meta.url));
const codicons = join(here, "node_modules/@vscode/codicons/dist");
const RULE = /^\.codicon-([\w-]+):before \{ content: "\\([0-9a-f]+)" \}$/gm;

/** Every word that a string in the sources of the pages holds. */
async function words() {
  const sources = globSync(["webview/**/*.{ts,tsx,css}", "src/shared/**/*.ts"], { cwd: here });
  const found = new Set();
  for (const source of sources) {
    for (const [word] of (await readFile(join(here, source), "utf8")).matchAll(/[\w-]+/g)) {
      found.add(word.replace(/^codicon-/, ""));
    }
  }
  return found;
}

/** Writes `codicon.css` and `codicon.ttf` into `folder`. */
export async function writeCodicons(folder) {
  const used = await words();
  const css = await readFile(join(codicons, "codicon.css"), "utf8");
  const rules = [...css.matchAll(RULE)].map(([rule, name, code]) => ({ rule, name, code }));
  if (rules.length < 400) throw new Error("codicon.css is written in another way than it was");
  const kept = rules.filter(({ name }) => used.has(name));
  const text = kept.map(({ code }) => String.fromCodePoint(parseInt(code, 16))).join("");
  const font = await subsetFont(await readFile(join(codicons, "codicon.ttf")), text, {
    targetFormat: "truetype",
  });
  const head = css.slice(0, css.indexOf(rules[0].rule)).replace(/\?[0-9a-f]+/, "");
  await mkdir(folder, { recursive: true });
  await writeFile(
    join(folder, "codicon.css"),
    `${head}${kept.map(({ rule }) => rule).join("\n")}\n`,
  );
  await writeFile(join(folder, "codicon.ttf"), font);
}
