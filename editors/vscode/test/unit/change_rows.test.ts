import type { Event, SessionRewindResult, Turn } from "@callboard/protocol";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { changeRow, changesSummary, type Around } from "../../src/model/changeRows";
import type { ChangedFile, Step } from "../../src/model/changes";
import { checkpoints, isTakenBack, rewound, saidBySeq } from "../../src/model/rewind";

function file(more: Partial<ChangedFile> = {}): ChangedFile {
  return {
    path: "/ws/src/f.py",
    oldPath: undefined,
    operation: "modify",
    added: 2,
    removed: 1,
    state: "new",
    chain: [],
    steps: [],
    partial: undefined,
    ...more,
  };
}

const AROUND: Around = { short: "src/f.py", oldShort: undefined, agents: [], since: undefined };

describe("a changed file in the list", () => {
  it("says what was done, how it stands, who did it and where it is", () => {
    const row = changeRow(file(), { ...AROUND, agents: ["scout", "mason"] });
    assert.equal(row.name, "f.py");
    assert.equal(row.description, "+2 −1 · new · by scout, mason · src");
    assert.equal(row.tooltip, "src/f.py\nchanged, +2 −1, new\nby scout, mason");
  });

  it("says that it was made, moved, put back, or changed since", () => {
    const told = (changed: Partial<ChangedFile>, around: Partial<Around> = {}): string =>
      changeRow(file(changed), { ...AROUND, short: "f.py", ...around }).description;
    assert.equal(told({ operation: "create", removed: 0 }), "+2 −0 · new · made");
    assert.equal(told({ operation: "delete" }), "+2 −1 · new · deleted");
    assert.equal(told({ operation: "move" }, { oldShort: "g" }), "+2 −1 · new · moved from g");
    assert.equal(told({ state: "rejected" }), "+2 −1 · put back");
    assert.equal(told({ state: "accepted" }), "+2 −1 · accepted");
    assert.equal(told({}, { since: "hunk 1 …" }), "+2 −1 · new, changed since");
    assert.equal(told({ operation: "melt" }), "+2 −1 · new · melt");
  });

  it("is one line, whatever its path and its agents are called", () => {
    const row = changeRow(file({ path: "x" }), {
      ...AROUND,
      short: "a\nb/\u202ec\u001b[31m",
      agents: ["x\ny"],
    });
    assert.equal(row.name, "<U+202E>c<1B>[31m");
    assert.equal(row.description, "+2 −1 · new · by x y · a b");
  });

  it("counts all of them", () => {
    assert.equal(changesSummary([]), "");
    const summary = changesSummary([file(), file({ state: "accepted" })]);
    assert.equal(summary, "2 files, 1 new, +4 −2");
  });
});

function turn(index: number, more: Partial<Turn> = {}): Turn {
  return {
    turnId: `turn${index}`,
    sessionId: "s",
    index,
    state: "completed",
    trigger: { kind: "prompt", seqs: [index * 10 + 1] },
    startedAt: "2000-01-01T00:00:00Z",
    finalText: `answer ${index}`,
    ...more,
  };
}

function message(seq: number, text: unknown): Event {
  return { type: "message", seq, data: { content: [{ type: "text", text }] } } as unknown as Event;
}

describe("turns that one can go back to before", () => {
  it("are told by what was asked, the newest first", () => {
    const said = saidBySeq([
      message(1, "first"),
      message(11, "second\nline"),
      { seq: 21, data: null } as unknown as Event,
    ]);
    const turns = [turn(0), turn(1, { state: "failed" }), turn(2, { finalText: null })];
    const now = Date.parse("2000-01-01T02:00:00Z");
    assert.deepEqual(
      checkpoints(turns, said, now).map(({ label, description, detail }) => [
        label,
        description,
        detail,
      ]),
      [
        ["Turn 3 (prompt)", "2 h ago", ""],
        ["second line", "2 h ago · failed", "answer 1"],
        ["first", "2 h ago", "answer 0"],
      ],
    );
  });

  const result = { turns: 2, beforeSeq: 10, eventSeq: 30 } as SessionRewindResult;

  it("are taken back, and files stay", () => {
    assert.equal(
      rewound(result, (path) => path),
      "Went back: 2 turns taken back, of which the agent knows nothing any more. Files are as they were left.",
    );
    const changed = { ...result, turns: 1, changedPaths: ["/a", "/b", "/c", "/d"], morePaths: 2 };
    const told = rewound({ ...changed, commands: 1 }, (path) => `.${path}`);
    assert.match(told, /^Went back: 1 turn taken back/);
    assert.match(told, /These had been changed: \.\/a, \.\/b, \.\/c and 3 more\./);
    assert.match(told, /1 command ran; what it did stands\.$/);
  });

  it("take with them what the session and its agents changed in them", () => {
    const step = (sessionId: string, seq: number, at: string): Step =>
      ({ sessionId, seq, at }) as Step;
    const before = "1999-12-31T23:59:59Z";
    const after = "2000-01-01T00:00:01.5Z";
    assert.deepEqual(
      [
        step("s", 9, after),
        step("s", 10, after),
        step("s", 31, after),
        step("agent", 3, before),
        step("agent", 4, after),
        step("agent", 4, "?"),
      ].map((each) => isTakenBack(each, turn(1), result)),
      [false, true, false, false, true, false],
    );
  });
});
