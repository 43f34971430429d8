"""The page of a webview in a plain browser, with the content policy and the look that VS Code gives it, and
a fake of the extension behind it.

    def test_it(open_webview):
        chat = open_webview("chat", theme="light", size=(320, 600))
        chat.wait_for(lambda: chat.said("ready"), "the page's first word")
        chat.post({"type": "all", "all": {...}})
        chat.page.get_by_role("button", name="Stop").click()
        chat.wait_for(lambda: chat.said("cancel"), "the order to stop")
        assert chat.axe() == []

A page that breaks its policy, asks for anything from elsewhere or throws an error fails its test at the end.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from playwright.sync_api import Browser, Route, ViewportSize
from playwright.sync_api import Error as BrowserError
from vscode_look import axe, screenshot

from harness.waiting import wait_until

T = TypeVar("T")
Theme = Literal["dark", "light", "contrast"]

PATIENCE_S = 20.0
ORIGIN = "https://webview.test"
"""What the pages take for VS Code's; no request leaves the browser."""
THEMES = Path(__file__).with_name("themes")
"""Colours, fonts and the style that VS Code adds to each page; `record_themes.py` takes them from it."""
KINDS = {"dark": "vscode-dark", "light": "vscode-light", "contrast": "vscode-high-contrast"}

FAKE = """
(() => {
  const fake = (window.fakeOfTests = { said: [], violations: [] });
  let taken = false;
  window.acquireVsCodeApi = () => {
    if (taken) throw new Error("An instance of the VS Code API has already been acquired");
    taken = true;
    return Object.freeze({
      postMessage: (message) => void fake.said.push(structuredClone(message)),
      getState: () => JSON.parse(sessionStorage.getItem("state") ?? "null") ?? undefined,
      setState: (state) => (sessionStorage.setItem("state", JSON.stringify(state)), state),
    });
  };
  document.addEventListener("securitypolicyviolation", (event) =>
    fake.violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`),
  );
})();
"""

LOOK = """
([theme, kind]) => {
  const root = document.documentElement;
  for (const [name, value] of Object.entries(theme.variables)) root.style.setProperty(name, value);
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(theme.style);
  // Before the page's own, as VS Code has it.
  document.adoptedStyleSheets = [sheet];
  document.body.classList.add(kind);
  document.body.dataset.vscodeThemeKind = kind;
}
"""

NO_ICON = """
() => [...document.querySelectorAll(".codicon")]
  .filter((icon) => getComputedStyle(icon, "::before").content === "none")
  .map((icon) => icon.className)
"""


class Webview:
    """One page. `state` is what it had kept with `setState` before; `body` are `data-` attributes of its body."""

    def __init__(
        self,
        browser: Browser,
        pages: Path,
        name: str,
        *,
        theme: Theme = "dark",
        size: tuple[int, int] = (420, 720),
        state: Any = None,
        body: Mapping[str, str] | None = None,
        reduced_motion: bool = True,
        test: str = "",
    ) -> None:
        self.pages = pages
        self.name = name
        self.theme: Theme = theme
        self.body = dict(body or {})
        self.test = test
        self.outside: list[str] = []
        self.faults: list[str] = []
        self.context = browser.new_context(
            viewport=ViewportSize(width=size[0], height=size[1]),
            color_scheme="light" if theme == "light" else "dark",
            reduced_motion="reduce" if reduced_motion else "no-preference",
            locale="en-US",
            timezone_id="UTC",
        )
        self.context.add_init_script(FAKE)
        self.context.route("**/*", self._serve)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE_S * 1000)
        self.page.on("console", lambda m: self._heard(f"{m.type}: {m.text}", bad=m.type == "error"))
        self.page.on("pageerror", lambda fault: self._heard(f"uncaught: {fault}", bad=True))
        self.console: list[str] = []
        if state is not None:
            self.context.add_init_script(
                f"sessionStorage.getItem('state') ?? sessionStorage.setItem('state', {json.dumps(json.dumps(state))})"
            )
        self.load()

    # --- doing ---

    def load(self) -> None:
        """Loads the page, or loads it anew as after it was hidden: all is gone but what it kept."""
        self.page.goto(f"{ORIGIN}/{self.name}.html")
        self.look(self.theme)

    def look(self, theme: Theme) -> None:
        """Gives it the colours and fonts of a theme, now."""
        self.theme = theme
        look = json.loads((THEMES / f"{theme}.json").read_text("utf-8"))
        self.page.evaluate(
            "() => document.body.classList.remove('vscode-dark', 'vscode-light', 'vscode-high-contrast')"
        )
        self.page.evaluate(LOOK, [look, KINDS[theme]])

    def post(self, *messages: Mapping[str, Any]) -> None:
        """Messages of the extension, one after another."""
        self.page.evaluate(
            "(messages) => messages.forEach((message) => window.postMessage(message, '*'))",
            [*messages],
        )

    # --- seeing ---

    def said(self, kind: str | None = None) -> list[dict[str, Any]]:
        """What the page told the extension since it was loaded, or those of it with this `type`."""
        said: list[dict[str, Any]] = self.page.evaluate("() => window.fakeOfTests.said")
        return [one for one in said if kind is None or one.get("type") == kind]

    def kept(self) -> Any:
        """What the page keeps for the time after it was hidden."""
        return self.page.evaluate("() => JSON.parse(sessionStorage.getItem('state') ?? 'null')")

    def text(self) -> str:
        """What the page shows."""
        return self.page.inner_text("body")

    def axe(self) -> list[dict[str, Any]]:
        """What axe finds wrong."""
        return axe(self.page.main_frame)

    def screenshot(self, name: str) -> Path:
        """Keeps what is drawn as an artefact."""
        return screenshot(self.page, name)

    def wait_for(self, check: Callable[[], T], what: str, deadline: float = PATIENCE_S) -> T:
        """Waits until a function returns something true, which is returned."""
        return wait_until(
            check,
            what,
            deadline_s=deadline,
            pause=lambda: self.page.wait_for_timeout(15),
            told=self.told,
        )

    def wrongs(self) -> list[str]:
        """All that no page may do: break its policy, ask for something from elsewhere, throw, show no icon
        where there is one."""
        violations: list[str] = self.page.evaluate("() => window.fakeOfTests.violations")
        outside = [f"asked for {url}" for url in self.outside]
        icons: list[str] = self.page.evaluate(NO_ICON)
        blank = [f"an icon that is not among those packed: {name}" for name in icons]
        return [*violations, *outside, *blank, *self.faults]

    def told(self, fault: str) -> str:
        """A fault with all that may explain it."""
        try:
            shown = self.text()
            picture = str(self.screenshot(f"failed-{self.test}"))
        except BrowserError as gone:
            shown = picture = str(gone)
        return "\n".join(
            [fault, f"screenshot: {picture}", f"shown:\n{shown}", "console:", *self.console[-40:]]
        )

    def close(self) -> None:
        try:
            wrongs = [] if self.page.is_closed() else self.wrongs()
        finally:
            self.context.close()
        assert wrongs == [], "\n".join(wrongs)

    # --- the fake ---

    def _serve(self, route: Route) -> None:
        url = route.request.url
        path = self.pages / url.removeprefix(f"{ORIGIN}/").split("?")[0]
        if not url.startswith(f"{ORIGIN}/"):
            self.outside.append(url)
            route.abort()
        elif path.name == "favicon.ico":
            route.fulfill(status=204)
        elif not path.is_file():
            route.fulfill(status=404)
        elif path.suffix == ".html":
            data = "".join(f' data-{name}="{value}"' for name, value in self.body.items())
            html = path.read_text("utf-8").replace("<body", f"<body{data}", 1)
            route.fulfill(body=html, content_type="text/html; charset=utf-8")
        else:
            route.fulfill(path=path)

    def _heard(self, text: str, *, bad: bool) -> None:
        self.console.append(text)
        if bad:
            self.faults.append(text)
