// The task board: what stands in which section, and what is told of each task.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import type { GroupMember, GroupTask } from "@callboard/protocol";

import { taskText } from "../../src/model/taskCard";
import {
  OVER,
  countsOf,
  memberLine,
  messageLine,
  requiredOf,
  sections,
  taskDetails,
  taskFacts,
  type BoardView,
} from "../../src/model/tasks";
import { MEMBERS, board } from "./boards";
import { task } from "./wire";

/** The sections that have tasks, as lines. */
const shown = (view: BoardView): string[] =>
  sections(view)
    .filter((section) => section.tasks.length > 0)
    .flatMap((section) => [
      section.title,
      ...section.tasks.flatMap((each) => [
        `  ${[each.title, ...taskFacts(view, each)].join("  ")}`,
        ...taskDetails(view, each).map(({ text, tone }) => `    ${tone}: ${text}`),
      ]),
    ]);

describe("the board", () => {
  it("has its tasks in sections, with owners and what is in the way", () => {
    const view = board(
      [
        task("parse", "pending", { ready: true }),
        task("docs", "in_progress", { assignee: "ses_docs" }),
        task("stuck", "claimed", { assignee: "ses_old", required: false }),
        task("key", "blocked", { assignee: "ses_docs", reason: "no\nkey" }),
        task("ship", "pending", {
          blockers: ["tsk_parse", "tsk_key"],
          dependencies: ["tsk_parse", "tsk_key"],
        }),
        task("plan", "completed", { assignee: "ses_root", summary: "Planned." }),
        task("no", "cancelled", { reason: "Not needed" }),
      ],
      {
        counts: {
          total: 7,
          pending: 2,
          ready: 1,
          claimed: 1,
          inProgress: 1,
          blocked: 1,
          completed: 1,
          cancelled: 1,
        },
        dependencyFailures: [{ taskId: "tsk_ship", dependencyId: "tsk_key", status: "blocked" }],
        conflicts: [{ taskIds: ["tsk_docs", "tsk_stuck"], path: "README.md" }],
        requiredUnfinished: ["tsk_parse", "tsk_docs", "tsk_key", "tsk_ship"],
      },
    );
    assert.equal(
      countsOf(view),
      "7 tasks: 1 ready, 2 active, 1 blocked, 1 waiting, 1 done, 1 cancelled",
    );
    assert.equal(requiredOf(view), "4 required not done");
    assert.deepEqual(MEMBERS.map(memberLine), ["root", "docs (running)", "old (completed)"]);
    assert.deepEqual(shown(view), [
      "Ready",
      "  Task parse  required",
      "Active",
      "  Task docs  docs  in progress  required",
      '    warning: "Task stuck" changes README.md, too',
      "  Task stuck  old  optional",
      "    warning: nobody is at it: old is completed",
      '    warning: "Task docs" changes README.md, too',
      "Blocked",
      "  Task key  docs  required",
      "    error: no key",
      "Waiting",
      "  Task ship  required",
      '    error: cannot become ready: "Task key" is blocked',
      '    plain: waits for "Task parse"',
      "Done",
      "  Task plan  root",
      "    plain: Planned.",
      "Cancelled",
      "  Task no",
      "    plain: Not needed",
    ]);
  });

  it("tells who wrote to whom", () => {
    const message = { messageId: "m", sender: "ses_docs", senderName: "docs", at: "" };
    const view = board([]);
    assert.equal(
      messageLine(view, { ...message, to: "root", text: "Second\nline", seen: false }),
      "docs → root: Second line  not read yet",
    );
    assert.equal(
      messageLine(view, { ...message, to: "group", text: "First", seen: true }),
      "docs → all: First",
    );
  });

  it("has nothing to tell where there is no group", () => {
    const view = board([], {}, { group: undefined });
    assert.deepEqual(shown(view), []);
    assert.equal(countsOf(view), "0 tasks");
    assert.equal(requiredOf(view), undefined);
    assert.equal(requiredOf({ ...view, group: {} as never }), undefined);
  });

  it("says when all that is required is done", () => {
    const view = board([task("a", "completed")]);
    assert.equal(countsOf(view), "1 task");
    assert.equal(requiredOf(view), "all that is required is done");
  });

  it("shows the latest of many that are over, and all that are open", () => {
    const tasks: GroupTask[] = [];
    for (let i = 1; i <= OVER + 5; i++) {
      tasks.push(task(`done${i}`, "completed"), task(`open${i}`, "pending", { ready: true }));
    }
    const [ready, , , , done] = sections(board(tasks));
    assert.deepEqual([done?.before, done?.tasks[0]?.title], [5, "Task done6"]);
    assert.deepEqual([ready?.before, ready?.tasks.length], [0, OVER + 5]);
  });

  it("names no more than a few of many blockers", () => {
    const blockers = ["tsk_a", "tsk_b", "tsk_c", "tsk_d", "tsk_unknown"];
    const waiting = task("x", "pending", { blockers });
    assert.deepEqual(taskDetails(board([waiting, task("a", "claimed")]), waiting), [
      { text: 'waits for "Task a", "…tsk_b", "…tsk_c", 2 more', tone: "plain" },
    ]);
  });

  it("takes titles, names and reasons that hold anything", () => {
    const nasty = `a\nb\x1b[2J\u202e%f\ud800${"x".repeat(400)}`;
    const tasks = [
      task("a", "blocked", { title: nasty, reason: nasty, assignee: "ses_n" }),
      task("b", nasty, {
        title: nasty,
        summary: nasty,
        description: nasty,
        findings: [nasty],
        touchedFiles: [nasty],
        expectedPaths: null as never,
      }),
    ];
    const view = board(tasks, {
      members: [{ agentId: "ses_n", name: nasty, status: nasty }],
      conflicts: [{ taskIds: ["tsk_a", "tsk_b"], path: nasty }],
    });
    const told = [
      ...tasks.flatMap((each) => taskFacts(view, each)),
      ...tasks.flatMap((each) => taskDetails(view, each).map((detail) => detail.text)),
      ...taskText(view, tasks[1] as GroupTask).split("\n"),
      ...list(view).map(memberLine),
    ];
    for (const line of told) {
      assert.doesNotMatch(line, /[\n\x1b\u202e\ud800]/);
    }
  });
});

const list = (view: BoardView): readonly GroupMember[] => view.group?.members ?? [];

describe("the card of a task", () => {
  it("has all that is known of it", () => {
    const one = task("one", "completed");
    const two = task("two", "completed", {
      title: "Write the docs",
      description: "First line\nsecond line",
      dependencies: ["tsk_one", "tsk_gone"],
      expectedPaths: ["docs/a.md"],
      assignee: "ses_docs",
      summary: "Written.",
      findings: ["It was short", "It is long"],
      touchedFiles: ["/w/docs/a.md"],
      required: false,
    });
    assert.deepEqual(taskText(board([one, two]), two).split("\n"), [
      "Write the docs",
      "status    completed",
      "owner     docs",
      "required  no: the work is complete without it, too",
      "about     First line",
      "          second line",
      "after     Task one (completed)",
      "          tsk_gone",
      "expects   docs/a.md",
      "summary   Written.",
      "finding   It was short",
      "          It is long",
      "changed   /w/docs/a.md",
      "created   2026-01-01T00:00:00Z by root",
      "id        tsk_two",
    ]);
  });

  it("says what keeps a task from being ready", () => {
    const waiting = task("x", "pending", { blockers: ["tsk_y"] });
    const lines = taskText(board([waiting, task("y", "claimed")]), waiting).split("\n");
    assert.equal(lines[1], "status    waiting");
    assert.ok(lines.includes('          waits for "Task y"'), lines.join("\n"));
  });
});
