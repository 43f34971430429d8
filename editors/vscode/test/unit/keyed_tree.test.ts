// Trees of lines: what VS Code is told to draw again, and what it is given to draw.
import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";

import { picture as agentsPicture } from "../../src/views/agentsTree";
import { KeyedTree, type Entry, type Line } from "../../src/views/keyedTree";
import { picture as tasksPicture } from "../../src/views/tasksTree";
import { agent, session, task } from "./wire";

function line(id: string, fields: Partial<Line> = {}): Line {
  return { id, label: id, icon: "circle", context: "", children: [], ...fields };
}

describe("a tree of lines", () => {
  let tree: KeyedTree;
  let told: string[];

  beforeEach(() => {
    tree = new KeyedTree();
    told = [];
    tree.onDidChangeTreeData((changed) => {
      const all = changed === undefined ? ["all"] : [changed].flat().map((each) => each.line.id);
      told.push(all.join(" "));
    });
  });

  const shown = (entries: Entry[] = tree.getChildren()): unknown[] =>
    entries.map((entry) => [entry.line.id, ...shown(tree.getChildren(entry))]);

  it("has only those lines drawn that look different", () => {
    const children = [line("b"), line("c", { children: [line("d")] })];
    tree.set([line("a", { children })]);
    const [first] = tree.getChildren();
    tree.set([line("a", { children: [line("b"), line("c", { children: [line("d")] })] })]);
    assert.deepEqual(told, ["all"]);
    tree.set([
      line("a", {
        children: [line("b"), line("c", { children: [line("d", { description: "2 s" })] })],
      }),
    ]);
    assert.deepEqual(told, ["all", "d"]);
    assert.equal(tree.getChildren()[0], first);
    assert.equal(tree.getChildren(first)[1]?.children[0]?.line.description, "2 s");
  });

  it("has a line drawn with all below it when others are there", () => {
    tree.set([line("a", { children: [line("b")] }), line("x")]);
    tree.set([line("a", { children: [line("b"), line("c")] }), line("x")]);
    tree.set([line("x")]);
    assert.deepEqual(told, ["all", "a", "all"]);
    assert.deepEqual(shown(), [["x"]]);
  });

  it("knows what stands above each", () => {
    tree.set([line("a", { children: [line("b")] })]);
    const [first] = tree.getChildren();
    assert.equal(tree.getParent(tree.getChildren(first)[0] as Entry), first);
  });

  it("says each line in words, too, and nothing as markdown", () => {
    tree.set([line("a", { label: "docs", description: "running", children: [line("b")] })]);
    const [entry] = tree.getChildren();
    const item = tree.getTreeItem(entry as Entry);
    assert.equal(item.accessibilityInformation?.label, "docs, running");
    assert.equal(item.tooltip, "docs  running");
    assert.equal(item.collapsibleState, 2);
  });
});

describe("the tree of agents", () => {
  it("shows nothing where there are none, and leads with the session", () => {
    const root = session({ sessionId: "ses_root", title: "The team" });
    const view = { root, agents: [], approvals: [], fetched: 0 };
    assert.deepEqual(agentsPicture(view, 0), { lines: [], summary: "" });
    const question = { askId: "ask", agentId: "ses_a", name: "a", text: "Which?", askedAt: "" };
    const { lines, summary } = agentsPicture(
      { ...view, agents: [agent("a", { turnId: "t", question })] },
      0,
    );
    assert.equal(summary, "1 agent · 1 waiting for you");
    const [lead] = lines;
    assert.deepEqual([lead?.label, lead?.context], ["The team", "callboardLead"]);
    const [a] = lead?.children ?? [];
    assert.deepEqual([a?.label, a?.context], ["a", "callboardAgent running asks open"]);
    const [asks] = a?.children ?? [];
    assert.deepEqual(
      [asks?.label, asks?.command?.command],
      ["asks: Which?", "callboard.answerAgent"],
    );
  });
});

describe("the tree of tasks", () => {
  it("has a line for each section that has tasks", () => {
    const view = {
      root: "ses_root",
      title: "The team",
      tasks: [
        task("a", "claimed", { assignee: "ses_root" }),
        task("b", "completed", { summary: "Well." }),
      ],
      more: false,
      messages: [],
    };
    const { lines } = tasksPicture(view);
    assert.deepEqual(
      lines.map((each) => [each.label, each.closed]),
      [
        ["Active (1)", false],
        ["Done (1)", true],
      ],
    );
    assert.equal(lines[0]?.children[0]?.context, "callboardTask active open claimed own");
    assert.equal(lines[1]?.children[0]?.description, "Well.");
  });
});
