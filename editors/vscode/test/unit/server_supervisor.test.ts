// One server is kept running, and nothing that was asked is lost or done twice.
import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { PROTOCOL_VERSION, type Requests } from "@callboard/protocol";
import { CallError, kindOf } from "../../src/server/errors";
import type { RequestOptions } from "../../src/server/supervisor";
import { FakeServers, settled } from "./server_fake";

describe("a supervisor", () => {
  let servers: FakeServers;
  let answers: [string, unknown][];

  beforeEach(() => {
    servers = new FakeServers();
    answers = [];
  });

  /** Asks for something, and keeps what is said to that. */
  function ask(method: string, options?: RequestOptions, params: object = {}): void {
    // Methods that no server has keep these tests short.
    servers.supervisor.request(method as keyof Requests, params as never, options).then(
      (result) => {
        answers.push([method, (result as { said?: unknown }).said ?? result]);
      },
      (fault: unknown) => {
        answers.push([method, kindOf(fault)]);
      },
    );
  }

  it("starts nothing by itself, and a server with the first request", async () => {
    assert.equal(servers.supervisor.state, "stopped");
    assert.equal(servers.clients.length, 0);
    ask("server/ping");
    assert.equal(servers.supervisor.state, "starting");
    await settled();
    assert.deepEqual(servers.client.found.cmd, ["/bin/callboard", "serve"]);
    assert.equal(servers.clients.length, 1);
  });

  it("asks what was wanted before once the server is ready, in order", async () => {
    for (const i of [1, 2, 3]) {
      ask(`m/${i}`, {}, { i });
    }
    await settled();
    const { client } = servers;
    assert.equal(client.sent.length, 1);
    assert.deepEqual(client.of("initialize")[0]?.params, { hello: true });
    client.greet();
    assert.deepEqual(client.methods, ["initialize", "initialized", "m/1", "m/2", "m/3"]);
    client.answer("m/2", "two");
    client.answer("m/1", "one");
    await settled();
    assert.deepEqual(answers, [
      ["m/2", "two"],
      ["m/1", "one"],
    ]);
    assert.equal(servers.greeted, 1);
    assert.deepEqual(servers.states, ["starting", "ready"]);
  });

  it("tells who follows before it asks what had waited", async () => {
    servers.onReady = () => {
      ask("event/subscribe");
    };
    ask("m/1");
    await settled();
    servers.client.greet();
    assert.deepEqual(servers.client.methods, [
      "initialize",
      "initialized",
      "event/subscribe",
      "m/1",
    ]);
  });

  it("has no timer while all is well", async () => {
    await servers.ready();
    assert.deepEqual(servers.pending, []);
    await servers.pass(3600 * 1000);
    assert.equal(servers.supervisor.state, "ready");
    assert.equal(servers.clients.length, 1);
  });

  it("starts a server that died again after 1, 2, 4 and 8 s, and gives up with the fifth", async () => {
    await servers.ready();
    for (const pause of [1000, 2000, 4000, 8000]) {
      servers.client.exit({ code: 3, stderr: ["oh", "no"] });
      assert.equal(servers.supervisor.state, "waiting");
      assert.deepEqual(servers.pending, [pause]);
      assert.match(servers.supervisor.failure?.message ?? "", /ended with code 3/);
      assert.deepEqual(servers.supervisor.failure?.lines, ["oh", "no"]);
      assert.equal(servers.supervisor.failure.starting, pause !== 1000);
      const count = servers.clients.length;
      await servers.pass(pause - 1);
      assert.equal(servers.clients.length, count);
      await servers.pass(1);
      assert.equal(servers.clients.length, count + 1);
      assert.equal(servers.supervisor.state, "starting");
    }
    servers.client.exit({ code: 3, stderr: ["the", "last", "words"] });
    assert.equal(servers.supervisor.state, "failed");
    assert.deepEqual(servers.pending, []);
    assert.match(servers.supervisor.failure?.message ?? "", /5 times in a row/);
    assert.match(servers.supervisor.failure?.message ?? "", /Callboard: Restart Server/);
    assert.deepEqual(servers.supervisor.failure?.lines, ["the", "last", "words"]);
    await servers.pass(3600 * 1000);
    assert.equal(servers.clients.length, 5);
  });

  it("forgets deaths that were long ago", async () => {
    await servers.ready();
    for (let i = 0; i < 20; i++) {
      servers.client.exit();
      assert.equal(servers.supervisor.state, "waiting");
      await servers.pass(1000);
      servers.client.greet();
      assert.equal(servers.supervisor.state, "ready");
      await servers.pass(180_000);
    }
  });

  it("counts deaths within three minutes, also of servers that had served", async () => {
    await servers.ready();
    for (let i = 1; i <= 5; i++) {
      servers.client.exit();
      if (i < 5) {
        await servers.pass(8000);
        servers.client.greet();
      }
    }
    assert.equal(servers.supervisor.state, "failed");
  });

  async function givenUp(): Promise<void> {
    await servers.ready();
    for (let i = 0; i < 5; i++) {
      servers.client.exit();
      await servers.pass(8000);
    }
    assert.equal(servers.supervisor.state, "failed");
  }

  it("begins anew when it is told to, after it gave up", async () => {
    await givenUp();
    servers.supervisor.restart();
    assert.equal(servers.supervisor.state, "starting");
    assert.equal(servers.supervisor.failure, undefined);
    await settled();
    servers.client.greet();
    servers.client.exit();
    assert.equal(servers.supervisor.state, "waiting");
    assert.deepEqual(servers.pending, [1000]);
  });

  it("does not begin anew with what is wanted of it, after it gave up", async () => {
    await givenUp();
    const count = servers.clients.length;
    servers.supervisor.start();
    ask("m/1");
    await settled();
    assert.equal(servers.supervisor.state, "failed");
    assert.equal(servers.clients.length, count);
    assert.deepEqual(answers, [["m/1", "noServer"]]);
  });

  it("starts at once when it is told to while it waits", async () => {
    await servers.ready();
    servers.client.exit();
    servers.supervisor.restart();
    await settled();
    assert.equal(servers.clients.length, 2);
    servers.client.greet();
    await servers.pass(10_000);
    assert.equal(servers.clients.length, 2);
  });

  it("ends a server that runs before it starts another", async () => {
    const first = await servers.ready();
    ask("m/1");
    servers.supervisor.restart();
    assert.equal(first.stopping, 2000);
    assert.equal(servers.clients.length, 1);
    first.exit({ code: 0 });
    await settled();
    assert.equal(servers.clients.length, 2);
    assert.deepEqual(servers.exits, [{ code: 0, expected: true }]);
    servers.client.greet();
    servers.client.answer("m/1", "done");
    await settled();
    assert.deepEqual(answers, [["m/1", "done"]]);
  });

  it("restarts one that is just starting, and is not greeted by it", async () => {
    const first = await servers.begin();
    servers.supervisor.restart();
    first.greet();
    assert.equal(servers.greeted, 0);
    first.exit({ code: 0 });
    await settled();
    servers.client.greet();
    assert.equal(servers.greeted, 1);
    assert.equal(servers.supervisor.state, "ready");
  });

  it("restarts one that is looked for, and starts one only", async () => {
    let found = (): void => undefined;
    servers.searching = new Promise((resolve) => {
      found = resolve;
    });
    servers.supervisor.start();
    servers.supervisor.restart();
    found();
    await settled();
    assert.equal(servers.clients.length, 1);
  });

  it("asks again of the next server what the last did not answer, with the same key and in order", async () => {
    const first = await servers.ready();
    ask("session/prompt", {}, { idempotencyKey: "key.1" });
    ask("blob/read", {}, { sessionId: "a" });
    ask("server/info");
    first.answer("blob/read", "got");
    first.exit();
    ask("later");
    await settled();
    assert.deepEqual(answers, [["blob/read", "got"]]);
    await servers.pass(1000);
    servers.client.greet();
    assert.deepEqual(
      servers.client.sent.slice(2).map(({ method, params }) => [method, params]),
      [
        ["session/prompt", { idempotencyKey: "key.1" }],
        ["server/info", {}],
        ["later", {}],
      ],
    );
    servers.client.answer("session/prompt", "prompted");
    servers.client.answer("server/info", "listed");
    servers.client.answer("later", "late");
    await settled();
    assert.deepEqual(answers, [
      ["blob/read", "got"],
      ["session/prompt", "prompted"],
      ["server/info", "listed"],
      ["later", "late"],
    ]);
  });

  it("tells those who do not want that, once", async () => {
    await servers.ready();
    ask("event/subscribe", { once: true });
    servers.client.exit();
    await settled();
    assert.deepEqual(answers, [["event/subscribe", "serverGone"]]);
    await servers.pass(1000);
    servers.client.greet();
    assert.deepEqual(servers.client.of("event/subscribe"), []);
    assert.equal(answers.length, 1);
  });

  it("lets whoever is told so ask at once", async () => {
    await servers.ready();
    servers.supervisor.request("server/ping", {}, { once: true }).catch(() => {
      ask("m/2");
    });
    servers.client.exit();
    await servers.pass(1000);
    servers.client.greet();
    servers.client.answer("m/2", "two");
    await settled();
    assert.deepEqual(answers, [["m/2", "two"]]);
  });

  it("asks the next server for what waits for it, even if not to be asked twice", async () => {
    await servers.ready();
    servers.client.exit();
    ask("event/subscribe", { once: true });
    await servers.pass(1000);
    servers.client.greet();
    servers.client.answer("event/subscribe", "there");
    await settled();
    assert.deepEqual(answers, [["event/subscribe", "there"]]);
  });

  it("gives up what nobody wants any more, wherever it is", async () => {
    const asked = new AbortController();
    const waiting = new AbortController();
    const before = new AbortController();
    const answered = new AbortController();
    const client = await servers.ready();
    ask("answered", { signal: answered.signal });
    client.answer("answered", "yes");
    ask("asked", { signal: asked.signal });
    const id = client.of("asked")[0]?.id;
    asked.abort();
    answered.abort();
    assert.deepEqual(
      client.of("$/cancelRequest").map((each) => each.params),
      [{ id }],
    );
    client.answer("asked", "late");
    before.abort();
    ask("before", { signal: before.signal });
    client.exit();
    ask("waiting", { signal: waiting.signal });
    waiting.abort();
    await servers.pass(1000);
    servers.client.greet();
    assert.deepEqual(servers.client.methods, ["initialize", "initialized"]);
    assert.deepEqual(answers, [
      ["answered", "yes"],
      ["asked", "requestCancelled"],
      ["before", "requestCancelled"],
      ["waiting", "requestCancelled"],
    ]);
  });

  for (const result of [null, 7, "text", [], undefined]) {
    it(`takes ${JSON.stringify(result)} for no answer`, async () => {
      const client = await servers.ready();
      ask("m/1");
      const [open] = client.of("m/1");
      open?.answered?.(undefined, result);
      await settled();
      assert.deepEqual(answers, [["m/1", "unreadable"]]);
    });
  }

  describe("that finds no server", () => {
    beforeEach(() => {
      servers.fault = "it is nowhere; install it";
    });

    it("says why, to the one who asked", async () => {
      ask("m/1");
      await settled();
      assert.equal(servers.supervisor.state, "failed");
      assert.deepEqual(answers, [["m/1", "noServer"]]);
      assert.equal(servers.supervisor.failure?.message, "it is nowhere; install it");
    });

    it("does not look again with each request, but when it is told to", async () => {
      ask("m/1");
      await settled();
      ask("m/2");
      await settled();
      assert.deepEqual(answers, [
        ["m/1", "noServer"],
        ["m/2", "noServer"],
      ]);
      servers.fault = undefined;
      ask("m/3");
      await settled();
      assert.equal(servers.clients.length, 0);
      servers.supervisor.restart();
      await settled();
      servers.client.greet();
      assert.equal(servers.supervisor.state, "ready");
    });

    it("tells those who waited that this was told already, and those who come later not", async () => {
      const told: boolean[] = [];
      const one = (): Promise<void> =>
        servers.supervisor.request("server/ping", {}).then(
          () => undefined,
          (fault: unknown) => {
            assert.ok(fault instanceof CallError);
            told.push(fault.told);
          },
        );
      await one();
      await one();
      assert.deepEqual(told, [true, false]);
    });
  });

  it("that finds none any more does not name the one that it had found", async () => {
    const client = await servers.ready();
    servers.fault = "it was removed";
    servers.supervisor.restart();
    client.exit({ code: 0 });
    await settled();
    assert.equal(servers.supervisor.state, "failed");
    assert.equal(servers.supervisor.found, undefined);
  });

  it("says why looking for a server has failed", async () => {
    servers = new FakeServers({
      locate: () => Promise.reject(new Error("the disk is gone")),
    });
    ask("m/1");
    await settled();
    assert.equal(servers.supervisor.failure?.message, "the disk is gone");
  });

  it("says why a server cannot be started, and the way out", async () => {
    ask("m/1");
    await settled();
    servers.client.exit({ code: null, fault: "spawn /bin/callboard EACCES" });
    await settled();
    assert.deepEqual(answers, [["m/1", "noServer"]]);
    for (const words of [
      "/bin/callboard",
      "EACCES",
      "callboard.server.path",
      "Callboard: Restart Server",
    ]) {
      assert.ok(servers.supervisor.failure?.message.includes(words), words);
    }
    assert.deepEqual(servers.pending, []);
  });

  describe("that is refused", () => {
    async function refused(message: string, data: Record<string, unknown>): Promise<void> {
      ask("m/1");
      await settled();
      servers.client.refuse("initialize", new CallError(-1, message, data));
      assert.equal(servers.client.stopping, 2000);
      servers.client.exit({ code: 0, stderr: ["said"] });
      await settled();
    }

    it("for its version gives up at once and names both ways to update", async () => {
      await refused("the server speaks 2.0", { kind: "unsupportedVersion", retryable: false });
      assert.equal(servers.supervisor.state, "failed");
      for (const words of [
        "the server speaks 2.0",
        PROTOCOL_VERSION,
        "callboard editor install vscode",
      ]) {
        assert.ok(servers.supervisor.failure?.message.includes(words), words);
      }
      assert.equal(servers.supervisor.failure?.refused, true);
      assert.deepEqual(answers, [["m/1", "noServer"]]);
      assert.deepEqual(servers.pending, []);
    });

    it("for a store that is newer gives up at once and says to update", async () => {
      await refused("the store has version 99; upgrade Callboard", {
        kind: "storeVersion",
        retryable: false,
      });
      assert.equal(servers.supervisor.state, "failed");
      assert.match(servers.supervisor.failure?.message ?? "", /the store has version 99/);
      assert.match(servers.supervisor.failure?.message ?? "", /Callboard: Restart Server/);
      assert.deepEqual(servers.supervisor.failure?.lines, ["said"]);
    });

    it("for a while tries again", async () => {
      await refused("the store is locked", { kind: "storeBusy", retryable: true });
      assert.equal(servers.supervisor.state, "waiting");
      assert.match(servers.supervisor.failure?.message ?? "", /the store is locked/);
      await servers.pass(1000);
      servers.client.greet();
      servers.client.answer("m/1", "one");
      await settled();
      assert.deepEqual(answers, [["m/1", "one"]]);
    });

    it("by a Python that has it is not told that there is none", async () => {
      servers.found = { cmd: ["/bin/python3", "-m", "callboard"], how: "a Python", guess: true };
      await refused("the store is locked", { kind: "storeBusy", retryable: true });
      assert.equal(servers.supervisor.state, "waiting");
    });
  });

  it("takes a language server for what it is", async () => {
    const client = await servers.begin();
    client.answer("initialize", { capabilities: { hoverProvider: true } });
    client.exit({ code: 0 });
    assert.equal(servers.supervisor.state, "failed");
    assert.match(servers.supervisor.failure?.message ?? "", /another program/);
    assert.match(servers.supervisor.failure?.message ?? "", /callboard\.server\.path/);
  });

  for (const result of [null, undefined, 7, [], { capabilities: null }]) {
    it(`takes one that greets with ${JSON.stringify(result)} for another program`, async () => {
      const client = await servers.begin();
      client.answer("initialize", result);
      client.exit({ code: 0 });
      assert.match(servers.supervisor.failure?.message ?? "", /another program/);
    });
  }

  it("takes a program that gives back what it reads for what it is", async () => {
    const client = await servers.begin();
    const token = { cancelled: false, onCancelled: () => undefined };
    await assert.rejects(client.handlers.request("initialize", {}, token));
    assert.equal(client.stopping, 2000);
    await assert.rejects(client.handlers.request("shutdown", {}, token));
    client.answer("initialize", {});
    client.exit({ code: 0 });
    assert.equal(servers.supervisor.state, "failed");
    assert.match(servers.supervisor.failure?.message ?? "", /another program/);
    assert.deepEqual(servers.asked, []);
  });

  it("speaks with no server of another version, and with one of a newer minor one", async () => {
    const first = await servers.begin();
    first.greet({ protocolVersion: "2.0" });
    first.exit({ code: 0 });
    assert.equal(servers.supervisor.state, "failed");
    assert.match(servers.supervisor.failure?.message ?? "", /version 2\.0/);
    assert.match(servers.supervisor.failure?.message ?? "", /Update both/);
    servers.supervisor.restart();
    await settled();
    servers.client.greet({ protocolVersion: "1.7", features: "none", serverInfo: 7 });
    assert.equal(servers.supervisor.state, "ready");
    assert.deepEqual(servers.supervisor.handshake?.features, {});
    assert.deepEqual(servers.supervisor.handshake.serverInfo, {});
  });

  it("gives up on a program that prints something else, whenever it does", async () => {
    const first = await servers.begin();
    first.exit({ signal: "SIGTERM", code: null, garbage: "Welcome to \x1b[1mbash\n\n" });
    assert.equal(servers.supervisor.state, "failed");
    const message = servers.supervisor.failure?.message ?? "";
    assert.ok(message.includes('it printed "Welcome to <1B>[1mbash"'), message);
    assert.ok(message.includes("callboard.server.path"));
    assert.equal(servers.clients.length, 1);
    servers.supervisor.restart();
    await settled();
    servers.client.greet();
    servers.client.exit({ signal: "SIGTERM", code: null, garbage: "debug: 1\n" });
    assert.equal(servers.supervisor.state, "failed");
  });

  it("ends a server that does not greet in 20 s, and says so", async () => {
    const first = await servers.begin();
    await servers.pass(19_999);
    assert.equal(first.killed, 0);
    await servers.pass(1);
    assert.equal(first.killed, 1);
    first.exit({ code: null, signal: "SIGKILL" });
    assert.equal(servers.supervisor.state, "waiting");
    assert.match(servers.supervisor.failure?.message ?? "", /did not answer within 20 s/);
    await servers.pass(1000);
    servers.client.exit();
    assert.doesNotMatch(servers.supervisor.failure?.message ?? "", /20 s/);
  });

  for (const said of [
    "/bin/python3: No module named callboard",
    "Python was not found; run without arguments to install from the Microsoft Store",
  ]) {
    it(`says that Callboard is missing when Python says: ${said}`, async () => {
      servers.found = { cmd: ["/bin/python3", "-m", "callboard"], how: "a Python", guess: true };
      const client = await servers.begin();
      client.exit({ stderr: [said] });
      assert.equal(servers.supervisor.state, "failed");
      for (const words of ["was not found", "/project", "pip install callboard"]) {
        assert.ok(servers.supervisor.failure?.message.includes(words), words);
      }
    });
  }

  it("takes a Callboard in a Python that crashes for one that crashes", async () => {
    servers.found = { cmd: ["/bin/python3", "-m", "callboard"], how: "a Python", guess: true };
    const client = await servers.begin();
    client.exit({ stderr: ["Segmentation fault"] });
    assert.equal(servers.supervisor.state, "waiting");
  });

  it("tells by which signal a server ended", async () => {
    const client = await servers.ready();
    client.exit({ code: null, signal: "SIGKILL" });
    assert.match(servers.supervisor.failure?.message ?? "", /ended by SIGKILL/);
  });

  it("hands on what the server says and asks", async () => {
    const client = await servers.ready();
    client.handlers.notification("event/batch", { a: 1 });
    const token = { cancelled: false, onCancelled: () => undefined };
    assert.deepEqual(await client.handlers.request("approval/request", { b: 2 }, token), {
      defer: true,
    });
    assert.deepEqual(servers.heard, [["event/batch", { a: 1 }]]);
    assert.deepEqual(
      servers.asked.map(([method, params]) => [method, params]),
      [["approval/request", { b: 2 }]],
    );
  });

  it("goes on when somebody who is told fails", async () => {
    servers = new FakeServers({
      changed: () => {
        throw new Error("of a view");
      },
      ready: () => {
        throw new Error("of a follower");
      },
      exited: () => {
        throw new Error("of the questions");
      },
    });
    const client = await servers.ready();
    ask("m/1");
    assert.deepEqual(client.methods, ["initialize", "initialized", "m/1"]);
    client.exit();
    await servers.pass(1000);
    servers.client.greet();
    assert.equal(servers.supervisor.state, "ready");
    assert.deepEqual(servers.client.methods, ["initialize", "initialized", "m/1"]);
  });

  it("tells the server, if one is there", async () => {
    servers.supervisor.notify("event/ack", { subscriptionId: "s", cursor: "c" });
    const client = await servers.ready();
    servers.supervisor.notify("event/ack", { subscriptionId: "s", cursor: "c" });
    client.exit();
    servers.supervisor.notify("event/ack", { subscriptionId: "s", cursor: "c" });
    assert.equal(client.of("event/ack").length, 1);
  });

  describe("that leaves", () => {
    it("ends the server, waits for it, and starts no other", async () => {
      const client = await servers.ready();
      ask("m/1");
      let left = false;
      const leaving = servers.supervisor.leave(500).then(() => {
        left = true;
      });
      assert.equal(client.left, 500);
      await settled();
      assert.equal(left, false);
      client.exit({ code: 0 });
      await leaving;
      assert.equal(servers.supervisor.state, "stopped");
      ask("m/2");
      servers.supervisor.start();
      servers.supervisor.restart();
      await servers.pass(60_000);
      assert.equal(servers.clients.length, 1);
      assert.deepEqual(answers, [
        ["m/1", "noServer"],
        ["m/2", "noServer"],
      ]);
    });

    it("while it waits starts no other", async () => {
      const client = await servers.ready();
      client.exit();
      await servers.supervisor.leave(500);
      await servers.pass(60_000);
      assert.equal(servers.clients.length, 1);
      assert.equal(servers.supervisor.state, "stopped");
    });

    it("while it looks for one starts none", async () => {
      let found = (): void => undefined;
      servers.searching = new Promise((resolve) => {
        found = resolve;
      });
      servers.supervisor.start();
      await servers.supervisor.leave(500);
      found();
      await settled();
      assert.equal(servers.clients.length, 0);
    });

    it("without ever having started is done at once", async () => {
      await servers.supervisor.leave(500);
      assert.equal(servers.clients.length, 0);
    });
  });

  describe("of a server that says nothing", () => {
    it("tells so when it owes an answer for 10 s, and when it speaks again", async () => {
      const client = await servers.ready();
      ask("m/1");
      await servers.pass(9_999);
      assert.equal(servers.supervisor.silent, false);
      await servers.pass(1);
      assert.equal(servers.supervisor.silent, true);
      assert.equal(servers.supervisor.state, "ready");
      assert.deepEqual(servers.pending, []);
      client.handlers.heard();
      client.answer("m/1", "one");
      assert.equal(servers.supervisor.silent, false);
      assert.deepEqual(servers.states, ["starting", "ready", "ready, silent", "ready"]);
      assert.deepEqual(servers.pending, []);
    });

    it("does not as long as anything comes", async () => {
      const client = await servers.ready();
      ask("m/1");
      for (let i = 0; i < 10; i++) {
        await servers.pass(6_000);
        client.handlers.heard();
      }
      assert.equal(servers.supervisor.silent, false);
      assert.equal(servers.pending.length, 1);
      await servers.pass(10_000);
      assert.equal(servers.supervisor.silent, true);
    });

    it("counts from when it was asked, not from when it spoke last", async () => {
      const client = await servers.ready();
      client.handlers.heard();
      await servers.pass(3600 * 1000);
      ask("m/1");
      await servers.pass(9_999);
      assert.equal(servers.supervisor.silent, false);
    });

    it("has one timer while something is asked, and none once all is answered", async () => {
      const client = await servers.ready();
      ask("m/1");
      ask("m/2");
      assert.deepEqual(servers.pending, [10_000]);
      client.answer("m/1", "one");
      assert.equal(servers.pending.length, 1);
      client.answer("m/2", "two");
      assert.deepEqual(servers.pending, []);
    });

    it("does not mind for what may take long", async () => {
      await servers.ready();
      ask("session/wait", { patient: true });
      assert.deepEqual(servers.pending, []);
      await servers.pass(600_000);
      assert.equal(servers.supervisor.silent, false);
    });

    it("does not mind when nobody waits any more", async () => {
      await servers.ready();
      const controller = new AbortController();
      ask("m/1", { signal: controller.signal });
      await servers.pass(10_000);
      assert.equal(servers.supervisor.silent, true);
      controller.abort();
      assert.equal(servers.supervisor.silent, false);
      assert.deepEqual(servers.pending, []);
    });

    it("gives it time again after the machine has slept", async () => {
      await servers.ready();
      ask("m/1");
      await servers.pass(4_000);
      servers.sleep(3600 * 1000);
      await servers.pass(9_999);
      assert.equal(servers.supervisor.silent, false);
      await servers.pass(1);
      assert.equal(servers.supervisor.silent, true);
    });

    it("makes it go without waiting for its answer when it is to be restarted", async () => {
      const client = await servers.ready();
      ask("m/1");
      await servers.pass(10_000);
      servers.supervisor.restart();
      assert.equal(client.stopping, 0);
      client.exit({ code: null, signal: "SIGKILL" });
      assert.equal(servers.supervisor.silent, false);
      await settled();
      servers.client.greet();
      servers.client.answer("m/1", "one");
      await settled();
      assert.deepEqual(answers, [["m/1", "one"]]);
    });
  });
});
