/** Diffs and random texts for tests of changes. */
import { createTwoFilesPatch } from "diff";

/** A diff as the server makes it. */
export function diffOf(before: string, after: string): string {
  return createTwoFilesPatch("a/file", "b/file", before, after, undefined, undefined, {
    context: 3,
  });
}

export type Random = (below: number) => number;

/** Numbers from 0 to `below` - 1, the same for the same seed. */
export function randomly(seed: number): Random {
  let state = BigInt(seed);
  return (below) => {
    state = (state * 1103515245n + 12345n) % 2147483648n;
    return Number(state / 65536n) % below;
  };
}

const WORDS = [
  ...["", "a", "b", "{", "}", "return", " x", "+x", "-x", "\\ x", "@@ -1 +1 @@", "ä", "\r"],
  ...["end\r", "\u2028", "🙂"],
];

export function randomWord(random: Random): string {
  return WORDS[random(WORDS.length)] ?? "";
}

export function randomLines(random: Random, most: number): string[] {
  return Array.from({ length: random(most + 1) }, () => randomWord(random));
}

export function edited(random: Random, lines: readonly string[]): string[] {
  const out = [...lines];
  for (let i = random(6); i > 0; i--) {
    const at = random(out.length + 1);
    const kind = random(3);
    if (kind === 0) {
      out.splice(at, 0, randomWord(random));
    } else if (at < out.length) {
      out.splice(at, 1, ...(kind === 1 ? [] : [randomWord(random)]));
    }
  }
  return out;
}

export function joined(random: Random, lines: readonly string[]): string {
  const whole = lines.join("\n");
  return whole !== "" && random(4) > 0 ? `${whole}\n` : whole;
}
