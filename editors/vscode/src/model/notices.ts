/**
 * What each event about a session does to its transcript: what it is and how it is set, who takes part, what
 * became of its agents, links and schedules. Most of it is a line that says so.
 */
import type { EventDataByType, EventType } from "@callboard/protocol";
import { add, notice } from "./items";
import { asText, told } from "./text";
import type { Change, Handler, Handlers, Transcript } from "./transcript";

function telling<T extends EventType>(say: (data: EventDataByType[T]) => string): Handler<T> {
  return (t, event, change) => {
    notice(t, change, event, say(event.data));
  };
}

function head(_t: Transcript, _event: unknown, change: Change): void {
  change.head = true;
}

interface Begun {
  title?: string | null;
  mode: string;
  model?: string | null;
}

function begin(t: Transcript, session: Begun, title: string | null | undefined): void {
  const { known } = t;
  t.title = title ?? undefined;
  t.mode = session.mode;
  t.model = session.model ?? undefined;
  known.title = known.mode = known.model = known.turn = true;
}

const NO_REPLY = new Map([
  ["timed_out", "no reply came in time"],
  ["cancelled", "it was called away before a reply came"],
  ["parent_gone", "its parent is gone"],
  ["parent_restarted", "its parent began anew"],
]);

export const session: Handlers = {
  session_created(t, event, change) {
    begin(t, event.data, event.data.title);
    change.head = true;
  },

  agent_spawned(t, event, change) {
    begin(t, event.data.session, event.data.name);
    change.head = true;
  },

  /** A title that was taken away cannot be told from one that was not changed: whoever lists sessions knows. */
  session_updated(t, event, change) {
    const title = event.data.changes["title"];
    if (typeof title === "string") {
      t.title = title;
      t.known.title = true;
    }
    change.head = true;
  },

  mode_changed(t, event, change) {
    t.mode = told(event.data.mode);
    t.known.mode = true;
    change.head = true;
    notice(t, change, event, `Mode: ${t.mode}`);
  },

  model_changed(t, event, change) {
    const { model } = event.data;
    t.model = model == null ? undefined : told(model);
    t.known.model = true;
    change.head = true;
    notice(t, change, event, `Model: ${t.model ?? "the default"}`);
  },

  session_archived: head,
  session_unarchived: head,

  session_closed(t, event, change) {
    t.closed = true;
    change.head = true;
    notice(t, change, event, "The session was closed");
  },

  session_forked(t, event, change) {
    // Turns that the events before it tell of were those of another session.
    t.turn = undefined;
    t.known.turn = true;
    change.head = true;
    notice(t, change, event, "A fork: what stands above was taken over");
  },

  summary: telling(() => "What was said so far was summarised"),

  model_retried: telling(
    ({ error, attempt }) =>
      `The model did not answer (${asText(error.message)}); attempt ${attempt + 1}`,
  ),

  agent_asked: telling(
    (data) => (data.expectsReply ? "Asks its parent: " : "Tells its parent: ") + told(data.text),
  ),

  agent_replied: telling((data) =>
    data.outcome === "replied"
      ? `Was told: ${asText(data.text)}`
      : `Was not answered: ${NO_REPLY.get(data.outcome) ?? told(data.outcome)}`,
  ),

  agent_report_created: telling(
    ({ report }) => `Reported to its parent (${asText(report.status)})`,
  ),

  agent_interrupted: telling((data) => `Was interrupted: ${told(data.reason)}`),

  member_added: telling((data) => `@${told(data.name)} takes part`),

  member_removed: telling((data) => `@${told(data.name)} takes no part any more`),

  room_host_changed: telling((data) =>
    data.name
      ? `@${data.name} answers when nobody is addressed`
      : "The first member answers when nobody is addressed",
  ),

  wake_suppressed: telling(
    (data) =>
      `@${told(data.name)} was not woken: ${asText(data.burst)} messages of agents in a row. ` +
      "Say something to go on.",
  ),

  deliveries_dropped: telling(({ deliveries, reason }) => {
    const messages = deliveries.length === 1 ? "1 message" : `${deliveries.length} messages`;
    return `${messages} to it will not be read: ${told(reason)}`;
  }),

  peer_linked: telling((data) => `Linked to ${told(data.peerId)}`),

  peer_unlinked: telling((data) => `The link to ${told(data.peerId)} has ended`),

  peer_message_sent: telling((data) => `To ${told(data.to)}: ${told(data.text)}`),

  peer_message_dropped: telling(
    (data) => `A message of ${data.sender ?? "a peer"} will not be read: ${told(data.reason)}`,
  ),

  notice(t, event, change) {
    const { severity, title, description } = event.data;
    add(t, change, event, {
      kind: "notice",
      text: told(title),
      severity: asText(severity),
      description: asText(description),
    });
  },

  completion_changed: telling(() => "Says that its work is done; nobody has verified it"),
};
