import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it, mock } from "node:test";
import type { Event } from "@callboard/protocol";
import { CallError } from "../../src/server/errors";
import { AGAIN_MS } from "../../src/server/feed";
import type { Card, Phase, ToChat } from "../../src/shared/chat";
import { ChatFeed, NEWS_MS, WINDOW } from "../../src/views/chatFeed";
import { Clock, eventOf, FakeServer, HANGS, sessionOf, settle } from "./fake_server";
import { agentOption, approval } from "./wire";

const ID = "ses_1";
const AGENT = { kind: "agent", name: "default" };
const PERSON = { kind: "person", name: "ann" };

let server: FakeServer;
let clock: Clock;
let told: ToChat[];
let feed: ChatFeed;
let log: Event[];

function add(type: string, data: object, turnId?: string): Event {
  const event = eventOf(ID, log.length + 1, type, data, turnId === undefined ? {} : { turnId });
  log.push(event);
  return event;
}

function asks(n: number): Event[] {
  return [
    add("message", {
      messageId: `msg_${n}`,
      author: PERSON,
      content: [{ type: "text", text: `prompt ${n}` }],
    }),
    add("turn_started", { turnId: `trn_${n}`, model: "a/b", profile: "default" }, `trn_${n}`),
    add("ack", { admits: [log.length - 1] }, `trn_${n}`),
  ];
}

function ends(n: number): Event[] {
  return [
    add(
      "message",
      {
        messageId: `ans_${n}`,
        author: AGENT,
        content: [{ type: "text", text: `answer ${n}` }],
        partial: false,
      },
      `trn_${n}`,
    ),
    add(
      "turn_finished",
      { turnId: `trn_${n}`, outcome: "completed", answeredThrough: 1, usage: {} },
      `trn_${n}`,
    ),
  ];
}

const pieceOf = (index: number, text: string): Record<string, unknown> => ({
  turnId: "trn_1",
  messageId: "ans_1",
  kind: "answer",
  index,
  text,
});

function last<T extends ToChat["type"]>(type: T): Extract<ToChat, { type: T }> {
  const found = told.findLast((message) => message.type === type);
  assert.ok(found, `${type} was told; told was ${told.map((each) => each.type).join(", ")}`);
  return found as Extract<ToChat, { type: T }>;
}

const texts = (cards: readonly Card[]): string[] =>
  cards.map((card) => ("text" in card ? card.text : card.kind));

async function open(): Promise<void> {
  feed.show(ID);
  await settle();
  clock.pass(NEWS_MS);
}

beforeEach(() => {
  server = new FakeServer();
  clock = new Clock();
  told = [];
  log = [];
  server.answers["session/get"] = () => ({ session: sessionOf(ID), draft: null });
  server.answers["event/list"] = (params) => {
    const before = params["before"] === "now" ? log.length : Number(params["before"]);
    const start = Math.max(0, before - Number(params["limit"]));
    return {
      data: log.slice(start, before),
      cursor: String(log.length),
      nextCursor: start > 0 ? String(start) : null,
    };
  };
  feed = new ChatFeed({
    app: server.app,
    post: (message) => {
      told.push(structuredClone(message));
    },
    later: clock.later,
    look: () => ({ sendKey: "enter", fontSize: 0, showUsage: true }),
    context: () => [],
  });
});

describe("a page", () => {
  it("is told everything when it comes up, and nothing before", async () => {
    asks(1);
    ends(1);
    await open();
    assert.equal(told.length, 0);
    feed.ready();
    const { all } = last("all");
    assert.deepEqual(texts(all.cards).slice(0, 2), ["prompt 1", "answer 1"]);
    assert.equal(all.phase.state, "live");
    assert.equal(all.head?.title, "A session");
    assert.equal(all.older, false);
  });

  it("is told what its agent has for a model and a mode once that has told it", async () => {
    feed.ready();
    await open();
    assert.equal(last("all").all.head?.agentModel, undefined);
    const options = [agentOption("codex", "model"), agentOption("codex", "mode", { value: "l" })];
    server.answers["session/get"] = () => ({
      session: sessionOf(ID, { model: "a/b", options }),
      draft: null,
    });
    server.tell("session", [add("external_options", { profile: "codex", options })], ID);
    await settle();
    clock.pass(NEWS_MS);
    const { head } = last("head");
    assert.deepEqual([head?.model, head?.agentModel], [undefined, "Small"]);
    assert.deepEqual([head?.mode, head?.agentMode], ["work", "Large"]);
  });

  it("says that it loads until the session is there", () => {
    feed.ready();
    feed.show(ID);
    clock.pass(NEWS_MS);
    assert.deepEqual(last("all").all.cards, []);
    assert.ok(["starting", "loading"].includes(last("all").all.phase.state));
  });

  it("gets what happens within one time as one message", async () => {
    feed.ready();
    await open();
    told.length = 0;
    server.tell("session", asks(1), ID);
    server.tell("session", ends(1), ID);
    assert.equal(told.length, 0);
    clock.pass(NEWS_MS);
    const news = told.filter((message) => message.type === "news");
    assert.equal(news.length, 1);
    assert.deepEqual(texts(news[0]?.cards ?? []).slice(0, 2), ["prompt 1", "answer 1"]);
  });

  it("is told of a text that streams only what is new of it", async () => {
    feed.ready();
    await open();
    server.tell("session", asks(1), ID);
    server.delta(ID, pieceOf(0, "one "));
    clock.pass(NEWS_MS);
    assert.deepEqual(texts(last("news").cards ?? []), ["prompt 1", "one "]);
    told.length = 0;
    server.delta(ID, pieceOf(1, "two "));
    server.delta(ID, pieceOf(2, "three"));
    clock.pass(NEWS_MS);
    const news = last("news");
    assert.equal(news.cards, undefined);
    assert.deepEqual(
      news.append?.map((each) => each.text),
      ["two three"],
    );
  });

  it("never gets half of a character", async () => {
    feed.ready();
    await open();
    server.tell("session", asks(1), ID);
    server.delta(ID, pieceOf(0, "a\ud83d"));
    clock.pass(NEWS_MS);
    assert.equal(texts(last("news").cards ?? []).at(-1), "a");
    server.delta(ID, pieceOf(1, "\ude00b"));
    clock.pass(NEWS_MS);
    assert.deepEqual(last("news").append?.[0]?.text, "\ud83d\ude00b");
  });

  it("gets the whole of a text that streamed once it is in the log", async () => {
    feed.ready();
    await open();
    server.tell("session", asks(1), ID);
    server.delta(ID, pieceOf(0, "answ"));
    clock.pass(NEWS_MS);
    server.tell("session", ends(1), ID);
    clock.pass(NEWS_MS);
    const cards = last("news").cards ?? [];
    const answer = cards.find((card) => card.kind === "answer");
    assert.ok(answer && "streaming" in answer);
    assert.equal(answer.text, "answer 1");
    assert.equal(answer.streaming, false);
  });

  it("that was hidden is told nothing, and everything when it is there again", async () => {
    feed.ready();
    await open();
    feed.hidden();
    told.length = 0;
    server.tell("session", asks(1), ID);
    clock.pass(1000);
    assert.equal(told.length, 0);
    assert.equal(clock.waiting, 0);
    feed.ready();
    assert.deepEqual(texts(last("all").all.cards), ["prompt 1"]);
  });

  it("keeps no timer while nothing happens", async () => {
    feed.ready();
    await open();
    assert.equal(clock.waiting, 0);
    assert.equal(server.clock.waiting, 0);
  });

  it("is told the newest cards, and those before them when it wants them", async () => {
    for (let n = 1; n <= 150; n += 1) {
      asks(n);
      ends(n);
    }
    await open();
    feed.ready();
    const first = last("all").all;
    assert.ok(first.cards.length <= WINDOW);
    assert.equal(first.older, true);
    const seen = [...first.cards];
    for (
      let times = 0;
      times < 10 && (told.at(-1) as { older?: boolean }).older !== false;
      times += 1
    ) {
      const asked = told.length;
      await feed.older();
      const news = told.slice(asked).find((message) => message.type === "news");
      seen.unshift(...(news?.before ?? []));
      if (news?.older === false) {
        break;
      }
    }
    const prompts = seen.filter((card) => card.kind === "prompt").map((card) => card.text);
    assert.deepEqual(
      prompts,
      Array.from({ length: 150 }, (_, n) => `prompt ${n + 1}`),
    );
    assert.equal(new Set(seen.map((card) => card.id)).size, seen.length);
  });

  describe("of which the person wants to see a place", () => {
    const foundCard = (): Card | undefined => {
      const cards = told.flatMap((message) =>
        message.type === "all"
          ? message.all.cards
          : message.type === "news"
            ? (message.before ?? [])
            : [],
      );
      return cards.find((card) => card.id === last("found").cardId);
    };

    beforeEach(() => {
      for (let n = 1; n <= 300; n += 1) {
        asks(n);
        ends(n);
      }
    });

    it("is told of the cards down to it, and then of it, though it lies pages back", async () => {
      feed.show(ID);
      feed.find(
        log.findIndex(({ data }) => (data as { messageId?: string }).messageId === "ans_7") + 1,
      );
      await settle();
      feed.ready();
      clock.pass(NEWS_MS);
      await settle();
      const card = foundCard();
      assert.deepEqual(card && texts([card]), ["answer 7"]);
      const before = last("news").before ?? [];
      assert.ok(before.length > 0 && new Set(before.map(({ id }) => id)).size === before.length);
      told.length = 0;
      await feed.older();
      assert.ok(!told.some(({ type }) => type === "found"));
    });

    it("is shown the prompt by the message that it was", async () => {
      await open();
      feed.ready();
      feed.find(
        log.findIndex(({ data }) => (data as { messageId?: string }).messageId === "msg_299") + 1,
      );
      await settle();
      const card = foundCard();
      assert.deepEqual(card && texts([card]), ["prompt 299"]);
    });

    it("goes to no place of a session that it has left", async () => {
      feed.show(ID);
      feed.find(3);
      feed.show(undefined);
      feed.show(ID);
      await settle();
      feed.ready();
      clock.pass(NEWS_MS);
      await settle();
      assert.ok(!told.some(({ type }) => type === "found"));
    });

    it("stays where it is when the pages before cannot be had", async () => {
      await open();
      feed.ready();
      server.answers["event/list"] = () => {
        throw new CallError(0, "the store is busy", { kind: "storeBusy" });
      };
      feed.find(3);
      await settle();
      assert.ok(!told.some(({ type }) => type === "found"));
      assert.equal(feed.open?.phase, "live");
    });
  });

  it("is told of what happens after older cards came in front", async () => {
    for (let n = 1; n <= 150; n += 1) {
      asks(n);
      ends(n);
    }
    await open();
    feed.ready();
    await feed.older();
    clock.pass(NEWS_MS);
    told.length = 0;
    server.tell("session", asks(151), ID);
    clock.pass(NEWS_MS);
    assert.deepEqual(texts(last("news").cards ?? []), ["prompt 151"]);
    assert.ok(!told.some((message) => message.type === "all"));
  });
});

describe("a stream that stands still after its first pieces", () => {
  const draft = (text: string, next: number): object => ({
    turnId: "trn_1",
    messageId: "ans_1",
    answer: text,
    thought: "",
    nextIndex: { answer: next },
  });
  const seen = (): string[] => {
    const cards = new Map<string, string>();
    for (const message of told) {
      const now =
        message.type === "all"
          ? message.all.cards
          : message.type === "news"
            ? (message.cards ?? [])
            : [];
      now.forEach((card) => cards.set(card.id, "text" in card ? card.text : card.kind));
      if (message.type === "news") {
        message.append?.forEach(({ id, text }) => cards.set(id, `${cards.get(id) ?? ""}${text}`));
      }
    }
    return [...cards.values()];
  };

  it("is shown though it had begun before it was followed, and its turn is told after that", async () => {
    feed.ready();
    let saved: object | null = null;
    server.answers["session/get"] = () => ({ session: sessionOf(ID), draft: saved });
    const subscribe = server.answers["event/subscribe"];
    assert.ok(subscribe);
    server.answers["event/subscribe"] = (params) => {
      saved = draft("one two ", 2); // the turn begins, and nothing of it is followed yet
      return subscribe(params);
    };
    await open();
    await settle();
    server.tell("session", asks(1), ID);
    clock.pass(NEWS_MS);
    assert.deepEqual(seen(), ["prompt 1", "one two "]);
    server.delta(ID, pieceOf(2, "three"));
    clock.pass(NEWS_MS);
    assert.deepEqual(seen(), ["prompt 1", "one two three"]);
  });

  it("is asked for once more when pieces were missing while it was asked for, and no more", async () => {
    feed.ready();
    await open();
    server.tell("session", asks(1), ID);
    const drafts = [draft("one ", 1), draft("one two three four", 4)];
    server.answers["session/get"] = () => ({ session: sessionOf(ID), draft: drafts.shift() });
    const before = server.times("session/get");
    server.delta(ID, pieceOf(1, "two "));
    server.delta(ID, pieceOf(3, "four"));
    await settle();
    clock.pass(NEWS_MS);
    assert.deepEqual(seen(), ["prompt 1", "one two three four"]);
    assert.equal(server.times("session/get") - before, 2);
  });
});

describe("an approval", () => {
  it("of the session stands at its call, and is answered there", async () => {
    feed.ready();
    await open();
    server.tell("session", asks(1), ID);
    const asking = approval("apr_1", { sessionId: ID, rootId: ID, turnId: "trn_1" });
    server.tell(
      "session",
      [
        add(
          "tool_call",
          {
            callId: "call_1",
            messageId: "ans_1",
            name: "run_command",
            title: "make",
            arguments: {},
          },
          "trn_1",
        ),
        add("approval_request", { approval: asking }, "trn_1"),
      ],
      ID,
    );
    server.tell("approvals", [eventOf(ID, log.length, "approval_request", { approval: asking })]);
    clock.pass(NEWS_MS);
    const card = last("news").cards?.find((each) => each.kind === "tool");
    assert.equal(card?.approval?.approvalId, "apr_1");
    assert.deepEqual(last("approvals").approvals, []);
  });

  it("of an agent below stands at the end, and those of other sessions are counted", async () => {
    feed.ready();
    await open();
    server.tell("approvals", [
      eventOf("ses_2", 1, "approval_request", {
        approval: approval("apr_2", { sessionId: "ses_2", rootId: ID }),
      }),
      eventOf("ses_9", 1, "approval_request", {
        approval: approval("apr_9", { sessionId: "ses_9", rootId: "ses_9" }),
      }),
    ]);
    clock.pass(NEWS_MS);
    const { approvals, elsewhere } = last("approvals");
    assert.deepEqual(
      approvals.map((each) => each.approvalId),
      ["apr_2"],
    );
    assert.equal(elsewhere, 1);
  });

  it("that was answered elsewhere first is told so, and is gone", async () => {
    await open();
    const asking = approval("apr_1", {
      options: [{ optionId: "yes", name: "Allow", kind: "allow_once" }],
    });
    server.tell("approvals", [eventOf(ID, 1, "approval_request", { approval: asking })]);
    server.answers["approval/answer"] = () => {
      throw new CallError(-31302, "it was answered", {
        kind: "alreadyResolved",
        resolution: {
          outcome: "rejected",
          by: { kind: "client", name: "Neovim" },
          via: "method",
          at: "",
        },
      });
    };
    const option = asking.options[0];
    assert.ok(option);
    const answered = await server.app.answer(asking, option);
    assert.deepEqual(answered, {
      taken: false,
      message: "apr_1 was rejected by Neovim already",
    });
    assert.deepEqual(server.app.approvals.pending, []);
  });

  it("that was answered in another window of this editor is told so", async () => {
    const asking = approval("apr_1", {
      options: [{ optionId: "yes", name: "Allow", kind: "allow_once" }],
    });
    server.answers["approval/answer"] = () => {
      const by = { kind: "client", id: "vscode_0a1b", name: "Code" };
      const resolution = { outcome: "allowed", by, via: "method", at: "" };
      throw new CallError(-31302, "it was answered", { kind: "alreadyResolved", resolution });
    };
    const option = asking.options[0];
    assert.ok(option);
    const answered = await server.app.answer(asking, option);
    assert.deepEqual(answered, {
      taken: false,
      message: "apr_1 was allowed by you in another window already",
    });
  });
});

describe("a store that is full", () => {
  afterEach(() => {
    mock.timers.reset();
  });

  it("is told, and asked again by itself for what is to be read and what is to be followed", async () => {
    mock.timers.enable({ apis: ["setTimeout"] });
    const { "session/get": get, "event/subscribe": subscribe } = server.answers;
    assert.ok(get && subscribe);
    const full = (): never => {
      throw new CallError(-31605, "the disk is full", { kind: "storeFull", retryable: true });
    };
    const after = async (ms: number): Promise<void> => {
      mock.timers.tick(ms);
      await settle();
      clock.pass(NEWS_MS);
    };
    const phase = (): Phase | undefined =>
      told.reduce<Phase | undefined>(
        (known, each) =>
          each.type === "phase" ? each.phase : each.type === "all" ? each.all.phase : known,
        undefined,
      );
    server.answers["session/get"] = full;
    feed.ready();
    await open();
    assert.deepEqual(phase(), { state: "lost", message: "the disk is full" });
    server.answers["session/get"] = get;
    server.answers["event/subscribe"] = full;
    await after(AGAIN_MS.at(-1) ?? 0);
    assert.deepEqual(phase(), { state: "lost", message: "the disk is full" });
    server.answers["event/subscribe"] = subscribe;
    await after(AGAIN_MS[0] ?? 0);
    assert.deepEqual(phase(), { state: "live" });
    server.tell("session", asks(1), ID);
    await after(0);
    assert.deepEqual(texts(last("news").cards ?? []), ["prompt 1"]);
  });
});

describe("a change", () => {
  it("is pending until somebody has decided, in whatever editor", async () => {
    feed.ready();
    await open();
    server.tell("session", asks(1), ID);
    const changed = {
      path: "/project/a.py",
      operation: "modify",
      diff: "@@ -1 +1 @@\n-a\n+b\n",
      added: 1,
      removed: 1,
    };
    const call = { callId: "call_1", messageId: "ans_1", name: "write_file", title: "Write a.py" };
    server.tell(
      "session",
      [
        add("tool_call", { ...call, arguments: {} }, "trn_1"),
        add(
          "tool_result",
          { callId: "call_1", name: "write_file", status: "ok", text: "", changes: [changed] },
          "trn_1",
        ),
      ],
      ID,
    );
    clock.pass(NEWS_MS);
    const verdict = (): unknown => {
      const card = last("news").cards?.find((each) => each.kind === "tool");
      return card?.changes[0]?.verdict;
    };
    assert.equal(verdict(), "pending");
    const files = { "/project/a.py": { through: log.length, verdict: "rejected" } };
    server.app.putSession(
      sessionOf(ID, { metadata: { "callboard.review": { sessionId: ID, through: 0, files } } }),
    );
    clock.pass(NEWS_MS);
    assert.equal(verdict(), "rejected");
  });
});

describe("a server that dies", () => {
  it("is asked again from the cursor, and nothing is told twice", async () => {
    feed.ready();
    await open();
    server.tell("session", asks(1), ID);
    clock.pass(NEWS_MS);
    told.length = 0;
    server.die();
    clock.pass(NEWS_MS);
    assert.equal(last("phase").phase.state, "reconnecting");
    server.clock.pass(1000);
    await settle();
    clock.pass(NEWS_MS);
    assert.equal(last("phase").phase.state, "live");
    server.tell("session", [...log, ...ends(1)], ID);
    clock.pass(NEWS_MS);
    assert.deepEqual(
      told
        .filter((message) => message.type === "news")
        .flatMap((message) => texts(message.cards ?? []))
        .filter((text) => text.startsWith("prompt") || text.startsWith("answer")),
      ["answer 1"],
    );
  });

  it("before it began to serve is told with its reason from the first time on", async () => {
    server.answers["initialize"] = () => HANGS;
    feed.ready();
    await open();
    server.die();
    clock.pass(NEWS_MS);
    const reason = {
      state: "reconnecting",
      message: "the server was ended by SIGKILL",
      starting: true,
      lines: ["it was killed"],
    };
    assert.deepEqual(last("phase").phase, reason);
    told.length = 0;
    server.clock.pass(1000);
    await settle();
    clock.pass(NEWS_MS);
    assert.equal(server.app.server.state, "starting");
    assert.deepEqual(last("phase").phase, reason);
  });

  it("does not answer a prompt twice: the next one is asked with the same key", async () => {
    await open();
    server.answers["session/prompt"] = () => HANGS;
    const sent = feed.open?.prompt({ text: "hello" });
    await settle();
    server.die();
    server.answers["session/prompt"] = () => ({ eventSeq: 1, outcome: "started", cursor: "1" });
    server.clock.pass(1000);
    await settle();
    assert.equal((await sent)?.outcome, "started");
    const keys = server.asked
      .filter(({ method }) => method === "session/prompt")
      .map(({ params }) => params["idempotencyKey"]);
    assert.equal(keys.length, 2);
    assert.equal(new Set(keys).size, 1);
  });
});

describe("Restricted Mode", () => {
  it("starts no server, and says why", async () => {
    const restricted = new FakeServer(false);
    const page = new ChatFeed({
      app: restricted.app,
      post: (message) => {
        told.push(message);
      },
      later: clock.later,
      look: () => ({ sendKey: "enter", fontSize: 0, showUsage: true }),
      context: () => [],
    });
    restricted.app.start();
    page.ready();
    page.show(ID);
    await settle();
    clock.pass(NEWS_MS);
    assert.equal(last("all").all.phase.state, "untrusted");
    assert.equal(restricted.starts, 0);
  });
});
