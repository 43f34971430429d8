// Some lines of a long text.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { excerpt, WIDTH } from "../../src/model/excerpt";

describe("an excerpt", () => {
  it("is the first lines, or the last ones, and counts the others", () => {
    const raw = `${[1, 2, 3, 4, 5, 6, 7, 8, 9].join("\n")}\n\n\n`;
    assert.deepEqual(excerpt(raw, { room: 3 }), { lines: ["1", "2", "3"], above: 0, below: 6 });
    assert.deepEqual(excerpt(raw, { room: 3, fromEnd: true }), {
      lines: ["7", "8", "9"],
      above: 6,
      below: 0,
    });
    assert.deepEqual(excerpt("x", { room: 3, fromEnd: true }), {
      lines: ["x"],
      above: 0,
      below: 0,
    });
    assert.deepEqual(excerpt("\r\n\n", { room: 3 }), { lines: [], above: 0, below: 0 });
    assert.deepEqual(excerpt("", { room: 3 }), { lines: [], above: 0, below: 0 });
    assert.deepEqual(excerpt("\n\nx", { room: 3 }).lines, ["", "", "x"]);
    assert.deepEqual(excerpt(raw, { room: 0 }), { lines: [], above: 0, below: 9 });
  });

  it("leaves out what is said elsewhere", () => {
    const raw = "--- a\n+++ b\n@@\n-x\n+y\n";
    const skip = (line: string, number: number): boolean => number < 3 && /^[-+]/.test(line);
    assert.deepEqual(excerpt(raw, { room: 2, skip }), { lines: ["@@", "-x"], above: 0, below: 1 });
    assert.deepEqual(excerpt(raw, { room: 1, fromEnd: true, skip }), {
      lines: ["+y"],
      above: 2,
      below: 0,
    });
  });

  it("is fit to be shown", () => {
    assert.deepEqual(excerpt("a\x1bb\r\nc\rd", { room: 5 }).lines, ["a<1B>b", "c<0D>d"]);
    const [long = ""] = excerpt("€".repeat(100_000), { room: 5 }).lines;
    assert.equal(long, `${"€".repeat(WIDTH)} …`);
    const [smiles = ""] = excerpt("🙂".repeat(100_000), { room: 5 }).lines;
    assert.equal(smiles, `${"🙂".repeat(WIDTH)} …`);
    const wide = "€".repeat(300);
    assert.deepEqual(excerpt(wide, { room: 5 }).lines, [wide]);
    assert.deepEqual(excerpt(wide, { room: 5, width: 10 }).lines, [`${"€".repeat(10)} …`]);
  });

  it("finds the end of a text of many lines", () => {
    const raw = `${"\n".repeat(200_000)}x`;
    assert.deepEqual(excerpt(raw, { room: 1, fromEnd: true }), {
      lines: ["x"],
      above: 200_000,
      below: 0,
    });
  });
});
