// However the pages of a log are cut, the transcript is the same, and it says what the server says.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import type { Event } from "@callboard/protocol";

import {
  apply,
  newTranscript,
  older,
  parts,
  pending,
  seed,
  type Transcript,
} from "../../src/model/reducer";
import { chance, events as recorded, names, plain, said, type SaidOfSession } from "./recorded";

/** All of it that somebody sees. */
function seen(t: Transcript): unknown {
  const { items, byId, queue, turn, plan, mode, model, title, closed, speakers, asking } = t;
  const ids = [...byId.keys()].sort();
  const names = [...speakers].sort();
  const first = t.firstSeq;
  const last = t.lastSeq;
  return plain({
    items,
    ids,
    queue,
    turn,
    plan,
    mode,
    model,
    title,
    closed,
    names,
    asking,
    first,
    last,
  });
}

function whole(events: readonly Event[]): Transcript {
  const t = newTranscript("ses");
  for (const event of events) {
    assert.ok(apply(t, event));
  }
  return t;
}

/** Read in pages, the newest first: each of the cuts, which ascend, is how many events are before it. */
function paged(events: readonly Event[], cuts: readonly number[]): Transcript {
  const t = newTranscript("ses");
  for (const event of events.slice(cuts.at(-1) ?? 0)) {
    assert.ok(apply(t, event));
  }
  for (let i = cuts.length - 1; i >= 0; i--) {
    older(t, events.slice(cuts[i - 1] ?? 0, cuts[i]));
  }
  return t;
}

function same(expected: unknown, events: readonly Event[], cuts: readonly number[]): void {
  assert.deepEqual(seen(paged(events, cuts)), expected, `cut after ${cuts.join()}`);
}

function eachSession(
  visit: (about: string, events: Event[], said: SaidOfSession, name: string) => void,
): void {
  for (const name of names()) {
    for (const each of said(name).sessions) {
      const id = each.session.sessionId;
      visit(`of ${name}, ${id}`, recorded(name, id), each, name);
    }
  }
}

/** Cuts by chance, one in so many places. */
function cutsOf(events: readonly Event[], below: (n: number) => number, one: number): number[] {
  return events.map((_, i) => i).filter((i) => i > 0 && below(one) === 0);
}

describe("pages of a log", () => {
  eachSession((about, events) => {
    it(`${about}: cut once, anywhere`, () => {
      const expected = seen(whole(events));
      for (let cut = 1; cut < events.length; cut++) {
        same(expected, events, [cut]);
      }
    });

    it(`${about}: of every size`, () => {
      const expected = seen(whole(events));
      for (let size = 1; size < events.length; size++) {
        const cuts: number[] = [];
        for (let at = events.length - size; at > 0; at -= size) {
          cuts.unshift(at);
        }
        same(expected, events, cuts);
      }
    });

    it(`${about}: cut by chance`, () => {
      const expected = seen(whole(events));
      const below = chance(42);
      for (let i = 0; i < 40; i++) {
        same(expected, events, cutsOf(events, below, 4));
      }
    });
  });

  it("overlap without doing anything twice", () => {
    const events = recorded("demo");
    const t = whole(events.slice(10));
    older(t, events.slice(0, 15));
    assert.deepEqual(seen(t), seen(whole(events)));
    assert.deepEqual(older(t, events.slice(0, 5)), { items: [], events: [] });
    assert.deepEqual(seen(t), seen(whole(events)));
  });
});

interface Turn {
  id: string;
  first: number;
  admits: number[];
}

/**
 * A session that is as it might be: prompts wait, are changed, dropped and taken in together; calls ask; turns
 * end in all ways; and now and then all goes back to before a turn.
 */
function made(below: (n: number) => number): Event[] {
  const events: Event[] = [];
  let waiting: number[] = [];
  let turns: Turn[] = [];
  let turn: Turn | undefined;
  const calls: string[] = [];
  const asking = new Set<string>();
  const add = (type: string, data: object, turnId = turn?.id): number => {
    const seq = events.length + 1;
    events.push({
      pos: seq,
      seq,
      type,
      data,
      eventId: `evt_${seq}`,
      sessionId: "ses",
      at: `at ${seq}`,
      actor: { kind: "system", id: "x" },
      turnId: turnId ?? null,
    });
    return seq;
  };
  const text = (words: string): object[] => [{ type: "text", text: `${words} ${events.length}` }];
  const admit = (into: Turn): void => {
    if (waiting.length > 0) {
      const count = 1 + below(waiting.length);
      const admits = waiting.slice(0, count);
      waiting = waiting.slice(count);
      add("ack", { admits });
      into.admits.push(...admits);
    }
  };
  const steps: (() => void)[] = [
    () => {
      const messageId = `msg_${events.length}`;
      const content = text("prompt");
      waiting.push(add("message", { messageId, author: { kind: "person" }, content }, undefined));
    },
    () => {
      const seq = waiting[below(waiting.length)];
      if (seq !== undefined) {
        add("prompt_updated", { seq, content: text("changed") });
      }
    },
    () => {
      if (waiting.length > 0) {
        add("triggers_dropped", { seqs: waiting.splice(below(waiting.length), 1), reason: "x" });
      }
    },
    () => {
      if (turn) {
        admit(turn);
      } else if (waiting.length > 0) {
        turn = { id: `trn_${events.length}`, admits: [], first: 0 };
        const model = `m${events.length}`;
        turn.first = add("turn_started", { turnId: turn.id, model, profile: "p" });
        admit(turn);
      }
    },
    () => {
      if (turn) {
        const content = [{ type: "thinking", text: "t" }, ...text("answer")];
        add("message", { messageId: `msg_${events.length}`, author: { kind: "agent" }, content });
      }
    },
    () => {
      if (turn) {
        const callId = `call_${events.length}`;
        calls.push(callId);
        add("tool_call", { callId, name: "run" });
        if (below(2) === 0) {
          asking.add(callId);
          const approvalId = `apr_${callId}`;
          add("approval_request", { approval: { approvalId, callId, state: "pending" } });
        }
      }
    },
    () => {
      const [callId] = asking;
      if (turn && callId !== undefined) {
        asking.delete(callId);
        const approvalId = `apr_${callId}`;
        add("approval_decision", { approvalId, callId, resolution: { outcome: "allowed" } });
      }
    },
    () => {
      const callId = calls[0];
      if (turn && callId !== undefined && !asking.has(callId)) {
        calls.shift();
        add("tool_result", { callId, status: "ok", text: `result of ${callId}` });
      }
    },
    () => {
      add("plan_updated", { entries: [{ content: `plan ${events.length}` }] });
    },
    () => {
      add("mode_changed", { mode: `mode ${events.length}` });
    },
    () => {
      if (turn && asking.size > 0 && below(2) === 0) {
        add("turn_parked", { turnId: turn.id });
        add("turn_resumed", { turnId: turn.id });
      } else if (turn) {
        add("cancel_requested", { scope: "turn", turnId: turn.id });
      }
    },
    () => {
      if (turn && asking.size === 0 && calls.length === 0) {
        add("turn_finished", { turnId: turn.id, outcome: "completed", usage: {} });
        turns.push(turn);
        turn = undefined;
      }
    },
    () => {
      const at = below(turns.length);
      const back = turns[at];
      if (!turn && waiting.length === 0 && back) {
        add("session_rewound", {
          beforeTurnId: back.id,
          beforeSeq: back.first,
          throughSeq: events.length,
          turns: turns.length - at,
          prompts: turns.slice(at).flatMap((each) => each.admits),
        });
        turns = turns.slice(0, at);
      }
    },
  ];
  for (let i = 0; i < 120; i++) {
    steps[below(steps.length)]?.();
  }
  return events;
}

describe("pages of a made-up log", () => {
  it("make what it makes read in order, however they are cut", () => {
    const types = new Set<string>();
    for (let one = 1; one <= 60; one++) {
      const below = chance(one);
      const events = made(below);
      for (const event of events) {
        types.add(event.type);
      }
      const expected = seen(whole(events));
      for (let i = 0; i < 6; i++) {
        same(expected, events, cutsOf(events, below, 5));
      }
    }
    assert.equal(types.size, 16, [...types].join());
  });
});

describe("a transcript", () => {
  eachSession((about, events, { session, queue, turns }, name) => {
    it(`${about} says what the server says`, () => {
      const t = whole(events);
      assert.equal(t.lastSeq, session.headSeq);
      if (session.status !== "parked") {
        assert.equal(t.turn?.id, session.activeTurnId ?? undefined);
      }
      if (session.status === "closed") {
        assert.equal(t.closed, true);
      } else {
        assert.equal(t.turn?.state ?? "idle", session.status);
      }
      assert.equal(t.mode, session.mode);
      assert.deepEqual(
        t.queue.map((item) => [
          item.seq,
          item.id,
          item.trigger,
          item.author,
          item.text,
          item.steer ?? false,
        ]),
        queue.map((prompt) => [
          prompt.eventSeq,
          prompt.messageId,
          prompt.kind,
          prompt.author,
          parts(prompt.content).text,
          prompt.delivery === "steer",
        ]),
      );
      const approvals = said(name).approvals.filter((each) => each.sessionId === session.sessionId);
      assert.equal(t.asking.size, approvals.length);
      assert.equal(session.pendingApprovals, approvals.length);
      for (const approval of approvals) {
        assert.deepEqual(t.byId.get(approval.callId)?.approval, approval);
      }
      assert.deepEqual(pending(t), approvals[0]);
    });

    it(`${about} has the turns that the server has`, () => {
      const t = whole(events);
      const ends = new Map(
        t.items.flatMap((item) => (item.kind === "turn" ? [[item.turnId, item]] : [])),
      );
      const gone = new Set<string>();
      for (const event of events) {
        if (event.type === "session_rewound") {
          const { beforeSeq, throughSeq } = event.data as { beforeSeq: number; throughSeq: number };
          for (const other of events) {
            if (other.seq >= beforeSeq && other.seq <= throughSeq && other.turnId) {
              gone.add(other.turnId);
            }
          }
        }
      }
      let ended = 0;
      for (const turn of turns.filter(({ turnId }) => !gone.has(turnId))) {
        const item = ends.get(turn.turnId);
        if (turn.endedAt == null) {
          assert.equal(item, undefined);
          assert.equal(t.turn?.id, turn.turnId);
          assert.equal(t.turn.startedAt, turn.startedAt);
        } else {
          ended += 1;
          assert.equal(item?.outcome, turn.state);
          assert.deepEqual(item.usage, turn.usage);
          assert.deepEqual(item.failure, turn.error ?? undefined);
          assert.equal(item.finished?.finalText, turn.finalText);
        }
      }
      assert.equal(ends.size, ended);
    });

    it(`${about} knows at its newest page what the server says of it`, () => {
      const all = whole(events).turn;
      for (let from = 0; from < events.length; from++) {
        const t = whole(events.slice(from));
        seed(t, session);
        const parked = session.status === "parked" && t.turn?.id === undefined;
        assert.equal(t.turn?.id, parked ? undefined : all?.id);
        assert.equal(t.turn?.state, all?.state, `from ${from}`);
        assert.equal(t.title, session.title ?? undefined);
        assert.equal(t.mode, session.mode);
      }
    });
  });
});
