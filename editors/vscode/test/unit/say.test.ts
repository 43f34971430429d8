import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { newSession, say } from "../../src/commands/say";
import { CallError } from "../../src/server/errors";
import type { OpenSession } from "../../src/session";
import type { Chat } from "../../src/views/chat";
import { FakeServer, sessionOf } from "./fake_server";
import { stub, Uri } from "./vscode_stub";

let server: FakeServer;

/** A chat that shows no session yet, as far as what is said to it goes. */
function emptyChat(): Chat {
  const chat: {
    app: unknown;
    open: OpenSession | undefined;
    show(id: string): void;
    context: object;
  } = {
    app: server.app,
    open: undefined,
    show: (id) => {
      chat.open = server.app.use(id);
    },
    context: { items: () => [], sent: () => undefined },
  };
  return chat as unknown as Chat;
}

function prompted(): unknown[] {
  return server.asked
    .filter(({ method }) => method === "session/prompt")
    .map(({ params }) => params["sessionId"]);
}

beforeEach(() => {
  server = new FakeServer();
  stub.folders = [{ uri: Uri.file("/project"), name: "project" }];
  let sessions = 0;
  server.answers["session/create"] = () => {
    sessions += 1;
    return { session: sessionOf(`ses_${sessions}`) };
  };
  server.answers["session/prompt"] = () => ({ eventSeq: 1, outcome: "started", cursor: "1" });
});

describe("a chat without a session", () => {
  it("begins one for all that is said to it at once", async () => {
    const chat = emptyChat();
    await Promise.all([say(chat, "one", "auto"), say(chat, "two", "auto")]);
    assert.equal(server.times("session/create"), 1);
    assert.deepEqual(prompted(), ["ses_1", "ses_1"]);
  });

  it("says to a session that begins what is said meanwhile", async () => {
    const chat = emptyChat();
    const begun = newSession(server.app);
    await Promise.all([begun, say(chat, "one", "auto")]);
    assert.equal(server.times("session/create"), 1);
    assert.deepEqual(prompted(), [await begun]);
  });

  it("begins another one when the first could not be begun", async () => {
    const create = server.answers["session/create"];
    assert.ok(create);
    server.answers["session/create"] = () => {
      throw new CallError(-31605, "the disk is full", { kind: "storeFull" });
    };
    const chat = emptyChat();
    await assert.rejects(say(chat, "one", "auto"));
    server.answers["session/create"] = create;
    await say(chat, "one", "auto");
    assert.deepEqual(prompted(), ["ses_1"]);
  });
});
