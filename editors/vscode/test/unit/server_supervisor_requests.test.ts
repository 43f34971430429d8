// What is asked of a server: nothing is lost or done twice, whichever server answers.
import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { FakeServers, settled } from "./server_fake";

describe("a supervisor's requests", () => {
  let servers: FakeServers;

  beforeEach(() => {
    servers = new FakeServers();
  });

  it("asks what was wanted before once the server is ready, in order", async () => {
    for (const i of [1, 2, 3]) {
      servers.ask(`m/${i}`, {}, { i });
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
    assert.deepEqual(servers.answers, [
      ["m/2", "two"],
      ["m/1", "one"],
    ]);
    assert.equal(servers.greeted, 1);
    assert.deepEqual(servers.states, ["starting", "ready"]);
  });

  it("tells who follows before it asks what had waited", async () => {
    servers.onReady = () => {
      servers.ask("event/subscribe");
    };
    servers.ask("m/1");
    await settled();
    servers.client.greet();
    assert.deepEqual(servers.client.methods, [
      "initialize",
      "initialized",
      "event/subscribe",
      "m/1",
    ]);
  });

  it("asks again of the next server what the last did not answer, with the same key and in order", async () => {
    const first = await servers.ready();
    servers.ask("session/prompt", {}, { idempotencyKey: "key.1" });
    servers.ask("blob/read", {}, { sessionId: "a" });
    servers.ask("server/info");
    first.answer("blob/read", "got");
    first.exit();
    servers.ask("later");
    await settled();
    assert.deepEqual(servers.answers, [["blob/read", "got"]]);
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
    assert.deepEqual(servers.answers, [
      ["blob/read", "got"],
      ["session/prompt", "prompted"],
      ["server/info", "listed"],
      ["later", "late"],
    ]);
  });

  it("tells those who do not want that, once", async () => {
    await servers.ready();
    servers.ask("event/subscribe", { once: true });
    servers.client.exit();
    await settled();
    assert.deepEqual(servers.answers, [["event/subscribe", "serverGone"]]);
    await servers.pass(1000);
    servers.client.greet();
    assert.deepEqual(servers.client.of("event/subscribe"), []);
    assert.equal(servers.answers.length, 1);
  });

  it("lets whoever is told so ask at once", async () => {
    await servers.ready();
    servers.supervisor.request("server/ping", {}, { once: true }).catch(() => {
      servers.ask("m/2");
    });
    servers.client.exit();
    await servers.pass(1000);
    servers.client.greet();
    servers.client.answer("m/2", "two");
    await settled();
    assert.deepEqual(servers.answers, [["m/2", "two"]]);
  });

  it("asks the next server for what waits for it, even if not to be asked twice", async () => {
    await servers.ready();
    servers.client.exit();
    servers.ask("event/subscribe", { once: true });
    await servers.pass(1000);
    servers.client.greet();
    servers.client.answer("event/subscribe", "there");
    await settled();
    assert.deepEqual(servers.answers, [["event/subscribe", "there"]]);
  });

  it("gives up what nobody wants any more, wherever it is", async () => {
    const asked = new AbortController();
    const waiting = new AbortController();
    const before = new AbortController();
    const answered = new AbortController();
    const client = await servers.ready();
    servers.ask("answered", { signal: answered.signal });
    client.answer("answered", "yes");
    servers.ask("asked", { signal: asked.signal });
    const id = client.of("asked")[0]?.id;
    asked.abort();
    answered.abort();
    assert.deepEqual(
      client.of("$/cancelRequest").map((each) => each.params),
      [{ id }],
    );
    client.answer("asked", "late");
    before.abort();
    servers.ask("before", { signal: before.signal });
    client.exit();
    servers.ask("waiting", { signal: waiting.signal });
    waiting.abort();
    await servers.pass(1000);
    servers.client.greet();
    assert.deepEqual(servers.client.methods, ["initialize", "initialized"]);
    assert.deepEqual(servers.answers, [
      ["answered", "yes"],
      ["asked", "requestCancelled"],
      ["before", "requestCancelled"],
      ["waiting", "requestCancelled"],
    ]);
  });

  for (const result of [null, 7, "text", [], undefined]) {
    it(`takes ${JSON.stringify(result)} for no answer`, async () => {
      const client = await servers.ready();
      servers.ask("m/1");
      const [open] = client.of("m/1");
      open?.answered?.(undefined, result);
      await settled();
      assert.deepEqual(servers.answers, [["m/1", "unreadable"]]);
    });
  }

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

  it("tells the server, if one is there", async () => {
    servers.supervisor.notify("event/ack", { subscriptionId: "s", cursor: "c" });
    const client = await servers.ready();
    servers.supervisor.notify("event/ack", { subscriptionId: "s", cursor: "c" });
    client.exit();
    servers.supervisor.notify("event/ack", { subscriptionId: "s", cursor: "c" });
    assert.equal(client.of("event/ack").length, 1);
  });
});
