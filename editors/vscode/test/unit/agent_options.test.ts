// Options of agents that are programs of their own: where they are shown, and how they are picked and set.
import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";

import type { ExtensionContext, QuickPickItem } from "vscode";
import { registerChat } from "../../src/commands/chat";
import { modeOptions, otherOptions, worksWith } from "../../src/model/options";
import { CallError } from "../../src/server/errors";
import type { Chats } from "../../src/views/chats";
import { fakeApp, type FakeApp } from "./fake_app";
import { stub } from "./vscode_stub";
import { agentOption, session } from "./wire";

const BOTH = [agentOption("codex", "model"), agentOption("codex", "mode", { value: "yolo" })];

describe("what a session works with", () => {
  it("is the model of its agent in the place of its own, and the mode beside it", () => {
    assert.deepEqual(worksWith({ options: BOTH }, "work", "a/b"), {
      agentModel: "Small",
      agentMode: "yolo",
    });
  });

  it("is no mode of the agent while its own comes first", () => {
    for (const mode of ["ask", "plan"] as const) {
      assert.deepEqual(worksWith({ options: BOTH }, mode, null), { agentModel: "Small" });
    }
  });

  it("says in a room whose it is, beside the model of the others", () => {
    const options = [...BOTH, agentOption("goose", "model", { value: "l" })];
    assert.deepEqual(worksWith({ options, members: ["codex", "goose"] }, "work", "a/b"), {
      model: "a/b",
      agentModel: "codex Small, goose Large",
      agentMode: "codex yolo",
    });
  });

  it("is its own where no agent has told anything", () => {
    for (const options of [undefined, [], null, "all"]) {
      const sent = { options } as Parameters<typeof worksWith>[0];
      assert.deepEqual(worksWith(sent, "work", "a/b"), { model: "a/b" });
      assert.deepEqual([...modeOptions(sent), ...otherOptions(sent)], []);
    }
  });
});

describe("options of agents", () => {
  let fake: FakeApp;
  let lists: QuickPickItem[][];

  /** The person picks these, each from the next list. */
  function picks(...labels: string[]): void {
    stub.picks = (items) => {
      lists.push([...items] as QuickPickItem[]);
      const wanted = labels.shift();
      const picked = items.find((each) => each.label === wanted);
      assert.ok(wanted === undefined || picked, `${wanted} is in ${JSON.stringify(items)}`);
      return picked;
    };
  }

  const run = (name: string): unknown => stub.registered.get(`callboard.${name}`)?.("ses_1");
  const seen = (list: number): string[] =>
    (lists[list] ?? []).map(({ label, description, detail }) =>
      [label, description, detail].filter((each) => each !== undefined).join(" | "),
    );
  const changes = (): unknown[] =>
    fake.asked.filter(({ method }) => method === "session/update").map(({ params }) => params);

  beforeEach(() => {
    stub.reset();
    fake = fakeApp();
    lists = [];
    const options = [
      agentOption("codex", "model", { description: "Who answers" }),
      agentOption("codex", "mode"),
      agentOption("codex", "thought_level", { name: "Depth $(gear)" }),
    ];
    fake.app.putSession(session({ mode: "work", options }));
    fake.answers["model/list"] = { data: [{ modelId: "a/b", available: true, selected: true }] };
    fake.answers["session/update"] = { session: session({ title: "Changed" }) };
    const context = { subscriptions: [] } as unknown as ExtensionContext;
    registerChat(context, fake.app, {} as Chats);
  });

  it("are offered with the models, each leads to its values, and one is set", async () => {
    picks("The model of codex", "Large");
    await run("selectModel");
    assert.deepEqual(seen(0), [
      "Options of agents",
      "The model of codex | Small | Who answers",
      "Depth \\$(gear) of codex | Small",
      "Models",
      "$(check) a/b",
    ]);
    assert.deepEqual(seen(1), ["$(check) Small", "Large | Slow and good"]);
    assert.deepEqual(changes(), [{ sessionId: "ses_1", options: { "codex/model": "l" } }]);
    assert.equal(fake.app.sessions.byId.get("ses_1")?.title, "Changed");
  });

  it("that are modes are offered with the modes", async () => {
    picks("The mode of codex", "Large");
    await run("selectMode");
    assert.deepEqual(
      seen(0).map((each) => each.split(" | ")[0]),
      ["$(check) work", "ask", "plan", "Options of agents", "The mode of codex"],
    );
    assert.deepEqual(changes(), [{ sessionId: "ses_1", options: { "codex/mode": "l" } }]);
  });

  it("are offered also where there is no model but theirs", async () => {
    fake.answers["model/list"] = { data: [] };
    picks();
    await run("selectModel");
    assert.equal(seen(0)[1], "The model of codex | Small | Who answers");
    assert.deepEqual(changes(), []);
  });

  it("that the server refuses are told in its words", async () => {
    fake.answers["session/update"] = () => {
      throw new CallError(-32602, "$.options.codex/model cannot be 'l'; it can be s");
    };
    picks("The model of codex", "Large");
    await run("selectModel");
    assert.match(stub.shown.at(-1)?.message ?? "", /codex\/model cannot be 'l'; it can be s/);
  });

  it("leave models and modes as they were picked before", async () => {
    fake.app.putSession(session({ mode: "work", options: [] }));
    picks("plan", "$(check) a/b");
    await run("selectMode");
    await run("selectModel");
    assert.deepEqual(seen(1), ["$(check) a/b"]);
    assert.deepEqual(changes(), [
      { sessionId: "ses_1", mode: "plan" },
      { sessionId: "ses_1", model: "a/b" },
    ]);
  });
});
