/** What finished blocks get besides their text: code its language and a button, tables their own scrolling. */
import { colourWhenSeen } from "./colours.js";
import { claimed } from "./links.js";

function dressCode(pre: HTMLElement): void {
  const frame = document.createElement("div");
  frame.className = "code";
  const head = document.createElement("div");
  head.className = "code-head";
  const language = document.createElement("span");
  language.textContent = pre.dataset["language"] ?? "";
  head.classList.toggle("is-bare", language.textContent === "");
  const copy = document.createElement("button");
  copy.type = "button";
  copy.className = "icon-button";
  copy.dataset["copy"] = "";
  copy.title = "Copy";
  copy.setAttribute("aria-label", "Copy the code");
  const icon = document.createElement("span");
  icon.className = "codicon codicon-copy";
  icon.setAttribute("aria-hidden", "true");
  copy.append(icon);
  head.append(language, copy);
  pre.replaceWith(frame);
  frame.append(head, pre);
  colourWhenSeen(pre);
}

function dressTable(table: HTMLElement): void {
  const frame = document.createElement("div");
  frame.className = "table";
  frame.tabIndex = 0;
  frame.setAttribute("role", "group");
  frame.setAttribute("aria-label", "Table");
  table.replaceWith(frame);
  frame.append(table);
}

/** A link whose words name another place than it leads to says where that is. */
function expose(link: HTMLAnchorElement): void {
  const says = claimed(link.textContent);
  if (says === undefined) {
    return;
  }
  const hostname = URL.canParse(link.href) ? new URL(link.href).hostname : "";
  if (hostname !== "" && hostname !== says && hostname !== `www.${says}`) {
    const real = document.createElement("span");
    real.className = "dim";
    real.textContent = ` (${hostname})`;
    link.append(real);
  }
}

export function dress(fragment: DocumentFragment): void {
  fragment.querySelectorAll<HTMLElement>("pre").forEach(dressCode);
  fragment.querySelectorAll<HTMLElement>("table").forEach(dressTable);
  fragment.querySelectorAll<HTMLAnchorElement>("a[data-web]").forEach(expose);
}
