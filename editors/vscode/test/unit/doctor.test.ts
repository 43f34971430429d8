import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, describe, it } from "node:test";
import { fileName, writeExport } from "../../src/commands/sessionFiles";
import { finding, plainly, report } from "../../src/doctor/findings";
import { run } from "../../src/doctor/run";
import {
  doctorFindings,
  otherCommand,
  serverFindings,
  storeFindings,
  type World,
} from "../../src/doctor/server";
import { settingsFindings, windowFindings } from "../../src/doctor/window";
import { CallError } from "../../src/server/errors";

const FOUND = { found: { cmd: ["/bin/callboard", "serve"], how: "PATH" } };
const VERSION = "callboard 0.1.0, protocol 1.0, Python 3.11.7\n";

let ran: string[][];

function world(fields: Partial<World> = {}, says = VERSION, code = 0): World {
  return {
    trusted: true,
    silent: false,
    state: "stopped",
    run: (cmd) => {
      ran.push([...cmd]);
      return Promise.resolve({ code, stdout: says, stderr: code === 0 ? "" : "it is broken" });
    },
    ask: () => Promise.reject(new CallError(0, "no server")),
    ...fields,
  };
}

/** Level and text, then the way out. */
function told(findings: readonly ReturnType<typeof finding>[]): string[] {
  return findings.flatMap(({ level, text, advice }) => [`${level} ${text}`, ...advice]);
}

beforeEach(() => {
  ran = [];
});

describe("what the doctor finds of the server", () => {
  it("is where it is, how it was found, whether it fits, and whether it runs", async () => {
    assert.deepEqual(told(await serverFindings(world(), FOUND)), [
      "ok /bin/callboard serve (found by PATH)",
      "ok callboard 0.1.0, protocol 1.0, Python 3.11.7",
      "info Not started yet; it is, with the first thing that needs it.",
    ]);
    assert.deepEqual(ran, [["/bin/callboard", "version"]]);
  });

  it("is a problem with the way out where there is none", async () => {
    const none = { fault: "the server was not found: install it" };
    const failure = {
      message: "the server was not found",
      lines: [],
      refused: false,
      starting: true,
    };
    const look = world({ state: "failed", failure });
    const lines = told(await serverFindings(look, none));
    assert.equal(lines[0], "error the server was not found: install it");
    assert.match(lines.at(-1) ?? "", /Restart Server/);
    assert.equal(told(await doctorFindings(look, none)).length, 1);
    assert.deepEqual(ran, []);
  });

  it("is a problem where another protocol is spoken, or none", async () => {
    const other = await serverFindings(world({}, "callboard 9, protocol 7.2\n"), FOUND);
    assert.match(told(other)[1] ?? "", /^error callboard 9, protocol 7\.2; this extension speaks/);
    const broken = await serverFindings(world({}, "", 1), FOUND);
    assert.match(
      told(broken)[1] ?? "",
      /^error .* did not tell a version \(exit code 1\): it is broken/,
    );
  });

  it("tells how to get it into the Python that was guessed", async () => {
    const found = {
      cmd: ["/bin/python3", "-m", "callboard", "serve"],
      how: "a guess",
      guess: true,
    };
    const findings = await serverFindings(world({}, "", 1), { found });
    assert.match(told(findings)[2] ?? "", /pip install callboard/);
    assert.deepEqual(ran, [["/bin/python3", "-m", "callboard", "version"]]);
  });

  it("is why it has failed, with what it said last", async () => {
    const failure = {
      message: "it ended with code 3",
      lines: ["a", "disk full"],
      refused: false,
      starting: true,
    };
    const findings = await serverFindings(world({ state: "failed", failure }), FOUND);
    assert.deepEqual(told(findings).slice(2, 4), [
      "error It could not be kept running: it ended with code 3",
      "It said last: disk full",
    ]);
  });

  it("runs nothing in Restricted Mode", async () => {
    const look = world({ trusted: false });
    const findings = await serverFindings(look, FOUND);
    assert.match(told(findings).join("\n"), /Restricted Mode/);
    assert.equal(told(await doctorFindings(look, FOUND)).length, 1);
    assert.deepEqual(ran, []);
  });

  it("says that one that hangs does not answer, and asks it nothing", async () => {
    const look = world({ state: "ready", silent: true });
    assert.match(
      told(await serverFindings(look, FOUND))[2] ?? "",
      /^error It runs, and does not answer/,
    );
    assert.deepEqual(told(await storeFindings(look)), [
      "info Not looked at: no server answers just now.",
    ]);
  });

  it("takes over what the server itself has looked at, whatever stands between", async () => {
    const says = [
      '{"name":"Keys","status":"ok","found":"none","advice":"Set a key."}',
      "something else",
      '{"name":"Model","status":"warn","found":"scripted/demo","advice":""}',
      '{"name":"Store","status":"fail","found":"it is broken","advice":"Restore it."}',
      '{"name":"Editors","status":"ok","found":"Vim","advice":""}',
      "[1]",
      '{"name":{},"status":7}',
    ].join("\n");
    assert.deepEqual(told(await doctorFindings(world({}, says), FOUND)), [
      "ok Keys: none",
      "Set a key.",
      "warn Model: scripted/demo",
      "error Store: it is broken",
      "Restore it.",
      "info …: ",
    ]);
    assert.deepEqual(ran, [["/bin/callboard", "doctor", "--json"]]);
  });

  it("says so when it tells nothing", async () => {
    const findings = await doctorFindings(world({}, "", 2), FOUND);
    assert.match(told(findings)[0] ?? "", /^warn .* told nothing \(exit code 2\): it is broken/);
  });

  it("is a failure in words where the store is not told of", async () => {
    const findings = await storeFindings(world({ state: "ready" }));
    assert.match(
      told(findings)[0] ?? "",
      /^error The server does not tell of its store: no server/,
    );
  });

  it("knows no other command of a program that is not a plain server", () => {
    assert.equal(otherCommand(["callboard"], "version"), undefined);
    assert.equal(otherCommand(["serve", "--acp"], "version"), undefined);
    assert.deepEqual(otherCommand(["a", "serve", "--framing", "lsp"], "version"), ["a", "version"]);
  });
});

describe("what the doctor finds in the window", () => {
  it("never shows a secret", () => {
    const env = {
      OPENAI_API_KEY: "sk-secret",
      OPENAI_BASE_URL: "https://u:p@h",
      CALLBOARD_MODEL: "a/b",
    };
    const changed = [["server.env", { OPENAI_API_KEY: "sk-secret" }] as const];
    const lines = told(settingsFindings({ changed, wrong: ["chat.sendKey"], env })).join("\n");
    assert.doesNotMatch(lines, /sk-secret|u:p@h/);
    for (const part of ["OPENAI_API_KEY is set", "CALLBOARD_MODEL=a/b", "callboard.chat.sendKey"]) {
      assert.ok(lines.includes(part), part);
    }
  });

  it("is that no folder is open", () => {
    const look = { editor: "Code", version: "1", extension: "0", trusted: true, folders: [] };
    assert.match(told(windowFindings(look)).join("\n"), /warn No folder is open/);
  });
});

describe("the doctor's document", () => {
  it("says first whether there is anything to do", () => {
    const section = (level: "ok" | "warn" | "error"): string =>
      report([{ title: "A", findings: [finding(level, "x", "do it")] }]);
    assert.match(section("ok"), /Everything that was looked at is well\./);
    assert.match(section("warn"), /1 warning\. What to do/);
    assert.match(section("error"), /- ✗ Problem: x\n {2}- do it/);
  });

  it("holds no link, image or HTML of others", () => {
    for (const text of ["<img src=x>", "[a](b)", "![a](b)", "\\<img>", "\\\\[a](b)"]) {
      const plain = plainly(text);
      assert.doesNotMatch(plain.replace(/\\./g, ""), /[<[]/, text);
    }
    assert.equal(plainly("/a/b_c d\ne"), "/a/b_c d e");
  });
});

describe("a program that the doctor runs", () => {
  const node = process.execPath;

  it("is given all that it says, and its code", async () => {
    const code = "console.log('out'); console.error('err'); process.exitCode = 3";
    const done = await run([node, "-e", code], 10_000, {});
    assert.deepEqual(done, { code: 3, stdout: "out\n", stderr: "err\n" });
  });

  it("is ended when it takes too long", async () => {
    const done = await run([node, "-e", "setInterval(() => 0, 1000)"], 200, {});
    assert.notEqual(done.code, 0);
    assert.equal(done.stderr, "it took longer than 0.2 s");
  });

  it("is told where it cannot be started", async () => {
    const done = await run(["/no/such/program"], 1000, {});
    assert.equal(done.code, -1);
    assert.match(done.stderr, /ENOENT/);
  });
});

describe("a session as a file", () => {
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "callboard-export-"));
  });

  after(async () => {
    await rm(folder, { recursive: true, force: true });
  });

  it("is named by its title, made fit for any disk", () => {
    const name = (title: string): string => fileName({ sessionId: "ses_0123456789", title }, "md");
    assert.equal(name("Mend the parser"), "Mend-the-parser.md");
    assert.equal(name("../../etc/passwd"), "etc-passwd.md");
    assert.equal(name('a<b>:"c|d?*'), "a-b-c-d.md");
    assert.equal(name("\u202e...\u0000"), "session-456789.md");
    assert.equal(name("ä".repeat(200)), `${"ä".repeat(60)}.md`);
  });

  it("is written piece by piece, and is there only when it is whole", async () => {
    const file = join(folder, "whole.md");
    const pieces: Record<string, { text: string; nextCursor: string | null }> = {
      "": { text: "one\n", nextCursor: "2" },
      "2": { text: "two\n", nextCursor: null },
    };
    const app = {
      request: (_: string, { cursor }: { cursor?: string }) =>
        Promise.resolve(pieces[cursor ?? ""]),
    };
    const wanted = { sessionId: "ses_1", format: "markdown" } as const;
    const cancelled = { isCancellationRequested: false };
    const other = `${file}.part`;
    await writeFile(other, "somebody's");
    assert.equal(await writeExport(app as never, wanted, file, cancelled), true);
    assert.equal(await readFile(file, "utf8"), "one\ntwo\n");
    assert.equal(await readFile(other, "utf8"), "somebody's");
    await rm(other);
    assert.deepEqual(await readdir(folder), ["whole.md"]);
  });

  for (const [name, fails] of [
    ["fails", true],
    ["is cancelled", false],
  ] as const) {
    it(`leaves what was there as it was when it ${name}`, async () => {
      const file = join(folder, "kept.md");
      await writeFile(file, "before");
      const cancelled = { isCancellationRequested: false };
      const app = {
        request: (_: string, { cursor }: { cursor?: string }) => {
          cancelled.isCancellationRequested = !fails;
          return cursor === undefined
            ? Promise.resolve({ text: "half", nextCursor: "2" })
            : Promise.reject(new CallError(0, "it is gone"));
        },
      };
      const wanted = { sessionId: "ses_1", format: "jsonl" } as const;
      const done = writeExport(app as never, wanted, file, cancelled);
      if (fails) {
        await assert.rejects(done, /it is gone/);
      } else {
        assert.equal(await done, false);
      }
      assert.equal(await readFile(file, "utf8"), "before");
      await rm(file);
      assert.deepEqual(
        (await readdir(folder)).filter((each) => each.endsWith(".part")),
        [],
      );
    });
  }
});
