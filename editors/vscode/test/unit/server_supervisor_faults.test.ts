// Servers that are not there, are refused or are no Callboard: what is wrong is said, and the way out.
import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { PROTOCOL_VERSION } from "@callboard/protocol";
import { CallError } from "../../src/server/errors";
import { FakeServers, settled } from "./server_fake";

describe("a supervisor", () => {
  let servers: FakeServers;

  beforeEach(() => {
    servers = new FakeServers();
  });

  describe("that finds no server", () => {
    beforeEach(() => {
      servers.fault = "it is nowhere; install it";
    });

    it("says why, to the one who asked", async () => {
      servers.ask("m/1");
      await settled();
      assert.equal(servers.supervisor.state, "failed");
      assert.deepEqual(servers.answers, [["m/1", "noServer"]]);
      assert.equal(servers.supervisor.failure?.message, "it is nowhere; install it");
    });

    it("does not look again with each request, but when it is told to", async () => {
      servers.ask("m/1");
      await settled();
      servers.ask("m/2");
      await settled();
      assert.deepEqual(servers.answers, [
        ["m/1", "noServer"],
        ["m/2", "noServer"],
      ]);
      servers.fault = undefined;
      servers.ask("m/3");
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
    servers.ask("m/1");
    await settled();
    assert.equal(servers.supervisor.failure?.message, "the disk is gone");
  });

  it("says why a server cannot be started, and the way out", async () => {
    servers.ask("m/1");
    await settled();
    servers.client.exit({ code: null, fault: "spawn /bin/callboard EACCES" });
    await settled();
    assert.deepEqual(servers.answers, [["m/1", "noServer"]]);
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
      servers.ask("m/1");
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
      assert.deepEqual(servers.answers, [["m/1", "noServer"]]);
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
      assert.deepEqual(servers.answers, [["m/1", "one"]]);
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
});
