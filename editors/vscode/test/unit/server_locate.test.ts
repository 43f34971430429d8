// Where the server is looked for, and in which order.
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { locate, type Found, type Machine, type ServerSettings } from "../../src/server/locate";
import { shellPath, thisMachine } from "../../src/server/machine";

/** @param programs the files that can be run */
function machine(programs: Iterable<string>, more: Partial<Machine> = {}): Machine {
  const all = new Set(programs);
  return {
    folders: ["/home/ann/project"],
    home: "/home/ann",
    env: { PATH: "/opt/bin:/usr/bin" },
    platform: "linux",
    executable: (path) => Promise.resolve(all.has(path)),
    ...more,
  };
}

async function found(settings: ServerSettings, where: Machine): Promise<Found> {
  const located = await locate(settings, where);
  assert.ok("found" in located, JSON.stringify(located));
  return located.found;
}

async function fault(settings: ServerSettings, where: Machine): Promise<string> {
  const located = await locate(settings, where);
  assert.ok("fault" in located, JSON.stringify(located));
  return located.fault;
}

const EVERYWHERE = [
  "/home/ann/project/.venv/bin/callboard",
  "/home/ann/project/venv/bin/callboard",
  "/home/ann/other/.venv/bin/callboard",
  "/opt/bin/callboard",
  "/usr/bin/callboard",
  "/usr/bin/python3",
  "/usr/bin/python",
];

describe("the server is found", () => {
  it("in the order of what is nearest", async () => {
    const folders = ["/home/ann/project", "/home/ann/other"];
    for (const [i, program] of EVERYWHERE.entries()) {
      const got = await found({}, machine(EVERYWHERE.slice(i), { folders }));
      const python = program.includes("python");
      const args = python ? ["-m", "callboard", "serve"] : ["serve"];
      assert.deepEqual(got.cmd, [program, ...args]);
      assert.equal(got.guess, python || undefined);
      assert.ok(got.how.length > 0);
    }
  });

  it("not in a folder above: whoever opened this one may not trust that", async () => {
    const where = machine(["/home/ann/.venv/bin/callboard", "/usr/bin/python3"]);
    assert.equal((await found({}, where)).guess, true);
  });

  it("without any folder", async () => {
    const got = await found({}, machine(EVERYWHERE, { folders: [] }));
    assert.deepEqual(got.cmd, ["/opt/bin/callboard", "serve"]);
  });

  it("where the setting says, with its arguments", async () => {
    const where = machine(["/named/callboard", ...EVERYWHERE]);
    const got = await found({ path: "/named/callboard", args: ["serve", "--verbose"] }, where);
    assert.deepEqual(got, {
      cmd: ["/named/callboard", "serve", "--verbose"],
      how: "callboard.server.path",
    });
    assert.deepEqual((await found({ path: "/named/callboard", args: [] }, where)).cmd, [
      "/named/callboard",
      "serve",
    ]);
  });

  it("with the arguments of the setting wherever it is", async () => {
    const got = await found({ path: "  ", args: ["serve", "-v"] }, machine(["/usr/bin/python3"]));
    assert.deepEqual(got.cmd, ["/usr/bin/python3", "-m", "callboard", "serve", "-v"]);
  });

  it("by the name that the setting has, on PATH", async () => {
    const got = await found({ path: "callboard" }, machine(EVERYWHERE));
    assert.deepEqual(got.cmd, ["/opt/bin/callboard", "serve"]);
  });

  it("by what stands for a folder in the setting", async () => {
    const where = machine(EVERYWHERE.concat("/home/ann/bin/callboard", "/x y/callboard"), {
      folders: ["/home/ann/project", "/home/ann/other"],
      env: { PATH: "", PLACE: "/x y" },
    });
    for (const [path, program] of [
      ["${workspaceFolder}/venv/bin/callboard", "/home/ann/project/venv/bin/callboard"],
      ["${workspaceFolder:other}/.venv/bin/callboard", "/home/ann/other/.venv/bin/callboard"],
      ["venv/bin/callboard", "/home/ann/project/venv/bin/callboard"],
      ["./venv/bin/callboard", "/home/ann/project/venv/bin/callboard"],
      ["~/bin/callboard", "/home/ann/bin/callboard"],
      ["${userHome}/bin/callboard", "/home/ann/bin/callboard"],
      ["${env:PLACE}/callboard", "/x y/callboard"],
    ] as const) {
      assert.equal((await found({ path }, where)).cmd[0], program, path);
    }
    const args = ["serve", "--store", "${workspaceFolder}/x", "~/y", "a~b"];
    assert.deepEqual((await found({ args }, where)).cmd.slice(1), [
      "serve",
      "--store",
      "/home/ann/project/x",
      "/home/ann/y",
      "a~b",
    ]);
  });

  it("under names that mean something elsewhere", async () => {
    for (const path of ["/a b/[x]*?{}/callboard", "/100%/$1/callboard", "/$HOME/callboard"]) {
      assert.equal((await found({ path }, machine([path]))).cmd[0], path);
    }
  });

  it("where Windows has it", async () => {
    const programs = [
      "C:\\work\\.venv\\Scripts\\callboard.exe",
      "C:\\work\\venv\\Scripts\\callboard.exe",
      "D:\\Python\\Scripts\\callboard.exe",
      "D:\\Tools\\callboard.cmd",
    ];
    for (const [i, program] of programs.entries()) {
      const where = machine(programs.slice(i), {
        folders: ["C:\\work"],
        platform: "win32",
        env: { Path: '.;"D:\\Python\\Scripts";;D:\\Tools', PathExt: ".COM;.EXE;.CMD" },
      });
      assert.deepEqual((await found({}, where)).cmd, [program, "serve"]);
    }
  });

  it("by a setting on Windows that leaves the ending out", async () => {
    const where = machine(["C:\\x\\callboard.exe", "C:\\y\\callboard.bat"], {
      platform: "win32",
      env: {},
      folders: ["C:\\work"],
    });
    for (const [path, program] of [
      ["C:\\x\\callboard", "C:\\x\\callboard.exe"],
      ["C:\\x\\callboard.EXE", undefined],
      ["C:/y/callboard", undefined],
      ["..\\y\\callboard", "C:\\y\\callboard.bat"],
    ] as const) {
      const located = await locate({ path }, where);
      assert.equal("found" in located ? located.found.cmd[0] : undefined, program, path);
    }
  });

  it("on no PATH that depends on the folder that is open", async () => {
    const where = machine(["./callboard", "callboard", "bin/callboard", "/usr/bin/python3"], {
      env: { PATH: ".:bin::/usr/bin" },
    });
    assert.equal((await found({}, where)).guess, true);
  });

  it("on the PATH of the login shell where macOS started the editor from its dock", async () => {
    let asked = 0;
    const mac: Partial<Machine> = {
      platform: "darwin",
      loginPath: () => {
        asked += 1;
        return Promise.resolve("/opt/homebrew/bin:/usr/bin");
      },
    };
    const where = machine(["/opt/homebrew/bin/callboard", "/usr/bin/python3"], mac);
    assert.deepEqual(await found({}, where), {
      cmd: ["/opt/homebrew/bin/callboard", "serve"],
      how: "the PATH of the login shell",
      path: "/opt/homebrew/bin:/usr/bin",
    });
    assert.equal(asked, 1);
    await found({}, machine(EVERYWHERE, mac));
    assert.equal(asked, 1, "it is asked only where nothing else is found");
    await found({}, { ...where, platform: "linux" });
    assert.equal(asked, 1);
    assert.equal((await found({}, machine(["/usr/bin/python3"], mac))).guess, true);
  });

  it("on this machine: only what can be run", async () => {
    const folder = mkdtempSync(join(tmpdir(), "callboard-locate-"));
    try {
      const bin = join(folder, ".venv", "bin");
      mkdirSync(bin, { recursive: true });
      const program = join(bin, "callboard");
      const where = { ...thisMachine([folder]), env: { PATH: "" } };
      mkdirSync(program);
      assert.ok("fault" in (await locate({}, where)), "a folder was taken for it");
      rmSync(program, { recursive: true });
      writeFileSync(program, "#!/bin/sh\n");
      chmodSync(program, 0o644);
      assert.ok("fault" in (await locate({}, where)), "a file that cannot be run was taken for it");
      chmodSync(program, 0o755);
      assert.deepEqual((await found({}, where)).cmd, [program, "serve"]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe("a login shell", () => {
  function shell(script: string): Promise<string | undefined> {
    const folder = mkdtempSync(join(tmpdir(), "callboard-shell-"));
    const path = join(folder, "shell");
    writeFileSync(path, `#!/bin/sh\n${script}\n`);
    chmodSync(path, 0o755);
    return shellPath(path).finally(() => {
      rmSync(folder, { recursive: true });
    });
  }

  it("says its PATH, whatever else it says", async () => {
    const script =
      'echo Welcome; [ "$1$2$3" = -i-l-c ] || exit 1; PATH=/mine:/bin; eval "$4"; echo bye';
    assert.equal(await shell(script), "/mine:/bin");
  });

  for (const [name, script] of [
    ["says nothing", "exit 0"],
    ["fails", "exit 1"],
    ["has none", 'PATH=; eval "$4"'],
  ] as const) {
    it(`that ${name} is not waited for`, async () => {
      assert.equal(await shell(script), undefined);
    });
  }

  it("that is not there says nothing", async () => {
    assert.equal(await shellPath("/no/such/shell"), undefined);
  });
});

describe("a server that is not found", () => {
  it("is told with what was tried, and the way out", async () => {
    const said = await fault({}, machine([]));
    for (const words of [
      "/home/ann/project",
      "PATH",
      "pip install callboard",
      "callboard.server.path",
      "Callboard: Restart Server",
    ]) {
      assert.ok(said.includes(words), words);
    }
    assert.ok(!(await fault({}, machine([], { folders: [] }))).includes("venv"));
  });

  it("is told with the setting that names it, and nothing else is taken for it", async () => {
    for (const path of ["/gone/callboard", "gone", "./gone", "~/gone"]) {
      const said = await fault({ path }, machine(EVERYWHERE));
      assert.ok(said.includes(path) && said.includes("Correct the setting"), said);
    }
  });

  it("is told with what a setting holds that stands for nothing", async () => {
    const none = machine(EVERYWHERE, { folders: [] });
    assert.match(await fault({ path: "${workspaceFolder}/x" }, none), /no folder is open/);
    assert.match(await fault({ path: "venv/bin/callboard" }, none), /not there/);
    assert.match(
      await fault({ path: "${workspaceFolder:lost}/x" }, machine(EVERYWHERE)),
      /no folder lost is open/,
    );
    assert.match(await fault({ path: "${file}" }, machine(EVERYWHERE)), /\$\{file\}/);
    assert.match(
      await fault({ args: ["${file}"] }, machine(EVERYWHERE)),
      /callboard\.server\.args/,
    );
  });
});
