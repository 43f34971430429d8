// A server process, spoken to; here shell scripts and small programs play it.
import assert from "node:assert/strict";
import { writeFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, it } from "node:test";
import type { JsonObject } from "@callboard/protocol";
import {
  startClient,
  type CancelToken,
  type Client,
  type ClientHandlers,
  type ClientOptions,
  type Exit,
} from "../../src/server/connection";
import { CallError } from "../../src/server/errors";
import { frame } from "../../src/server/framing";
import { Lines } from "./logs";
import { PATIENCE_MS, until } from "./waiting";

/** The shell words that print a message, or whatever else it is. */
function printed(message: unknown): string {
  const octal = [...frame(JSON.stringify(message))].map(
    (byte) => `\\${byte.toString(8).padStart(3, "0")}`,
  );
  return `printf '${octal.join("")}'\n`;
}

/** A program in Node that is told each message that it reads: `read(fn)`, `send(message)`. */
function speaking(program: string): string[] {
  const prelude = `
    const send = (message) => {
      const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
      process.stdout.write("Content-Length: " + body.length + "\\r\\n\\r\\n");
      process.stdout.write(body);
    };
    const read = (fn) => {
      let rest = Buffer.alloc(0);
      process.stdin.on("data", (chunk) => {
        rest = Buffer.concat([rest, chunk]);
        for (;;) {
          const at = rest.indexOf("\\r\\n\\r\\n");
          if (at < 0) return;
          const length = Number(/\\d+/.exec(rest.toString("utf8", 0, at))[0]);
          if (rest.length < at + 4 + length) return;
          const body = rest.toString("utf8", at + 4, at + 4 + length);
          rest = rest.subarray(at + 4 + length);
          fn(JSON.parse(body));
        }
      });
    };
  `;
  return [process.execPath, "-e", prelude + program];
}

interface Asked {
  method: string;
  params: JsonObject;
  token: CancelToken;
  answer: (result: object) => void;
  fail: (fault: unknown) => void;
}

describe("a client", () => {
  let log: Lines;
  let heard: [string, JsonObject][];
  let asked: Asked[];
  let exits: Exit[];

  beforeEach(() => {
    log = new Lines();
    heard = [];
    asked = [];
    exits = [];
  });

  const handlers: ClientHandlers = {
    notification: (method, params) => {
      heard.push([method, params]);
    },
    request: (method, params, token) =>
      new Promise((answer, fail) => {
        asked.push({ method, params, token, answer, fail });
      }),
    heard: () => undefined,
    exit: (exit) => {
      exits.push(exit);
    },
  };

  function start(
    program: string | string[],
    more: Partial<ClientHandlers> = {},
    options: Partial<ClientOptions> = {},
  ): Client {
    const cmd = typeof program === "string" ? ["/bin/sh", "-c", program] : program;
    return startClient(cmd, { ...handlers, ...more }, { log, termMs: 200, ...options });
  }

  async function ended(): Promise<Exit> {
    await until(() => exits.length > 0);
    const [exit] = exits;
    assert.ok(exit);
    return exit;
  }

  it("hears notifications, in order, and what was said before the end", async () => {
    const said = Array.from({ length: 50 }, (_, i) => printed({ method: "m", params: { i } }));
    start(`${said.join("")}exit 4`);
    const exit = await ended();
    assert.equal(exit.code, 4);
    assert.equal(exit.garbage, undefined);
    assert.deepEqual(
      heard,
      said.map((_, i) => ["m", { i }]),
    );
  });

  it("hears params of any other shape as none", async () => {
    start(
      printed({ method: "list", params: [1, 2] }) +
        printed({ method: "text", params: "x" }) +
        printed({ method: "null", params: null }) +
        printed({ method: "nothing" }),
    );
    await ended();
    assert.deepEqual(heard, [
      ["list", {}],
      ["text", {}],
      ["null", {}],
      ["nothing", {}],
    ]);
  });

  it("passes over messages that mean nothing", async () => {
    start(
      printed({ id: {}, result: 1 }) +
        printed({ id: [1], method: "m" }) +
        printed({ method: 7 }) +
        printed({}) +
        printed({ id: null, error: { message: "you said something odd" } }) +
        printed({ method: "$/cancelRequest", params: null }) +
        printed({ method: "$/cancelRequest", params: { id: {} } }) +
        printed({ method: "$/cancelRequest", params: { id: 99 } }) +
        printed({ id: 99, result: {} }) +
        printed({ method: "after" }),
    );
    await ended();
    assert.deepEqual(heard, [["after", {}]]);
    assert.equal(exits[0]?.garbage, undefined);
    assert.ok(log.lines.some((line) => line.includes("you said something odd")));
  });

  it("gets answers to what it asked, and errors", async () => {
    const client = start(
      speaking(`
        const asked = {};
        read(({ id, method }) => {
          asked[method] = id;
          if (method === "two") {
            send({ id, result: { two: 2 } });
            send({ id: asked.one, error: { code: -31101, message: "no", data: { kind: "sessionNotFound" } } });
            send({ id: asked.three, error: "no words" });
            send({ id: asked.four, error: { code: "x", message: {}, data: 7 } });
            send({ id: asked.five });
            send({ id: asked.five, result: { again: true } });
            process.exit();
          }
        });
      `),
    );
    const answers: [string, unknown, unknown][] = [];
    for (const method of ["one", "three", "four", "five", "two"]) {
      client.request(method, {}, (fault, result) => {
        answers.push([method, fault && [fault.code, fault.kind, fault.message], result]);
      });
    }
    await ended();
    assert.deepEqual(answers, [
      ["two", undefined, { two: 2 }],
      ["one", [-31101, "sessionNotFound", "no"], undefined],
      ["three", [0, undefined, "no words"], undefined],
      ["four", [0, undefined, ""], undefined],
      ["five", undefined, null],
    ]);
  });

  it("handles an answer before what came after it", async () => {
    const order: string[] = [];
    const client = start(
      speaking(`read(({ id }) => {
        send({ method: "before" });
        send({ id, result: {} });
        send({ method: "after" });
        process.exit();
      });`),
      {
        notification: (method) => {
          order.push(method);
        },
      },
    );
    client.request("m", {}, () => {
      queueMicrotask(() => {
        order.push("answer");
      });
    });
    await ended();
    assert.deepEqual(order, ["before", "answer", "after"]);
  });

  it("is told nothing of an answer when the server has ended", async () => {
    const client = start("exit 0");
    let told = false;
    client.request("m", {}, () => {
      told = true;
    });
    await ended();
    client.request("m", {}, () => {
      told = true;
    })();
    client.notify("m", {});
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(told, false);
    assert.equal(client.alive(), false);
  });

  it("answers what it is asked, when it can, and with the error that there is", async () => {
    const client = start(
      speaking(`
        send({ id: "x", method: "client/readFile", params: { uri: "u" } });
        send({ id: 7, method: "refused", params: {} });
        send({ id: 8, method: "broken" });
        const answers = [];
        read((message) => {
          answers.push(message);
          if (answers.length === 3) {
            console.error(JSON.stringify(answers));
            process.exit();
          }
        });
      `),
    );
    await until(() => asked.length === 3);
    assert.deepEqual(
      asked.map(({ method, params }) => [method, params]),
      [
        ["client/readFile", { uri: "u" }],
        ["refused", {}],
        ["broken", {}],
      ],
    );
    asked[2]?.fail(new TypeError("of ours: /secret/path"));
    asked[1]?.fail(new CallError(-31702, "there is none", { kind: "pathNotFound" }));
    asked[0]?.answer({ text: "hello" });
    asked[0]?.answer({ text: "again" });
    const said: unknown = JSON.parse((await ended()).stderr.join(""));
    assert.deepEqual(said, [
      { jsonrpc: "2.0", id: 8, error: { code: -32603, message: "the client failed at broken" } },
      {
        jsonrpc: "2.0",
        id: 7,
        error: { code: -31702, message: "there is none", data: { kind: "pathNotFound" } },
      },
      { jsonrpc: "2.0", id: "x", result: { text: "hello" } },
    ]);
    assert.ok(log.of("error").some((line) => line.includes("of ours")));
    assert.equal(client.alive(), false);
  });

  it("hears that the server waits for an answer no more", async () => {
    start(
      speaking(`
        send({ id: "x", method: "approval/request", params: {} });
        read(({ result }) => { console.error(JSON.stringify(result)); process.exit(); });
        process.on("SIGUSR2", () => send({ method: "$/cancelRequest", params: { id: "x" } }));
        send({ method: "up" });
      `),
    );
    await until(() => asked.length === 1 && heard.length === 1);
    const [question] = asked;
    assert.equal(question?.token.cancelled, false);
    question.token.onCancelled(() => {
      question.answer({ defer: true });
    });
    process.kill(clientPid(log), "SIGUSR2");
    assert.deepEqual((await ended()).stderr, ['{"defer":true}']);
    assert.equal(question.token.cancelled, true);
  });

  it("asks that a request is given up, once, and not after its answer", async () => {
    const client = start(
      speaking(`read((message) => {
        console.error(JSON.stringify(message));
        if (message.method === "ask") send({ id: message.id, result: {} });
        if (message.method === "last") process.exit();
      });`),
    );
    const cancel = client.request("slow", {}, () => undefined);
    cancel();
    cancel();
    await new Promise<void>((resolve) => {
      const late = client.request("ask", {}, () => {
        late();
        resolve();
      });
    });
    client.notify("last", {});
    const { stderr } = await ended();
    assert.deepEqual(
      stderr.map((line) => (JSON.parse(line) as { method: string }).method),
      ["slow", "$/cancelRequest", "ask", "last"],
    );
  });

  it("says what cannot be sent, and goes on", async () => {
    const client = start("cat >&2");
    const loop: Record<string, unknown> = {};
    loop["self"] = loop;
    const fault = await new Promise<CallError | undefined>((resolve) => {
      client.request("m", loop, resolve);
    });
    assert.equal(fault?.kind, "invalidParams");
    client.notify("bad", loop);
    client.notify("after", {});
    void client.leave(PATIENCE_MS);
    assert.ok((await ended()).stderr.join("\n").includes('"after"'));
    assert.equal(log.of("error").length, 2);
  });

  for (const [name, garbage] of Object.entries({
    "a greeting": "echo 'Hello, I am a shell'",
    "a frame that holds no JSON": "printf 'Content-Length: 5\\r\\n\\r\\nhello'",
    "a frame that holds a number": "printf 'Content-Length: 1\\r\\n\\r\\n7'",
    "a frame that holds null": "printf 'Content-Length: 4\\r\\n\\r\\nnull'",
    "an empty frame": "printf 'Content-Length: 0\\r\\n\\r\\n'",
    "a batch": "printf 'Content-Length: 2\\r\\n\\r\\n[]'",
    "a frame of gigabytes": "printf 'Content-Length: 9999999999\\r\\n\\r\\n'; cat /dev/zero",
    "a header without an end": "yes x-pad:",
  })) {
    it(`ends a program that prints ${name}`, async () => {
      start(`${printed({ method: "before" })}${garbage}\nexec sleep 60`);
      const exit = await ended();
      assert.notEqual(exit.signal, null);
      assert.equal(typeof exit.garbage, "string");
      assert.ok((exit.garbage ?? "").length <= 200);
      assert.deepEqual(heard, [["before", {}]]);
    });
  }

  it("kills a program that prints garbage and does not go", async () => {
    start("trap '' TERM\necho garbage, and more\nwhile :; do sleep 0.05; done");
    assert.equal((await ended()).signal, "SIGKILL");
  });

  it("waits for the rest of half a message, and hears it", async () => {
    const whole = frame(JSON.stringify({ method: "m", params: { text: "ü" } }));
    const octal = (bytes: Buffer): string =>
      [...bytes].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
    for (const cut of [3, 16, 25, whole.length - 4]) {
      start(
        `printf '${octal(whole.subarray(0, cut))}'; sleep 0.05; printf '${octal(whole.subarray(cut))}'`,
      );
    }
    await until(() => exits.length === 4);
    assert.deepEqual(
      heard,
      Array.from({ length: 4 }, () => ["m", { text: "ü" }]),
    );
  });

  it("lets one that says more than can be heard wait, and hears all of it", async () => {
    const folder = mkdtempSync(join(tmpdir(), "callboard-flood-"));
    try {
      const path = join(folder, "flood");
      const one = frame(JSON.stringify({ method: "m", params: { text: "x".repeat(1000) } }));
      writeFileSync(path, Buffer.concat(Array.from({ length: 3000 }, () => one)));
      start(`exec cat ${path}`, {}, { room: { messages: 10, bytes: 1e9 } });
      await ended();
      assert.equal(heard.length, 3000);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("lets others have their turn between two messages of a flood", async () => {
    const order: string[] = [];
    const note = (method: string): void => {
      order.push(method);
      setImmediate(() => {
        order.push("somebody else");
      });
    };
    start(["one", "two", "three"].map((method) => printed({ method })).join(""), {
      notification: note,
    });
    await ended();
    assert.deepEqual(order.slice(0, 5), ["one", "somebody else", "two", "somebody else", "three"]);
  });

  it("keeps the last lines of what is complained about, without secrets", async () => {
    start(
      'for i in $(seq 1 30); do echo "line $i" >&2; done; echo "OPENAI_API_KEY=sk-abcdefghijklmnop" >&2; printf "no end" >&2; exit 1',
    );
    const { stderr } = await ended();
    assert.equal(stderr.length, 20);
    assert.equal(stderr[0], "line 13");
    assert.equal(stderr.at(-1), "no end");
    assert.equal(stderr.at(-2), "OPENAI_API_KEY=•••");
    assert.ok(!log.of("debug").join("\n").includes("abcdefghijklmnop"));
  });

  it("keeps no line that does not end", async () => {
    start("head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1");
    for (const line of (await ended()).stderr) {
      assert.ok(line.length <= 2000);
    }
  });

  it("goes on when a handler breaks", async () => {
    start(printed({ method: "one" }) + printed({ method: "two" }), {
      notification: (method) => {
        heard.push([method, {}]);
        throw new Error(`broken by ${method}`);
      },
    });
    await ended();
    assert.deepEqual(
      heard.map(([method]) => method),
      ["one", "two"],
    );
    assert.equal(log.of("error").length, 2);
  });

  /** A server that does not end when it is asked. */
  async function stubborn(): Promise<Client> {
    const up = printed({ method: "up" });
    const client = start(`trap '' TERM\n${up}while :; do sleep 0.05; done`);
    await until(() => heard.length > 0);
    return client;
  }

  it("asks a server to end, and makes one go that does not", async () => {
    const client = await stubborn();
    client.stop(50);
    assert.equal((await ended()).signal, "SIGKILL");
    assert.equal(client.alive(), false);
    client.stop(50);
    await client.leave(50);
  });

  it("ends a server in order", async () => {
    const client = start(
      speaking(`read(({ id, method }) => {
        console.error(method);
        if (method === "shutdown") send({ id, result: null });
        if (method === "exit") process.exit(0);
      });`),
    );
    client.stop(PATIENCE_MS);
    const { code, stderr } = await ended();
    assert.equal(code, 0);
    assert.deepEqual(stderr, ["shutdown", "exit"]);
  });

  it("leaves with a server that goes when it hears no more", async () => {
    const client = start("cat >/dev/null; exit 0");
    await client.leave(PATIENCE_MS);
    assert.deepEqual(exits, [{ code: 0, signal: null, stderr: [] }]);
  });

  it("leaves a server that does not go by killing it", async () => {
    const client = await stubborn();
    await client.leave(20);
    assert.equal(exits[0]?.signal, "SIGKILL");
  });

  it("that cannot be started says why", async () => {
    const client = start(["/no/such/program"]);
    client.request("initialize", {}, () => undefined);
    const exit = await ended();
    assert.match(exit.fault ?? "", /ENOENT/);
    assert.equal(client.alive(), false);
  });

  it("traces what passes when it is told to, without secrets and without long texts", async () => {
    let tracing: "off" | "messages" | "verbose" = "off";
    const client = start(
      speaking(`read(({ id, method }) => {
        if (method === "last") process.exit();
        send({ id, result: { text: "y".repeat(5000), list: new Array(500).fill(1) } });
      });`),
      {},
      { tracing: () => tracing },
    );
    const ask = (method: string): Promise<void> =>
      new Promise((resolve) => {
        const params = { apiKey: "hunter2", text: "x".repeat(5000), header: "Bearer abcdefghijkl" };
        client.request(method, params, () => {
          resolve();
        });
      });
    const passed = (): string[] => log.lines.filter((line) => /-->|<--/.test(line));
    await ask("quiet");
    assert.deepEqual(passed(), []);
    tracing = "messages";
    await ask("named");
    assert.match(passed()[0] ?? "", /^info --> named \(1\)$/);
    assert.match(passed()[1] ?? "", /^info <-- result \(1\) of named after \d+ ms$/);
    tracing = "verbose";
    await ask("told");
    client.notify("last", {});
    await ended();
    const told = passed().slice(2).join("\n");
    assert.ok(told.includes('"apiKey":"•••"') && told.includes("(5000 characters)"));
    assert.ok(told.includes("(500 items)"));
    assert.ok(!told.includes("hunter2") && !told.includes("abcdefghijkl"));
    assert.ok(told.length < 5000);
  });
});

/** The process that the log says was started. */
function clientPid(log: Lines): number {
  return Number(/ as (\d+)$/.exec(log.of("info")[0] ?? "")?.[1]);
}
