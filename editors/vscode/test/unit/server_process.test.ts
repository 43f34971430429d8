// A child process: all that it wrote is read, and nothing of it is left.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { describe, it } from "node:test";
import { spawnable } from "../../src/server/command_line";
import {
  environment,
  Process,
  type ProcessEnd,
  type ProcessOptions,
} from "../../src/server/process";
import { alive, PATIENCE_MS, until } from "./waiting";

interface Run {
  process: Process;
  stdout: string;
  stderr: string;
  ends: ProcessEnd[];
}

function run(script: string, options: ProcessOptions = {}, cmd = ["/bin/sh", "-c", script]): Run {
  const out: Omit<Run, "process"> = { stdout: "", stderr: "", ends: [] };
  const process = new Process(cmd, options, {
    stdout: (chunk) => {
      out.stdout += chunk.toString();
    },
    stderr: (chunk) => {
      out.stderr += chunk.toString();
    },
    exit: (end) => {
      out.ends.push(end);
    },
  });
  return Object.assign(out, { process });
}

/** What `ps` says of a process: T is stopped. */
function state(pid: number): string {
  return spawnSync("ps", ["-o", "stat=", "-p", String(pid)]).stdout.toString();
}

async function ended(out: Run): Promise<ProcessEnd> {
  await until(() => out.ends.length > 0);
  const [end] = out.ends;
  assert.ok(end);
  return end;
}

describe("a process", () => {
  it("ends with its code, after all that it wrote", async () => {
    const out = run("printf out; printf err >&2; exit 3");
    assert.deepEqual(await ended(out), { code: 3, signal: null });
    assert.equal(out.stdout, "out");
    assert.equal(out.stderr, "err");
    assert.ok(out.process.ended);
  });

  it("that writes much and ends at once is read to its end", async () => {
    const out = run(
      'i=0; while [ $i -lt 3000 ]; do echo "line $i of what it says" >&2; i=$((i+1)); done; exit 1',
    );
    await ended(out);
    assert.equal(out.stderr.trimEnd().split("\n").at(-1), "line 2999 of what it says");
  });

  it("is read to its end, whoever holds its pipes", async () => {
    const out = run("(sleep 0.2; echo late >&2) & exit 3", { lingerMs: PATIENCE_MS });
    assert.deepEqual(await ended(out), { code: 3, signal: null });
    assert.equal(out.stderr, "late\n");
  });

  it("ends though a grandchild holds its pipes", async () => {
    const out = run("sleep 60 & echo $!; exit 0");
    assert.deepEqual(await ended(out), { code: 0, signal: null });
    process.kill(Number(out.stdout), "SIGKILL");
  });

  it("gets what is written, and hears when that is over", async () => {
    const out = run("cat; echo over");
    out.process.write(Buffer.from("one "));
    out.process.write(Buffer.from("two "));
    out.process.hangUp();
    out.process.hangUp();
    out.process.write(Buffer.from("too late"));
    await ended(out);
    assert.equal(out.stdout, "one two over\n");
  });

  it("gets all that was written before it was hung up", async () => {
    const out = run("wc -c");
    out.process.write(Buffer.alloc(1024 * 1024, "x"));
    out.process.hangUp();
    await ended(out);
    assert.equal(Number(out.stdout), 1024 * 1024);
  });

  it("says nothing while it is held, and all of it after that", async () => {
    const out = run("head -c 1000000 /dev/zero; exit 0");
    out.process.hold(true);
    out.process.hold(false);
    await ended(out);
    assert.equal(out.stdout.length, 1_000_000);
  });

  it("that ends while it is held is read to its end", async () => {
    const out = run("printf out; exit 0");
    out.process.hold(true);
    await ended(out);
    assert.equal(out.stdout, "out");
  });

  it("is ended by a signal, and by none after that", async () => {
    const out = run("exec sleep 60");
    out.process.kill("SIGKILL");
    assert.deepEqual(await ended(out), { code: null, signal: "SIGKILL" });
    out.process.kill("SIGTERM");
    out.process.write(Buffer.from("x"));
    assert.equal(out.ends.length, 1);
  });

  it("is asked to go before it is killed", async () => {
    const out = run("trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done");
    await until(() => out.stdout !== "");
    out.process.terminate();
    assert.deepEqual(await ended(out), { code: 0, signal: null });
    assert.equal(out.stdout, "up\nbye\n");
  });

  it("that does not go when it is asked is killed, and so is what it has started", async () => {
    const out = run("trap '' TERM; sleep 60 & echo $!; while :; do sleep 0.05; done", {
      termMs: 50,
    });
    await until(() => out.stdout !== "");
    out.process.terminate();
    assert.equal((await ended(out)).signal, "SIGKILL");
    await until(() => !alive(Number(out.stdout)));
  });

  it("that is stopped is killed all the same", async () => {
    const out = run("kill -STOP $$", { termMs: 50 });
    await until(() => state(out.process.pid).startsWith("T"));
    out.process.terminate();
    assert.equal((await ended(out)).signal, "SIGKILL");
  });

  for (const [name, close] of Object.entries({
    stdout: "exec >&-",
    stdin: "exec <&-",
  })) {
    it(`that closes its ${name} and lives on is killed`, async () => {
      const out = run(`echo up; ${close}; exec sleep 60`, { muteMs: 50 });
      await until(() => out.stdout !== "");
      await until(() => {
        out.process.write(Buffer.from("x"));
        return out.ends.length > 0;
      });
      assert.equal((await ended(out)).signal, "SIGKILL");
    });
  }

  it("is started where it is to be, with the environment and what is added to it", async () => {
    process.env["CALLBOARD_SPEC"] = "mine";
    process.env["VSCODE_PID"] = "1";
    try {
      const out = run('echo "$CALLBOARD_SPEC $ADDED [$VSCODE_PID] $PWD"', {
        env: { ADDED: 7 },
        cwd: "/",
      });
      await ended(out);
      assert.equal(out.stdout, "mine 7 [] /\n");
    } finally {
      delete process.env["CALLBOARD_SPEC"];
      delete process.env["VSCODE_PID"];
    }
  });

  for (const [name, cmd, options, why] of [
    ["is not there", ["/no/such/program"], {}, /ENOENT/],
    ["cannot be run", ["/etc/passwd"], {}, /EACCES/],
    ["has a name that is none", ["a\0b"], {}, /null bytes/],
    ["is to run in no folder", ["/bin/sh"], { cwd: "/no/such" }, /folder \/no\/such .* not there/],
    ["is to run in a file", ["/bin/sh"], { cwd: "/etc/passwd" }, /folder \/etc\/passwd/],
  ] as const) {
    it(`that ${name} says why, once and later`, async () => {
      const out = run("", options, [...cmd]);
      assert.deepEqual(out.ends, []);
      const end = await ended(out);
      assert.match(end.fault ?? "", why);
      assert.equal(out.process.pid, 0);
      out.process.write(Buffer.from("x"));
      out.process.hangUp();
      out.process.terminate();
      out.process.kill("SIGKILL");
      assert.equal(out.ends.length, 1);
    });
  }

  it("is of a group of its own: a Ctrl-C is not for it", async () => {
    const out = run("ps -o pgid= -p $$");
    await ended(out);
    assert.equal(Number(out.stdout), out.process.pid);
  });
});

describe("the environment of a server", () => {
  it("is the editor's, without what the editor tells its own children", () => {
    const own = { PATH: "/bin", ELECTRON_RUN_AS_NODE: "1", VSCODE_IPC_HOOK: "/x", VSCODE_CLI: "1" };
    assert.deepEqual(environment(own, undefined, "linux"), { PATH: "/bin" });
  });

  it("has what is added, and not what is taken away", () => {
    const own = { A: "1", B: "2", C: "3" };
    const env = environment(own, { A: null, B: 7, D: "x" }, "linux");
    assert.deepEqual(env, { B: "7", C: "3", D: "x" });
  });

  it("has a name once on Windows, however it is written", () => {
    const env = environment({ Path: "C:\\a" }, { PATH: "C:\\b" }, "win32");
    assert.deepEqual(env, { PATH: "C:\\b" });
    assert.deepEqual(environment({ Path: "/a" }, { PATH: "/b" }, "linux"), {
      Path: "/a",
      PATH: "/b",
    });
  });
});

describe("a command line", () => {
  it("is started as it is", () => {
    const cmd = ["/a b/callboard", "serve", "x y", '"'];
    const [file, ...args] = cmd;
    assert.deepEqual(spawnable(cmd, "linux"), { file, args, verbatim: false });
    const exe = ["C:\\a b\\callboard.exe", "serve"];
    assert.deepEqual(spawnable(exe, "win32"), { file: exe[0], args: ["serve"], verbatim: false });
  });

  it("of a batch file is given to cmd.exe, quoted", () => {
    const got = spawnable(["C:\\a b\\callboard.CMD", "serve", "x y"], "win32", "C:\\cmd.exe");
    assert.equal(got.file, "C:\\cmd.exe");
    assert.ok(got.verbatim);
    assert.deepEqual(got.args.slice(0, 3), ["/d", "/s", "/c"]);
    assert.equal(got.args[3], '"C:\\a^ b\\callboard.CMD ^^^"serve^^^" ^^^"x^^^ y^^^""');
  });

  it("of a batch file leaves nothing that acts on cmd.exe as it was", () => {
    const acting = 'a" & calc.exe & "%PATH%|<>^!';
    const line = spawnable(["C:\\callboard.bat", acting], "win32").args[3] ?? "";
    const inside = line.slice(1, -1);
    for (let at = inside.search(/[&|<>%!"]/); at >= 0;) {
      assert.equal(
        inside[at - 1],
        "^",
        `${inside.slice(0, at)}[${inside[at] ?? ""}] is not out of reach`,
      );
      const next = inside.slice(at + 1).search(/[&|<>%!"]/);
      at = next < 0 ? -1 : at + 1 + next;
    }
  });

  it("with a line end is not given to a batch file", () => {
    for (const bad of ["a\nb", "a\rb", "a\0b"]) {
      assert.throws(() => spawnable(["C:\\callboard.cmd", bad], "win32"), /line end/);
    }
  });
});
