import type { Event, JsonObject } from "@callboard/protocol";
import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import type { App } from "../../src/app";
import { ChangesInUse, watchWrites, type Tracked } from "../../src/changes";
import { guard } from "../../src/listeners";
import type { ChangedFile } from "../../src/model/changes";
import { newReview, noteVerdict, readReview, verdictOf, writeReview } from "../../src/model/review";
import { newSessions } from "../../src/model/store";
import { CallError } from "../../src/server/errors";
import type { Follow } from "../../src/server/feed";

let position: number;
let following: Follow;
let closed: number;
let asked: { method: string; params: JsonObject }[];
let answers: Record<string, (params: JsonObject) => unknown>;
let app: App;
/** Tells of the server's state. */
let changed: () => void;

/** As much of an app as changes need. */
function fakeApp(): App {
  const log = { error() {}, warn() {}, info() {}, debug() {}, trace() {} };
  const request = (method: string, params: JsonObject): Promise<unknown> => {
    asked.push({ method, params });
    return new Promise((resolve) => {
      resolve(answers[method]?.(params));
    });
  };
  return {
    log,
    server: { state: "ready" },
    on: (_topic: string, listener: () => void) => {
      changed = listener;
      return () => {
        changed = () => undefined;
      };
    },
    sessions: newSessions(),
    feed: {
      follow: (wanted: Follow) => {
        following = wanted;
        return () => {
          closed += 1;
        };
      },
    },
    request,
    change: request,
    guard: (fn: () => void) => guard(log, fn),
  } as unknown as App;
}

/** The server has ended for good. */
function fail(): void {
  Object.assign(app, {
    server: { state: "failed", failure: { message: "it has ended", lines: [] } },
  });
  changed();
}

function event(type: string, data: unknown, sessionId = "root"): Event {
  position += 1;
  const at = "2000-01-01T00:00:00Z";
  return { type, sessionId, seq: position, pos: position, eventId: "", at, data } as Event;
}

function wrote(path: string, more: object = {}, sessionId?: string): Event {
  const change = {
    ...{ path, operation: "modify", added: 1, removed: 1 },
    ...{ diff: "--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n", ...more },
  };
  return event("tool_result", { callId: "c", changes: [change] }, sessionId);
}

function created(): Event {
  return event("session_created", { cwd: "/ws", additionalDirectories: ["/lib"], title: "Tidy" });
}

function arrive(events: Event[], caughtUp = true): void {
  const batch = { subscriptionId: "s", events, cursor: "c", replay: false, caughtUp };
  following.onEvents(events, batch);
}

function file(tracked: Tracked, path: string): ChangedFile {
  const found = tracked.file(path);
  assert.ok(found, `no ${path}`);
  return found;
}

function use(id = "root"): Tracked {
  return new ChangesInUse(app).use(id);
}

beforeEach(() => {
  position = 0;
  closed = 0;
  asked = [];
  answers = {};
  app = fakeApp();
});

describe("the changes of a session", () => {
  it("are followed once, from the beginning, for as long as anybody looks", () => {
    const changes = new ChangesInUse(app);
    const first = changes.use("root");
    assert.equal(changes.use("root"), first);
    assert.deepEqual([following.scope, following.cursor], [{ kind: "tree", id: "root" }, "start"]);
    changes.release(first);
    assert.equal(closed, 0);
    changes.release(first);
    assert.equal(closed, 1);
  });

  it("of an agent are its own", () => {
    app.sessions.byId.set("agent", { sessionId: "agent", parentId: "root" } as never);
    use("agent");
    assert.deepEqual(following.scope, { kind: "session", id: "agent" });
  });

  it("are loaded once all was read, and whoever waits hears of it then", async () => {
    const tracked = use();
    let heard = 0;
    const waiting = tracked.whenLoaded().then(() => {
      heard += 1;
    });
    arrive([created(), wrote("/ws/f")], false);
    await Promise.resolve();
    assert.deepEqual([heard, tracked.loaded], [0, false]);
    arrive([], true);
    await waiting;
    arrive([wrote("/ws/g")]);
    assert.deepEqual([heard, tracked.loaded, tracked.files().length], [1, true, 2]);
  });

  it("are told from where the session works, and with the agents that made them", () => {
    const tracked = use();
    arrive([
      created(),
      event("agent_spawned", { name: "scout", session: { cwd: "/tree" } }, "agent"),
      wrote("/ws/src/f"),
      wrote("/tree/g", {}, "agent"),
    ]);
    assert.deepEqual(
      ["/ws/src/f", "/tree/g", "/wsx/f", "/ws"].map((path) => tracked.short(path)),
      ["src/f", "/tree/g", "/wsx/f", "/ws"],
    );
    assert.deepEqual(tracked.foldersOf(file(tracked, "/ws/src/f")), ["/ws", "/lib"]);
    assert.deepEqual(tracked.foldersOf(file(tracked, "/tree/g")), ["/tree"]);
    assert.deepEqual(tracked.agentsOf(file(tracked, "/tree/g")), ["scout"]);
    assert.equal(tracked.title, "Tidy");
  });

  it("are those that can be read, whatever else comes", () => {
    const tracked = use();
    arrive([
      event("session_created", null),
      event("session_updated", { changes: null }),
      event("agent_spawned", { name: 3 }, "agent"),
      event("tool_result", { changes: [null, { path: 7 }] }),
      wrote("/ws/f"),
    ]);
    assert.deepEqual(
      tracked.files().map((each) => each.path),
      ["/ws/f"],
    );
  });

  it("say that the session is gone", async () => {
    const tracked = use();
    following.onLost?.(new CallError(0, "no such session", { kind: "sessionNotFound" }));
    await tracked.whenLoaded();
    assert.match(tracked.fault ?? "", /no such session/);
  });

  it("come one after another, round and round, as long as they are new", async () => {
    answers["session/get"] = () => ({ session: {} });
    const tracked = use();
    arrive([created(), wrote("/ws/a"), wrote("/ws/b"), wrote("/ws/c")]);
    assert.deepEqual(
      ["/ws/a", "/ws/c", "", "/ws/z"].map((path) => tracked.next(path)?.path),
      ["/ws/b", "/ws/a", "/ws/a", "/ws/a"],
    );
    await tracked.settle([file(tracked, "/ws/a"), file(tracked, "/ws/b")], "accepted");
    assert.equal(tracked.next("/ws/c"), undefined);
  });
});

describe("doing something with the changes of a session", () => {
  it("waits until all was read, and lets go of them", async () => {
    const changes = new ChangesInUse(app);
    const count = changes.with("root", (tracked) => tracked.files().length);
    arrive([created(), wrote("/ws/f")]);
    assert.equal(await count, 1);
    assert.equal(closed, 1);
  });

  it("fails where there is no server", async () => {
    answers["session/get"] = () => {
      throw new CallError(0, "no server was found", { kind: "noServer" });
    };
    const changes = new ChangesInUse(app);
    await assert.rejects(
      changes.with("root", () => undefined),
      /no server was found/,
    );
    assert.equal(closed, 1);
  });
});

describe("what waits for changes when the server fails for good", () => {
  let acted: number;
  let act: () => number;

  beforeEach(() => {
    acted = 0;
    act = () => (acted += 1);
  });

  it("is refused, and not done after a later start", async () => {
    const changes = new ChangesInUse(app);
    const use = changes.use("root"); // as the list does, that stays there
    const doing = changes.with("root", act);
    arrive([created(), wrote("/ws/f")], false);
    fail();
    await assert.rejects(doing, /Nothing was done: it has ended/);
    arrive([]);
    await use.whenLoaded();
    assert.deepEqual([use.loaded, acted], [true, 0]);
  });

  it("is refused at once where it has failed before", async () => {
    const tracked = use();
    fail();
    await assert.rejects(tracked.whenLoaded(), /Nothing was done: it has ended/);
  });
});

describe("a large diff", () => {
  it("is read whole, in as many pieces as it takes", async () => {
    const whole = Buffer.from("ä".repeat(10));
    answers["blob/read"] = ({ offset }) => {
      const piece = whole.subarray(Number(offset), Number(offset) + 3);
      const eof = Number(offset) + piece.length === whole.length;
      return { dataBase64: piece.toString("base64"), eof };
    };
    const tracked = use();
    const large = wrote("/ws/f", { diff: "xx…" });
    Object.assign(large.data as object, { _blobs: { "/changes/0/diff": { blobId: "blob_1" } } });
    arrive([large]);
    const [step] = file(tracked, "/ws/f").chain;
    assert.ok(step?.blob);
    await tracked.whole([file(tracked, "/ws/f")]);
    assert.deepEqual([step.change.diff, step.blob, asked.length], ["ä".repeat(10), undefined, 7]);
  });
});

describe("what is said of changes", () => {
  let metadata: JsonObject;

  beforeEach(() => {
    metadata = { mine: ["kept"] };
    answers["session/get"] = ({ sessionId }) => ({ session: { sessionId, metadata } });
    answers["session/update"] = (params) => {
      metadata = JSON.parse(JSON.stringify(params["metadata"])) as JsonObject;
      return { session: {} };
    };
  });

  it("stands in the metadata of the session, beside what else is there", async () => {
    const tracked = use();
    arrive([created(), wrote("/ws/f"), wrote("/ws/g")]);
    await tracked.settle([file(tracked, "/ws/g")], "accepted");
    assert.deepEqual(metadata["mine"], ["kept"]);
    const kept = readReview(metadata, "root");
    assert.deepEqual(
      [kept.through, [...kept.files]],
      [1, [["/ws/g", { through: 3, verdict: "accepted" }]]],
    );
    assert.equal(file(tracked, "/ws/g").state, "accepted");
    assert.deepEqual(
      asked.map(({ method }) => method),
      ["session/get", "session/update"],
    );
  });

  it("adds to what another editor said in the meantime", async () => {
    const tracked = use();
    arrive([created(), wrote("/ws/f"), wrote("/ws/g")]);
    const other = newReview();
    noteVerdict(other, "/ws/f", 2, "rejected");
    metadata = writeReview(metadata, "root", other);
    await tracked.settle([file(tracked, "/ws/g")], "accepted");
    const kept = readReview(metadata, "root");
    assert.equal(kept.files.get("/ws/f")?.verdict, "rejected");
    assert.equal(verdictOf(kept, "/ws/g", 3), "accepted");
  });

  describe("while another editor writes between its reading and its writing", () => {
    let head: number;
    let writers: (() => JsonObject)[];

    beforeEach(() => {
      head = 7;
      writers = [];
      answers["session/get"] = () => {
        const session = { sessionId: "root", metadata, headSeq: head };
        const other = writers.shift();
        if (other) {
          metadata = other();
          head += 1;
        }
        return { session };
      };
      answers["session/update"] = (params) => {
        if (Number(params["ifUnchangedSince"]) < head) {
          throw new CallError(0, "it was changed", { kind: "sessionChanged" });
        }
        metadata = JSON.parse(JSON.stringify(params["metadata"])) as JsonObject;
        head += 1;
        return { session: {} };
      };
    });

    const reject = (path: string, seq: number) => (): JsonObject => {
      const other = readReview(metadata, "root");
      noteVerdict(other, path, seq, "rejected");
      return writeReview(metadata, "root", other);
    };

    it("loses nothing of what either said", async () => {
      const tracked = use();
      arrive([created(), wrote("/ws/f"), wrote("/ws/g"), wrote("/ws/h")]);
      writers = [reject("/ws/f", 2), reject("/ws/h", 4)];
      await tracked.settle([file(tracked, "/ws/g")], "accepted");
      const kept = readReview(metadata, "root");
      assert.deepEqual(
        ["/ws/f", "/ws/g", "/ws/h"].map((path, i) => verdictOf(kept, path, i + 2)),
        ["rejected", "accepted", "rejected"],
      );
      assert.deepEqual(metadata["mine"], ["kept"]);
    });

    it("fails when that has no end", async () => {
      const tracked = use();
      arrive([created(), wrote("/ws/f"), wrote("/ws/g")]);
      writers = Array.from({ length: 100 }, () => reject("/ws/f", 2));
      await assert.rejects(tracked.settle([file(tracked, "/ws/g")], "accepted"), /it was changed/);
      assert.equal(writers.length, 80);
    });
  });

  it("is heard when it is said elsewhere", () => {
    const tracked = use();
    arrive([created(), wrote("/ws/f")]);
    const review = newReview();
    noteVerdict(review, "/ws/f", 2, "rejected");
    const changes = { metadata: writeReview(undefined, "root", review) };
    arrive([event("session_updated", { changes })]);
    assert.equal(file(tracked, "/ws/f").state, "rejected");
  });

  it("fails when it cannot be kept", async () => {
    answers["session/update"] = () => {
      throw new CallError(0, "the store is full", { kind: "storeFull" });
    };
    const tracked = use();
    arrive([created(), wrote("/ws/f")]);
    await assert.rejects(tracked.settle([file(tracked, "/ws/f")], "accepted"), /store is full/);
    assert.equal(file(tracked, "/ws/f").state, "new");
  });

  it("goes to each session whose change it is about", async () => {
    const tracked = use();
    arrive([created(), wrote("/ws/f"), wrote("/ws/f", {}, "agent")]);
    await tracked.settle([file(tracked, "/ws/f")], "accepted");
    const updated = asked.filter(({ method }) => method === "session/update");
    assert.deepEqual(updated.map(({ params }) => params["sessionId"]).sort(), ["agent", "root"]);
  });
});

describe("files that a session writes", () => {
  it("are told from now on, each once", () => {
    const told: (readonly string[])[] = [];
    watchWrites(app, "root", (paths) => told.push(paths));
    assert.equal(following.cursor, "now");
    arrive([
      wrote("/ws/f"),
      wrote("/ws/f"),
      wrote("/ws/g", { oldPath: "/ws/old" }),
      event("tool_result", { changes: null }),
    ]);
    arrive([event("tool_result", {})]);
    assert.deepEqual(told, [["/ws/f", "/ws/g", "/ws/old"]]);
  });
});
