/** HTML to nodes, through a list of what is let in. What markdown made of a text is checked once more here. */
import DOMPurify from "dompurify";

const TAGS = [
  "a", "b", "blockquote", "br", "code", "del", "em", "h3", "h4", "h5", "h6", "hr", "i", "li", "ol", "p", "pre",
  "s", "span", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul",
]; // prettier-ignore
const ATTRIBUTES = [
  "class", "dir", "href", "title", "start", "data-web", "data-file", "data-line", "data-language",
]; // prettier-ignore

export function clean(html: string): DocumentFragment {
  return DOMPurify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    // Only of `href` is the value an address.
    ADD_URI_SAFE_ATTR: ATTRIBUTES.filter((name) => name !== "href"),
    ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:|#$)/i,
    RETURN_DOM_FRAGMENT: true,
  });
}

/** Of coloured code: nothing but spans. */
export function cleanSpans(html: string): DocumentFragment {
  return DOMPurify.sanitize(html, {
    ALLOWED_TAGS: ["span"],
    ALLOWED_ATTR: ["class"],
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  });
}
