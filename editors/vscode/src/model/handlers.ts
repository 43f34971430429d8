/**
 * What each event of a conversation does to its transcript: what is said, what waits, turns, tool calls,
 * approvals.
 */
import type { Approval, EventType, Resolution } from "@callboard/protocol";
import { add, index, notice, parts, push, touch, triggers } from "./items";
import { cut, finish, settle } from "./streams";
import { asText, told } from "./text";
import type { Change, EventOf, Handlers, Item, Known, RunningTurn, Transcript } from "./transcript";

function take(t: Transcript, seq: number): Item | undefined {
  const at = t.queue.findIndex((item) => item.seq === seq);
  return at < 0 ? undefined : t.queue.splice(at, 1)[0];
}

/**
 * The turn that an event is of; absent where none runs. When the event that began it is not loaded it is known
 * from the first one that tells of it.
 */
function turnOf(t: Transcript, event: EventOf<EventType>): RunningTurn | undefined {
  if (!t.turn && !t.known.turn && event.turnId) {
    t.turn = { id: event.turnId, state: "running", cancelling: false };
  }
  if (t.turn) {
    t.turn.id ??= event.turnId ?? undefined;
  }
  return t.turn;
}

/** Sees anew what the turn waits for. */
export function look(t: Transcript, change: Change): void {
  const turn = t.turn;
  if (turn) {
    turn.state = turn.parked ? "parked" : t.asking.size > 0 ? "waiting_approval" : "running";
  }
  change.head = true;
}

function wait(t: Transcript, item: Item, change: Change): void {
  t.queue.push(item);
  change.queue = true;
}

function call(t: Transcript, change: Change, event: EventOf<EventType>, id: string): Item {
  return t.byId.get(told(id)) ?? add(t, change, event, { id, kind: "tool" });
}

/** An approval that came to an end, as the server would tell of it. */
export function decide(approval: Approval, resolution: Resolution): void {
  const { outcome } = resolution;
  approval.state = outcome === "cancelled" || outcome === "expired" ? outcome : "resolved";
  approval.resolution = resolution;
}

/** Whether going back has taken out what stands at a place of the log. */
function isGone(known: Known, seq: number): boolean {
  return known.gonePrompts.has(seq) || known.gone.some(({ from, to }) => seq >= from && seq <= to);
}

/** Takes out what went by going back. */
export function forget(t: Transcript, known: Known): void {
  const stays = (each: { seq: number }): boolean => !isGone(known, each.seq);
  t.items = t.items.filter(stays);
  t.queue = t.queue.filter(stays);
  t.plans = t.plans.filter(stays);
  t.plan = t.plans.at(-1)?.entries ?? [];
  index(t);
}

export const conversation: Handlers = {
  directive(t, event, change) {
    wait(t, triggers.directive(event), change);
  },

  schedule_fired(t, event, change) {
    wait(t, triggers.schedule_fired(event), change);
  },

  member_mentioned(t, event, change) {
    wait(t, triggers.member_mentioned(event), change);
  },

  message(t, event, change) {
    const { data } = event;
    const id = told(data.messageId);
    if (data.author.kind === "agent" && !data.delivered) {
      const { text, thought } = parts(data.content);
      settle(t, change, event, "thought", thought);
      settle(t, change, event, "answer", text);
      finish(t, id);
    } else if (data.delivered) {
      // A delivery is in the log from the moment at which a turn takes it in.
      push(t, change, { ...triggers.message(event), turnId: event.turnId ?? undefined });
    } else {
      wait(t, triggers.message(event), change);
    }
  },

  ack(t, event, change) {
    for (const seq of event.data.admits) {
      const item = take(t, seq);
      const turnId = event.turnId ?? undefined;
      if (!item) {
        t.known.admitted.set(seq, { at: event.seq, turnId });
        continue;
      }
      change.queue = true;
      // The message that mentions somebody is there already.
      if (item.trigger !== "mention") {
        item.turnId = turnId;
        item.placed = event.seq;
        push(t, change, item);
      }
    }
  },

  prompt_updated(t, event, change) {
    const { seq, content } = event.data;
    const item = t.queue.find((each) => each.seq === seq);
    if (!item) {
      t.known.updated.set(seq, content);
      return;
    }
    const { text, attachments } = parts(content);
    item.text = text;
    item.attachments = attachments;
    change.queue = true;
  },

  triggers_dropped(t, event, change) {
    for (const seq of event.data.seqs) {
      if (take(t, seq)) {
        change.queue = true;
      } else {
        t.known.dropped.add(seq);
      }
    }
  },

  turn_started(t, event, change) {
    const { data } = event;
    const id = told(data.turnId);
    t.turn = { id, startedAt: event.at, state: "running", cancelling: false };
    if (typeof data.model === "string") {
      t.model = data.model;
    }
    t.known.turn = true;
    t.known.model = true;
    if (data.profile) {
      t.speakers.set(id, data.profile);
    }
    look(t, change);
  },

  turn_parked(t, event, change) {
    const turn = turnOf(t, event);
    if (turn) {
      turn.parked = true;
    }
    look(t, change);
  },

  turn_resumed(t, event, change) {
    const turn = turnOf(t, event);
    if (turn) {
      turn.parked = false;
    }
    look(t, change);
  },

  cancel_requested(t, event, change) {
    const turn = turnOf(t, event);
    // What only drops the queue lets the turn run.
    if (turn && event.data.scope !== "queue") {
      turn.cancelling = true;
    }
    look(t, change);
  },

  turn_finished(t, event, change) {
    const { data } = event;
    cut(t, change, told(data.turnId));
    t.turn = undefined;
    t.known.turn = true;
    change.head = true;
    add(t, change, event, {
      kind: "turn",
      turnId: data.turnId,
      outcome: data.outcome,
      failure: data.error ?? undefined,
      usage: data.usage,
      durationMs: data.durationMs ?? undefined,
      finished: data,
    });
  },

  tool_call(t, event, change) {
    const { data } = event;
    add(t, change, event, { id: told(data.callId), kind: "tool", call: data });
  },

  tool_result(t, event, change) {
    const { data } = event;
    const item = call(t, change, event, data.callId);
    item.text = asText(data.text);
    item.result = data;
    item.resultSeq = event.seq;
    item.blobs = data._blobs;
    delete item.streaming;
    delete item.partial;
    finish(t, item.id);
    touch(change, item.id);
  },

  approval_request(t, event, change) {
    const approval = { ...event.data.approval };
    const item = call(t, change, event, approval.callId);
    item.approval = approval;
    t.asking.add(told(approval.approvalId));
    turnOf(t, event);
    touch(change, item.id);
    look(t, change);
  },

  approval_decision(t, event, change) {
    const { data } = event;
    const item = t.byId.get(data.callId);
    if (item?.approval) {
      decide(item.approval, data.resolution);
      touch(change, item.id);
    }
    if (!t.asking.delete(told(data.approvalId))) {
      t.known.decided.set(data.approvalId, data.resolution);
    }
    turnOf(t, event);
    look(t, change);
  },

  error(t, event, change) {
    const failure = event.data.error;
    add(t, change, event, { kind: "error", text: asText(failure.message), failure });
  },

  plan_updated(t, event, change) {
    const { entries } = event.data;
    const sent: unknown = entries;
    if (!Array.isArray(sent) || sent.some((entry) => typeof entry !== "object" || entry === null)) {
      throw new TypeError("a plan without entries");
    }
    t.plan = entries;
    t.plans.push({ seq: event.seq, entries });
    change.head = true;
  },

  session_rewound(t, event, change) {
    const { data } = event;
    const { known } = t;
    known.gone.push({ from: data.beforeSeq, to: data.throughSeq });
    for (const seq of data.prompts ?? []) {
      known.gonePrompts.add(seq);
    }
    forget(t, known);
    change.reset = true;
    change.queue = true;
    change.head = true;
    const turns = data.turns === 1 ? "1 turn" : `${asText(data.turns)} turns`;
    notice(t, change, event, `Went back: ${turns} taken out. Files are as they were left.`);
  },
};
