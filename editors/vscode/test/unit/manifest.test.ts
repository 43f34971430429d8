import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { CONTEXT_KEYS } from "../../src/contextKeys";
import { SETTINGS } from "../../src/config";
import { VERBS } from "../../src/shared/board";

interface Menu {
  command: string;
  when?: string;
  group?: string;
}

interface Property {
  markdownDescription?: string;
  enum?: string[];
  enumDescriptions?: string[];
  default: unknown;
  scope: string;
}

interface Manifest {
  files: string[];
  capabilities: { untrustedWorkspaces: { restrictedConfigurations: string[] } };
  contributes: {
    commands: { command: string; title: string; category: string; icon?: string }[];
    configuration: { properties: Record<string, Property> }[];
    keybindings: Required<Pick<Menu, "command" | "when">>[];
    menus: Record<string, Menu[]>;
    views: Record<string, { id: string; when?: string }[]>;
    viewsWelcome: { view: string; contents: string; when: string }[];
    walkthroughs: {
      steps: { media: { markdown: string }; description: string; completionEvents: string[] }[];
    }[];
  };
}

function filesIn(folder: string, ending: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(ending))
    .map((file) => `${folder}/${file}`);
}

const raw = readFileSync("package.json", "utf8");
const manifest = JSON.parse(raw) as Manifest;
const words = JSON.parse(readFileSync("package.nls.json", "utf8")) as Record<string, string>;
const { contributes } = manifest;
const contributed = contributes.commands.map(({ command }) => command);
const sources = filesIn("src", ".ts").map((file) => readFileSync(file, "utf8"));
const registered = [
  ...new Set([
    ...sources.flatMap((text) => [...text.matchAll(/"(callboard\.\w+)":/g)].map(first)),
    ...VERBS.map((verb) => `callboard.${verb}Task`),
  ]),
];

/** What only code runs, with arguments that no person could give. */
const INTERNAL = [
  "callboard.showApprovalDiff",
  "callboard.showDiff",
  "callboard.showHiddenSessions",
  "callboard.showMoreSessions",
  "callboard.showTask",
];

function first(match: RegExpMatchArray): string {
  return match[1] ?? "";
}

function all(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(first);
}

/** Every string of the manifest. */
function strings(value: unknown): string[] {
  if (typeof value === "string") {
    return [value];
  }
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(strings) : [];
}

const whens = [
  ...Object.values(contributes.menus).flat(),
  ...contributes.keybindings,
  ...contributes.viewsWelcome,
  ...Object.values(contributes.views).flat(),
].flatMap(({ when }) => when ?? []);

describe("commands", () => {
  it("of the manifest are registered, and those that are registered are in it", () => {
    assert.deepEqual(
      [...contributed].sort(),
      registered.filter((each) => !INTERNAL.includes(each)).sort(),
    );
  });

  it("are each there once, in order, with a title and a category in words", () => {
    assert.deepEqual(contributed, [...new Set(contributed)].sort());
    for (const { command, title, category } of contributes.commands) {
      assert.equal(title, `%command.${command.replace("callboard.", "")}%`);
      assert.equal(category, "%category%");
    }
  });

  it("of menus and keys are contributed", () => {
    const used = [...Object.values(contributes.menus).flat(), ...contributes.keybindings];
    assert.deepEqual(
      used.filter(({ command }) => !contributed.includes(command)),
      [],
    );
  });

  it("of links in welcome views and steps are contributed, or VS Code's own", () => {
    const linked = strings(words).flatMap((text) => all(text, /\(command:([\w.]+)/g));
    assert.ok(linked.length > 10);
    assert.deepEqual(
      linked.filter((each) => each.startsWith("callboard.") && !contributed.includes(each)),
      [],
    );
  });

  it("that run for the chat's page, or from code, are registered", () => {
    const run = sources.flatMap((text) => all(text, /executeCommand\(\s*[`"](callboard\.\w+)/g));
    assert.deepEqual(
      run.filter((each) => !registered.includes(each)),
      [],
    );
  });

  it("that texts name are called so", () => {
    const titles = contributed.map((each) => words[`command.${each.replace("callboard.", "")}`]);
    const texts = [
      ...sources,
      readFileSync("README.md", "utf8"),
      ...filesIn("walkthrough", ".md").map((file) => readFileSync(file, "utf8")),
      ...Object.values(words),
    ];
    const named = texts.flatMap((text) =>
      all(text, /(?:“|`|\*\*)Callboard: ([A-Z][^”`*]+)(?:”|`|\*\*)/g),
    );
    assert.ok(named.length > 15);
    assert.deepEqual(
      named.filter((name) => !titles.includes(name)),
      [],
    );
  });

  it("of keys are each asked for in a place of their own", () => {
    assert.deepEqual(
      contributes.keybindings.filter(({ when }) => when === ""),
      [],
    );
  });
});

describe("words", () => {
  it("that are named are there, and those that are there are used", () => {
    const named = strings(manifest).flatMap((text) => all(text, /^%(.+)%$/g));
    assert.deepEqual([...new Set(named)].sort(), Object.keys(words).sort());
  });

  it("are each some", () => {
    assert.deepEqual(
      Object.entries(words).filter(([, text]) => text.trim() === ""),
      [],
    );
  });
});

describe("settings", () => {
  const properties = contributes.configuration.flatMap((each) => Object.entries(each.properties));

  it("are those that are read", () => {
    assert.deepEqual(
      properties.map(([name]) => name).sort(),
      Object.keys(SETTINGS)
        .map((name) => `callboard.${name}`)
        .sort(),
    );
  });

  it("are each told of in the README", () => {
    const text = readFileSync("README.md", "utf8");
    assert.deepEqual(
      properties.map(([name]) => name).filter((name) => !text.includes(`\`${name}\``)),
      [],
    );
  });

  it("are read in one place", () => {
    const readers = filesIn("src", ".ts").filter((file) =>
      readFileSync(file, "utf8").includes('getConfiguration("callboard'),
    );
    assert.deepEqual(readers, []);
  });

  for (const [name, property] of properties) {
    it(`${name} is described, and is at first what the code takes it for`, () => {
      const setting = SETTINGS[name.replace("callboard.", "") as keyof typeof SETTINGS];
      assert.match(property.markdownDescription ?? "", /^%config\./);
      assert.equal(property.enumDescriptions?.length, property.enum?.length);
      assert.deepEqual(property.default, setting.initially);
      for (const value of property.enum ?? []) {
        assert.equal(setting.read(value), value);
      }
      assert.equal(setting.read(Symbol("none")), undefined);
    });
  }

  it("that name what is run count for nothing in a folder that is not trusted", () => {
    const restricted = manifest.capabilities.untrustedWorkspaces.restrictedConfigurations;
    const run = properties.filter(([name]) => name.startsWith("callboard.server."));
    assert.deepEqual(
      restricted,
      run
        .map(([name]) => name)
        .sort()
        .sort(byOrder(restricted)),
    );
    for (const [, { scope }] of run) {
      assert.equal(scope, "machine-overridable");
    }
  });
});

/** As they stand in a list. */
function byOrder(list: readonly string[]): (a: string, b: string) => number {
  return (a, b) => list.indexOf(a) - list.indexOf(b);
}

describe("when clauses", () => {
  const views = Object.values(contributes.views)
    .flat()
    .map(({ id }) => id);

  it("ask for keys that we set, or that are VS Code's", () => {
    const asked = whens.flatMap((when) =>
      all(when.replace(/view == callboard\.\w+/g, ""), /(callboard\.[\w.]+)/g),
    );
    assert.ok(asked.length > 50);
    const keys: readonly string[] = CONTEXT_KEYS;
    assert.deepEqual([...new Set(asked)].filter((key) => !keys.includes(key)).sort(), []);
  });

  it("are about views that there are", () => {
    const named = [
      ...whens.flatMap((when) => all(when, /view == (callboard\.\w+)/g)),
      ...contributes.viewsWelcome.map(({ view }) => view),
    ];
    assert.deepEqual(
      named.filter((view) => !views.includes(view)),
      [],
    );
  });

  it("of steps that are done ask for what there is", () => {
    const events = contributes.walkthroughs.flatMap(({ steps }) =>
      steps.flatMap((step) => step.completionEvents),
    );
    const keys: readonly string[] = CONTEXT_KEYS;
    for (const event of events) {
      const [, kind, what] = /^(onCommand|onContext):(callboard\.[\w.]+)/.exec(event) ?? [];
      assert.ok((kind === "onCommand" ? contributed : keys).includes(what ?? ""), event);
    }
  });

  it("say of every line of a list of sessions what may be done with it", () => {
    const inline = (contributes.menus["view/item/context"] ?? []).filter(
      ({ group, when }) => group?.startsWith("inline") && when?.includes("callboard.sessions"),
    );
    const patterns = inline.map(({ command, when }) => ({
      command,
      pattern: new RegExp(/viewItem =~ \/(.+)\//.exec(when ?? "")?.[1] ?? "$^"),
    }));
    const on = (value: string): string[] =>
      patterns.filter(({ pattern }) => pattern.test(value)).map(({ command }) => command);
    const open = "callboard.openSession";
    assert.deepEqual(on("session"), [open, "callboard.archiveSession"]);
    assert.deepEqual(on("session running pinned"), [
      open,
      "callboard.stopSession",
      "callboard.archiveSession",
    ]);
    assert.deepEqual(on("session archived"), [open, "callboard.unarchiveSession"]);
    assert.deepEqual(on("group"), []);
  });
});

describe("icons", () => {
  it("of manifest and code are codicons", () => {
    const known = new Set(
      readFileSync("node_modules/@vscode/codicons/dist/codicon.csv", "utf8")
        .split("\n")
        .map((line) => line.split(",")[0]),
    );
    const used = [
      ...all(raw, /\$\(([\w-]+)\)/g),
      ...sources.flatMap((text) => [
        ...all(text, /\$\(([a-z][\w-]+)(?:~spin)?\)/g),
        ...all(text, /new (?:vscode\.)?ThemeIcon\("([\w-]+)/g),
      ]),
    ];
    assert.ok(used.length > 40);
    assert.deepEqual(
      [...new Set(used)].filter((icon) => icon !== "icon" && !known.has(icon)),
      [],
    );
  });
});

describe("files", () => {
  it("that the manifest names are there, and are packed", () => {
    const named = strings(manifest).filter(
      (text) => /^(?:media|walkthrough)\//.test(text) && !text.includes("*"),
    );
    assert.equal(named.length, 7);
    for (const file of named) {
      assert.ok(readFileSync(file, "utf8").length > 100, file);
    }
    assert.ok(manifest.files.includes("media/**") && manifest.files.includes("walkthrough/**"));
  });

  it("of the walkthrough, and the README, name keys that there are", () => {
    const keys = new Set(
      (contributes.keybindings as unknown as { key: string }[]).map(({ key }) => key),
    );
    const text = [...filesIn("walkthrough", ".md"), "README.md"]
      .map((file) => readFileSync(file, "utf8"))
      .join("\n");
    const chords = all(text, /\*\*(Ctrl\+Alt\+\w \S+|Ctrl\+Shift\+(?:Enter|Backspace))\*\*/g);
    assert.ok(chords.length >= 3);
    assert.deepEqual(
      chords.filter((chord) => !keys.has(chord.toLowerCase())),
      [],
    );
  });
});
