/** Colours of code, once it is in view. */
import highlighter from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import cpp from "highlight.js/lib/languages/cpp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import lua from "highlight.js/lib/languages/lua";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

import { cleanSpans } from "./clean.js";

const LANGUAGES = {
  bash, cpp, css, diff, go, ini, java, javascript, json, lua, python, rust, sql, typescript, xml, yaml,
}; // prettier-ignore
for (const [name, language] of Object.entries(LANGUAGES)) {
  highlighter.registerLanguage(name, language);
}

/** Longer code (characters) stays as it is. */
const LONGEST = 20_000;

function colour(pre: HTMLElement): void {
  const code = pre.querySelector("code");
  const language = pre.dataset["language"] ?? "";
  if (pre.scrollWidth > pre.clientWidth) {
    pre.tabIndex = 0; // what can be scrolled must be reached by keys
  }
  const text = code?.textContent ?? "";
  if (!code || text.length > LONGEST || !highlighter.getLanguage(language)) {
    return;
  }
  const { value } = highlighter.highlight(text, { language, ignoreIllegals: true });
  code.replaceChildren(cleanSpans(value));
}

const seen = new IntersectionObserver((entries, observer) => {
  for (const entry of entries) {
    if (entry.isIntersecting && entry.target instanceof HTMLElement) {
      observer.unobserve(entry.target);
      colour(entry.target);
    }
  }
});

/** Colours a finished block of code as soon as it is seen. */
export function colourWhenSeen(pre: HTMLElement): void {
  seen.observe(pre);
}
