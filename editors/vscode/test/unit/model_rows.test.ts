// Sessions as rows of a list.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import type { Session } from "@callboard/protocol";

import { addApproval, newApprovals } from "../../src/model/approvals";
import { age, arrange, stateOf, used, type Row, type RowsWanted } from "../../src/model/rows";
import { groupOf } from "../../src/model/store";
import { approval, session } from "./wire";

const NOW = Date.parse("2024-05-01T12:00:00Z");

const wanted = (fields: Partial<RowsWanted> = {}): RowsWanted => ({
  folders: ["/home/ada/project"],
  all: false,
  approvals: newApprovals(),
  ...fields,
});

const of = (sessionId: string, fields: Partial<Session> = {}): Session =>
  session({ sessionId, ...fields });
const ids = (rows: readonly Row[]): string[] => rows.map((row) => row.session.sessionId);

describe("a time of the wire", () => {
  it("becomes an age in its largest unit", () => {
    const ages = {
      "2024-05-01T11:59:30Z": "now",
      "2024-05-01T12:00:30Z": "now",
      "2024-05-01T11:00:30Z": "59 m",
      "2024-04-30T13:00:00Z": "23 h",
      "2024-04-30T11:00:00Z": "1 d",
      "2024-01-01T12:00:00Z": "4 months",
      "2022-04-01T12:00:00Z": "2 y",
      yesterday: "",
    };
    for (const [at, said] of Object.entries(ages)) {
      assert.equal(age(at, NOW), said, at);
    }
    assert.equal(age(7, NOW), "");
  });
});

describe("rows of sessions", () => {
  it("come by group, the folder in question first, the pinned and newest first", () => {
    const { shown, hidden } = arrange(
      [
        of("ses_idle"),
        of("ses_other", { cwd: "/else", updatedAt: "2024-05-01T11:00:00Z" }),
        of("ses_new", { updatedAt: "2024-05-01T11:00:00Z" }),
        of("ses_pinned", { pinned: true }),
        of("ses_runs", { status: "running" }),
        of("ses_gone", { archived: true, pendingApprovals: 1 }),
        of("ses_asks", { status: "running", pendingApprovals: 1 }),
      ],
      wanted({ all: true }),
    );
    assert.deepEqual(ids(shown), [
      "ses_asks",
      "ses_runs",
      "ses_pinned",
      "ses_new",
      "ses_idle",
      "ses_other",
      "ses_gone",
    ]);
    assert.equal(hidden, 0);
  });

  it("leave other folders out and say how many, but never one that needs somebody", () => {
    const { shown, hidden } = arrange(
      [
        of("ses_here"),
        of("ses_a", { cwd: "/else" }),
        of("ses_b", { cwd: "/else", status: "running" }),
        of("ses_asks", { cwd: "/else", pendingApprovals: 2 }),
      ],
      wanted(),
    );
    assert.deepEqual(ids(shown), ["ses_asks", "ses_here"]);
    assert.equal(hidden, 2);
  });

  it("are those of all folders of a workspace", () => {
    const sessions = [of("ses_a", { cwd: "/a" }), of("ses_b", { cwd: "/b" }), of("ses_c")];
    const { shown, hidden } = arrange(sessions, wanted({ folders: ["/a", "/b"] }));
    assert.deepEqual([ids(shown), hidden], [["ses_b", "ses_a"], 1]);
  });

  it("are those of all folders where the folder has none", () => {
    const { shown, hidden } = arrange([of("ses_a", { cwd: "/else" })], wanted());
    assert.deepEqual([ids(shown), hidden], [["ses_a"], 0]);
  });

  it("need somebody when one of their agents asks", () => {
    const approvals = newApprovals();
    addApproval(approvals, approval("apr_1", { sessionId: "ses_child", rootId: "ses_root" }));
    const { shown } = arrange([of("ses_root", { status: "running" })], wanted({ approvals }));
    assert.equal(shown[0]?.group, "attention");
  });

  it("hold no agents, and no session twice", () => {
    const sessions = [of("ses_root"), of("ses_root"), of("ses_child", { parentId: "ses_root" })];
    assert.deepEqual(ids(arrange(sessions, wanted()).shown), ["ses_root"]);
  });

  it("say in words what a session does", () => {
    const said = (fields: Partial<Session>): string => {
      const each = session(fields);
      return stateOf(each, groupOf(each));
    };
    assert.equal(said({}), "done");
    assert.equal(said({ status: "running" }), "running");
    assert.equal(said({ status: "waiting_approval", pendingApprovals: 1 }), "waits for you");
    assert.equal(said({ status: "parked" }), "waits for you");
    assert.equal(said({ lastOutcome: "failed" }), "failed");
    assert.equal(said({ lastOutcome: "timed_out" }), "failed");
    assert.equal(said({ lastOutcome: "cancelled" }), "stopped");
    assert.equal(said({ archived: true }), "archived");
    assert.equal(said({ lastOutcome: null }), "new");
    assert.equal(said({ closed: true }), "closed");
  });

  it("say nothing about usage that is not known", () => {
    assert.equal(used(null), "");
    assert.equal(used({}), "");
    assert.equal(used({ inputTokens: 12 }), "12 tokens");
    assert.equal(used({ cost: 0.0012, currency: "USD" }), "$0.0012");
    assert.equal(used({ cost: 1.5, currency: "EUR" }), "1.50 EUR");
    assert.equal(used({ inputTokens: 0, cost: 0 }), "0 tokens $0.00");
    assert.equal(
      used({ inputTokens: 1000, outputTokens: 200, cost: 0.5, currency: "USD" }),
      "1.2k tokens $0.50",
    );
  });
});
