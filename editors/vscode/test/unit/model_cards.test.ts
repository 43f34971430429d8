// What a page of a chat is told of a transcript.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import type { ToolCall, ToolResult } from "@callboard/protocol";

import { card, lookOf, planCard, queueCards, type CardLook } from "../../src/model/cards";
import { newTranscript, type Item } from "../../src/model/items";
import { addOutgoing, newOutbox } from "../../src/model/queue";
import type { Card } from "../../src/shared/chat";
import { events, names, said, transcript } from "./recorded";
import { approval, session } from "./wire";

const LOOK: CardLook = {
  agent: "default",
  room: false,
  speakers: new Map([["trn_1", "alpha"]]),
  cwd: "/project",
};

function item(kind: Item["kind"], fields: Partial<Item> = {}): Item {
  return { id: "x", kind, seq: 1, placed: 1, at: "", text: "", ...fields };
}

function of<K extends Card["kind"]>(
  kind: K,
  fields: Partial<Item> = {},
  look: Partial<CardLook> = {},
  before?: Item,
): Card & { kind: K } {
  const shown = card(item(kind, fields), before, { ...LOOK, ...look });
  assert.equal(shown.kind, kind);
  return shown as Card & { kind: K };
}

function tool(
  call: Partial<ToolCall> | undefined,
  result?: Partial<ToolResult>,
  more: Partial<Item> = {},
): Extract<Card, { kind: "tool" }> {
  return of("tool", {
    call: call && {
      callId: "x",
      messageId: "m",
      name: "run",
      title: "Do it",
      arguments: {},
      ...call,
    },
    ...(result ? { result: { callId: "x", name: "run", status: "ok", text: "", ...result } } : {}),
    text: result?.text ?? "",
    ...more,
  });
}

const numbers = (to: number): string => Array.from({ length: to }, (_, i) => i + 1).join("\n");

describe("a heading", () => {
  it("names who speaks only where another one begins to", () => {
    const speaker = (before?: Item): string | undefined => of("answer", {}, {}, before).speaker;
    assert.equal(speaker(), "Agent");
    assert.equal(speaker(item("tool")), undefined);
    assert.equal(speaker(item("prompt")), "Agent");
    assert.equal(speaker(item("notice")), "Agent");
    assert.equal(of("prompt", {}, {}, item("prompt")).speaker, "You");
    assert.equal(of("notice").speaker, undefined);
    assert.equal(of("answer", {}, { agent: "reviewer" }).speaker, "reviewer");
  });

  it("tells the members of a room apart", () => {
    const one = item("answer", { turnId: "trn_1" });
    assert.equal(card(one, undefined, { ...LOOK, room: true }).speaker, "alpha");
    const author = { kind: "agent", name: "beta" };
    assert.equal(of("answer", { author }, { room: true }, one).speaker, "beta");
    assert.equal(
      of("answer", { author }, { room: true }, item("tool", { author })).speaker,
      undefined,
    );
  });

  it("says who wrote what no person wrote", () => {
    const speaker = (kind: string, name: string, id?: string): string | undefined =>
      of("prompt", { author: { kind, name, id: id ?? null } }, { parent: "ses_1" }).speaker;
    assert.equal(speaker("agent", "lead", "ses_1"), "From its parent");
    assert.equal(speaker("agent", "lead", "ses_2"), "From lead");
    assert.equal(speaker("peer", "one"), "From peer one");
    assert.equal(speaker("schedule", "nightly"), "From schedule nightly");
    assert.equal(speaker("system", "system"), "From the system");
    assert.equal(speaker("person", "ann"), "You");
  });

  it("takes off the frame that is for the model, and says what it was", () => {
    const text =
      '<agent-report agent="a" status="completed">\n1 &lt; 2\n</agent-report>\nFor the model.';
    const report = of("prompt", { text, author: { kind: "agent", name: "a" } });
    assert.equal(report.speaker, "From a (report, completed)");
    assert.equal(report.text, "1 < 2");
    // A person may write what they like, and see it.
    const mine = of("prompt", { text });
    assert.deepEqual([mine.speaker, mine.text], ["You", text]);
  });
});

describe("how a session is shown", () => {
  it("is told by what the store says of it", () => {
    const t = newTranscript("ses_1");
    assert.deepEqual(lookOf(undefined, t), { agent: "default", room: false, speakers: t.speakers });
    const child = session({ parentId: "ses_0", title: "docs", members: ["beta"] });
    assert.deepEqual(lookOf(child, t), {
      agent: "docs",
      room: true,
      speakers: t.speakers,
      cwd: "/home/ada/project",
      parent: "ses_0",
    });
    assert.equal(lookOf(session({ profile: "reviewer", title: "T" }), t).agent, "reviewer");
  });
});

describe("a prompt", () => {
  it("is told whole, with what went along", () => {
    const shown = of("prompt", {
      text: "\n \n  one\ntwo \n\n",
      at: "2030-01-01T00:00:00Z",
      turnId: "trn_1",
      steer: true,
      attachments: [
        "image (image/png)",
        "file:///project/a%20b.py#L3-5",
        "file:///elsewhere/c",
        "file://host/share",
        "https://x/#y",
      ],
      blobs: { "/content/0/text": { blobId: "b", bytes: 9 } },
    });
    assert.deepEqual(shown, {
      id: "x",
      kind: "prompt",
      speaker: "You",
      at: "2030-01-01T00:00:00Z",
      text: "  one\ntwo",
      turnId: "trn_1",
      steer: true,
      attachments: [
        "image (image/png)",
        { label: "a b.py (L3-5)", path: "/project/a b.py", line: 3 },
        { label: "/elsewhere/c", path: "/elsewhere/c" },
        "file://host/share",
        "https://x/#y",
      ],
      cut: true,
    });
  });
});

describe("an answer", () => {
  it("that streams is told as far as nothing of it can change", () => {
    assert.equal(of("answer", { text: "\n a\r", streaming: true }).text, "\n a");
    assert.equal(of("answer", { text: "a\ud83d", streaming: true }).text, "a");
    assert.equal(of("thought", { text: "a \r\n", streaming: true }).text, "a \n");
  });

  it("that is there says whether it was cut off, or is not all here", () => {
    const shown = of("answer", {
      text: "\na \n",
      partial: true,
      blobs: { "/content/0/text": { blobId: "b", bytes: 9 } },
    });
    assert.deepEqual(
      [shown.text, shown.streaming, shown.partial, shown.cut],
      ["a", false, true, true],
    );
    const other = of("answer", { text: "a" });
    assert.deepEqual([other.partial, other.cut], [false, false]);
  });
});

describe("a tool call", () => {
  it("says in words what came of it", () => {
    const told = {
      ok: ["ok", "done"],
      error: ["failed", "failed"],
      denied: ["stopped", "denied"],
      timed_out: ["failed", "timed out"],
      cancelled: ["stopped", "stopped"],
      interrupted: ["stopped", "interrupted"],
      superseded: ["stopped", "superseded"],
      exploded: ["failed", "exploded"],
      constructor: ["failed", "constructor"],
    };
    for (const [status, [tone, state]] of Object.entries(told)) {
      const shown = tool({}, { status });
      assert.deepEqual([shown.tone, shown.state], [tone, state]);
    }
    assert.deepEqual([tool({}).tone, tool({}).state], ["running", "running"]);
    assert.equal(tool({}, undefined, { partial: true }).state, "cut off");
    const asks = tool({}, undefined, { approval: approval("a") });
    assert.deepEqual([asks.tone, asks.state], ["waiting", "waits for you"]);
    assert.equal(asks.approval?.approvalId, "a");
    // Where the call has come to its end, nothing is asked for any more.
    assert.equal(
      tool({}, { status: "cancelled" }, { approval: approval("a") }).approval,
      undefined,
    );
    const expired = { approval: approval("a", { state: "expired" }) };
    assert.equal(tool({}, { status: "cancelled" }, expired).approval?.answered, "Expired");
  });

  it("has its exit code, and how long it took", () => {
    const failed = tool({}, { status: "error", exitCode: 3, durationMs: 4200 });
    assert.deepEqual([failed.state, failed.duration], ["failed, exit 3", "4 s"]);
    const quick = tool({}, { exitCode: 0, durationMs: 20 });
    assert.deepEqual([quick.state, quick.duration], ["done", undefined]);
  });

  it("has a title in any case", () => {
    assert.equal(tool({ title: " " }).title, "run");
    assert.equal(tool(undefined, { name: "fetch" }).title, "fetch");
    assert.equal(tool(undefined).title, "a tool");
    assert.equal(tool({ title: "x".repeat(500) }).title.length, 160);
  });

  it("cuts what was read at its end, and the output of a command at its beginning", () => {
    const text = numbers(30);
    const read = tool({ kind: "read" }, { text }).output;
    assert.deepEqual(
      [read?.lines[0], read?.lines.length, read?.above, read?.below],
      ["1", 25, 0, 5],
    );
    const ran = tool({ kind: "execute" }, { text }).output;
    assert.deepEqual([ran?.lines[0], ran?.lines.length, ran?.above, ran?.below], ["6", 25, 5, 0]);
    assert.equal(ran?.cut, false);
    const more = { blobs: { "/text": { blobId: "b", bytes: 9 } } };
    assert.equal(tool({}, { text: "x" }, more).output?.cut, true);
    assert.equal(tool({}, { text: "\n" }).output, undefined);
  });

  it("shows the end of what a running tool prints", () => {
    const shown = tool({}, undefined, { text: numbers(100_000), at: "2030-01-01T00:00:00Z" });
    assert.equal(shown.output?.lines.length, 8);
    assert.equal(shown.output.lines.at(-1), "100000");
    assert.equal(shown.output.cut, true);
    assert.equal(shown.startedAt, "2030-01-01T00:00:00Z");
  });

  it("shows a change as a diff, and counts it", () => {
    const diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n";
    const change = { path: "/project/x", diff, added: 1, removed: 1, operation: "modify" };
    const shown = tool({}, { text: "Changed", changes: [change] });
    assert.equal(shown.output, undefined);
    assert.deepEqual(shown.changes, [
      {
        file: { label: "x", path: "/project/x" },
        operation: "modify",
        added: 1,
        removed: 1,
        diff: { lines: ["@@ -1 +1 @@", "-old", "+new"], above: 0, below: 0, cut: false },
        verdict: "pending",
      },
    ]);
    const long = { ...change, diff: numbers(90), truncated: true, oldPath: "/project/y" };
    const [first] = tool({}, { changes: [long, long, long, long, long] }).changes;
    assert.deepEqual([first?.diff.lines.length, first?.diff.below], [5, 85]);
    assert.deepEqual([first?.diff.cut, first?.from], [true, "y"]);
  });

  it("of the plan is its title alone", () => {
    assert.equal(tool({ name: "update_plan" }, { text: "Updated" }).output, undefined);
    assert.ok(tool({ name: "update_plan" }, { status: "error", text: "no" }).output);
  });

  it("names the files that it was about, each once", () => {
    const locations = [{ path: "/project/a", line: 3 }, { path: "/b" }, { path: "/b" }];
    assert.deepEqual(tool({ locations }).files, [
      { label: "a:3", path: "/project/a", line: 3 },
      { label: "/b", path: "/b" },
    ]);
  });
});

describe("what went wrong", () => {
  const failure = { kind: "authRequired", message: "no key", provider: "p", httpStatus: 401 };

  it("is told with the way out, and with what it was", () => {
    const shown = of("error", { text: "no key", failure: { ...failure, retryable: true } });
    assert.match(shown.text, /^no key\n.*Doctor/);
    assert.deepEqual([shown.about, shown.retryable], ["authRequired, p, HTTP 401", true]);
    assert.equal(of("error", { text: " " }).text, "the server gave no reason");
  });

  it("offers to set up a model where none can be used, and nowhere else", () => {
    const setup = (kind: string): unknown =>
      of("error", { text: "no", failure: { ...failure, kind } }).setup;
    assert.deepEqual(["authRequired", "modelUnavailable", "modelError"].map(setup), [
      true,
      true,
      undefined,
    ]);
    const turn = { outcome: "failed", failure, turnId: "trn_1" } as const;
    assert.equal(of("turn", turn).failure?.setup, true);
  });

  it("stands at the end of a turn only where nothing has told it", () => {
    const turn = { outcome: "failed", failure, durationMs: 12_000, turnId: "trn_1" } as const;
    const shown = of("turn", { ...turn, usage: { inputTokens: 3100, outputTokens: 200 } });
    assert.deepEqual(
      [shown.tone, shown.text, shown.turnId],
      ["failed", "failed · 12 s · 3.1k in, 200 out", "trn_1"],
    );
    assert.match(shown.failure?.text ?? "", /^no key/);
    assert.equal(of("turn", turn, {}, item("error")).failure, undefined);
    assert.deepEqual(of("turn", { outcome: "completed" }).tone, "ok");
    assert.deepEqual(of("turn", { outcome: "slept\n" }).text, "slept");
    assert.deepEqual(of("turn", { outcome: "slept\n" }).tone, "plain");
  });
});

describe("the plan", () => {
  it("is told while something is left of it, or a turn runs", () => {
    const t = newTranscript("ses_1");
    assert.equal(planCard(t), undefined);
    t.plan = [
      { content: "one\n", status: "completed" },
      { content: "two", status: "in_progress", priority: "high" },
      { content: "three", status: "somehow" },
    ];
    assert.deepEqual(planCard(t), {
      done: 1,
      entries: [
        { text: "one", status: "completed", high: false },
        { text: "two", status: "in_progress", high: true },
        { text: "three", status: "pending", high: false },
      ],
    });
    t.plan = t.plan.slice(0, 1);
    assert.equal(planCard(t), undefined);
    t.turn = { id: "trn_1", state: "running", cancelling: false };
    assert.equal(planCard(t)?.done, 1);
  });
});

describe("what waits", () => {
  it("is told in order, and what of it can be changed", () => {
    const t = newTranscript("ses_1");
    const person = { kind: "person", name: "ann" };
    t.queue = [
      item("prompt", { id: "m1", seq: 4, text: "one", author: person, trigger: "prompt" }),
      item("prompt", {
        id: "m2",
        seq: 5,
        text: "two",
        author: { kind: "agent", name: "lead" },
        trigger: "directive",
        attachments: ["file:///project/a#L1-2"],
      }),
      item("prompt", {
        id: "m3",
        seq: 6,
        text: "three",
        author: person,
        trigger: "prompt",
        steer: true,
        blobs: { "/content/0/text": { blobId: "b", bytes: 9 } },
      }),
    ];
    const outbox = newOutbox();
    addOutgoing(outbox, { key: "k1", text: `🙂${"x".repeat(1_000_000)}`, delivery: "steer" });
    const cards = queueCards(t, outbox, "/project");
    assert.deepEqual(
      cards.map((each) => [each.id, each.eventSeq, each.delivery, each.editable, each.author]),
      [
        ["m1", 4, "queue", true, undefined],
        ["m2", 5, "queue", false, "lead"],
        ["m3", 6, "steer", false, undefined],
        ["k1", undefined, "steer", false, undefined],
      ],
    );
    assert.deepEqual(cards[1]?.attachments, ["a (L1-2)"]);
    assert.ok((cards[3]?.text.length ?? 0) < 5000);
    assert.ok(cards[3]?.text.startsWith("🙂x") && cards[3].text.endsWith("…"));
  });
});

/** All texts of a card; not the paths by which files are opened. */
function texts(value: unknown, key = ""): string[] {
  if (typeof value === "string") {
    return key === "path" ? [] : [value];
  } else if (Array.isArray(value)) {
    return value.flatMap((each) => texts(each));
  }
  return typeof value === "object" && value !== null
    ? Object.entries(value).flatMap(([name, each]) => texts(each, name))
    : [];
}

const ACTS =
  /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|\p{Surrogate}/u;

describe("hostile text", () => {
  const NASTY = "a\x1b[31mb\rc\0d\u202ee\nf$(check)\ud83d";
  const author = { kind: "peer", name: NASTY };
  const call = {
    callId: "x",
    messageId: "m",
    name: NASTY,
    title: NASTY,
    arguments: {},
    kind: NASTY,
  };
  const change = {
    path: NASTY,
    oldPath: NASTY,
    diff: NASTY,
    operation: NASTY,
    added: 1,
    removed: 0,
  };
  const result = { callId: "x", name: NASTY, status: NASTY, text: NASTY };
  const items: Item[] = [
    item("prompt", { text: NASTY, author, attachments: [NASTY, `file:///${NASTY}`] }),
    item("answer", { text: NASTY, author: { kind: "agent", name: NASTY } }),
    item("thought", { text: NASTY }),
    item("notice", { text: NASTY }),
    item("notice", { text: NASTY, severity: NASTY, description: NASTY }),
    item("error", { text: NASTY, failure: { kind: NASTY, message: NASTY, provider: NASTY } }),
    item("turn", { outcome: NASTY, usage: { cost: 1, currency: NASTY } }),
    item("tool", { call: { ...call, locations: [{ path: NASTY }] }, text: NASTY }),
    item("tool", { call, text: NASTY, result }),
    item("tool", { call, text: NASTY, result: { ...result, changes: [change, change] } }),
  ];

  it("acts on nothing, wherever it stands", () => {
    for (const each of items) {
      const shown = card(each, undefined, { ...LOOK, room: true, agent: NASTY });
      assert.equal(shown.kind, each.kind);
      const all = texts(shown);
      assert.ok(
        all.some((text) => text.includes("<1B>")),
        each.kind,
      );
      for (const text of all) {
        assert.doesNotMatch(text, ACTS);
      }
    }
  });
});

describe("a notice of the log", () => {
  it("has its severity, and what it says below its title", () => {
    const shown = of("notice", { text: "Begun anew", severity: "error", description: "a\n<b>" });
    assert.deepEqual(shown, {
      id: "x",
      kind: "notice",
      text: "Begun anew",
      severity: "error",
      about: "a\n<b>",
    });
    assert.equal(of("notice", { severity: "info", description: " " }).about, undefined);
    assert.equal(of("notice", { severity: "fatal" }).severity, "warning");
    assert.equal(of("notice", { text: "Mode: plan" }).severity, undefined);
  });
});

describe("an item", () => {
  const WRONG = [42, true, ["a list"], { a: 1 }, "a text", 1e300, -1, null, undefined];
  const kinds = ["prompt", "answer", "thought", "tool", "notice", "error", "turn"] as const;

  it("is shown, whatever it holds", () => {
    for (const kind of kinds) {
      for (const wrong of WRONG) {
        const fields = {
          text: wrong,
          author: wrong,
          call: wrong,
          result: wrong,
          approval: wrong,
          failure: wrong,
          usage: wrong,
          attachments: wrong,
          blobs: wrong,
          outcome: wrong,
          durationMs: wrong,
          turnId: wrong,
        } as unknown as Partial<Item>;
        const before = item("answer", { author: wrong } as unknown as Partial<Item>);
        const shown = card(item(kind, fields), before, { ...LOOK, room: true });
        assert.equal(shown.id, "x");
        for (const [name, value] of Object.entries(shown)) {
          assert.notEqual(value, undefined, `${kind} ${name}`);
        }
      }
    }
  });

  it("that cannot be shown is a card that says so, and the log hears why", () => {
    const faults: string[] = [];
    const broken = item("tool");
    Object.defineProperty(broken, "result", {
      get() {
        throw new Error("it broke");
      },
    });
    const shown = card(broken, undefined, { ...LOOK, onFault: (fault) => faults.push(fault) });
    assert.equal(shown.kind, "error");
    assert.match(shown.text, /^A tool that cannot be shown/);
    assert.deepEqual(faults, ["x cannot be shown: it broke"]);
  });
});

describe("a recorded session", () => {
  for (const name of names()) {
    it(`${name} is shown, each item as a card of its kind`, () => {
      for (const { session } of said(name).sessions) {
        const t = transcript(name, session.sessionId);
        for (const [at, each] of t.items.entries()) {
          const shown = card(each, t.items[at - 1], LOOK);
          assert.equal(shown.kind, each.kind);
          for (const text of texts(shown)) {
            assert.doesNotMatch(text, ACTS);
          }
        }
        assert.equal(queueCards(t, newOutbox()).length, t.queue.length);
      }
      assert.ok(events(name).length > 0);
    });
  }
});
