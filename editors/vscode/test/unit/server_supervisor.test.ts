// One server is kept running: started when it is wanted, again when it died, and ended with the window.
import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { FakeServers, settled } from "./server_fake";

describe("a supervisor", () => {
  let servers: FakeServers;

  beforeEach(() => {
    servers = new FakeServers();
  });

  it("starts nothing by itself, and a server with the first request", async () => {
    assert.equal(servers.supervisor.state, "stopped");
    assert.equal(servers.clients.length, 0);
    servers.ask("server/ping");
    assert.equal(servers.supervisor.state, "starting");
    await settled();
    assert.deepEqual(servers.client.found.cmd, ["/bin/callboard", "serve"]);
    assert.equal(servers.clients.length, 1);
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
    servers.ask("m/1");
    await settled();
    assert.equal(servers.supervisor.state, "failed");
    assert.equal(servers.clients.length, count);
    assert.deepEqual(servers.answers, [["m/1", "noServer"]]);
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
    servers.ask("m/1");
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
    assert.deepEqual(servers.answers, [["m/1", "done"]]);
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

  it("tells by which signal a server ended", async () => {
    const client = await servers.ready();
    client.exit({ code: null, signal: "SIGKILL" });
    assert.match(servers.supervisor.failure?.message ?? "", /ended by SIGKILL/);
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
    servers.ask("m/1");
    assert.deepEqual(client.methods, ["initialize", "initialized", "m/1"]);
    client.exit();
    await servers.pass(1000);
    servers.client.greet();
    assert.equal(servers.supervisor.state, "ready");
    assert.deepEqual(servers.client.methods, ["initialize", "initialized", "m/1"]);
  });

  describe("that leaves", () => {
    it("ends the server, waits for it, and starts no other", async () => {
      const client = await servers.ready();
      servers.ask("m/1");
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
      servers.ask("m/2");
      servers.supervisor.start();
      servers.supervisor.restart();
      await servers.pass(60_000);
      assert.equal(servers.clients.length, 1);
      assert.deepEqual(servers.answers, [
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
});
