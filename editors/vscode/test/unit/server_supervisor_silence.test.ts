// A server that owes an answer and says nothing is told of, without a timer while nothing is owed.
import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { FakeServers, settled } from "./server_fake";

describe("a supervisor of a server that says nothing", () => {
  let servers: FakeServers;

  beforeEach(() => {
    servers = new FakeServers();
  });

  it("tells so when it owes an answer for 10 s, and when it speaks again", async () => {
    const client = await servers.ready();
    servers.ask("m/1");
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
    servers.ask("m/1");
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
    servers.ask("m/1");
    await servers.pass(9_999);
    assert.equal(servers.supervisor.silent, false);
  });

  it("has one timer while something is asked, and none once all is answered", async () => {
    const client = await servers.ready();
    servers.ask("m/1");
    servers.ask("m/2");
    assert.deepEqual(servers.pending, [10_000]);
    client.answer("m/1", "one");
    assert.equal(servers.pending.length, 1);
    client.answer("m/2", "two");
    assert.deepEqual(servers.pending, []);
  });

  it("does not mind for what may take long", async () => {
    await servers.ready();
    servers.ask("session/wait", { patient: true });
    assert.deepEqual(servers.pending, []);
    await servers.pass(600_000);
    assert.equal(servers.supervisor.silent, false);
  });

  it("does not mind when nobody waits any more", async () => {
    await servers.ready();
    const controller = new AbortController();
    servers.ask("m/1", { signal: controller.signal });
    await servers.pass(10_000);
    assert.equal(servers.supervisor.silent, true);
    controller.abort();
    assert.equal(servers.supervisor.silent, false);
    assert.deepEqual(servers.pending, []);
  });

  it("gives it time again after the machine has slept", async () => {
    await servers.ready();
    servers.ask("m/1");
    await servers.pass(4_000);
    servers.sleep(3600 * 1000);
    await servers.pass(9_999);
    assert.equal(servers.supervisor.silent, false);
    await servers.pass(1);
    assert.equal(servers.supervisor.silent, true);
  });

  it("makes it go without waiting for its answer when it is to be restarted", async () => {
    const client = await servers.ready();
    servers.ask("m/1");
    await servers.pass(10_000);
    servers.supervisor.restart();
    assert.equal(client.stopping, 0);
    client.exit({ code: null, signal: "SIGKILL" });
    assert.equal(servers.supervisor.silent, false);
    await settled();
    servers.client.greet();
    servers.client.answer("m/1", "one");
    await settled();
    assert.deepEqual(servers.answers, [["m/1", "one"]]);
  });
});
