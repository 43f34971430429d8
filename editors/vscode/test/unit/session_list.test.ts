import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Session } from "@callboard/protocol";
import { addApproval, newApprovals } from "../../src/model/approvals";
import {
  NO_FILTER,
  sessionList,
  stateBeside,
  type ListNode,
  type ListWanted,
} from "../../src/model/sessionList";
import { approval, session } from "./wire";

const HERE = "/home/ada/project";

function one(name: string, fields: Partial<Session> = {}): Session {
  return session({ sessionId: `ses_${name}`, title: name, ...fields });
}

/** The newest first, as they are made. */
function several(count: number, fields: Partial<Session> = {}): Session[] {
  return Array.from({ length: count }, (_, at) =>
    one(`s${at}`, {
      updatedAt: `2024-05-01T10:${String(59 - at).padStart(2, "0")}:00Z`,
      ...fields,
    }),
  );
}

function wanted(fields: Partial<ListWanted> = {}): ListWanted {
  return {
    folders: [HERE],
    approvals: newApprovals(),
    filter: NO_FILTER,
    groupBy: "state",
    shown: () => 5,
    more: false,
    moreArchived: false,
    ...fields,
  };
}

/** What stands there, line by line. */
function drawn(nodes: readonly ListNode[], depth = 0): string[] {
  return nodes.flatMap((node) => {
    const before = "  ".repeat(depth);
    switch (node.kind) {
      case "group":
        return [
          `${before}${node.label}${node.about === "" ? "" : ` ${node.about}`}${node.folded ? " (folded)" : ""}`,
          ...drawn(node.children, depth + 1),
        ];
      case "session":
        return [`${before}${node.row.session.title ?? ""}`];
      case "more":
        return [`${before}more ${node.count}${node.open ? " or more" : ""}`];
      case "hidden":
        return [`${before}${node.label}`];
    }
  });
}

describe("the list of sessions", () => {
  it("is empty where there is none, so that the view says what to do", () => {
    assert.deepEqual(sessionList([], wanted()), []);
  });

  it("has those that need somebody first, then those that run, and names no group that is empty", () => {
    const sessions = [
      one("idle"),
      one("running", { status: "running" }),
      one("asks", { pendingApprovals: 1 }),
      one("old", { archived: true }),
    ];
    assert.deepEqual(drawn(sessionList(sessions, wanted())), [
      "Needs you 1",
      "  asks",
      "Running 1",
      "  running",
      "Idle",
      "  idle",
      "Archived (folded)",
      "  old",
    ]);
  });

  it("knows from approvals what the session itself does not tell yet", () => {
    const approvals = newApprovals();
    addApproval(approvals, approval("apr_1", { sessionId: "ses_child", rootId: "ses_quiet" }));
    assert.deepEqual(drawn(sessionList([one("quiet")], wanted({ approvals }))), [
      "Needs you 1",
      "  quiet",
    ]);
  });

  it("shows the newest that are idle, and a line that leads to the rest", () => {
    assert.deepEqual(drawn(sessionList(several(8), wanted())), [
      "Idle",
      ...["s0", "s1", "s2", "s3", "s4"].map((name) => `  ${name}`),
      "  more 3",
    ]);
    assert.deepEqual(drawn(sessionList(several(8), wanted({ shown: () => 25 }))).length, 9);
  });

  it("leads on where nobody knows how many there are", () => {
    const lines = drawn(sessionList(several(2), wanted({ more: true })));
    assert.deepEqual(lines, ["Idle", "  s0", "  s1", "  more 0 or more"]);
  });

  it("leads on also where no group stands that could", () => {
    const busy = [one("busy", { status: "running" })];
    assert.deepEqual(drawn(sessionList(busy, wanted({ more: true }))), [
      "Running 1",
      "  busy",
      "more 0 or more",
    ]);
  });

  it("shows those that are pinned, however old", () => {
    const sessions = [
      ...several(6),
      one("pinned", { pinned: true, updatedAt: "2001-01-01T00:00:00Z" }),
    ];
    const lines = drawn(sessionList(sessions, wanted({ shown: () => 2 })));
    assert.deepEqual(lines, ["Idle", "  pinned", "  s0", "  s1", "  more 4"]);
  });

  it("says how many of other folders it hides, and shows them when asked", () => {
    const sessions = [
      one("here"),
      one("there", { cwd: "/elsewhere" }),
      one("far", { cwd: "/far" }),
    ];
    assert.deepEqual(drawn(sessionList(sessions, wanted())), [
      "Idle",
      "  here",
      "2 hidden by filter",
    ]);
    const filter = { everywhere: true, words: "" };
    assert.equal(
      drawn(sessionList(sessions, wanted({ filter })))
        .at(-1)
        ?.includes("hidden"),
      false,
    );
  });

  it("shows all where the folder has none of its own", () => {
    const sessions = [one("there", { cwd: "/elsewhere" })];
    assert.deepEqual(drawn(sessionList(sessions, wanted())), ["Idle", "  there"]);
  });

  it("never hides one of another folder that needs somebody", () => {
    const sessions = [one("here"), one("asks", { cwd: "/elsewhere", pendingApprovals: 2 })];
    assert.deepEqual(drawn(sessionList(sessions, wanted())).slice(0, 2), ["Needs you 1", "  asks"]);
  });

  it("finds by title, agent, model, folder and id, in any case and order", () => {
    const sessions = [
      one("Mend the parser", { profile: "reviewer", model: "openai/gpt" }),
      one("Other", { cwd: HERE }),
    ];
    for (const words of ["PARSER mend", "review", "gpt", "ses_mend"]) {
      const filter = { everywhere: false, words };
      const nodes = sessionList(sessions, wanted({ filter }));
      assert.deepEqual(drawn(nodes), ["Idle", "  Mend the parser", "1 hidden by filter"], words);
      const [, hidden] = nodes;
      assert.ok(hidden?.kind === "hidden" && hidden.about.includes(`without “${words}”`));
    }
  });

  it("says that all are hidden rather than that there is none", () => {
    const filter = { everywhere: true, words: "nothing" };
    assert.deepEqual(drawn(sessionList(several(3), wanted({ filter, more: true }))), [
      "more 0 or more",
      "3 or more hidden by filter",
    ]);
  });

  it("groups by folder, this one first, with what needs somebody before all", () => {
    const sessions = [
      one("there", { cwd: "/elsewhere/deep" }),
      one("here"),
      one("runs", { status: "running" }),
      one("asks", { pendingApprovals: 1, cwd: "/far" }),
    ];
    const filter = { everywhere: true, words: "" };
    assert.deepEqual(drawn(sessionList(sessions, wanted({ groupBy: "folder", filter }))), [
      "Needs you 1",
      "  asks",
      `project ${HERE}`,
      "  runs",
      "  here",
      "deep /elsewhere/deep",
      "  there",
    ]);
  });

  it("is flat when that is wanted", () => {
    const sessions = [...several(3), one("asks", { pendingApprovals: 1 })];
    const shown = (): number => 2;
    assert.deepEqual(drawn(sessionList(sessions, wanted({ groupBy: "none", shown }))), [
      "asks",
      "s0",
      "s1",
      "more 1",
    ]);
  });

  it("has a group for archived ones that are not known yet", () => {
    const nodes = sessionList(several(1), wanted({ moreArchived: true }));
    assert.deepEqual(drawn(nodes).slice(2), ["Archived (folded)", "  more 0 or more"]);
  });

  it("shows no agents: they stand in the tree of their session", () => {
    const sessions = [one("lead"), one("child", { parentId: "ses_lead", rootId: "ses_lead" })];
    assert.deepEqual(drawn(sessionList(sessions, wanted())), ["Idle", "  lead"]);
  });

  it("tells a state where the group does not", () => {
    const state = (fields: Partial<Session>): string => {
      const [group] = sessionList([one("it", fields)], wanted());
      const [node] = group?.kind === "group" ? group.children : [];
      assert.ok(node?.kind === "session");
      return stateBeside(node);
    };
    assert.equal(state({}), "");
    assert.equal(state({ lastOutcome: "failed" }), "failed");
    assert.equal(state({ lastOutcome: null }), "new");
    assert.equal(state({ status: "running" }), "");
    assert.equal(state({ pendingApprovals: 1 }), "");
    assert.equal(state({ archived: true }), "");
  });

  it("keeps the ids of groups, so that what is folded stays so", () => {
    const ids = (sessions: Session[]): string[] =>
      sessionList(sessions, wanted()).flatMap((node) => (node.kind === "group" ? [node.id] : []));
    assert.deepEqual(ids(several(1)), ids(several(9)));
  });
});
