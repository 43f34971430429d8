"""Records what VS Code gives the pages of webviews: colours, fonts, and the style of its own, by theme.

.venv/bin/python tests/editors/vscode/record_themes.py
"""

import json
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from vscode_build import installed
from vscode_harness import THEMES as THEME_NAMES
from vscode_harness import CodeServer
from vscode_tools import chromium
from webview_harness import THEMES

READ = """() => ({
  variables: Object.fromEntries(
    [...document.documentElement.style].sort()
      .filter((name) => name.startsWith("--vscode-") && !/terminal|debug|merge|chart|notebook|testing|scm/i.test(name))
      .map((name) => [name, document.documentElement.style.getPropertyValue(name)]),
  ),
  style: document.getElementById("_defaultStyles").textContent.replace(/\\s+/g, " ").trim(),
})"""


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"]
        )
        extensions = installed(Path(scratch) / "shared")
        for name, theme in THEME_NAMES.items():
            folder = Path(scratch) / name
            with closing(CodeServer(browser, extensions, folder, theme=name)) as code:
                look = look_of(code, theme)
            THEMES.mkdir(exist_ok=True)
            (THEMES / f"{name}.json").write_text(json.dumps(look, indent=1) + "\n", "utf-8")
        browser.close()


def look_of(code: CodeServer, theme: str) -> dict[str, Any]:
    """As a page of VS Code's own has it, which shows a file."""
    (code.workspace / "a.md").write_text("# A page\n", "utf-8")
    window = code.open()
    window.page.locator(".explorer-folders-view .monaco-list-row").first.dblclick()
    window.command("Markdown: Open Preview")
    page = window.wait_for(lambda: window.frame("h1"), "a page")
    kind = page.evaluate("() => document.body.dataset.vscodeThemeId")
    assert kind == theme, kind
    return page.evaluate(READ)


if __name__ == "__main__":
    main()
