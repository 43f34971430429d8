/** Clicks in texts: links and copying. The page itself goes nowhere; the extension opens what is meant. */
import { announce } from "../shared/live.js";
import type { Page } from "./page.js";

/** For how long (ms) a button says that it was done. */
const SAID = 1500;

function copied(button: HTMLElement): void {
  const icon = button.querySelector(".codicon");
  icon?.classList.replace("codicon-copy", "codicon-check");
  announce("Copied");
  setTimeout(() => {
    icon?.classList.replace("codicon-check", "codicon-copy");
  }, SAID);
}

export function onProseClick(page: Page, event: MouseEvent): void {
  if (!(event.target instanceof Element)) {
    return;
  }
  const link = event.target.closest<HTMLAnchorElement>("a");
  if (link) {
    // VS Code opens links of a page by itself otherwise.
    event.preventDefault();
    event.stopPropagation();
    const { web, file, line } = link.dataset;
    if (web !== undefined) {
      page.post({ type: "openLink", href: web });
    } else if (file !== undefined) {
      const number = Number(line ?? "");
      page.post({
        type: "openFile",
        file: { label: file, path: file, ...(number > 0 ? { line: number } : {}) },
      });
    }
    return;
  }
  const button = event.target.closest<HTMLElement>("button[data-copy]");
  if (button && event.type === "click") {
    const text = button.closest(".code")?.querySelector("pre")?.textContent ?? "";
    page.post({ type: "copy", text });
    copied(button);
  }
}
