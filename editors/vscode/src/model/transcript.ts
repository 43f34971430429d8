/**
 * What a transcript is made of.
 *
 * Items only ever come at the end, so that a view appends; one that changes keeps its place. A prompt is an
 * item from the moment at which a turn takes it in (`ack`); until then it stands in the queue.
 */
import type {
  Approval,
  Author,
  BlobRef,
  Content,
  Draft,
  EventDataByType,
  EventDelta,
  EventEnvelope,
  EventType,
  Failure,
  PlanEntry,
  Resolution,
  ToolCall,
  ToolResult,
  TurnFinished,
  TurnOutcome,
  TurnState,
  Usage,
} from "@callboard/protocol";

export type ItemKind = "prompt" | "answer" | "thought" | "tool" | "notice" | "error" | "turn";

export type Waiting = "prompt" | "directive" | "mention" | "schedule";

export interface Item {
  id: string;
  kind: ItemKind;
  /** Of the event that it began with; 0 while it only streams. */
  seq: number;
  /** The seq of the event that put it where it stands. */
  placed: number;
  at: string;
  turnId?: string | undefined;
  author?: Author | undefined;
  text: string;
  /** Deltas still come. */
  streaming?: boolean;
  /** Cut off by a crash or a cancel. */
  partial?: boolean;
  /** A prompt that did not wait for the end of a turn. */
  steer?: boolean;
  /** What waits in the queue. */
  trigger?: Waiting;
  /** What else a prompt held: names of files, images. */
  attachments?: string[];
  call?: ToolCall | undefined;
  /** Of the event that told the result. */
  resultSeq?: number;
  result?: ToolResult;
  approval?: Approval | undefined;
  /** By JSON pointer: what the event holds only in part. */
  blobs?: Record<string, BlobRef> | undefined;
  outcome?: TurnOutcome;
  failure?: Failure | undefined;
  usage?: Usage;
  durationMs?: number | undefined;
  finished?: TurnFinished;
  /** Of a notice that the log itself calls one, as severe as it says. */
  severity?: string | undefined;
  /** What such a notice says below its title. */
  description?: string | undefined;
}

export interface RunningTurn {
  /** Absent while no event of it is loaded, and it is parked. */
  id?: string | undefined;
  /** Absent while the event that began it is not loaded. */
  startedAt?: string;
  state: TurnState;
  cancelling: boolean;
  /** As the events that are loaded tell it. */
  parked?: boolean;
}

export interface Stream {
  /** The piece that comes next. */
  next: number;
  /** Pieces behind a hole. */
  held: EventDelta[];
}

/** What the events that are loaded say of those before them. */
export interface Known {
  /** Whether a turn runs. */
  turn: boolean;
  model: boolean;
  mode: boolean;
  title: boolean;
  /** By seq: prompts that a turn took in, and when. */
  admitted: Map<number, { at: number; turnId: string | undefined }>;
  /** Prompts that nobody will answer. */
  dropped: Set<number>;
  /** By seq: prompts that say something else. */
  updated: Map<number, Content[]>;
  /** By approval. */
  decided: Map<string, Resolution>;
  /** What was taken out by going back. */
  gone: { from: number; to: number }[];
  gonePrompts: Set<number>;
}

export interface Transcript {
  sessionId: string;
  items: Item[];
  byId: Map<string, Item>;
  /** Of the first event that was applied. */
  firstSeq?: number;
  lastSeq: number;
  /** Prompts that no turn has taken in, in order. */
  queue: Item[];
  turn?: RunningTurn | undefined;
  plan: PlanEntry[];
  mode?: string | undefined;
  model?: string | undefined;
  title?: string | undefined;
  closed?: boolean;
  deleted?: boolean;
  /** By turn: the profile that plays it. */
  speakers: Map<string, string>;
  /** Approvals that wait. */
  asking: Set<string>;
  /** By kind and message. */
  streams: Map<string, Stream>;
  /** Pieces of a turn that has not taken its prompts in yet. */
  early: EventDelta[];
  /** What it had said before any piece of it came. */
  earlyDraft?: Draft | undefined;
  /** That turn, once it has begun. */
  opening?: string | undefined;
  /** Messages that are whole: no piece of them is new. */
  said: Set<string>;
  /** Turns that are over. */
  ended: Set<string>;
  plans: { seq: number; entries: PlanEntry[] }[];
  known: Known;
}

/** What an event has changed. */
export interface Change {
  /** Ids of items that are new or look different, in order. */
  items: string[];
  /** Items have gone, or stand elsewhere: show all anew. */
  reset?: boolean;
  queue?: boolean;
  /** Turn, plan, mode, model, title. */
  head?: boolean;
  /** Streamed text is missing: the draft has it. */
  hole?: boolean;
  /** Events are missing: ask again. */
  gap?: boolean;
  /** What was wrong with an event that cannot be shown. */
  fault?: string;
  /** Types, for whoever follows more than the text. */
  events: string[];
}

/** An event of one type. Of its data nothing is sure: whoever wrote it may have been another version. */
export type EventOf<T extends EventType> = EventEnvelope & {
  type: T;
  data: EventDataByType[T] & { _blobs?: Record<string, BlobRef> };
};

export type Handler<T extends EventType> = (
  t: Transcript,
  event: EventOf<T>,
  change: Change,
) => void;

export type Handlers = { [T in EventType]?: Handler<T> };

export function newTranscript(sessionId: string): Transcript {
  return {
    sessionId,
    items: [],
    byId: new Map(),
    lastSeq: 0,
    queue: [],
    plan: [],
    speakers: new Map(),
    asking: new Set(),
    streams: new Map(),
    early: [],
    said: new Set(),
    ended: new Set(),
    plans: [],
    known: {
      turn: false,
      model: false,
      mode: false,
      title: false,
      admitted: new Map(),
      dropped: new Set(),
      updated: new Map(),
      decided: new Map(),
      gone: [],
      gonePrompts: new Set(),
    },
  };
}

export function nothing(): Change {
  return { items: [], events: [] };
}
