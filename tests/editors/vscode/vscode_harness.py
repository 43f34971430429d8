"""A real VS Code (code-server's) in a real browser, with the packed extension and a real server behind it.

    def test_it(open_code):
        code = open_code(scenario=SCENARIO)       # one VS Code: its server, extensions, settings, store
        window = code.open()                      # a window of it; a second `open()` is a second window
        window.command("Callboard: New Session")
        window.chat().get_by_role("textbox").fill("hello")
        window.wait_for(lambda: "Hello." in window.chat_text(), "the answer")
        window.screenshot("hello")

Nothing is known after a click or a key until `wait_for`, or one of Playwright's own waits, saw it. All that
a VS Code writes is below a folder of its own, so any number run beside each other, also on one store.
"""

import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import psutil
from playwright.sync_api import Browser, Frame, Locator, Page, ViewportSize
from playwright.sync_api import Error as BrowserError
from vscode_look import axe, screenshot
from vscode_tools import WORKBENCH, node

from harness.editor_home import EditorHome
from harness.offspring import Offspring
from harness.processes import described, end, is_server
from harness.waiting import wait_until

PATIENCE_S = 30.0
"""How long anything may take before a test fails; nothing waits for it to pass."""
FORGOTTEN_S = 6.0
"""After this an extension host has had the 5 s that VS Code gives it to end, and more."""
TAG = "CALLBOARD_TESTS_VSCODE"
SERVER = str(Path(sys.executable).parent / "callboard")
"""The server of the environment that the tests run in."""
EXTENSION_ID = "callboard.callboard"

T = TypeVar("T")

QUIET = {
    "workbench.startupEditor": "none",
    "workbench.tips.enabled": False,
    "workbench.enableExperiments": False,
    "telemetry.telemetryLevel": "off",
    "extensions.autoUpdate": False,
    "extensions.autoCheckUpdates": False,
    "extensions.ignoreRecommendations": True,
    "update.mode": "none",
    "chat.disableAIFeatures": True,
    "chat.commandCenter.enabled": False,
    "remote.autoForwardPorts": False,
    "remote.autoForwardPortsSource": "output",
    "remote.restoreForwardedPorts": False,
    "files.autoSave": "off",
    "editor.minimap.enabled": False,
    "security.workspace.trust.startupPrompt": "never",
    "security.workspace.trust.banner": "always",
}
"""Settings of every window: what VS Code offers by itself is not what is tested."""

THEMES = {
    "dark": "Default Dark Modern",
    "light": "Default Light Modern",
    "contrast": "Default High Contrast",
}


KEPT_TABS = """async () => {
  const asked = (request) => new Promise((done, failed) => {
    request.onsuccess = () => done(request.result);
    request.onerror = () => failed(request.error);
  });
  const kept = [];
  for (const { name } of await indexedDB.databases()) {
    if (!name.startsWith("vscode-web-state-db-")) continue;
    const database = await asked(indexedDB.open(name));
    try {
      const table = database.transaction("ItemTable").objectStore("ItemTable");
      kept.push(await asked(table.get("memento/workbench.parts.editor")));
    } finally {
      database.close();
    }
  }
  return kept.join(" ");
}"""
"""What VS Code knows of its tabs after a reload, as the browser keeps it: some seconds after they change."""


class CodeServer:
    """One VS Code server, with a home, XDG folders, settings and extensions below `folder`.

    `scenario` is what the scripted model plays, `model` a model id in its place; `store` is that of another
    one where two are to share it. `settings` are added to the machine's; a value of None takes one away;
    `theme` is dark, light or contrast.
    `server` is the program that `callboard.server.path` names, None for no such setting. `trusted` False
    has workspaces opened in Restricted Mode. `environ` reaches the extension host and what it starts.
    """

    def __init__(
        self,
        browser: Browser,
        extensions: Path,
        folder: Path,
        *,
        scenario: str | None = None,
        model: str | None = None,
        store: Path | None = None,
        settings: Mapping[str, Any] | None = None,
        server: str | None = SERVER,
        theme: str = "dark",
        trusted: bool = True,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.browser = browser
        self._home = EditorHome(folder, scenario=scenario, model=model, store=store)
        self.folder = folder
        self.workspace = self._home.workspace
        self.store = self._home.store
        self.windows: list[Window] = []
        self._sockets = Path(tempfile.mkdtemp(prefix="code-"))  # a socket's path must be short
        self.environ = self._environ(environ or {})
        path = {} if server is None else {"callboard.server.path": server}
        look = {"workbench.colorTheme": THEMES[theme]}
        self.set_machine({**QUIET, **look, **path, **(settings or {})})
        if not (folder / "extensions").exists():
            shutil.copytree(extensions, folder / "extensions")
        self._offspring = Offspring(f"{TAG}={self.environ[TAG]}")
        self._closed = False
        self._output = folder / f"code-{uuid4().hex[:8]}.txt"
        self.process = self._start(trusted)
        try:
            self.address = f"http://127.0.0.1:{self._port()}"
        except BaseException:
            self.close()
            raise

    # --- doing ---

    def open(
        self,
        folder: Path | None = None,
        *,
        size: tuple[int, int] = (1280, 800),
    ) -> "Window":
        """A window of its own browser profile on a folder, the workspace unless named, with its workbench drawn."""
        context = self.browser.new_context(
            viewport=ViewportSize(width=size[0], height=size[1]),
            reduced_motion="reduce",
            locale="en-US",
            timezone_id="UTC",
        )
        window = Window(
            self, context.new_page(), f"{self.address}/?folder={folder or self.workspace}"
        )
        self.windows.append(window)
        window.load()
        return window

    def set_machine(self, settings: Mapping[str, Any]) -> None:
        """Writes the settings of this machine, all of them; open windows take them in."""
        path = self.folder / "user-data" / "Machine" / "settings.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = {name: value for name, value in settings.items() if value is not None}
        part = path.with_suffix(".part")
        part.write_text(json.dumps(kept, indent=1), "utf-8")
        part.replace(path)
        self.settings = dict(settings)

    # --- seeing ---

    def logs(self) -> str:
        """The ends of all logs below the folder, and what the server of VS Code wrote."""
        quiet = {"remoteagent.log", "network.log"}
        return "\n".join(self._home.logs(self._output, but=quiet))

    def log(self) -> str:
        """All that the extension's output channel holds."""
        channels = (self.folder / "user-data" / "logs").rglob(f"{EXTENSION_ID}/*.log")
        return "\n".join(path.read_text(errors="replace") for path in sorted(channels))

    # --- processes ---

    def processes(self) -> list[psutil.Process]:
        """All that live below this VS Code, and itself."""
        return self._offspring.below(self.process.pid, itself=True)

    def extension_hosts(self) -> list[psutil.Process]:
        """The extension hosts, one for each window and for each that was closed and may come back."""
        return [p for p in self.processes() if _is_extension_host(p)]

    def servers(self) -> list[psutil.Process]:
        """The Callboard servers that extensions of this VS Code started."""
        return [p for p in self.processes() if is_server(p)]

    def kill_servers(self) -> None:
        """SIGKILL for every Callboard server."""
        servers = self.servers()
        assert servers, self.told("there is no server to kill")
        for server in servers:
            server.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """Ends windows and VS Code; fails when anything that it started stays."""
        if self._closed:
            return
        self._closed = True
        try:
            for window in self.windows:
                window.close()
        finally:
            left, told = self._end()
        assert not left, told

    def _end(self) -> tuple[list[psutil.Process], str]:
        """What stayed, which is ended, too, and how that is told."""
        self.processes()
        self.process.terminate()
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(PATIENCE_S)
        left = self._left()
        told = f"left running: {[described(p) for p in left]}\n{self.logs()}" if left else ""
        end(left)
        shutil.rmtree(self._sockets, ignore_errors=True)
        return left, told

    def _left(self) -> list[psutil.Process]:
        """What is still there after it had its time. An extension host that VS Code forgot, as it does when
        a window is closed while the host begins, is ended here: that is no fault of the extension's."""
        left = self._offspring.left(min(FORGOTTEN_S, PATIENCE_S))
        end([p for p in left if _is_extension_host(p)])
        return self._offspring.left(max(0, PATIENCE_S - FORGOTTEN_S)) if left else []

    # --- beginning, failing ---

    def told(self, fault: str) -> str:
        """A fault with all that may explain it."""
        parts = [fault]
        for number, window in enumerate(self.windows, 1):
            parts.append(window.described(f"failed-{self.folder.parent.name}-{number}"))
        parts += ["processes:", *map(described, self.processes()), self.logs()]
        return "\n".join(parts)

    def _environ(self, more: Mapping[str, str]) -> dict[str, str]:
        return {
            **self._home.environ(XDG_RUNTIME_DIR=self._sockets),
            "SHELL": "/bin/sh",
            "EXTENSIONS_GALLERY": "{}",
            TAG: uuid4().hex,
            **more,
        }

    def _start(self, trusted: bool) -> "subprocess.Popen[bytes]":
        program = node()
        assert program is not None
        with self._output.open("wb") as output:
            return subprocess.Popen(
                [
                    program, WORKBENCH, "--accept-server-license-terms",
                    "--server-data-dir", self.folder / "data",
                    "--user-data-dir", self.folder / "user-data",
                    "--extensions-dir", self.folder / "extensions",
                    "--host", "127.0.0.1", "--port", "0", "--without-connection-token",
                    "--telemetry-level", "off", *([] if trusted else ["--enable-workspace-trust"]),
                    *(["--disable-workspace-trust"] if trusted else []),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env=self.environ,
            )  # fmt: skip

    def _port(self) -> int:
        """Where it listens: a port that the system chose."""
        return wait_until(
            self._listening,
            "a VS Code that listens",
            deadline_s=PATIENCE_S,
            pause=lambda: time.sleep(0.02),  # a line in a file sends no event
            told=lambda fault: f"{fault}\n{self._said()}",
        )

    def _listening(self) -> int | None:
        found = re.search(r"^Extension host agent listening on (\d+)$", self._said(), re.MULTILINE)
        if found is None:
            assert self.process.poll() is None, f"VS Code ended at once:\n{self._said()}"
        return int(found[1]) if found else None

    def _said(self) -> str:
        return self._output.read_text(errors="replace")


class Window:
    """One browser page with a workbench."""

    def __init__(self, code: CodeServer, page: Page, url: str) -> None:
        self.code = code
        self.page = page
        self.url = url
        self.console: list[str] = []
        page.set_default_timeout(PATIENCE_S * 1000)
        page.on("console", lambda message: self.console.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda fault: self.console.append(f"uncaught: {fault}"))

    # --- doing ---

    def load(self) -> None:
        """Loads the window, or loads it again, until its workbench is drawn."""
        self.page.goto(self.url, wait_until="commit")
        self.page.locator(".monaco-workbench .statusbar").wait_for()

    def reload(self) -> None:
        """As "Developer: Reload Window" does it: the extension host is ended, too."""
        self.page.reload(wait_until="commit")
        self.page.locator(".monaco-workbench .statusbar").wait_for()

    def command(self, title: str) -> None:
        """Runs a command by the name that the palette has for it, as soon as the palette has it."""
        self.wait_for(lambda: self._offered(title), f"the command {title!r} in the palette").click()

    def _offered(self, title: str) -> Locator | None:
        """The entry of the palette, opened anew: it does not take in what comes to be while it is open."""
        box = self.page.locator(".quick-input-widget input.input")
        if box.is_visible():
            self.page.keyboard.press("Escape")
            box.wait_for(state="hidden")
        self.page.keyboard.press("F1")
        box.fill(f">{title}")
        rows = self.page.locator(".quick-input-list .monaco-list-row")
        row = rows.filter(
            has=self.page.locator(".label-name", has_text=re.compile(f"^{re.escape(title)}$"))
        ).first
        try:
            row.wait_for(timeout=1000)
        except BrowserError:
            return None
        return row

    def view(self, name: str) -> None:
        """Shows a container of the activity bar."""
        item = self.page.locator(f'.activitybar .action-item:has(a[aria-label^="{name}"])').first
        item.wait_for()
        if "checked" not in (item.get_attribute("class") or ""):
            item.click()
        self.page.locator(f'.sidebar .composite.title:has-text("{name}")').wait_for()

    def pane(self, name: str) -> Locator:
        """A view in the side bar, by its title."""
        return self.page.locator(".pane").filter(
            has=self.page.locator(f'.pane-header[aria-label^="{name}"]')
        )

    def unfold(self, pane: str, *, fold: bool = False) -> None:
        """Shows a view of the side bar that is folded, or folds it. While views are laid out anew a click may
        miss, so it is tried until the view is as it should be."""
        header = self.pane(pane).locator(".pane-header")
        wanted = "false" if fold else "true"

        def done() -> bool:
            if header.get_attribute("aria-expanded") == wanted:
                return True
            header.locator(".title").click()
            return False

        self.wait_for(done, f"{pane}, {'folded' if fold else 'unfolded'}")

    def rows(self, pane: str) -> list[str]:
        """What the drawn rows of a tree say: label, then description."""
        labels = self.pane(pane).locator(".monaco-list-row .monaco-icon-label")
        texts = labels.evaluate_all(
            "(labels) => labels.map((label) => [...label.querySelectorAll("
            "'.label-name, .label-description')].map((part) => part.textContent).join(' '))"
        )
        return [plain(text) for text in texts]

    def row(self, pane: str, text: str | re.Pattern[str]) -> Locator:
        """A row of a tree."""
        return self.pane(pane).locator(".monaco-list-row").filter(has_text=text).first

    def open_row(self, pane: str, text: str | re.Pattern[str]) -> None:
        """Clicks a row of a tree."""
        row = self.row(pane, text)
        self.reveal(row)
        row.click()

    def reveal(self, row: Locator) -> None:
        """Turns the wheel until the whole of a row is in view. VS Code takes back what a browser scrolls by
        itself, and then a click that has begun on one row ends on another, and counts for neither."""

        def seen() -> bool:
            x, y, hidden = row.evaluate(HIDDEN_PART)
            if hidden:
                self.page.mouse.move(x, y)
                self.page.mouse.wheel(0, hidden)
            return not hidden

        self.wait_for(seen, "the whole row in view")

    def act(self, row: Locator, title: str) -> None:
        """Clicks an inline action of a row."""
        self.reveal(row)
        row.hover()
        row.locator(f'.actions a.action-label[aria-label^="{title}"]').click()

    def pick(self, text: str | re.Pattern[str]) -> None:
        """Picks an entry of the list that is open at the top."""
        rows = self.page.locator(".quick-input-list .monaco-list-row")
        rows.filter(has_text=text).first.click()

    def answer(self, text: str) -> None:
        """Types into the box that is open at the top, and Enter."""
        self.page.locator(".quick-input-widget input.input").fill(text)
        self.page.keyboard.press("Enter")

    # --- seeing ---

    def status_bar(self) -> list[str]:
        """What the extension's items in the status bar say."""
        items = self.page.locator(f'.statusbar-item[id^="{EXTENSION_ID}"]')
        return [plain(text) for text in items.all_inner_texts()]

    def notifications(self) -> list[str]:
        """The notifications that are shown."""
        return [plain(t) for t in self.page.locator(".notification-toast").all_inner_texts()]

    def notification(self, text: str | re.Pattern[str]) -> Locator:
        """A notification that is shown; its buttons are `get_by_role("button", name=...)` in it."""
        return self.page.locator(".notification-toast").filter(has_text=text).first

    def frame(self, holds: str) -> Frame | None:
        """The page of a webview that has an element which a selector finds, if there is one now. After a
        webview was hidden its page is another: ask again."""
        for frame in self.page.frames:
            try:
                if frame.parent_frame and frame.query_selector(holds) is not None:
                    return frame
            except BrowserError:  # it went while it was looked at
                continue
        return None

    def chat(self) -> Frame:
        """The chat's page, waited for."""
        return self.wait_for(lambda: self.frame('[role="log"]'), "the chat's page")

    def chat_text(self) -> str:
        """What the chat shows; nothing while there is none. What is only read out is no part of it: it
        stays there until something else is."""
        frame = self.frame('[role="log"]')
        return plain(frame.inner_text("#root")) if frame else ""

    def keeps_tab(self, word: str) -> bool:
        """Whether a tab that has a word in what it is made of is opened again after a reload."""
        return word in self.page.evaluate(KEPT_TABS)

    def axe(self, frame: Frame) -> list[dict[str, Any]]:
        """What axe finds wrong in a page."""
        return axe(frame)

    def screenshot(self, name: str) -> Path:
        """Keeps what is drawn as an artefact."""
        return screenshot(self.page, name)

    def wait_for(self, check: Callable[[], T], what: str, deadline: float = PATIENCE_S) -> T:
        """Waits until a function returns something true, which is returned. Fails with all that tells why:
        screenshot, console, logs, processes. A page that goes while it is looked at is looked at again."""
        faults: list[BrowserError] = []

        def look() -> T | None:
            try:
                return check()
            except BrowserError as gone:
                faults.append(gone)
                return None

        found = wait_until(
            look,
            what,
            deadline_s=deadline,
            pause=lambda: self.page.wait_for_timeout(30),
            told=lambda fault: self.code.told("\n".join([fault, *map(str, faults[-1:])])),
        )
        assert found is not None
        return found

    def described(self, name: str) -> str:
        """What this window shows, for whoever reads why a test failed."""
        if self.page.is_closed():
            return f"{self.url}: closed"
        parts = [f"{self.url}: {self.page.title()}"]
        try:
            parts.append(f"screenshot: {self.screenshot(name)}")
        except BrowserError as fault:
            parts.append(f"no screenshot: {fault}")
        return "\n".join([*parts, "console:", *self.console[-40:]])

    def close(self) -> None:
        self.page.context.close()


HIDDEN_PART = """(row) => {
  const list = row.closest(".monaco-list").getBoundingClientRect();
  const { top, bottom } = row.getBoundingClientRect();
  const hidden = Math.max(0, bottom - list.bottom) || Math.min(0, top - list.top);
  return [list.x + list.width / 2, list.y + list.height / 2, Math.sign(hidden) * Math.ceil(Math.abs(hidden))];
}"""
"""Where the middle of a row's list is, and how far (pixels) the row reaches out of it: below it, or above (negative)."""


def plain(text: str) -> str:
    """A drawn text on one line: VS Code fills many up with non-breaking spaces."""
    return " ".join(text.replace("\u00a0", " ").split())


def _is_extension_host(process: psutil.Process) -> bool:
    try:
        return "--type=extensionHost" in process.cmdline()
    except psutil.Error:
        return False
