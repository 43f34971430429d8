/** Markdown to HTML. No HTML of the text's own gets through, no image is loaded, few links are followed. */
import MarkdownIt from "markdown-it";

import { target } from "./links.js";

type Tokens = ReturnType<(typeof md)["parse"]>;
type Token = Tokens[number];

/** What goes from one part of a message to the next. */
export interface Env {
  [name: string | symbol]: unknown;
  /** The level of the last heading: none is skipped, as those who listen find their way by them. */
  heading?: number;
}

/** The speakers have the second level. */
const FIRST_HEADING = 3;

const DIRECTED = new Set([
  "paragraph_open",
  "heading_open",
  "bullet_list_open",
  "ordered_list_open",
  "blockquote_open",
  "th_open",
  "td_open",
]);

const md = new MarkdownIt({ html: false, linkify: true, breaks: false, typographer: false });
// A bare word with a dot in it is more often a file than an address.
md.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false });
md.validateLink = (href) => target(href) !== undefined || /^data:image\//i.test(href);

const escape = md.utils.escapeHtml;

function attribute(token: Token | undefined, name: string): string {
  return String(token?.attrGet(name) ?? "");
}

function opening(href: string): string {
  const to = target(href);
  if (!to) {
    return "<span>";
  }
  if (to.kind === "web") {
    const url = escape(to.href);
    return `<a href="${url}" title="${url}" data-web="${url}">`;
  }
  const { path, line } = to.file;
  const title = escape(line === undefined ? path : `${path}:${line}`);
  return `<a href="#" title="${title}" data-file="${escape(path)}" data-line="${line ?? ""}">`;
}

function levelled(tokens: Token[], env: Env): void {
  for (const token of tokens) {
    if (DIRECTED.has(token.type)) {
      token.attrSet("dir", "auto");
    }
    if (token.type === "heading_open") {
      const wanted = Math.min(6, Number(token.tag.slice(1)) + FIRST_HEADING - 1);
      env.heading = Math.min(wanted, (env.heading ?? FIRST_HEADING - 1) + 1);
      token.tag = `h${env.heading}`;
    } else if (token.type === "heading_close") {
      token.tag = `h${env.heading ?? FIRST_HEADING}`;
    } else if (token.type === "th_open" || token.type === "td_open") {
      // How a column is set comes as a style, and no style is let through.
      const align = /text-align:(\w+)/.exec(attribute(token, "style"))?.[1];
      token.attrs = [
        ["dir", "auto"],
        ...(align ? ([["class", `to-${align}`]] as [string, string][]) : []),
      ];
    }
  }
}

md.renderer.rules["link_open"] = (tokens, index) => opening(attribute(tokens[index], "href"));
md.renderer.rules["link_close"] = (tokens, index) => {
  let depth = 0;
  for (let at = index; at >= 0; at -= 1) {
    depth += tokens[at]?.type === "link_close" ? 1 : tokens[at]?.type === "link_open" ? -1 : 0;
    if (depth === 0) {
      return target(attribute(tokens[at], "href")) ? "</a>" : "</span>";
    }
  }
  return "</a>";
};
md.renderer.rules["image"] = (tokens, index) => {
  const token = tokens[index];
  const src = attribute(token, "src");
  const words = escape(`image: ${token?.content.trim() ? token.content : "no description"}`);
  return target(src) ? `${opening(src)}${words}</a>` : `<span class="dim">[${words}]</span>`;
};
md.renderer.rules["code_inline"] = (tokens, index) =>
  `<code dir="ltr">${escape(tokens[index]?.content ?? "")}</code>`;
const codeBlock = (token: Token | undefined): string => {
  const language = /^[\w+#.-]{1,30}/.exec(token?.info.trim() ?? "")?.[0] ?? "";
  return `<pre dir="ltr" data-language="${escape(language)}"><code>${escape(token?.content ?? "")}</code></pre>\n`;
};
md.renderer.rules["fence"] = (tokens, index) => codeBlock(tokens[index]);
md.renderer.rules["code_block"] = (tokens, index) => codeBlock(tokens[index]);

export function parse(text: string, env: Env): Tokens {
  const tokens = md.parse(text, env);
  levelled(tokens, env);
  return tokens;
}

export function html(tokens: Tokens, env: Env): string {
  return md.renderer.render(tokens, md.options, env);
}

export type { Token };
