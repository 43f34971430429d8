"""A folder that a test works in: with settings, a store, a scripted model, windows and other clients of its own.

One VS Code serves many places, since its start costs seconds; what its windows do below one folder is seen
by no other.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import Frame, Locator
from vscode_harness import THEMES, CodeServer, Window

from harness.process import ServerProcess
from harness.processes import bears


class Place:
    """Use as a context manager: its other clients end with it, and its windows are closed."""

    def __init__(
        self,
        code: CodeServer,
        folder: Path,
        scenario: str,
        *,
        theme: str = "dark",
        settings: Mapping[str, Any] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.code = code
        self.folder = folder
        self.project = folder / "project"
        self.store = folder / "store" / "callboard.db"
        (self.project / ".vscode").mkdir(parents=True)
        self.store.parent.mkdir()
        home = folder / "home"
        home.mkdir()
        (home / "scenario.yaml").write_text(scenario, "utf-8")
        self.environ = {
            "HOME": str(home),
            "CALLBOARD_STORE": str(self.store),
            "CALLBOARD_MODEL": "scripted/~/scenario.yaml",
            **(environ or {}),
        }
        self.settings = {
            "workbench.colorTheme": THEMES[theme],
            "callboard.server.env": self.environ,
            **(settings or {}),
        }
        self.set({})
        self.windows: list[Window] = []
        self._others: list[ServerProcess] = []

    def set(self, settings: Mapping[str, Any]) -> None:
        """Changes settings of the folder; open windows take them in."""
        self.settings.update(settings)
        part = self.folder / "settings.part"
        part.write_text(json.dumps(self.settings, indent=1), "utf-8")
        part.replace(self.project / ".vscode" / "settings.json")

    def write(self, name: str, text: str) -> Path:
        """A file of the project."""
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def window(self, width: int = 1280, height: int = 800) -> "ChatWindow":
        """A window on the folder."""
        opened = ChatWindow(self.code.open(self.project, size=(width, height)))
        self.windows.append(opened.window)
        return opened

    def other(self) -> ServerProcess:
        """Another client of the store, with a server of its own, that answers nothing by itself."""
        other = ServerProcess(self.folder, environ=self.environ, client_id="other")
        self._others.append(other)
        return other

    def servers(self) -> list[psutil.Process]:
        """The servers that windows of this place started."""
        mark = f"CALLBOARD_STORE={self.store}"
        return [server for server in self.code.servers() if bears(server, mark)]

    def __enter__(self) -> "Place":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes its windows, and ends its other clients."""
        for window in self.windows:
            window.close()
        while self._others:
            self._others.pop().__exit__()


class ChatWindow:
    """A window, and what a person does in the chat of its side bar."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self.page = window.page
        self.wait_for = window.wait_for
        self.command = window.command
        self.unfold = window.unfold
        self.screenshot = window.screenshot

    def begin(self) -> "ChatWindow":
        """A new session, with its chat in view."""
        self.command("Callboard: New Session")
        self.wait_for(lambda: "Nothing was said yet" in self.text(), "an empty chat")
        return self

    def text(self) -> str:
        return self.window.chat_text()

    def chat(self) -> Frame:
        return self.window.chat()

    def find(self, selector: str) -> Locator:
        """A part of the chat's page as it is now."""
        return self.chat().locator(selector)

    def composer(self) -> Locator:
        return self.find("#composer")

    def say(self, text: str, key: str = "Enter") -> None:
        """Writes into the composer, and sends it."""
        field = self.composer()
        field.fill(text)
        field.press(key)

    def shows(self, *texts: str | re.Pattern[str]) -> None:
        """Waits until the chat shows all of these."""
        for text in texts:
            self.wait_for(lambda text=text: found(text, self.text()), f"{text!r} in the chat")

    def gone(self, text: str) -> None:
        """Waits until the chat is there and does not show this."""
        self.wait_for(lambda: (now := self.text()) and text not in now, f"the end of {text!r}")

    def approval(self) -> Locator:
        """The card of the one approval that waits."""
        self.wait_for(lambda: self.find("[data-approval]").count() == 1, "one approval")
        return self.find("[data-approval]")

    def choose(self, name: str) -> None:
        """Answers it by a button, as soon as it can be answered."""
        self.approval().get_by_role("button", name=name).first.click()

    def calm(self) -> None:
        """Waits until nothing runs in the session that is shown."""
        self.wait_for(
            lambda: "idle" in self.find(".head .standing").inner_text(), "a session at rest"
        )


def found(text: str | re.Pattern[str], shown: str) -> bool:
    return bool(text.search(shown)) if isinstance(text, re.Pattern) else text in shown
