// Untrusted text: nothing of it acts on whoever shows it.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import {
  asText,
  count,
  duration,
  label,
  lines,
  message,
  oneLine,
  visible,
  wellFormed,
} from "../../src/model/text";
import { ms } from "../../src/model/time";

describe("visible", () => {
  it("keeps line ends and tabs", () => {
    assert.equal(visible("a\tb\nc\r\nd"), "a\tb\nc\nd");
  });

  it("spells out whatever acts", () => {
    const cases = {
      "\x1b[31mred\x1b[0m": "<1B>[31mred<1B>[0m",
      "a\rb": "a<0D>b",
      "\0\x01\x07\x08\x0b\x0c\x1f\x7f": "<00><01><07><08><0B><0C><1F><7F>",
      "\u009b31m": "<U+009B>31m",
      "\u0080\u009f\u00a0": "<U+0080><U+009F>\u00a0",
      "\u202egpj.exe\u202c": "<U+202E>gpj.exe<U+202C>",
      "\u2066a\u2067b\u2068c\u2069": "<U+2066>a<U+2067>b<U+2068>c<U+2069>",
      "\u202a\u202b\u202d": "<U+202A><U+202B><U+202D>",
      "\u200e\u200f\u061c": "<U+200E><U+200F><U+061C>",
      "a\u2028b\u2029c": "a<U+2028>b<U+2029>c",
    };
    for (const [raw, shown] of Object.entries(cases)) {
      assert.equal(visible(raw), shown);
      assert.equal(visible(visible(raw)), shown);
    }
  });

  it("leaves all other characters", () => {
    for (const kept of [
      "é",
      "“quoted” – …",
      "؛ ؟",
      "\u2026\u2030\u2065\u206a",
      "👩‍💻",
      "$(check)",
      "",
    ]) {
      assert.equal(visible(kept), kept);
    }
  });

  it("shows half a character as none", () => {
    assert.equal(visible("a\ud83d\x1b"), "a\ufffd<1B>");
    assert.equal(wellFormed("\ude42🙂\ud83d"), "\ufffd🙂\ufffd");
  });

  it("is made of whatever comes in its place", () => {
    assert.deepEqual(
      [undefined, null, 42, true, {}, []].map((value) => visible(value)),
      ["", "", "42", "true", "…", "…"],
    );
    assert.equal(asText("x"), "x");
    assert.deepEqual(lines(7), ["7"]);
    assert.deepEqual(lines("a\nb\r\n\0c\n"), ["a", "b", "<00>c", ""]);
  });
});

describe("oneLine", () => {
  it("is one", () => {
    assert.equal(oneLine("\n a\tb \r\n\n c\nd \n"), "a b c d");
    assert.equal(oneLine(" \n\t "), "");
    assert.equal(oneLine(undefined), "");
  });

  it("has at most so many characters", () => {
    assert.equal(oneLine("abc", 3), "abc");
    assert.equal(oneLine("abcd", 3), "ab…");
    assert.equal(oneLine("äöüß", 3), "äö…");
    assert.equal(oneLine("🙂🙂🙂🙂", 3), "🙂🙂…");
    assert.equal(oneLine("🙂🙂🙂", 3), "🙂🙂🙂");
    assert.equal(oneLine("abc", 1), "…");
    assert.equal(oneLine("\x1b[31m", 6), "<1B>[…");
    const mixed = "aä全🙂".repeat(20);
    for (let width = 1; width <= 81; width++) {
      assert.equal(Array.from(oneLine(mixed, width)).length, Math.min(width, 80));
    }
  });

  it("says that there is more when all of it that was looked at is blank", () => {
    assert.equal(oneLine(`x${" ".repeat(100_000)}y`, 5), "x…");
    const long = " \n".repeat(10) + "word ".repeat(1024 * 1024);
    assert.equal(oneLine(long, 40), "word word word word word word word word…");
  });
});

describe("a text in a place of the editor", () => {
  it("draws no icon", () => {
    assert.equal(label("a $(check) b\n$(sync~spin)"), "a \\$(check) b \\$(sync~spin)");
    assert.equal(label("$(not an icon) $(x", 9), "$(not an…");
  });

  it("makes no link of a notification", () => {
    assert.equal(
      message("[Allow](command:callboard.approveOnce)\n[x](https://a)"),
      "[Allow] (command:callboard.approveOnce) [x] (https://a)",
    );
  });
});

describe("words for numbers", () => {
  it("tell durations", () => {
    const cases: [number, string][] = [
      [0, "0 ms"],
      [850, "850 ms"],
      [999, "999 ms"],
      [1000, "1 s"],
      [12_400, "12 s"],
      [59_400, "59 s"],
      [59_600, "1 m 0 s"],
      [200_000, "3 m 20 s"],
      [3_600_000, "1 h 0 m"],
      [7_500_000, "2 h 5 m"],
    ];
    for (const [given, words] of cases) {
      assert.equal(duration(given), words);
    }
  });

  it("tell counts", () => {
    const cases: [number, string][] = [
      [0, "0"],
      [950, "950"],
      [1000, "1.0k"],
      [1234, "1.2k"],
      [999_949, "999.9k"],
      [999_950, "1.0M"],
      [3_400_000, "3.4M"],
    ];
    for (const [given, words] of cases) {
      assert.equal(count(given), words);
    }
  });
});

describe("a time of the wire", () => {
  it("is read as UTC", () => {
    assert.equal(ms("1970-01-01T00:00:00Z"), 0);
    assert.equal(ms("2000-02-29T00:00:00.000Z"), 951_782_400_000);
    assert.equal(ms("2024-02-29T23:59:59.999Z"), 1_709_251_199_999);
    assert.equal(ms("2025-01-01T00:00:00.5Z"), 1_735_689_600_500);
  });

  it("is nothing where it is none", () => {
    for (const none of [
      "yesterday",
      "2025-13-01T00:00:00Z",
      "2025-01-01",
      "",
      7,
      null,
      undefined,
    ]) {
      assert.equal(ms(none), undefined);
    }
  });
});
