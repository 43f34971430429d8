// What each event does to a transcript, and what it does not.
import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";

import type { Event } from "@callboard/protocol";

import {
  apply,
  delta,
  earlierPlan,
  hasPlan,
  merge,
  newTranscript,
  pending,
  type Change,
  type Transcript,
} from "../../src/model/reducer";
import { events, names, plain, root } from "./recorded";

const PERSON = { kind: "person", name: "ann" };
const AGENT = { kind: "agent", name: "default" };

let t: Transcript;
let seq: number;

beforeEach(() => {
  t = newTranscript("ses_1");
  seq = 0;
});

/** Applies an event; the next of the session. */
function on(type: string, data: unknown, turnId?: string): Change | undefined {
  seq += 1;
  return apply(t, {
    pos: seq,
    seq,
    sessionId: "ses_1",
    eventId: `evt_${seq}`,
    type,
    at: `2030-01-01T10:00:${String(seq).padStart(2, "0")}.000Z`,
    actor: { kind: "system", id: "x" },
    turnId: turnId ?? null,
    data,
  });
}

const said = (messageId: string, text: string, more: object = {}): object => ({
  messageId,
  author: PERSON,
  content: [{ type: "text", text }],
  ...more,
});
const answered = (messageId: string, text: string, more: object = {}): object =>
  said(messageId, text, { author: AGENT, partial: false, ...more });
const shown = (): string[] => t.items.map((item) => `${item.kind} ${item.text}`);
const queued = (): string[] => t.queue.map((item) => item.text);
const start = (turnId = "trn_1"): Change | undefined =>
  on("turn_started", { turnId, model: "a/b", profile: "default" }, turnId);
const finish = (outcome = "completed", turnId = "trn_1"): Change | undefined =>
  on("turn_finished", { turnId, outcome, usage: {} }, turnId);

describe("an event", () => {
  it("that was taken in before does nothing", () => {
    on("message", said("msg_1", "one"));
    seq = 0;
    assert.equal(on("message", said("msg_1", "one")), undefined);
    assert.deepEqual(queued(), ["one"]);
  });

  it("that comes too early is a gap, and does nothing", () => {
    on("message", said("msg_1", "one"));
    seq += 1;
    assert.equal(on("message", said("msg_3", "three"))?.gap, true);
    assert.deepEqual(queued(), ["one"]);
    assert.equal(t.lastSeq, 1);
    seq = 1;
    assert.equal(on("message", said("msg_2", "two"))?.gap, undefined);
    assert.deepEqual(queued(), ["one", "two"]);
  });

  it("of a kind that is not known only counts", () => {
    for (const type of ["from_the_future", "constructor", "__proto__"]) {
      assert.deepEqual(on(type, { anything: [1, 2] }), { items: [], events: [type] });
    }
    assert.equal(t.lastSeq, 3);
    assert.equal(on("message", said("msg_1", "one"))?.gap, undefined);
  });

  it("is not changed by being taken in", () => {
    for (const name of names()) {
      const all = events(name, root(name));
      const before = structuredClone(all);
      const transcript = newTranscript("x");
      for (const event of all) {
        apply(transcript, event);
      }
      assert.deepEqual(all, before, name);
    }
  });

  it("of a prompt makes it wait, until a turn takes it in", () => {
    let change = on("message", said("msg_1", "one"));
    assert.deepEqual(queued(), ["one"]);
    assert.deepEqual(shown(), []);
    assert.equal(change?.queue, true);
    start();
    change = on("ack", { admits: [1] }, "trn_1");
    assert.deepEqual(queued(), []);
    assert.deepEqual(shown(), ["prompt one"]);
    assert.equal(change?.queue, true);
    assert.deepEqual(change.items, ["msg_1"]);
    assert.equal(t.items[0]?.turnId, "trn_1");
    assert.equal(t.items[0].seq, 1);
  });

  it("puts prompts where they were taken in, not where they were said", () => {
    on("message", said("msg_1", "one"));
    start();
    on("ack", { admits: [1] }, "trn_1");
    on("message", said("msg_2", "steer", { delivery: "steer" }));
    on("message", said("msg_3", "later", { delivery: "queue" }));
    on("message", answered("msg_4", "answer"), "trn_1");
    on("ack", { admits: [4] }, "trn_1");
    assert.deepEqual(shown(), ["prompt one", "answer answer", "prompt steer"]);
    assert.equal(t.items[2]?.steer, true);
    assert.deepEqual(queued(), ["later"]);
    finish();
    assert.deepEqual(queued(), ["later"]);
  });

  it("changes what waits, and drops it", () => {
    on("message", said("msg_1", "one"));
    on("message", said("msg_2", "two"));
    const content = [{ type: "text", text: "changed" }];
    assert.equal(on("prompt_updated", { seq: 2, content })?.queue, true);
    assert.deepEqual(queued(), ["one", "changed"]);
    assert.equal(on("triggers_dropped", { seqs: [1], reason: "removed" })?.queue, true);
    assert.deepEqual(queued(), ["changed"]);
    assert.equal(on("triggers_dropped", { seqs: [1], reason: "removed" })?.queue, undefined);
  });

  it("of an instruction, a schedule or a mention waits, too", () => {
    on("directive", { messageId: "msg_1", author: AGENT, text: "do it" });
    on("schedule_fired", { name: "nightly", prompt: "look", scheduleId: "sched_1" });
    on("member_mentioned", { name: "beta", by: "alpha", messageSeq: 1, burst: 1, budget: 8 });
    assert.deepEqual(queued(), ["do it", "look", "@beta"]);
    start();
    on("ack", { admits: [1, 2, 3] }, "trn_1");
    assert.deepEqual(shown(), ["prompt do it", "prompt look"]); // what mentions somebody is there already
    assert.deepEqual(t.items[1]?.author, { kind: "schedule", name: "nightly", id: "sched_1" });
    assert.deepEqual(queued(), []);
  });

  it("of a delivery is shown at once", () => {
    const peer = { kind: "peer", name: "one" };
    on("message", said("msg_1", "from a peer", { author: peer, delivered: {} }));
    on("message", said("msg_2", "from an agent", { author: AGENT, delivered: {} }), "trn_1");
    assert.deepEqual(shown(), ["prompt from a peer", "prompt from an agent"]);
    assert.deepEqual(queued(), []);
  });

  it("of a prompt names what else it holds", () => {
    on("message", {
      messageId: "msg_1",
      author: PERSON,
      content: [
        { type: "text", text: "look" },
        { type: "image", mimeType: "image/png", data: "" },
        { type: "resource_link", uri: "file:///a", name: "a" },
        { type: "resource", uri: "file:///b", text: "x" },
        { type: "text", text: "closely" },
      ],
      context: [
        { uri: "file:///c" },
        {
          uri: "file:///d",
          range: { start: { line: 2, character: 0 }, end: { line: 5, character: 0 } },
        },
      ],
    });
    assert.equal(t.queue[0]?.text, "look\n\nclosely");
    assert.deepEqual(t.queue[0].attachments, [
      "image (image/png)",
      "a",
      "file:///b",
      "file:///c",
      "file:///d#L3-5",
    ]);
  });

  it("of a prompt tells a person what is for them, and not what is for the model", () => {
    const content = [
      { type: "text", text: "for the model", _meta: { audience: "model" } },
      { type: "text", text: "for you", _meta: { audience: "person" } },
    ];
    on("message", said("msg_1", "", { content }));
    on("message", said("msg_2", "", { content: content.slice(0, 1) }));
    assert.deepEqual(queued(), ["for you", "for the model"]);
  });

  it("of an answer shows what was thought and what was said", () => {
    const content = [
      { type: "thinking", text: "hm" },
      { type: "text", text: "first" },
      { type: "tool_use", callId: "call_1" },
      { type: "text", text: "second" },
    ];
    on("message", answered("msg_1", "x", { content, partial: true }));
    assert.deepEqual(shown(), ["thought hm", "answer first\n\nsecond"]);
    assert.equal(t.items[1]?.partial, true);
    assert.deepEqual(t.items[1].author, AGENT);
  });

  it("of an answer without words shows nothing", () => {
    on("message", answered("msg_1", "", { content: [{ type: "tool_use", callId: "call_1" }] }));
    assert.deepEqual(shown(), []);
  });

  it("tells of turns", () => {
    assert.equal(start()?.head, true);
    assert.deepEqual(t.turn, {
      id: "trn_1",
      startedAt: "2030-01-01T10:00:01.000Z",
      state: "running",
      cancelling: false,
    });
    assert.equal(t.model, "a/b");
    assert.deepEqual([...t.speakers], [["trn_1", "default"]]);
    on("cancel_requested", { scope: "queue" }, "trn_1");
    assert.equal(t.turn.cancelling, false);
    on("cancel_requested", { scope: "turn", turnId: "trn_1" }, "trn_1");
    assert.equal(t.turn.cancelling, true);
    finish("cancelled");
    assert.equal(t.turn, undefined);
    assert.equal(t.items[0]?.outcome, "cancelled");
    assert.equal(t.items[0].kind, "turn");
  });

  it("of a failure is told", () => {
    start();
    on("error", { error: { kind: "modelError", message: "no" } }, "trn_1");
    assert.deepEqual(shown(), ["error no"]);
    assert.equal(t.items[0]?.failure?.kind, "modelError");
  });

  it("of a plan replaces the one before", () => {
    on("plan_updated", { entries: [{ content: "a", status: "pending" }] });
    assert.equal(on("plan_updated", { entries: [] })?.head, true);
    assert.deepEqual(t.plan, []);
  });

  it("of the session itself changes how it is set", () => {
    const set = (): unknown[] => [t.title, t.mode, t.model];
    on("session_created", { title: "T", mode: "work", model: "a/b" });
    assert.deepEqual(set(), ["T", "work", "a/b"]);
    on("session_updated", { changes: { title: "U" } });
    on("mode_changed", { mode: "plan" });
    on("model_changed", { model: "c/d" });
    assert.deepEqual(set(), ["U", "plan", "c/d"]);
    on("session_updated", { changes: { pinned: true } });
    assert.equal(t.title, "U");
    on("model_changed", {});
    assert.equal(t.model, undefined);
    assert.deepEqual(shown(), [
      "notice Mode: plan",
      "notice Model: c/d",
      "notice Model: the default",
    ]);
    on("session_closed", {});
    assert.equal(t.closed, true);
  });

  it("of an agent that was spawned tells what it is", () => {
    on("agent_spawned", { name: "stock", session: { mode: "work", title: "x" } });
    assert.deepEqual([t.title, t.mode], ["stock", "work"]);
  });

  it("that tells that the session is gone is heard whatever its place", () => {
    on("message", said("msg_1", "one"));
    seq = 98;
    const change = on("session_deleted", {});
    assert.equal(t.deleted, true);
    assert.equal(change?.head, true);
    assert.equal(change.gap, undefined);
  });

  it("of anything that people should know is a notice", () => {
    const cases: [string, object, string][] = [
      ["summary", {}, "What was said so far was summarised"],
      [
        "model_retried",
        { attempt: 1, delayMs: 5, error: { message: "busy" } },
        "The model did not answer (busy); attempt 2",
      ],
      ["agent_asked", { text: "why?", expectsReply: true }, "Asks its parent: why?"],
      ["agent_asked", { text: "so", expectsReply: false }, "Tells its parent: so"],
      ["agent_replied", { outcome: "replied", text: "yes" }, "Was told: yes"],
      ["agent_replied", { outcome: "timed_out" }, "Was not answered: no reply came in time"],
      ["agent_report_created", { report: { status: "failed" } }, "Reported to its parent (failed)"],
      ["agent_interrupted", { reason: "enough" }, "Was interrupted: enough"],
      ["member_added", { name: "beta" }, "@beta takes part"],
      ["member_removed", { name: "beta" }, "@beta takes no part any more"],
      ["room_host_changed", { name: "beta" }, "@beta answers when nobody is addressed"],
      ["room_host_changed", {}, "The first member answers when nobody is addressed"],
      [
        "wake_suppressed",
        { name: "beta", burst: 8 },
        "@beta was not woken: 8 messages of agents in a row. Say something to go on.",
      ],
      [
        "deliveries_dropped",
        { deliveries: [{}], reason: "the session was closed" },
        "1 message to it will not be read: the session was closed",
      ],
      ["peer_linked", { peerId: "ses_2" }, "Linked to ses_2"],
      ["peer_unlinked", { peerId: "ses_2", by: "ses_2" }, "The link to ses_2 has ended"],
      ["peer_message_sent", { to: "ses_2", text: "hello", messageId: "m" }, "To ses_2: hello"],
      [
        "peer_message_dropped",
        { sender: "ses_2", reason: "unlinked", messageId: "m" },
        "A message of ses_2 will not be read: unlinked",
      ],
      ["completion_changed", {}, "Says that its work is done; nobody has verified it"],
      ["session_forked", { inherited: 3 }, "A fork: what stands above was taken over"],
    ];
    for (const [type, data, words] of cases) {
      on(type, data);
      assert.equal(t.items.at(-1)?.text, words);
      assert.equal(t.items.at(-1)?.kind, "notice");
    }
  });

  it("that is a notice keeps its severity", () => {
    on("notice", { severity: "warning", title: "Begun anew", description: "why" });
    const item = t.items.at(-1);
    assert.deepEqual(
      [item?.kind, item?.text, item?.severity, item?.description],
      ["notice", "Begun anew", "warning", "why"],
    );
  });

  it("of each kind that there is in the recordings can be taken in", () => {
    const types = new Set<string>();
    for (const name of names()) {
      for (const event of events(name)) {
        types.add(event.type);
        const alone = newTranscript("x");
        assert.equal(apply(alone, event)?.fault, undefined, `${name} ${event.type}`);
      }
    }
    assert.ok(types.size >= 45, [...types].join());
  });
});

describe("an event of a tool call", () => {
  const call = (callId: string): Change | undefined =>
    on("tool_call", { callId, name: "run", title: `Run ${callId}` }, "trn_1");
  const ask = (callId: string): Change | undefined =>
    on(
      "approval_request",
      {
        approval: {
          approvalId: `apr_${callId}`,
          callId,
          state: "pending",
          title: callId,
          options: [],
        },
      },
      "trn_1",
    );
  const decide = (callId: string, outcome: string): Change | undefined =>
    on(
      "approval_decision",
      {
        approvalId: `apr_${callId}`,
        callId,
        resolution: { outcome, by: { kind: "client", id: "x" } },
      },
      "trn_1",
    );

  beforeEach(() => {
    start();
  });

  it("makes a card that its result completes", () => {
    call("call_1");
    call("call_2");
    const change = on("tool_result", { callId: "call_1", status: "ok", text: "done" }, "trn_1");
    assert.deepEqual(change?.items, ["call_1"]);
    assert.deepEqual(shown(), ["tool done", "tool "]);
    assert.equal(t.byId.get("call_1")?.call?.title, "Run call_1");
    assert.equal(t.byId.get("call_1")?.result?.status, "ok");
    assert.equal(t.byId.get("call_2")?.result, undefined);
  });

  it("that asks says so until all is answered", () => {
    call("call_1");
    call("call_2");
    ask("call_1");
    ask("call_2");
    assert.equal(t.turn?.state, "waiting_approval");
    assert.equal(pending(t)?.approvalId, "apr_call_1");
    decide("call_1", "allowed");
    assert.equal(t.turn.state, "waiting_approval");
    assert.equal(pending(t)?.approvalId, "apr_call_2");
    decide("call_2", "rejected");
    assert.equal(t.turn.state, "running");
    assert.equal(pending(t), undefined);
    assert.equal(t.byId.get("call_1")?.approval?.state, "resolved");
    assert.equal(t.byId.get("call_2")?.approval?.resolution?.outcome, "rejected");
  });

  it("tells how the asking ended, as the server does", () => {
    const ends = {
      allowed: "resolved",
      rejected: "resolved",
      cancelled: "cancelled",
      expired: "expired",
    };
    for (const [outcome, state] of Object.entries(ends)) {
      call(outcome);
      ask(outcome);
      decide(outcome, outcome);
      assert.equal(t.byId.get(outcome)?.approval?.state, state);
    }
  });

  it("is parked, and goes on", () => {
    call("call_1");
    ask("call_1");
    on("turn_parked", { turnId: "trn_1", approvalIds: ["apr_call_1"] }, "trn_1");
    assert.equal(t.turn?.state, "parked");
    decide("call_1", "allowed");
    assert.equal(t.turn.state, "parked"); // until somebody takes it up
    on("turn_resumed", { turnId: "trn_1", trigger: { kind: "approval" } }, "trn_1");
    assert.equal(t.turn.state, "running");
  });

  it("that is not loaded is shown by what asks for it", () => {
    ask("call_0");
    assert.equal(pending(t)?.approvalId, "apr_call_0");
    assert.equal(t.byId.get("call_0")?.kind, "tool");
  });

  it("that is not loaded is shown by its result", () => {
    on("tool_result", { callId: "call_0", name: "run", status: "error", text: "no" }, "trn_1");
    assert.deepEqual(shown(), ["tool no"]);
  });
});

describe("an event that goes back", () => {
  it("takes out the turns, their prompts and their plan", () => {
    on("plan_updated", { entries: [{ content: "a", status: "pending" }] });
    on("message", said("msg_1", "one"));
    start();
    on("ack", { admits: [2] }, "trn_1");
    on("message", answered("msg_2", "first"), "trn_1");
    finish();
    on("message", said("msg_3", "two"));
    const beforeSeq = seq + 1;
    start("trn_2");
    on("ack", { admits: [7] }, "trn_2");
    on("plan_updated", { entries: [{ content: "b", status: "pending" }] }, "trn_2");
    on("message", answered("msg_4", "second"), "trn_2");
    finish("completed", "trn_2");
    const change = on("session_rewound", {
      beforeTurnId: "trn_2",
      beforeSeq,
      throughSeq: seq,
      turns: 1,
      prompts: [7],
    });
    assert.equal(change?.reset, true);
    assert.deepEqual(shown(), [
      "prompt one",
      "answer first",
      "turn ",
      "notice Went back: 1 turn taken out. Files are as they were left.",
    ]);
    assert.deepEqual(t.plan, [{ content: "a", status: "pending" }]);
    assert.equal(t.byId.get("msg_4"), undefined);
    assert.equal(t.byId.get("msg_3"), undefined);
  });

  it("takes out the notice of having gone back within", () => {
    on("message", said("msg_1", "one"));
    on("session_rewound", { beforeSeq: 1, throughSeq: 1, turns: 2, prompts: [] });
    on("session_rewound", { beforeSeq: 1, throughSeq: 2, turns: 3, prompts: [] });
    assert.deepEqual(shown(), [
      "notice Went back: 3 turns taken out. Files are as they were left.",
    ]);
  });
});

describe("changes", () => {
  it("of several events are one, without doubles and in order", () => {
    let merged = merge(undefined, { items: ["a"], events: ["x"] });
    merged = merge(merged, { items: ["b", "a"], events: ["y"], head: true });
    merged = merge(merged, undefined);
    merged = merge(merged, {
      items: ["c"],
      events: [],
      reset: true,
      queue: true,
      hole: true,
      gap: true,
    });
    assert.deepEqual(merged, {
      items: ["a", "b", "c"],
      events: ["x", "y"],
      head: true,
      reset: true,
      queue: true,
      hole: true,
      gap: true,
    });
    assert.equal(merge(undefined, undefined), undefined);
  });
});

describe("a plan from before what is loaded", () => {
  const plan = (at: number): Event =>
    ({
      seq: at,
      type: "plan_updated",
      data: { entries: [{ content: `p${at}` }] },
    }) as unknown as Event;

  it("is taken where none is known", () => {
    assert.equal(hasPlan(t), false);
    assert.equal(earlierPlan(t, plan(3))?.head, true);
    assert.equal(t.plan[0]?.content, "p3");
    assert.equal(earlierPlan(t, plan(2)), undefined);
    assert.equal(t.plan[0].content, "p3");
  });

  it("is not taken when going back took it out, or when it is none", () => {
    seq = 8;
    on("session_rewound", { beforeSeq: 2, throughSeq: 8, turns: 1 });
    assert.equal(earlierPlan(t, plan(3)), undefined);
    assert.equal(
      earlierPlan(t, { seq: 1, type: "plan_updated", data: null } as unknown as Event),
      undefined,
    );
    assert.deepEqual(t.plan, []);
  });
});

describe("a server that says what nobody thought of", () => {
  const WRONG = [42, true, ["a list"], { a: 1 }, "a text", 1e300, -1, null, undefined];
  const TYPES = [
    "message",
    "ack",
    "turn_started",
    "turn_finished",
    "tool_call",
    "tool_result",
    "approval_request",
    "approval_decision",
    "error",
    "plan_updated",
    "session_rewound",
    "session_created",
    "session_updated",
    "agent_spawned",
    "directive",
    "schedule_fired",
    "member_mentioned",
    "prompt_updated",
    "triggers_dropped",
    "model_retried",
    "mode_changed",
    "deliveries_dropped",
    "agent_report_created",
    "session_forked",
  ];

  it("keeps nothing that comes after from being seen", () => {
    for (const type of TYPES) {
      for (const wrong of WRONG) {
        t = newTranscript("ses_1");
        seq = 0;
        on("session_created", {});
        on(type, wrong);
        on(type, { messageId: wrong, author: wrong, content: wrong, turnId: wrong, callId: wrong });
        on("mode_changed", { mode: "work" });
        assert.equal(t.items.at(-1)?.text, "Mode: work", type);
        assert.equal(t.lastSeq, 4);
        for (const item of [...t.items, ...t.queue]) {
          assert.equal(typeof item.text, "string", type);
          assert.equal(typeof item.id, "string", type);
        }
      }
    }
  });

  it("is told of, with what is wrong", () => {
    const change = on("tool_result", undefined);
    assert.equal(t.items[0]?.text, "Something that cannot be shown (tool_result)");
    assert.match(change?.fault ?? "", /undefined/);
  });

  it("is not listened to where it says no event", () => {
    for (const wrong of WRONG) {
      assert.equal(apply(t, wrong as unknown as Event), undefined);
      assert.equal(
        apply(t, { type: "message", seq: "x", data: wrong } as unknown as Event),
        undefined,
      );
      for (const piece of [wrong, { kind: "answer", messageId: "m", index: 0, text: wrong }]) {
        assert.equal(delta(t, piece as unknown as Parameters<typeof delta>[1]), undefined);
      }
    }
    assert.deepEqual(plain(t), plain(newTranscript("ses_1")));
  });
});
