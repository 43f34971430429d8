// What the licences of the libraries that are packed ask for: their names and texts.
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const modules = fileURLToPath(new URL("node_modules/", import.meta.url));
const LIBRARY = /^node_modules\/((?:@[^/]+\/)?[^/]+)\//;
/** Where a library may be had under one of several, the text of the one that is chosen has the plain name. */
const TEXT = /^licen[cs]e(-code|-mit)?(\.\w+)?$/i;

/** Writes `file` for the libraries of these bundles (esbuild's metafiles), and those copied beside them. */
export async function writeNotices(file, metafiles, copied) {
  const inputs = metafiles.flatMap((metafile) =>
    Object.values(metafile.outputs).flatMap((output) => Object.keys(output.inputs)),
  );
  const found = inputs.flatMap((input) => LIBRARY.exec(input)?.[1] ?? []);
  const libraries = [...new Set([...found, ...copied])].sort();
  const notices = await Promise.all(libraries.map(notice));
  await writeFile(
    file,
    `Callboard for VS Code is packed with these libraries.\n\n${notices.join("\n")}`,
  );
}

async function notice(library) {
  const folder = join(modules, library);
  const { version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  const names = (await readdir(folder)).filter((name) => TEXT.test(name)).sort();
  if (names.length === 0) throw new Error(`${library} has no licence that can be packed with it`);
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), "utf8")));
  return [`${library} ${version} (${license})`, ...texts.map((text) => text.trim()), ""].join(
    "\n\n",
  );
}
