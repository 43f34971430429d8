// The real server: kept running through all that can happen to a process, and followed without a gap.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { PROTOCOL_VERSION, type Event } from "@callboard/protocol";
import { startClient } from "../../src/server/connection";
import { kindOf } from "../../src/server/errors";
import { Feed } from "../../src/server/feed";
import { locate } from "../../src/server/locate";
import { thisMachine } from "../../src/server/machine";
import { Supervisor } from "../../src/server/supervisor";
import { Lines } from "./logs";
import { alive, until } from "./waiting";

const SERVER = process.env["CALLBOARD_SERVER"] ?? resolve("../../.venv/bin/callboard");

/** What the model says: a text that takes a while to say. */
const MODEL = `
description: Speaks slowly.
chars_per_second: 1200
default: ${"One word after another, and no end. ".repeat(12)}
`;

describe("the real server", () => {
  let folder: string;
  let log: Lines;
  let supervisor: Supervisor;
  let feed: Feed;
  /** Of silence: how often 10 s go by in one. */
  let hurry: number;
  const pids: number[] = [];

  beforeEach(() => {
    assert.ok(existsSync(SERVER), `there is no ${SERVER}: CALLBOARD_SERVER names the server`);
    folder = mkdtempSync(join(tmpdir(), "callboard-server-"));
    log = new Lines();
    hurry = 1;
    pids.length = 0;
    writeFileSync(join(folder, "model.yaml"), MODEL);
    mkdirSync(join(folder, "work"));
    const machine = thisMachine([join(folder, "work")]);
    supervisor = new Supervisor({
      log,
      locate: () => locate({ path: SERVER }, machine),
      start: (found, handlers) => {
        const client = startClient(found.cmd, handlers, {
          cwd: join(folder, "work"),
          env: {
            HOME: folder,
            XDG_CONFIG_HOME: join(folder, "config"),
            XDG_DATA_HOME: join(folder, "data"),
            XDG_STATE_HOME: join(folder, "state"),
            XDG_CACHE_HOME: join(folder, "cache"),
            CALLBOARD_STORE: join(folder, "callboard.db"),
            CALLBOARD_MODEL: `scripted/${join(folder, "model.yaml")}`,
          },
          log,
        });
        pids.push(client.pid);
        return client;
      },
      initialize: () => ({
        processId: process.pid,
        clientInfo: { name: "units" },
        initializationOptions: {
          callboard: {
            protocolVersions: [PROTOCOL_VERSION],
            clientId: "units",
            capabilities: { approvals: true, deltas: true },
          },
        },
      }),
      folders: () => machine.folders,
      now: () => performance.now() * hurry,
      later: (ms, fn) => {
        // The pauses between starts are told elsewhere.
        const timer = setTimeout(fn, (ms <= 8000 ? 20 : ms) / hurry);
        return () => {
          clearTimeout(timer);
        };
      },
      changed: () => undefined,
      ready: () => {
        feed.resume();
      },
      notification: (method, params) => {
        feed.notification(method, params);
      },
      request: () => Promise.resolve({ defer: true }),
      exited: () => undefined,
    });
    feed = new Feed(supervisor, log);
  });

  afterEach(async () => {
    await supervisor.leave(5000);
    for (const pid of pids) {
      assert.ok(!alive(pid), `${pid} is left`);
    }
    rmSync(folder, { recursive: true, force: true });
  });

  async function begun(): Promise<string> {
    const cwd = join(folder, "work");
    const { session } = await supervisor.request("session/create", { cwd, idempotencyKey: "new" });
    return session.sessionId;
  }

  /** All that is told of a session, in order. */
  function followed(id: string): { events: Event[]; text: () => string; live: () => number } {
    const events: Event[] = [];
    let text = "";
    let live = 0;
    feed.follow({
      scope: { kind: "session", id },
      cursor: "start",
      deltas: true,
      onEvents: (more) => {
        events.push(...more);
      },
      onDelta: (delta) => {
        text += delta.text;
      },
      onLive: () => {
        live += 1;
      },
    });
    return { events, text: () => text, live: () => live };
  }

  const types = (events: readonly Event[]): string[] => events.map((event) => event.type);

  function say(id: string, key: string): ReturnType<Supervisor["request"]> {
    return supervisor.request("session/prompt", {
      sessionId: id,
      content: [{ type: "text", text: "hello" }],
      idempotencyKey: key,
    });
  }

  function whole(events: readonly Event[]): void {
    assert.deepEqual(
      events.map((event) => event.seq),
      events.map((_, i) => i + 1),
      "events are missing, or were told twice",
    );
  }

  it("greets, answers, tells events and text as it streams, and leaves in order", async () => {
    const id = await begun();
    assert.equal(supervisor.state, "ready");
    assert.equal(supervisor.handshake?.protocolVersion, PROTOCOL_VERSION);
    const told = followed(id);
    await say(id, "one");
    await until(() => types(told.events).includes("turn_finished"));
    assert.match(told.text(), /One word after another/);
    whole(told.events);
    await assert.rejects(
      supervisor.request("session/get", { sessionId: "ses_gone" }),
      (fault) => kindOf(fault) === "sessionNotFound",
    );
    assert.deepEqual(log.of("error"), []);
  });

  it("that is killed while it speaks is started again, and nothing is lost or told twice", async () => {
    const id = await begun();
    const told = followed(id);
    await say(id, "one");
    await until(() => told.text() !== "");
    // Asked of the one that dies, answered by the next.
    const waiting = supervisor.request(
      "session/wait",
      { sessionId: id, until: "idle", timeoutMs: 60_000 },
      { patient: true },
    );
    process.kill(pids[0] ?? 0, "SIGKILL");
    assert.equal((await waiting).reason, "idle");
    await until(() => told.live() === 2);
    await say(id, "two");
    const ends = (): number => types(told.events).filter((type) => type === "turn_finished").length;
    await until(() => ends() >= 2);
    whole(told.events);
    assert.equal(pids.length, 2);
    // The same wish, said again, does nothing twice.
    await say(id, "two");
    const prompts = told.events.filter(
      (event) => event.type === "message" && event.actor.kind === "client",
    );
    assert.equal(prompts.length, 2);
  });

  it("that hangs is silent, and makes way for another that goes on where it was", async () => {
    const id = await begun();
    const told = followed(id);
    await until(() => told.live() === 1);
    hurry = 100;
    process.kill(pids[0] ?? 0, "SIGSTOP");
    const got = supervisor.request("session/get", { sessionId: id });
    await until(() => supervisor.silent);
    assert.equal(supervisor.state, "ready");
    hurry = 1;
    supervisor.restart();
    assert.equal((await got).session.sessionId, id);
    assert.equal(supervisor.silent, false);
    assert.equal(pids.length, 2);
    assert.ok(!alive(pids[0] ?? 0));
    await until(() => told.live() === 2);
    await say(id, "one");
    await until(() => types(told.events).includes("turn_finished"));
    whole(told.events);
  });
});
