// What is shown of an approval: all that is asked, and nothing that is not there.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import type { Approval } from "@callboard/protocol";

import { approvalCard } from "../../src/model/approvalCard";
import type { ApprovalCard, SubjectCard } from "../../src/shared/chat";
import { approval } from "./wire";

const OPTIONS = [
  { optionId: "allow_once", name: "Allow once", kind: "allow_once" },
  { optionId: "allow_session", name: "Allow it for this session", kind: "allow_session" },
  { optionId: "allow_always", name: "Always allow it in this workspace", kind: "allow_always" },
  { optionId: "reject_once", name: "Reject", kind: "reject_once" },
];

function of(subject: unknown, fields: Partial<Approval> = {}): ApprovalCard {
  const asked = approval("apr_1", { title: "Do it", options: OPTIONS, ...fields });
  return approvalCard({ ...asked, subject: subject as Approval["subject"] }, { cwd: "/w" });
}

function subject<T extends SubjectCard["type"]>(
  type: T,
  sent: unknown,
  fields: Partial<Approval> = {},
): Extract<SubjectCard, { type: T }> {
  const shown = of(sent, fields).subject;
  assert.equal(shown.type, type);
  return shown as Extract<SubjectCard, { type: T }>;
}

const command = { type: "command", command: "make", cwd: "/w" };

describe("an approval", () => {
  it("of a command shows all of it, where it runs, and what each answer does", () => {
    const long = `make all &&\n  rm -rf ${"x".repeat(30_000)}`;
    const shown = of(
      { type: "command", command: long, cwd: "/project" },
      {
        risk: "high",
        reason: "a rule\nasks about it",
        path: [
          { sessionId: "ses_1", name: "default" },
          { sessionId: "ses_2", name: "docs" },
        ],
      },
    );
    assert.deepEqual(shown.subject, { type: "command", command: long, cwd: "/project" });
    assert.deepEqual(
      [shown.kind, shown.title, shown.risk, shown.who, shown.reason],
      ["permission", "Do it", "high", "docs", "a rule\nasks about it"],
    );
    assert.deepEqual(
      shown.choices.map((each) => [each.number, each.optionId, each.short, each.label]),
      [
        [1, "allow_once", "once", "Allow once"],
        [2, "allow_session", "this session", "Allow it for this session"],
        [3, "allow_always", "always", "Always allow it in this workspace (writes a rule)"],
        [4, "reject_once", "deny", "Deny"],
        [5, "reject_once", "deny and say why", "Deny, say why"],
      ],
    );
    assert.deepEqual(
      shown.choices.map((each) => [each.allows, each.lasts, each.note]),
      [
        [true, false, undefined],
        [true, true, undefined],
        [true, true, undefined],
        [false, false, undefined],
        [false, false, "why"],
      ],
    );
    assert.equal(shown.answered, undefined);
  });

  it("spells out what would act on whoever reads it, or turn the text around", () => {
    const hostile = "ls \x1b[2K\u202efr- mr\u202c; \r:\x07";
    const shown = subject("command", { type: "command", command: hostile, cwd: "/w\n/x" });
    assert.equal(shown.command, "ls <1B>[2K<U+202E>fr- mr<U+202C>; <0D>:<07>");
    assert.equal(shown.cwd, "/w /x");
  });

  it("of changes shows each file with its diff", () => {
    const { changes } = subject("fileChange", {
      type: "fileChange",
      changes: [
        {
          path: "/w/a.py",
          operation: "modify",
          diff: "--- a/a.py\n+++ b/a.py\n@@ -1 +1,2 @@\n-old\n+new\n+more\n",
          added: 2,
          removed: 1,
        },
        { path: "/w/c.py", oldPath: "/b.py", operation: "move", diff: "", added: 0, removed: 0 },
      ],
    });
    assert.deepEqual(changes, [
      {
        file: { label: "a.py", path: "/w/a.py" },
        operation: "modify",
        added: 2,
        removed: 1,
        diff: { lines: ["@@ -1 +1,2 @@", "-old", "+new", "+more"], above: 0, below: 0, cut: false },
      },
      {
        file: { label: "c.py", path: "/w/c.py" },
        operation: "move",
        from: "/b.py",
        added: 0,
        removed: 0,
        diff: { lines: [], above: 0, below: 0, cut: false },
      },
    ]);
  });

  it("cuts long diffs, and says how much is left out", () => {
    const change = {
      path: "/w/a",
      operation: "create",
      diff: `@@ -0,0 +1,20 @@\n${"+x\n".repeat(20)}`,
      added: 20,
      removed: 0,
      truncated: true,
    };
    const { changes } = subject("fileChange", { type: "fileChange", changes: [change, change] });
    assert.deepEqual(
      changes.map(({ diff }) => [diff.lines.length, diff.below, diff.cut]),
      [
        [21, 0, true],
        [4, 17, true],
      ],
    );
  });

  it("of another call shows its arguments", () => {
    const shown = subject("toolCall", {
      type: "toolCall",
      name: "fetch",
      arguments: {
        url: "http://x\x1b",
        deep: { list: [1, "two\nlines"], none: {} },
        flag: true,
        nothing: null,
      },
      locations: [{ path: "/w/a", line: 2 }],
    });
    assert.equal(shown.name, "fetch");
    assert.deepEqual(shown.json.split("\n"), [
      "deep:",
      "  list:",
      "    - 1",
      "    - two",
      "      lines",
      "  none: {}",
      "flag: true",
      "nothing: null",
      "url: http://x<1B>",
    ]);
    assert.deepEqual(shown.files, [{ label: "a:2", path: "/w/a", line: 2 }]);
    assert.equal(subject("toolCall", { type: "toolCall", name: "x", arguments: {} }).json, "");
  });

  it("shows values that stand deep, or go on for ever", () => {
    let deep: unknown = "the end";
    for (let i = 0; i < 50; i++) {
      deep = { [`level${i}`]: deep };
    }
    const { json } = subject("toolCall", { type: "toolCall", name: "x", arguments: { deep } });
    assert.match(json, /the end/);
  });

  it("of a kind that is not known here hides nothing", () => {
    const shown = subject("toolCall", { type: "teleport", target: "mars" }, { tool: "beam" });
    assert.equal(shown.name, "beam");
    assert.match(shown.json, /target: mars/);
  });

  it("is there even when the server does not say what it is about", () => {
    for (const wrong of [undefined, null, 42, "a text", [], {}]) {
      for (const kind of ["permission", "question"] as const) {
        const shown = of(wrong, { kind, tool: "beam" });
        assert.equal(shown.subject.type, "toolCall");
        assert.ok(shown.choices.length >= 4);
      }
    }
  });

  it("of a command does not say it twice", () => {
    const sent = { type: "command", command: `make  all\n${"x".repeat(200)}`, cwd: "/w" };
    assert.equal(of(sent, { title: `make all ${"x".repeat(60)}…` }).title, "Run this command");
    assert.equal(of(sent, { title: "make clean" }).title, "make clean");
    assert.equal(of(sent, { title: "" }).title, "");
  });

  it("that was answered is one line", () => {
    const by = { kind: "client", id: "c", name: "VS\nCode" };
    const resolution = {
      outcome: "rejected",
      by,
      via: "method",
      at: "",
      feedback: "not\nnow",
    } as const;
    const shown = of(command, { resolution });
    assert.equal(shown.answered, "Denied by VS Code: not now");
    assert.deepEqual(shown.choices, []);
    const plain = { ...resolution, feedback: null, by: { kind: "policy", id: "x" } };
    assert.equal(of(command, { resolution: plain }).answered, "Denied by policy");
    const mine = { ...plain, outcome: "allowed", by: { ...by, id: "vscode_0a1b", name: "Code" } };
    assert.equal(of(command, { resolution: mine }).answered, "Allowed by you");
    assert.equal(of(command, { state: "expired" }).answered, "Expired");
  });

  it("holds no line end in what is one line, whatever it is made of", () => {
    const nasty = "a\nb\r\nc\x1bd\u202ee\ud83d";
    const change = { path: nasty, oldPath: nasty, operation: nasty, diff: nasty };
    const shown = of(
      { type: "fileChange", changes: [change] },
      {
        title: nasty,
        risk: nasty,
        path: [
          { sessionId: "r", name: "r" },
          { sessionId: "c", name: nasty },
        ],
        options: [{ optionId: "o", name: nasty, kind: "allow_once" }],
      },
    );
    const [file] = shown.subject.type === "fileChange" ? shown.subject.changes : [];
    const one = [shown.title, shown.risk, shown.who, file?.file.label, file?.operation, file?.from];
    for (const text of [...one, ...shown.choices.map((each) => each.label)]) {
      assert.doesNotMatch(text ?? "", /[\n\r\x1b\u202e]|\p{Surrogate}/u);
    }
  });
});

describe("a question", () => {
  it("shows what is asked, what the answer may hold, and its options by number", () => {
    const shown = of(
      {
        type: "form",
        message: "Which port?\nMind the firewall.",
        schema: {
          type: "object",
          required: ["port"],
          properties: {
            port: { type: "integer", description: "below 1024" },
            scheme: { enum: ["http", "https"] },
          },
        },
      },
      {
        kind: "question",
        title: "A question",
        options: [
          { optionId: "a", name: "Answer", kind: "allow_once" },
          { optionId: "b", name: "Do not answer", kind: "reject_once" },
        ],
      },
    );
    assert.equal(shown.kind, "question");
    assert.deepEqual(shown.subject, {
      type: "form",
      message: "Which port?\nMind the firewall.",
      fields: [
        { name: "port", about: "integer; required; below 1024" },
        { name: "scheme", about: "anything; one of http, https" },
      ],
    });
    assert.deepEqual(
      shown.choices.map((each) => [each.number, each.optionId, each.label, each.note]),
      [
        [1, "a", "Answer", "answer"],
        [2, "b", "Do not answer", undefined],
      ],
    );
  });
});
