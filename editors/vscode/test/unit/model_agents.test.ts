// The tree of agents, and what all of them have used.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import type { Agent, Session } from "@callboard/protocol";

import { agentTree, runs, sumOf, type AgentNode, type AgentsView } from "../../src/model/agents";
import { said, saidOfTotal, totalOf } from "../../src/model/spent";
import { agent, approval, session } from "./wire";

const root = (fields: Partial<Session> = {}): Session =>
  session({
    sessionId: "ses_root",
    title: "Mend the stock",
    status: "running",
    model: "scripted/team",
    usage: { inputTokens: 1000, outputTokens: 500, cost: 0.02, currency: "USD" },
    ...fields,
  });

const view = (agents: Agent[], fields: Partial<AgentsView> = {}): AgentsView => ({
  root: root(),
  agents,
  approvals: [],
  fetched: 0,
  ...fields,
});

/** The tree as lines, each indented below the one that it belongs to. */
function shown(node: AgentNode, indent = ""): string[] {
  const facts = node.facts.length > 0 ? [node.facts.join(" · ")] : [];
  return [
    indent + [`${node.name} [${node.look}]`, node.state, ...facts].join("  "),
    ...node.details.map((each) => `${indent}| ${each.text}${each.since ? `  ${each.since}` : ""}`),
    ...node.children.flatMap((child) => shown(child, `${indent}  `)),
  ];
}

const lines = (of: AgentsView, now = 0): string[] => shown(agentTree(of, now));
const second = (n: number): string => `2026-01-01T00:00:${String(n).padStart(2, "0")}Z`;

describe("the tree of agents", () => {
  it("says who does what, since when, with which model, at what cost", () => {
    const of = view([
      agent("docs", {
        turnId: "trn_1",
        turnStartedAt: second(0),
        elapsedMs: 12000,
        model: "scripted/team",
        usage: { inputTokens: 1200, outputTokens: 34 },
        tools: [
          {
            callId: "c",
            name: "run",
            title: "Run `make docs`",
            startedAt: "2026-01-01T00:00:08.500Z",
          },
        ],
      }),
      agent("numbers", {
        status: "completed",
        elapsedMs: 810,
        report: {
          reportId: "rep_1",
          agentId: "ses_numbers",
          name: "numbers",
          turnId: "trn_2",
          status: "completed",
          summary: "All\nsums are right.",
        },
        createdAt: second(1),
      }),
    ]);
    assert.equal(sumOf(of), "2 agents · 1 running · all together at least 2.7k tokens, $0.02");
    assert.deepEqual(lines(of), [
      "Mend the stock [running]  running  scripted/team · 1.5k tokens, $0.02",
      "  docs [running]  running 12 s  scripted/team · 1.2k tokens",
      "  | Run `make docs`  4 s",
      "  numbers [completed]  completed 810 ms",
      "  | reported: All sums are right.",
    ]);
  });

  it("has the time of what runs go on, and of nothing else", () => {
    const a = agent("a", { turnId: "t", elapsedMs: 1000 });
    const b = agent("b", { status: "completed", elapsedMs: 1000, createdAt: second(1) });
    assert.deepEqual(lines(view([a, b], { fetched: 500 }), 60500).slice(1), [
      "  a [running]  running 1 m 1 s",
      "  b [completed]  completed 1 s",
    ]);
    assert.equal(runs(view([a, b])), true);
    assert.equal(runs(view([b])), false);
  });

  it("hangs agents below those that started them, in the order in which they came", () => {
    const of = view([
      agent("late", { createdAt: second(9) }),
      agent("child", { parentId: "ses_early" }),
      agent("early", { createdAt: second(1), queued: 1 }),
      agent("lost", { parentId: "ses_gone", createdAt: second(10) }),
    ]);
    assert.deepEqual(lines(of).slice(1), [
      "  early [running]  running",
      "  | 1 message for its next step",
      "    child [running]  running",
      "  late [running]  running",
      "  lost [running]  running",
    ]);
  });

  it("shows each once, also where parents go in a circle", () => {
    const of = view([
      agent("a", { parentId: "ses_b" }),
      agent("b", { parentId: "ses_a" }),
      agent("c", { parentId: "ses_c" }),
    ]);
    const text = lines(of).join("\n");
    for (const name of ["a", "b", "c"]) {
      assert.equal(text.split(`${name} [running]`).length - 1, 1, name);
    }
  });

  it("says what each waits for", () => {
    const report = { reportId: "r", agentId: "x", name: "x", turnId: "t" };
    const of = view(
      [
        agent("a", { approvals: [{ approvalId: "apr", title: "Run `rm`" }], turnId: "t" }),
        agent("b", {
          question: {
            askId: "ask",
            agentId: "ses_b",
            name: "b",
            text: "Which of\nthe two?",
            askedAt: second(1),
          },
          turnId: "t",
          createdAt: second(1),
        }),
        agent("c", { status: "starting", waitsForSlot: true, createdAt: second(2) }),
        agent("d", { interrupt: "cancel", createdAt: second(3) }),
        agent("e", {
          status: "interrupted",
          interrupted: { reason: "Enough." },
          report: { ...report, status: "aborted", summary: "half" },
          createdAt: second(4),
        }),
        agent("f", {
          status: "failed",
          report: { ...report, status: "failed", summary: "no key" },
          createdAt: second(5),
        }),
      ],
      { approvals: [approval("x", { title: "Edit a.py" })] },
    );
    assert.equal(
      sumOf(of),
      "6 agents · 2 running · 3 waiting for you · all together at least 1.5k tokens, $0.02",
    );
    assert.deepEqual(lines(of), [
      "Mend the stock [attention]  running  scripted/team · 1.5k tokens, $0.02",
      "| to approve: Edit a.py",
      "  a [attention]  waits for approval",
      "  | to approve: Run `rm`",
      "  b [attention]  waits for a reply",
      "  | asks: Which of the two?",
      "  c [starting]  waits for a free place",
      "  d [running]  winds down",
      "  e [interrupted]  interrupted",
      "  | stopped: Enough.",
      "  f [failed]  failed",
      "  | failed: no key",
    ]);
  });

  it("counts none where there are none", () => {
    assert.equal(sumOf(view([])), "0 agents · all together 1.5k tokens, $0.02");
    assert.deepEqual(agentTree(view([]), 0).children, []);
  });

  it("takes names, titles, models and statuses that hold anything", () => {
    const nasty = `a\nb\x1b[2J\u202e%f\ud800${"x".repeat(400)}`;
    const of = view(
      [
        agent("a", {
          name: nasty,
          agentType: nasty,
          model: nasty,
          status: nasty,
          tools: [{ callId: "c", name: nasty, title: nasty, startedAt: nasty }],
          approvals: null as never,
          usage: { inputTokens: 1, cost: 1, currency: nasty },
          interrupted: { reason: nasty },
        }),
      ],
      { root: root({ title: nasty, status: nasty }) },
    );
    for (const line of lines(of)) {
      assert.doesNotMatch(line, /[\n\x1b\u202e\ud800]/);
      assert.ok(line.length < 400, line);
    }
  });

  it("names the session that each line is about", () => {
    const tree = agentTree(view([agent("a")]), 0);
    assert.deepEqual([tree.id, tree.agent], ["ses_root", undefined]);
    assert.deepEqual([tree.children[0]?.id, tree.children[0]?.agent?.name], ["ses_a", "a"]);
  });
});

describe("what was used", () => {
  it("is unknown rather than nothing", () => {
    assert.equal(said(null), undefined);
    assert.equal(said({}), undefined);
    assert.equal(said({ inputTokens: 0, outputTokens: 0 }), "0 tokens");
    assert.equal(said({ cost: 0.0004, currency: "USD" }), "$0.0004");
  });

  it("is added up by currency, and told as a lower bound where some is unknown", () => {
    const of = view([
      agent("a", { usage: { inputTokens: 10, cost: 0.5, currency: "EUR" } }),
      agent("b", { status: "completed" }),
    ]);
    assert.equal(saidOfTotal(totalOf(of)), "at least 1.5k tokens, 0.50 EUR, $0.02");
  });
});
