/**
 * A message as it is drawn, while it comes and after. Blocks that are finished are drawn once and stay as they
 * are; only the last one, which can still turn into something else, is drawn again as it grows. When it
 * grows long it is text until it is finished.
 */
import { clean } from "./clean.js";
import { dress } from "./dress.js";
import { html, parse } from "./markdown.js";
import type { Env, Token } from "./markdown.js";

/** An open block that is longer (characters) is shown as text. */
const OPEN_LIMIT = 6_000;
/** A message that is longer is never markdown, and not all of it is shown. */
export const LONGEST = 300_000;
export const LONGEST_SHOWN = 60_000;

/** Names for links may stand below the text that uses them. */
const REFERENCE = /^ {0,3}\[[^\]\n]+\]:/m;

/** Where a line begins. */
function offsetOf(text: string, line: number): number {
  let at = 0;
  for (let n = 0; n < line; n += 1) {
    const end = text.indexOf("\n", at);
    if (end < 0) {
      return text.length;
    }
    at = end + 1;
  }
  return at;
}

/** The token that the last block begins with. */
function lastBlock(tokens: readonly Token[]): number {
  for (let at = tokens.length - 1; at > 0; at -= 1) {
    const token = tokens[at];
    if (token?.level === 0 && token.nesting >= 0 && token.map) {
      return at;
    }
  }
  return 0;
}

export class Prose {
  private text = "";
  /** So much of the text is drawn in finished blocks. */
  private done = 0;
  private env: Env = {};
  private readonly open = document.createElement("div");
  /** The open block as text, how much of the message is in it, and when it is worth another look. */
  private plain: { node: Text; upTo: number; lookAt: number } | undefined;
  private finished = false;

  constructor(private readonly root: HTMLElement) {
    this.open.className = "open-block";
  }

  /** Draws what the message is now. */
  update(raw: string, streaming: boolean): void {
    const text = raw.includes("\r") ? raw.replace(/\r\n?/g, "\n") : raw;
    if (this.finished ? text !== this.text || streaming : !text.startsWith(this.text)) {
      this.reset();
    } else if (this.finished || (text === this.text && streaming && text !== "")) {
      return;
    }
    this.text = text;
    if (text.length > LONGEST) {
      this.longText();
    } else if (streaming) {
      this.grow();
    } else {
      this.finish();
    }
  }

  private reset(): void {
    this.root.replaceChildren();
    this.open.replaceChildren();
    this.text = "";
    this.done = 0;
    this.env = {};
    this.plain = undefined;
    this.finished = false;
  }

  private longText(): void {
    this.reset();
    this.finished = true;
    const shown = document.createElement("div");
    shown.className = "plain";
    shown.dir = "auto";
    shown.textContent = this.text.slice(0, LONGEST_SHOWN);
    this.root.append(shown);
  }

  private grow(): void {
    if (this.open.parentNode !== this.root) {
      this.root.append(this.open);
    }
    const rest = this.text.slice(this.done);
    if (this.plain && rest.length < this.plain.lookAt) {
      this.plain.node.appendData(this.text.slice(this.plain.upTo));
      this.plain.upTo = this.text.length;
      return;
    }
    const env = { ...this.env };
    const tokens = parse(rest, env);
    const from = lastBlock(tokens);
    const line = tokens[from]?.map?.[0] ?? 0;
    if (from > 0 && line > 0) {
      const ended = offsetOf(rest, line);
      this.settle(rest.slice(0, ended));
      this.done += ended;
      this.plain = undefined;
      this.drawOpen(rest.slice(ended), tokens.slice(from), env);
    } else {
      this.drawOpen(rest, tokens, env);
    }
  }

  /** Draws the block that is not finished. */
  private drawOpen(rest: string, tokens: Token[], env: Env): void {
    if (rest.length <= OPEN_LIMIT) {
      this.plain = undefined;
      this.open.className = "open-block";
      this.open.replaceChildren(clean(html(tokens, env)));
    } else if (this.plain) {
      this.plain.node.appendData(this.text.slice(this.plain.upTo));
      this.plain.upTo = this.text.length;
      this.plain.lookAt = rest.length * 2;
    } else {
      const node = document.createTextNode(rest);
      this.open.className = "open-block plain";
      this.open.replaceChildren(node);
      this.plain = { node, upTo: this.text.length, lookAt: rest.length * 1.5 };
    }
  }

  /** Draws blocks that nothing can change any more, in front of the open one. */
  private settle(part: string): void {
    const fragment = clean(html(parse(part, this.env), this.env));
    dress(fragment);
    this.root.insertBefore(fragment, this.open.parentNode === this.root ? this.open : null);
  }

  private finish(): void {
    if (this.done > 0 && REFERENCE.test(this.text)) {
      const { text } = this;
      this.reset();
      this.text = text;
    }
    this.settle(this.text.slice(this.done));
    this.open.remove();
    this.plain = undefined;
    this.done = this.text.length;
    this.finished = true;
  }
}
