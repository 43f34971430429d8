// Text that streams: nothing doubled, nothing lost, nothing that comes after its end.
import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";

import type { Event, EventDelta, Session } from "@callboard/protocol";

import {
  apply,
  delta as take,
  draft as fill,
  newTranscript,
  seed,
  type Change,
  type Item,
  type Transcript,
} from "../../src/model/reducer";
import { chance } from "./recorded";

let t: Transcript;
let seq: number;

function delta(index: number, text: string, more: Partial<EventDelta> = {}): Change | undefined {
  return take(t, {
    subscriptionId: "sub_1",
    sessionId: "ses_1",
    messageId: "msg_1",
    turnId: "trn_1",
    kind: "answer",
    index,
    count: 1,
    text,
    ...more,
  });
}

function on(type: string, data: object, turnId: string | null = "trn_1"): Change | undefined {
  seq += 1;
  const event: Event = {
    pos: seq,
    seq,
    eventId: `evt_${seq}`,
    sessionId: "ses_1",
    type,
    at: "now",
    actor: { kind: "client", id: "c" },
    turnId,
    data,
  };
  return apply(t, event);
}

function start(): void {
  on("turn_started", { turnId: "trn_1", model: "m" });
  on("ack", { admits: [] });
}

function message(text: string, more: object = {}): Change | undefined {
  return on("message", {
    messageId: "msg_1",
    author: { kind: "agent", name: "default" },
    content: [{ type: "text", text }],
    partial: false,
    ...more,
  });
}

function draft(answer: string, next: number, thought = "", nextThought?: number): Change {
  return fill(t, {
    turnId: "trn_1",
    messageId: "msg_1",
    answer,
    thought,
    nextIndex: { answer: next, ...(nextThought === undefined ? {} : { thought: nextThought }) },
  });
}

const prompt = {
  messageId: "msg_p",
  author: { kind: "person" },
  content: [{ type: "text", text: "Hello" }],
};
const item = (id = "msg_1"): Item | undefined => t.byId.get(id);
const text = (id = "msg_1"): string | undefined => t.byId.get(id)?.text;
const shown = (): string[] => t.items.map((each) => `${each.kind} ${each.text}`);

beforeEach(() => {
  t = newTranscript("ses_1");
  seq = 0;
});

describe("a stream", () => {
  beforeEach(start);

  it("grows with each piece", () => {
    assert.deepEqual(delta(0, "Hel")?.items, ["msg_1"]);
    delta(1, "lo");
    assert.equal(text(), "Hello");
    assert.equal(item()?.streaming, true);
    assert.equal(item()?.seq, 0);
    assert.equal(t.items.length, 1);
  });

  it("keeps what is thought and what is said apart", () => {
    delta(0, "hm", { kind: "thought" });
    const change = delta(0, "so");
    assert.equal(text("msg_1:thought"), "hm");
    assert.equal(text(), "so");
    assert.equal(t.items[0]?.kind, "thought");
    assert.equal(t.items[0].streaming, undefined); // it was thought through
    assert.deepEqual(change?.items, ["msg_1:thought", "msg_1"]);
  });

  it("takes several pieces as one", () => {
    delta(0, "abc", { count: 3 });
    assert.equal(delta(2, "c"), undefined);
    delta(3, "d");
    assert.equal(text(), "abcd");
  });

  it("takes no piece twice", () => {
    delta(0, "a");
    assert.equal(delta(0, "a"), undefined);
    delta(1, "b");
    assert.equal(delta(0, "ab", { count: 2 }), undefined);
    assert.equal(text(), "ab");
  });

  it("holds pieces behind a hole until the draft fills it", () => {
    delta(0, "a");
    assert.equal(delta(3, "d")?.hole, true);
    assert.equal(delta(4, "e")?.hole, true);
    assert.equal(text(), "a");
    const change = draft("abc", 3);
    assert.equal(change.hole, undefined);
    assert.deepEqual(change.items, ["msg_1"]);
    assert.equal(text(), "abcde");
    delta(5, "f");
    assert.equal(text(), "abcdef");
  });

  it("asks again when the draft was not there yet", () => {
    delta(0, "a");
    delta(3, "d");
    assert.equal(draft("ab", 2).hole, true);
    assert.equal(text(), "ab");
    assert.equal(draft("abcd", 4).hole, undefined);
    assert.equal(text(), "abcd");
    delta(4, "e");
    assert.equal(text(), "abcde");
  });

  it("takes no older draft over what it has", () => {
    delta(0, "abc", { count: 3 });
    draft("ab", 2);
    assert.equal(text(), "abc");
  });

  it("does not take a piece in twice that is half in the draft", () => {
    draft("ab", 2);
    assert.equal(delta(1, "bc", { count: 2 })?.hole, true);
    assert.equal(text(), "ab");
  });

  it("begins in its middle, when it was there before", () => {
    assert.equal(delta(7, "world")?.hole, true);
    assert.equal(item(), undefined);
    draft("Hello, ", 7);
    assert.equal(text(), "Hello, world");
    draft("x", 1, "thought", 2);
    assert.equal(text("msg_1:thought"), "thought");
  });

  it("forgets what is held when there is no draft: the message comes", () => {
    delta(3, "d");
    assert.deepEqual(fill(t, undefined), { items: [], events: [] });
    message("abcd");
    assert.equal(text(), "abcd");
  });

  it("ends with its message, which has the last word", () => {
    delta(0, "Helo");
    assert.deepEqual(message("Hello")?.items, ["msg_1"]);
    assert.equal(text(), "Hello");
    assert.equal(item()?.streaming, undefined);
    assert.equal(t.items.length, 1);
  });

  it("ends with its message: late pieces and drafts do nothing", () => {
    delta(0, "Hel");
    message("Hello");
    assert.equal(delta(1, "lo"), undefined);
    assert.equal(delta(0, "hm", { kind: "thought" }), undefined);
    assert.deepEqual(draft("Hel", 1, "hm", 1).items, []);
    assert.deepEqual(shown(), ["answer Hello"]);
  });

  it("that came to nothing goes", () => {
    delta(0, "");
    const change = message("", { content: [] });
    assert.equal(item(), undefined);
    assert.equal(t.items.length, 0);
    assert.equal(change?.reset, true);
  });

  it("keeps its place when others come meanwhile", () => {
    delta(0, "Hel");
    on("member_added", { name: "beta" });
    message("Hello");
    assert.deepEqual(shown(), ["answer Hello", "notice @beta takes part"]);
  });

  it("is cut off when its turn ends before it", () => {
    on("tool_call", { callId: "call_1", name: "run", title: "make" });
    delta(0, "out", { messageId: "call_1", kind: "tool_output" });
    const change = on("turn_finished", { turnId: "trn_1", outcome: "interrupted", usage: {} });
    assert.deepEqual(change?.items, ["call_1", `evt_${seq}`]);
    assert.equal(item("call_1")?.partial, true);
    assert.equal(item("call_1")?.streaming, undefined);
    assert.equal(text("call_1"), "out");
  });

  it("that did not come into the log goes with its turn: nobody knows of it", () => {
    delta(0, "Hel");
    delta(0, "hm", { kind: "thought" });
    const change = on("turn_finished", { turnId: "trn_1", outcome: "interrupted", usage: {} });
    assert.equal(change?.reset, true);
    assert.equal(t.items.length, 1);
    assert.equal(item(), undefined);
    assert.equal(delta(1, "lo"), undefined);
    assert.equal(t.items.length, 1);
  });

  it("of a turn that is over is not taken in, and of the next one waits", () => {
    delta(0, "old", { turnId: "trn_0", messageId: "msg_8" });
    delta(0, "new", { turnId: "trn_2", messageId: "msg_9" });
    on("turn_finished", { turnId: "trn_0", outcome: "completed", usage: {} });
    on("turn_finished", { turnId: "trn_1", outcome: "completed", usage: {} });
    assert.equal(delta(0, "late"), undefined);
    assert.deepEqual(draft("late", 1).items, []);
    on("turn_started", { turnId: "trn_2", model: "m" }, "trn_2");
    on("ack", { admits: [] }, "trn_2");
    assert.equal(text("msg_9"), "new");
    assert.equal(item("msg_8"), undefined);
    assert.equal(item(), undefined);
    delta(0, "later");
    assert.deepEqual(t.early, []);
  });

  it("that was cut off and is in the log says so", () => {
    delta(0, "Hello");
    message("Hel", { partial: true });
    assert.equal(text(), "Hel");
    assert.equal(item()?.partial, true);
  });

  it("however its pieces are joined, dropped and repeated, becomes the same text", () => {
    const below = chance(11);
    for (let round = 0; round < 200; round++) {
      t = newTranscript("ses_1");
      seq = 0;
      start();
      const pieces = Array.from({ length: 1 + below(12) }, (_, i) => `<${i}>`);
      let at = 0;
      while (at < pieces.length) {
        const count = 1 + below(Math.min(3, pieces.length - at));
        const joined = pieces.slice(at, at + count).join("");
        if (below(4) > 0) {
          delta(at, joined, { count });
        }
        at += count;
        if (below(3) === 0) {
          draft(pieces.slice(0, at).join(""), at);
        }
        if (below(5) === 0) {
          delta(at - count, joined, { count });
        }
      }
      draft(pieces.join(""), pieces.length);
      assert.equal(text(), pieces.join(""));
      message(pieces.join(""));
      assert.deepEqual(shown(), [`answer ${pieces.join("")}`]);
    }
  });
});

describe("the output of a running tool", () => {
  beforeEach(() => {
    start();
    on("tool_call", { callId: "call_1", name: "run", title: "make" });
  });

  const output = (index: number, words: string, messageId = "call_1"): Change | undefined =>
    delta(index, words, { messageId, kind: "tool_output" });

  it("is shown until the result is there", () => {
    output(0, "one\n");
    output(1, "two\n");
    assert.equal(text("call_1"), "one\ntwo\n");
    assert.equal(item("call_1")?.streaming, true);
    on("tool_result", { callId: "call_1", status: "ok", text: "all" });
    assert.equal(text("call_1"), "all");
    assert.equal(item("call_1")?.streaming, undefined);
    assert.equal(output(2, "late"), undefined);
    assert.equal(text("call_1"), "all");
  });

  it("says where something is missing", () => {
    output(0, "one\n");
    assert.equal(output(5, "six\n")?.hole, undefined);
    assert.equal(text("call_1"), "one\n\n…\nsix\n");
    assert.equal(output(3, "four\n"), undefined);
  });

  it("keeps the end of what is long", () => {
    for (let i = 0; i < 100; i++) {
      output(i, `line ${i} ${"x".repeat(4096)}\n`);
    }
    const kept = text("call_1") ?? "";
    assert.ok(kept.length < 140 * 1024);
    assert.ok(kept.includes("line 99 "));
    assert.ok(kept.startsWith("…\nline "));
  });

  it("keeps the end of a line that has none", () => {
    for (let i = 0; i < 100; i++) {
      output(i, "x".repeat(4096));
    }
    assert.ok((text("call_1") ?? "").length > 32 * 1024);
  });

  it("that has overtaken the call waits for it", () => {
    output(0, "one\n", "call_2");
    const change = on("tool_call", { callId: "call_2", name: "run", title: "test" });
    assert.deepEqual(change?.items, ["call_2"]);
    assert.equal(text("call_2"), "one\n");
  });

  it("that is not loaded is not shown, and not kept", () => {
    assert.equal(output(0, "x", "call_0"), undefined);
    on("turn_finished", { turnId: "trn_1", outcome: "completed", usage: {} });
    on("member_added", { name: "beta" });
    assert.equal(t.items.length, 3);
    assert.deepEqual(t.early, []);
  });
});

describe("pieces that overtake the events of their turn", () => {
  it("stand below the prompt that it has taken in, however early they come", () => {
    assert.equal(delta(0, "Hi"), undefined);
    on("message", prompt, null);
    assert.equal(delta(1, " the"), undefined);
    on("turn_started", { turnId: "trn_1", model: "m" });
    assert.equal(delta(2, "re"), undefined);
    assert.deepEqual(draft("Hi there", 3).items, []);
    assert.deepEqual(shown(), []);
    const change = on("ack", { admits: [1] });
    assert.deepEqual(shown(), ["prompt Hello", "answer Hi there"]);
    assert.deepEqual(change?.items, ["msg_p", "msg_1"]);
    delta(3, ".");
    assert.deepEqual(shown(), ["prompt Hello", "answer Hi there."]);
  });

  it("are not said twice when the message overtakes them", () => {
    delta(0, "Hi");
    on("message", prompt, null);
    on("turn_started", { turnId: "trn_1", model: "m" });
    on("ack", { admits: [1] });
    message("Hi!");
    assert.deepEqual(shown(), ["prompt Hello", "answer Hi!"]);
    assert.equal(delta(1, "?"), undefined);
  });

  it("are forgotten when it is over", () => {
    on("message", prompt, null);
    on("turn_started", { turnId: "trn_1", model: "m" });
    on("ack", { admits: [1] });
    delta(0, "late", { turnId: "trn_0" });
    on("turn_finished", { turnId: "trn_1", outcome: "completed", usage: {} });
    assert.deepEqual(t.early, []);
  });

  it("are shown at once when it began before what is loaded", () => {
    const session = { sessionId: "ses_1", status: "running", activeTurnId: "trn_1" };
    seed(t, session as Session);
    delta(0, "Hi");
    assert.deepEqual(shown(), ["answer Hi"]);
  });
});

describe("what a turn had said before any piece of it came", () => {
  const events: (() => void)[] = [
    () => on("message", prompt, null),
    () => on("turn_started", { turnId: "trn_1", model: "m" }),
    () => on("ack", { admits: [1] }),
  ];

  it("comes with the turn, whenever it is read, and goes on with the next piece", () => {
    for (let read = 0; read <= events.length; read += 1) {
      for (let come = read; come <= events.length; come += 1) {
        t = newTranscript("ses_1");
        seq = 0;
        for (let n = 0; n <= events.length; n += 1) {
          events[n - 1]?.();
          if (n === read) {
            draft("Hi the", 2);
          }
          if (n === come) {
            delta(1, " the"); // it is in what was read
            delta(2, "re");
          }
        }
        assert.deepEqual(shown(), ["prompt Hello", "answer Hi there"], `${read} ${come}`);
        assert.deepEqual(t.early, []);
        assert.equal(t.earlyDraft, undefined);
      }
    }
  });

  it("is forgotten when the turn is over", () => {
    draft("late", 1);
    start();
    assert.equal(text(), "late");
    fill(t, {
      turnId: "trn_0",
      messageId: "msg_0",
      answer: "older",
      thought: "",
      nextIndex: { answer: 1 },
    });
    on("turn_finished", { turnId: "trn_1", outcome: "completed", usage: {} });
    assert.equal(t.earlyDraft, undefined);
    assert.equal(text("msg_0"), undefined);
  });
});
