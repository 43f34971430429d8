"""Makes ``docs/nvim.svg``: the plugin in a real Neovim, in a real terminal (tmux), at work with the scripted
model, as an animated picture for the README.

Run it with the project's own Python, where tmux is installed: ``.venv/bin/python docs/nvim_picture.py``.
"""

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
PICTURE = Path(__file__).with_name("nvim.svg")
COLUMNS, LINES = 116, 34
PROMPT = "The test in this folder fails. Find out why, mend it, and run it again."
PATIENCE_S = 20
HOLD_S = 0.6
"""No key answers what has only just come up."""


@frozen(kw_only=True)
class Frame:
    """What the terminal shows, and for how long (s)."""

    screen: str
    seconds: float


class Terminal:
    """A tmux of our own with one window."""

    def __init__(self, folder: Path) -> None:
        self._socket = str(folder / "tmux")
        self.frames: list[Frame] = []

    def tmux(self, *arguments: str) -> str:
        command = ["tmux", "-S", self._socket, "-f", os.devnull, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def keys(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    def text(self) -> str:
        return self.tmux("capture-pane", "-p")

    def until(self, seen: Callable[[str], bool], what: str) -> None:
        """Waits for something on the screen."""
        end = time.monotonic() + PATIENCE_S
        while not seen(self.text()):
            if time.monotonic() > end:
                raise TimeoutError(f"{what} did not come up:\n{self.text()}")
            time.sleep(0.05)

    def shows(self, text: str) -> None:
        self.until(lambda screen: text in screen, text)

    def frame(self, seconds: float) -> None:
        self.frames.append(
            Frame(screen=self.tmux("capture-pane", "-p", "-e", "-N"), seconds=seconds)
        )


@contextmanager
def terminal(
    folder: Path, command: list[str], environ: dict[str, str], cwd: Path
) -> Iterator[Terminal]:
    """A terminal that runs the command, ended with the block."""
    made = Terminal(folder)
    size = ["-x", str(COLUMNS), "-y", str(LINES)]
    exports = [part for name, value in environ.items() for part in ("-e", f"{name}={value}")]
    made.tmux("new-session", "-d", *size, "-c", str(cwd), *exports, *command)
    try:
        yield made
    finally:
        made.tmux("kill-server")


def play(screen: Terminal) -> None:
    """The first five minutes of somebody who lives in Neovim."""
    screen.shows("Prices of a small shop")
    screen.keys(":Callboard new", "Enter")
    screen.shows("idle")
    screen.keys("i", PROMPT)
    screen.shows("it again.")
    screen.frame(2.5)
    screen.keys("Escape", "Enter")
    screen.shows("1 once")
    screen.frame(4)
    screen.keys("C-w", "k", "[a", "gd")
    screen.shows("ga allow once")
    time.sleep(HOLD_S)
    screen.frame(4)
    screen.keys("ga")
    screen.shows("python3 -m unittest -q")
    screen.shows("Always allow commands")
    screen.frame(3.5)
    time.sleep(HOLD_S)
    screen.keys("1")
    screen.shows("Done.")
    screen.shows("done ·")
    screen.frame(5)


def recorded(folder: Path) -> list[Frame]:
    workspace = folder / "shop"
    shutil.copytree(ROOT / "demo" / "workspace", workspace)
    home = folder / "home"
    home.mkdir()
    binaries = ROOT / ".venv" / "bin"
    server = f"{{cmd={{'{binaries / 'callboard'}','serve'}}}}"
    command = [
        str(binaries / "nvim"), "--clean", "-n",
        "--cmd", "set termguicolors background=dark shortmess+=F",
        "--cmd", f"set rtp^={ROOT / 'editors' / 'nvim'}",
        "--cmd", f"lua vim.g.callboard={{server={server}, window={{width=0.55}}}}",
        "prices.py",
    ]  # fmt: skip
    environ = {
        "HOME": str(home),
        "XDG_STATE_HOME": str(home / "state"),
        "COLORTERM": "truecolor",
        "CALLBOARD_STORE": str(folder / "store.db"),
        "CALLBOARD_MODEL": "scripted/demo",
    }
    with terminal(folder, command, environ, workspace) as screen:
        play(screen)
        return screen.frames


def _neutral(line: str, hidden: list[tuple[str, str]]) -> str:
    """The line without the names of this machine, as wide as it was."""
    for text, instead in hidden:
        while text in line:
            at = line.index(text) + len(instead)
            line = line.replace(text, instead, 1)
            gap = line.find("   ", at)
            line = line[:gap] + " " * (len(text) - len(instead)) + line[gap:]
    return line


def drawn(frame: Frame, number: int, hidden: list[tuple[str, str]]) -> str:
    """One frame as an SVG of its own."""
    ansi = "\n".join(_neutral(line, hidden) for line in frame.screen.rstrip("\n").split("\n"))
    console = Console(width=COLUMNS, record=True, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115, PTH123
    console.print(Text.from_ansi(ansi), no_wrap=True, overflow="crop")
    svg = console.export_svg(title="nvim", unique_id=f"frame{number}")
    svg = svg.replace("<text ", '<text xml:space="preserve" ')
    return re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)


def animated(frames: list[Frame], hidden: list[tuple[str, str]]) -> str:
    """All frames in one picture, each shown for its time, over and over."""
    svgs = [drawn(frame, number, hidden) for number, frame in enumerate(frames)]
    box = re.search(r'viewBox="([^"]+)"', svgs[0])
    if box is None:
        raise ValueError("the picture has no size")
    whole = sum(frame.seconds for frame in frames)
    rules: list[str] = []
    begun = 0.0
    for number, frame in enumerate(frames):
        first, last = 100 * begun / whole, 100 * (begun + frame.seconds) / whole
        begun += frame.seconds
        off = f"0%, {first:.2f}% {{visibility: hidden}} " if number else ""
        rules.append(
            f"@keyframes show{number} {{{off}{first + 0.01 if number else 0:.2f}%, {last:.2f}% "
            f"{{visibility: visible}} {min(last + 0.01, 100):.2f}%, 100% "
            f"{{visibility: {'visible' if last >= 100 else 'hidden'}}}}}\n"
            f".show{number} {{animation: show{number} {whole:g}s step-end infinite}}"
        )
    parts = "\n".join(f'<g class="show{number}">{svg}</g>' for number, svg in enumerate(svgs))
    style = "\n".join(rules)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box.group(1)}">\n'
        f"<style>\n{style}\n</style>\n{parts}\n</svg>\n"
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        frames = recorded(folder)
        hidden = [(str(folder), "/home/you"), (str(ROOT), "/home/you/callboard")]
    PICTURE.write_text(animated(frames, hidden), "utf-8")


if __name__ == "__main__":
    main()
