// The board as its page shows it: what may be done with which task, and what a move means.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { SHOWN, boardOf, moveOf, verbsOf } from "../../src/model/board";
import { withTitles, type BoardView } from "../../src/model/tasks";
import type { ColumnName } from "../../src/shared/board";
import { fromBoard } from "../../src/views/boardMessages";
import { board } from "./boards";
import { task } from "./wire";

const TASKS = {
  ready: task("parse", "pending", { ready: true }),
  claimed: task("mine", "claimed", { assignee: "ses_root" }),
  begun: task("begun", "in_progress", { assignee: "ses_root" }),
  other: task("docs", "in_progress", { assignee: "ses_docs" }),
  blocked: task("key", "blocked", { assignee: "ses_docs", reason: "no key" }),
  waiting: task("ship", "pending", { blockers: ["tsk_key"] }),
  done: task("plan", "completed", { assignee: "ses_root", summary: "Planned." }),
  gone: task("no", "cancelled"),
};

const view = (tasks = Object.values(TASKS)): BoardView =>
  board(tasks, { requiredUnfinished: ["tsk_parse"] }, { title: "The\nproject" });

describe("the board of a page", () => {
  it("has a column for each way that a task can stand", () => {
    const board = boardOf(view(), true);
    assert.equal(board.title, "The project");
    assert.deepEqual(
      board.columns.map((column) => [column.name, column.count]),
      [
        ["ready", 1],
        ["active", 3],
        ["blocked", 1],
        ["waiting", 1],
        ["done", 1],
        ["cancelled", 1],
      ],
    );
    assert.deepEqual(board.required, { text: "1 required not done", done: false });
    const docs = board.columns[1]?.cards.find((card) => card.id === "tsk_docs");
    assert.deepEqual(docs, {
      id: "tsk_docs",
      title: "Task docs",
      owner: "docs",
      facts: ["in progress"],
      notes: [],
      verbs: ["assign", "cancel"],
    });
    assert.equal(board.empty, false);
    assert.equal(boardOf({ ...view([]), group: undefined }, true).empty, true);
  });

  it("shows no more of a column than can be looked at", () => {
    const many = Array.from({ length: SHOWN + 7 }, (_, at) =>
      task(`t${at}`, "pending", { ready: true }),
    );
    const [ready] = boardOf(view(many), true).columns;
    assert.deepEqual([ready?.cards.length, ready?.after, ready?.count], [SHOWN, 7, SHOWN + 7]);
  });

  it("offers of each task what may be done with it now", () => {
    const offered = (name: keyof typeof TASKS, agents = true): string =>
      verbsOf(view(), TASKS[name], agents).join(" ");
    assert.equal(offered("ready"), "claim assign spawn cancel");
    assert.equal(offered("ready", false), "claim assign cancel");
    assert.equal(offered("claimed"), "start complete block release assign cancel");
    assert.equal(offered("begun"), "complete block release assign cancel");
    assert.equal(offered("other"), "assign cancel");
    assert.equal(offered("blocked"), "assign cancel");
    assert.equal(offered("waiting"), "cancel");
    assert.equal(offered("done") + offered("gone"), "");
  });

  it("takes a move for what it means, or says why there is none", () => {
    const moves: [keyof typeof TASKS, ColumnName, string | RegExp][] = [
      ["ready", "active", "claim"],
      ["ready", "done", /is claimed before it can be done/],
      ["claimed", "done", "complete"],
      ["begun", "blocked", "block"],
      ["other", "ready", "release"],
      ["blocked", "active", "assign"],
      ["blocked", "ready", /give it to somebody, or cancel it/],
      ["waiting", "active", /waits for other tasks/],
      ["waiting", "cancelled", "cancel"],
      ["ready", "waiting", /waits by itself/],
      ["done", "ready", /is over/],
    ];
    for (const [name, to, expected] of moves) {
      const move = moveOf(TASKS[name], to);
      const said = "verb" in move ? move.verb : move.why;
      if (typeof expected === "string") {
        assert.equal(said, expected, `${name} to ${to}`);
      } else {
        assert.match(said, expected, `${name} to ${to}`);
      }
    }
  });

  it("tells refusals by the titles of tasks", () => {
    const nasty = view([task("x", "pending", { title: "$& and\nmore" })]);
    assert.equal(
      withTitles(nasty, "task tsk_x waits for tsk_y"),
      'task "$& and more" waits for tsk_y',
    );
  });
});

describe("what a page says", () => {
  it("is heard where it is of a page of ours", () => {
    for (const said of [
      { type: "ready" },
      { type: "add" },
      { type: "show", taskId: "t" },
      { type: "do", taskId: "t", verb: "claim" },
      { type: "move", taskId: "t", to: "done" },
    ]) {
      assert.deepEqual(fromBoard(said), said);
    }
    for (const said of [
      undefined,
      "ready",
      {},
      { type: "show" },
      { type: "do", taskId: "t", verb: "explode" },
      { type: "move", taskId: 7, to: "done" },
      { type: "move", taskId: "t", to: "constructor" },
    ]) {
      assert.equal(fromBoard(said), undefined, JSON.stringify(said));
    }
  });
});
