// What others have said, without the frame that is for the model.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { openFrame } from "../../src/model/frames";

describe("a frame", () => {
  it("is taken off, with what the server says of it", () => {
    const framed = openFrame(
      '<agent-report agent="a &quot;b&quot;" status="completed">\n1 &lt; 2 &amp;amp; 3\n</agent-report>\nFor the model.',
    );
    assert.equal(framed?.body, "1 < 2 &amp; 3");
    assert.equal(framed.kind, "report");
    assert.deepEqual(
      [...framed.attributes],
      [
        ["agent", 'a "b"'],
        ["status", "completed"],
      ],
    );
  });

  it("leaves what stands below it", () => {
    const text = "<agent-reply>\nyes\n</agent-reply>\nFor the model.\n\nAnd more.\n\nMore.";
    assert.equal(openFrame(text)?.body, "yes\n\nAnd more.\n\nMore.");
    assert.equal(openFrame("<agent-reply>\n</agent-reply>\n\n  ")?.body, "");
  });

  it("is none where it is not one of ours, or does not end", () => {
    for (const text of [
      "hello",
      "<b>\nx\n</b>",
      "<constructor>\nx\n</constructor>",
      "<agent-reply>\nx",
      " <agent-reply>\nx\n</agent-reply>",
      "<agent-reply>x</agent-reply>",
    ]) {
      assert.equal(openFrame(text), undefined, text);
    }
  });
});
