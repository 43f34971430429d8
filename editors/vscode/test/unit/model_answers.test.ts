// How an approval can be answered, and when a key is not taken.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import type { Approval, ApprovalOption } from "@callboard/protocol";

import { choice, choices, who } from "../../src/model/answers";
import { HOLD_MS, hold, newArrivals, updateArrivals } from "../../src/model/arrivals";
import { approval as plain } from "./wire";

const OPTIONS: ApprovalOption[] = [
  ["allow_once", "Allow once"],
  ["allow_session", "Allow commands that start with `make` for this session"],
  ["allow_always", "Always allow commands that start with `make` in this workspace"],
  ["reject_once", "Reject"],
  ["reject_always", "Always reject commands that start with `make` in this workspace"],
].map(([kind = "", name = ""]) => ({ optionId: kind, kind, name }));

const approval = (fields: Partial<Approval> = {}): Approval =>
  plain("apr_1", { title: "Run `make`", options: OPTIONS, ...fields });

const offer = (fields: Partial<Approval> = {}): string[] =>
  choices(approval(fields)).map((each) =>
    [each.number, each.action, each.option.optionId, ...(each.note ? [`+${each.note}`] : [])].join(
      " ",
    ),
  );

describe("the answers to a permission", () => {
  it("stand at the same keys always", () => {
    assert.deepEqual(offer(), [
      "1 once allow_once",
      "2 session allow_session",
      "3 always allow_always",
      "4 deny reject_once",
      "5 deny_note reject_once +why",
      "6 deny_always reject_always",
    ]);
  });

  it("are those that it offers, and no others", () => {
    const options = OPTIONS.filter((option) => option.kind.endsWith("once"));
    assert.deepEqual(offer({ options }), [
      "1 once allow_once",
      "4 deny reject_once",
      "5 deny_note reject_once +why",
    ]);
    assert.equal(choice(approval({ options }), 2), undefined);
    assert.equal(choice(approval({ options }), 3), undefined);
    assert.equal(choice(approval({ options }), 1)?.option.optionId, "allow_once");
  });

  it("say which of them write a rule", () => {
    const labels = choices(approval()).map((each) => each.label);
    assert.equal(
      labels[2],
      "Always allow commands that start with `make` in this workspace (writes a rule)",
    );
    assert.equal(labels[1], "Allow commands that start with `make` for this session");
    assert.equal(labels[4], "Deny, say why");
    assert.match(labels[5] ?? "", /\(writes a rule\)/);
  });

  it("of a kind that is not known here come behind the others", () => {
    const options = [
      { optionId: "a", name: "Allow for an hour\x1b[2J", kind: "allow_hour" },
      { optionId: "b", name: "Allow once", kind: "allow_once" },
    ];
    assert.deepEqual(offer({ options }), ["1 once b", "7 option7 a"]);
    assert.equal(choice(approval({ options }), 7)?.label, "Allow for an hour<1B>[2J");
  });

  it("are none where a peer sends none", () => {
    assert.deepEqual(choices(approval({ options: null as unknown as ApprovalOption[] })), []);
  });
});

describe("a question", () => {
  it("has its options in their own order", () => {
    const question: Partial<Approval> = {
      kind: "question",
      subject: { type: "form", message: "Which?", schema: {} },
      options: [
        { optionId: "x", name: "No", kind: "reject_once" },
        { optionId: "y", name: "This", kind: "allow_once" },
      ],
    };
    assert.deepEqual(offer(question), ["1 option1 x", "2 option2 y +answer"]);
  });
});

describe("who asks", () => {
  it("is told of agents, by their path below the root", () => {
    const root = { sessionId: "ses_1", name: "default" };
    assert.equal(who(approval({ path: [root] })), undefined);
    const path = [
      root,
      { sessionId: "ses_2", name: "docs" },
      { sessionId: "ses_3", name: "num\nbers" },
    ];
    assert.equal(who(approval({ sessionId: "ses_3", path })), "docs › num bers");
    assert.equal(who(approval({ sessionId: "ses_3" })), "an agent");
  });
});

describe("a key", () => {
  const first = approval({ title: "First" });
  const second = approval({ approvalId: "apr_2", title: "Second" });

  it("does not answer what has only just come", () => {
    const arrivals = newArrivals();
    assert.deepEqual(updateArrivals(arrivals, [], [first], 1000), [first]);
    assert.ok(hold(arrivals, first, 1000 + HOLD_MS - 1));
    assert.equal(hold(arrivals, first, 1000 + HOLD_MS), undefined);
  });

  it("does not answer what has just taken the place of another", () => {
    const arrivals = newArrivals();
    updateArrivals(arrivals, [], [first, second], 0);
    assert.deepEqual(updateArrivals(arrivals, [first, second], [second], 5000), []);
    const held = hold(arrivals, second, 5000 + HOLD_MS - 1) ?? "";
    assert.match(held, /"First" has just ended/);
    assert.match(held, /"Second"/);
    assert.equal(hold(arrivals, second, 5000 + HOLD_MS), undefined);
  });

  it("is not kept from another session by that", () => {
    const arrivals = newArrivals();
    const other = approval({ approvalId: "apr_3", sessionId: "ses_9", rootId: "ses_9" });
    updateArrivals(arrivals, [], [first, other], 0);
    updateArrivals(arrivals, [first, other], [other], 5000);
    assert.equal(hold(arrivals, other, 5001), undefined);
  });

  it("is told of titles that hold anything", () => {
    const arrivals = newArrivals();
    const hostile = approval({ title: `a\nb\x1b[31m${"x".repeat(500)}` });
    updateArrivals(arrivals, [], [hostile], 0);
    const held = hold(arrivals, hostile, 1) ?? "";
    assert.ok(held.length > 0 && held.length < 300);
    assert.doesNotMatch(held, /[\n\x1b]/);
  });
});
