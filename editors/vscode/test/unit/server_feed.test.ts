// Subscriptions outlive servers: whoever follows sees every event once and in order.
import assert from "node:assert/strict";
import { beforeEach, describe, it, mock } from "node:test";
import type { Event } from "@callboard/protocol";
import { CallError } from "../../src/server/errors";
import { AGAIN_MS, Feed, type Follow } from "../../src/server/feed";
import type { RequestOptions, ServerState, Supervisor } from "../../src/server/supervisor";
import { Lines } from "./logs";
import { settled } from "./server_fake";

interface Asked {
  method: string;
  params: Record<string, unknown>;
  once: boolean;
  resolve(result: unknown): void;
  reject(fault: CallError): void;
}

describe("a feed", () => {
  let state: ServerState;
  let asked: Asked[];
  let notified: [string, Record<string, unknown>][];
  let seen: unknown[];
  let log: Lines;
  let feed: Feed;

  beforeEach(() => {
    state = "ready";
    asked = [];
    notified = [];
    seen = [];
    log = new Lines();
    const server = {
      get state() {
        return state;
      },
      request: (method: string, params: Record<string, unknown>, options: RequestOptions = {}) =>
        new Promise((resolve, reject) => {
          asked.push({ method, params, once: options.once === true, resolve, reject });
        }),
      notify: (method: string, params: Record<string, unknown>) => {
        notified.push([method, params]);
      },
    };
    feed = new Feed(server as unknown as Supervisor, log);
  });

  const follower = (more: Partial<Follow> = {}): Follow => ({
    scope: { kind: "session", id: "ses_1" },
    cursor: "store.5",
    deltas: true,
    onEvents: (events, batch) => {
      seen.push(...events, batch.cursor);
    },
    onDelta: ({ text }) => {
      seen.push(`delta ${text}`);
    },
    onLive: () => {
      seen.push("live");
    },
    onLost: (fault) => {
      seen.push(`lost ${fault.kind ?? fault.message}`);
    },
    ...more,
  });

  /** The last request that was made. */
  function last(): Asked {
    const request = asked.at(-1);
    assert.ok(request, "nothing was asked");
    return request;
  }

  async function answer(id: string, cursor = last().params["from"] as string): Promise<void> {
    last().resolve({ subscriptionId: id, cursor, head: "store.9" });
    await settled();
  }

  /** Events are words here. */
  function batch(subscriptionId: string, cursor: string, events: string[]): boolean {
    const told = { subscriptionId, cursor, events: events as unknown as Event[] };
    return feed.notification("event/batch", told);
  }

  const acks = (): string[] =>
    notified.map(([method, { subscriptionId, cursor }]) => {
      assert.equal(method, "event/ack");
      return `${subscriptionId as string} ${cursor as string}`;
    });

  /** A server died, and another one is there. */
  async function restart(): Promise<void> {
    state = "waiting";
    for (const request of asked.splice(0)) {
      if (request.once) {
        request.reject(new CallError(0, "gone", { kind: "serverGone" }));
      }
    }
    await settled();
    state = "ready";
    feed.resume();
  }

  it("asks for what it wants", () => {
    feed.follow(follower({ types: ["turn_finished"] }));
    assert.equal(last().method, "event/subscribe");
    assert.deepEqual(last().params, {
      scope: { kind: "session", id: "ses_1" },
      from: "store.5",
      types: ["turn_finished"],
      deltas: true,
    });
    assert.equal(last().once, true);
  });

  it("says when it wants no deltas: the server sends them unless it is told", () => {
    feed.follow({ scope: { kind: "catalog" }, cursor: "now", onEvents: () => undefined });
    assert.deepEqual(last().params, { scope: { kind: "catalog" }, from: "now", deltas: false });
  });

  it("tells events and acknowledges each batch after it was handled", async () => {
    feed.follow(
      follower({
        onEvents: (events) => {
          assert.deepEqual(notified, []);
          seen.push(...events);
        },
      }),
    );
    await answer("sub_1");
    assert.equal(batch("sub_1", "store.7", ["six", "seven"]), true);
    assert.deepEqual(seen, ["live", "six", "seven"]);
    assert.deepEqual(acks(), ["sub_1 store.7"]);
  });

  it("acknowledges what could not be handled, and logs that it could not", async () => {
    const broken = (): void => {
      throw new Error("broken");
    };
    feed.follow(follower({ onEvents: broken, onLive: broken, onDelta: broken }));
    await answer("sub_1");
    batch("sub_1", "store.7", ["seven"]);
    feed.notification("event/delta", { subscriptionId: "sub_1", text: "x" });
    assert.deepEqual(acks(), ["sub_1 store.7"]);
    assert.equal(log.of("error").filter((line) => line.includes("broken")).length, 3);
  });

  it("waits for a server where there is none", () => {
    state = "starting";
    feed.follow(follower());
    assert.deepEqual(asked, []);
    state = "ready";
    feed.resume();
    assert.equal(asked.length, 1);
    assert.equal(last().params["from"], "store.5");
  });

  it("goes on at a new server from where it was", async () => {
    feed.follow(follower());
    await answer("sub_1");
    batch("sub_1", "store.7", ["six", "seven"]);
    await restart();
    assert.equal(last().params["from"], "store.7");
    await answer("sub_1", "store.7"); // the new server counts anew
    batch("sub_1", "store.8", ["eight"]);
    assert.deepEqual(seen, ["live", "six", "seven", "store.7", "live", "eight", "store.8"]);
  });

  it("goes on from its beginning when the server died before it answered", async () => {
    feed.follow(follower());
    await restart();
    assert.equal(asked.length, 1);
    assert.equal(last().params["from"], "store.5");
    await answer("sub_1");
    assert.deepEqual(seen, ["live"]);
  });

  it("from now on means from when that was asked, also at the next server", async () => {
    feed.follow(follower({ cursor: "now" }));
    await answer("sub_1", "store.20");
    await restart();
    assert.equal(last().params["from"], "store.20");
  });

  it("does not mix up the answers of two servers", async () => {
    feed.follow(follower());
    const first = last();
    feed.resume();
    await answer("sub_2");
    first.resolve({ subscriptionId: "sub_1", cursor: "store.5" });
    await settled();
    assert.equal(last().method, "event/unsubscribe");
    assert.deepEqual(last().params, { subscriptionId: "sub_1" });
    batch("sub_1", "store.6", ["twice"]);
    batch("sub_2", "store.6", ["six"]);
    assert.deepEqual(seen, ["live", "six", "store.6"]);
  });

  it("does not take the fault of the last server for one of this", async () => {
    feed.follow(follower());
    const first = last();
    feed.resume();
    first.reject(new CallError(-31009, "of another store", { kind: "invalidCursor" }));
    await answer("sub_2");
    assert.deepEqual(seen, ["live"]);
  });

  for (const reason of ["slow", "store"]) {
    it(`goes on after a reset: ${reason}`, async () => {
      feed.follow(follower());
      await answer("sub_1");
      batch("sub_1", "store.7", ["seven"]);
      feed.notification("event/reset", {
        subscriptionId: "sub_1",
        reason,
        resumeFrom: "store.6",
      });
      assert.equal(last().method, "event/subscribe");
      assert.equal(last().params["from"], "store.6");
      await answer("sub_2", "store.6");
      batch("sub_1", "store.9", ["late"]);
      batch("sub_2", "store.8", ["eight"]);
      assert.deepEqual(seen, ["live", "seven", "store.7", "live", "eight", "store.8"]);
    });
  }

  it("goes on at the next server after a reset for a shutdown", async () => {
    feed.follow(follower());
    await answer("sub_1");
    feed.notification("event/reset", {
      subscriptionId: "sub_1",
      reason: "shutdown",
      resumeFrom: "store.6",
    });
    assert.equal(asked.length, 1);
    await restart();
    assert.equal(last().params["from"], "store.6");
  });

  it("tells who follows when its cursor is of no use, and is over", async () => {
    feed.follow(follower());
    last().reject(new CallError(-31009, "of another store", { kind: "invalidCursor" }));
    await settled();
    assert.deepEqual(seen, ["lost invalidCursor"]);
    await restart();
    assert.deepEqual(asked, []);
  });

  it("asks again by itself while the store can do nothing for a while, and no more when it is closed", async () => {
    mock.timers.enable({ apis: ["setTimeout"] });
    try {
      const full = new CallError(-31605, "the disk is full", {
        kind: "storeFull",
        retryable: true,
      });
      const close = feed.follow(
        follower({ onStalled: (fault) => void seen.push(`stalled ${fault.kind ?? ""}`) }),
      );
      for (const wait of [...AGAIN_MS, AGAIN_MS.at(-1) ?? 0]) {
        const before = asked.length;
        last().reject(full);
        await settled();
        mock.timers.tick(wait - 1);
        assert.equal(asked.length, before);
        mock.timers.tick(1);
        assert.equal(asked.length, before + 1);
      }
      last().resolve({ subscriptionId: "sub_1", cursor: "store.5" });
      await settled();
      assert.deepEqual(seen, [...Array<string>(6).fill("stalled storeFull"), "live"]);
      feed.resume();
      last().reject(full);
      await settled();
      const before = asked.length;
      close();
      mock.timers.tick(60_000);
      assert.equal(asked.length, before);
    } finally {
      mock.timers.reset();
    }
  });

  it("tells who follows when the answer cannot be read", async () => {
    feed.follow(follower());
    last().resolve({ subscriptionId: 7, cursor: null });
    await settled();
    assert.deepEqual(seen, ["lost unreadable"]);
  });

  it("keeps what came before the answer was handled", async () => {
    feed.follow(follower());
    batch("sub_1", "store.6", ["six"]);
    feed.notification("event/delta", { subscriptionId: "sub_1", text: "x" });
    batch("sub_1", "store.7", ["seven"]);
    assert.deepEqual(seen, []);
    assert.deepEqual(acks(), []);
    await answer("sub_1");
    assert.deepEqual(seen, ["live", "six", "store.6", "seven", "store.7"]);
    assert.deepEqual(acks(), ["sub_1 store.6", "sub_1 store.7"]);
  });

  it("tells deltas", async () => {
    feed.follow(follower());
    await answer("sub_1");
    assert.equal(feed.notification("event/delta", { subscriptionId: "sub_1", text: "x" }), true);
    assert.deepEqual(seen, ["live", "delta x"]);
  });

  it("leaves other notifications to others", () => {
    assert.equal(feed.notification("window/logMessage", { message: "x" }), false);
    assert.equal(batch("unknown", "store.1", []), true);
    assert.equal(feed.notification("event/delta", { text: "of nobody" }), true);
    assert.equal(feed.notification("event/batch", { subscriptionId: 7 }), true);
  });

  it("stumbles over no batch or reset that has another shape", async () => {
    feed.follow(follower());
    await answer("sub_1");
    feed.notification("event/batch", { subscriptionId: "sub_1", events: 7, cursor: null });
    feed.notification("event/batch", { subscriptionId: "sub_1", events: [], cursor: "store.8" });
    feed.notification("event/reset", { subscriptionId: "sub_1", reason: {}, resumeFrom: 7 });
    assert.equal(last().params["from"], "store.8");
  });

  it("ends when it is closed", async () => {
    const close = feed.follow(follower());
    await answer("sub_1");
    close();
    close();
    assert.equal(last().method, "event/unsubscribe");
    assert.equal(asked.length, 2);
    batch("sub_1", "store.6", ["late"]);
    feed.notification("event/delta", { subscriptionId: "sub_1", text: "late" });
    await restart();
    assert.deepEqual(asked, []);
    assert.deepEqual(seen, ["live"]);
  });

  it("ends when it is closed before the answer", async () => {
    const close = feed.follow(follower());
    close();
    await answer("sub_1");
    assert.equal(last().method, "event/unsubscribe");
    batch("sub_1", "store.6", ["late"]);
    assert.deepEqual(seen, []);
  });

  it("ends when it is closed by what an event does", async () => {
    let close = (): void => undefined;
    close = feed.follow(
      follower({
        onEvents: () => {
          close();
        },
      }),
    );
    await answer("sub_1");
    batch("sub_1", "store.6", ["six"]);
    assert.deepEqual(acks(), []);
  });

  it("of several is told apart", async () => {
    feed.follow(follower());
    await answer("sub_1");
    const other: unknown[] = [];
    feed.follow(
      follower({
        onEvents: (events) => {
          other.push(...events);
        },
      }),
    );
    await answer("sub_2");
    batch("sub_2", "store.6", ["for the second"]);
    batch("sub_1", "store.6", ["for the first"]);
    assert.deepEqual(other, ["for the second"]);
    assert.deepEqual(seen, ["live", "live", "for the first", "store.6"]);
    await restart();
    assert.equal(asked.length, 2);
  });
});
