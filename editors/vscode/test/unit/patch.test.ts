import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  apply,
  contentOf,
  hunkName,
  parse,
  reverse,
  textOf,
  type HunkFailure,
  type Patch,
} from "../../src/model/patch";
import { diffOf, edited, joined, randomLines, randomly } from "./texts";

function parsed(diff: string): Patch {
  const result = parse(diff);
  assert.ok("patch" in result, "why" in result ? result.why : "");
  return result.patch;
}

type Result = [text: string, failed: readonly HunkFailure[]];

function applied(text: string, diff: string): Result {
  const result = apply(textOf(text), parsed(diff));
  return [contentOf(result.text), result.failed];
}

function reversed(text: string, diff: string): Result {
  const result = reverse(textOf(text), parsed(diff));
  return [contentOf(result.text), result.failed];
}

function numbered(from: number, to: number): string {
  return Array.from({ length: to - from + 1 }, (_, i) => `line ${from + i}\n`).join("");
}

describe("a text", () => {
  it("is its lines with their ends", () => {
    assert.deepEqual(textOf(""), []);
    assert.deepEqual(textOf("\n"), ["\n"]);
    assert.deepEqual(textOf("a\nb"), ["a\n", "b"]);
    assert.deepEqual(textOf("a\r\n\r\n"), ["a\r\n", "\r\n"]);
    assert.equal(contentOf(textOf("a\n\nb")), "a\n\nb");
  });
});

describe("reading a diff", () => {
  it("takes a span without a count as one line", () => {
    const hunk = parsed("@@ -3 +3,2 @@\n-a\n+b\n+c\n").hunks[0];
    assert.deepEqual(
      [hunk?.oldStart, hunk?.oldCount, hunk?.newStart, hunk?.newCount],
      [3, 1, 3, 2],
    );
  });

  it("goes by the counts, not by what lines look like", () => {
    const diff = "@@ -1,2 +1,2 @@\n--- a/file\n-@@ -1 +1 @@\n+++ b/file\n+@@ -2 +2 @@\n";
    const lines = parsed(diff).hunks[0]?.lines;
    assert.deepEqual(lines?.[0], { mark: "-", text: "-- a/file\n" });
    assert.deepEqual(lines[3], { mark: "+", text: "@@ -2 +2 @@\n" });
  });

  it("has no hunks in an empty diff", () => {
    assert.deepEqual(parse(""), { patch: { hunks: [] } });
    assert.deepEqual(parse("--- a/x\n+++ b/x\n"), { patch: { hunks: [] } });
  });

  const damaged = {
    "cut in the middle of a hunk": "@@ -1,3 +1,3 @@\n a\n-b\n",
    "cut in the middle of a line": "@@ -1 +1 @@\n-abc\n+ab",
    "with a note where lines were cut out":
      "@@ -1,3 +1,3 @@\n a\n[... 300 lines left out ...]\n c\n",
    "with something else between its hunks": "@@ -1 +1 @@\n-a\n+b\nsomething else\n",
    "of two files": "@@ -1 +1 @@\n-a\n+b\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n",
    "with counts that do not add up": "@@ -1,1 +1,2 @@\n-a\n-b\n+c\n+d\n",
    "with a header that is none": "@@ -x +y @@\n a\n",
  };
  for (const [name, diff] of Object.entries(damaged)) {
    it(`refuses one ${name}`, () => {
      const result = parse(diff);
      assert.ok("why" in result && result.why !== "");
    });
  }
});

describe("a hunk", () => {
  const before = numbered(1, 30);
  const after = before.replace("line 15\n", "line fifteen\nline 15b\n");
  const change = diffOf(before, after);

  it("is put in at its place", () => {
    assert.deepEqual(applied(before, change), [after, []]);
    assert.deepEqual(reversed(after, change), [before, []]);
  });

  it("is found where lines came before it", () => {
    assert.deepEqual(reversed(`new\nlines\n${after}`, change), [`new\nlines\n${before}`, []]);
  });

  it("is found where lines before it have gone", () => {
    const text = after.replace("line 1\nline 2\nline 3\n", "");
    assert.deepEqual(reversed(text, change), [numbered(4, 30), []]);
  });

  it("is left out, and named, where somebody changed it", () => {
    const text = after.replace("line fifteen", "line XV");
    const [result, failed] = reversed(text, change);
    assert.equal(result, text);
    assert.equal(failed.length, 1);
    assert.equal(failed[0]?.fault, "changed");
    assert.equal(hunkName(failed[0].hunk), "hunk 1 (lines 12 to 19)");
  });

  const block = "a\nb\nc\nNEW\nd\ne\nf\n";
  const small = diffOf("a\nb\nc\nOLD\nd\ne\nf\n", block);

  it("is left out where it might be in two places, and is in neither by its number", () => {
    const text = `x\n${block}y\n${block}`;
    const [result, failed] = reversed(text, small);
    assert.equal(result, text);
    assert.equal(failed[0]?.fault, "ambiguous");
  });

  it("goes by its place where it is in two", () => {
    assert.deepEqual(reversed(block + block, small), [`a\nb\nc\nOLD\nd\ne\nf\n${block}`, []]);
  });

  it("moves with the one before it, where it could be in several places", () => {
    const old = "a\nb\nc\nOLD\nd\ne\nf\n";
    const text = `first\n${numbered(1, 9)}${old}${numbered(20, 29)}${old}`;
    const changed = text.replace("first", "1st").replace("OLD", "NEW");
    const grown = `more\nabove\n${changed.replaceAll("OLD", "NEW")}`;
    const back = `more\nabove\n${text.replace(/OLD([^]*)OLD/, "OLD$1NEW")}`;
    assert.deepEqual(reversed(grown, diffOf(text, changed)), [back, []]);
  });

  it("is not looked for before the one before it", () => {
    const text = numbered(1, 40);
    const changed = text.replace("line 10\n", "ten\n").replace("line 30\n", "thirty\n");
    const hunk = "line 27\nline 28\nline 29\nthirty\nline 31\nline 32\nline 33\n";
    const other = `${hunk}line 7\nline 8\nline 9\nten\nline 11\nline 12\nline 13\nend\n`;
    const [result, failed] = reversed(other, diffOf(text, changed));
    assert.equal(result, other.replace("ten", "line 10"));
    assert.equal(failed[0]?.hunk.index, 2);
  });

  it("does not keep the others from being put in", () => {
    const long = numbered(1, 60);
    const changed = long
      .replace("line 10\n", "ten\n")
      .replace("line 30\n", "thirty\nmore\n")
      .replace("line 50\n", "");
    const three = diffOf(long, changed);
    assert.equal(parsed(three).hunks.length, 3);
    const [result, failed] = reversed(changed.replace("thirty", "30!"), three);
    assert.deepEqual(
      failed.map((failure) => failure.hunk.index),
      [2],
    );
    assert.equal(result, long.replace("line 30\n", "30!\nmore\n"));
  });

  it("is found at the end of a file that was given a last line end meanwhile", () => {
    assert.deepEqual(reversed("a\nc\n", diffOf("a\nb", "a\nc")), ["a\nb", []]);
  });
});

describe("ends of lines", () => {
  const pairs = [
    ["a", "a\n"],
    ["a\n", "a"],
    ["a\r\nb\r\n", "a\nb\n"],
    ["a\nb", "a\nc"],
  ] as const;
  for (const [before, after] of pairs) {
    it(`are part of what changes: ${JSON.stringify([before, after])}`, () => {
      const change = diffOf(before, after);
      assert.deepEqual(applied(before, change), [after, []]);
      assert.deepEqual(reversed(after, change), [before, []]);
    });
  }
});

describe("a file that comes or goes", () => {
  it("is nothing before, or after", () => {
    const made = "--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+b\n";
    assert.deepEqual(applied("", made), ["a\nb\n", []]);
    assert.deepEqual(reversed("a\nb\n", made), ["", []]);
    const gone = "--- a/x\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n";
    assert.deepEqual(applied("a\nb\n", gone), ["", []]);
    assert.deepEqual(reversed("", gone), ["a\nb\n", []]);
  });

  it("is not made over one that has something in it", () => {
    const [text, failed] = applied("something\n", "@@ -0,0 +1 @@\n+a\n");
    assert.equal(text, "something\n");
    assert.equal(failed[0]?.fault, "changed");
  });
});

describe("random texts and edits", () => {
  it("are turned into each other, and back", () => {
    for (let seed = 1; seed <= 600; seed++) {
      const random = randomly(seed);
      const lines = randomLines(random, 60);
      const before = joined(random, lines);
      const after = joined(random, edited(random, lines));
      const change = diffOf(before, after);
      assert.deepEqual([seed, ...applied(before, change)], [seed, after, []]);
      assert.deepEqual([seed, ...reversed(after, change)], [seed, before, []]);
    }
  });

  it("never lose or invent a line where the text is another", () => {
    for (let seed = 1; seed <= 300; seed++) {
      const random = randomly(seed);
      const lines = randomLines(random, 40);
      const before = joined(random, lines);
      const after = joined(random, edited(random, lines));
      const other = textOf(joined(random, edited(random, lines)));
      const patch = parsed(diffOf(before, after));
      const result = apply(other, patch);
      const failed = new Set(result.failed.map((failure) => failure.hunk));
      const grown = patch.hunks
        .filter((hunk) => !failed.has(hunk))
        .reduce((sum, hunk) => sum + hunk.newCount - hunk.oldCount, 0);
      assert.equal(result.text.length, other.length + grown, `seed ${seed}`);
    }
  });
});
