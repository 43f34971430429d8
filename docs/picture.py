"""Makes ``docs/demo.svg``: what ``callboard demo`` really prints, as a picture for the README.

Run it with the project's own Python: ``.venv/bin/python docs/picture.py``.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 104
PICTURE = Path(__file__).with_name("demo.svg")


def recorded(store: Path) -> str:
    """The demo's output as a terminal of `WIDTH` columns shows it when all is said."""
    environ = {
        **os.environ,
        "COLUMNS": str(WIDTH),
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "TTY_COMPATIBLE": "1",
        "TTY_INTERACTIVE": "0",
        "CALLBOARD_MODEL": "scripted/demo",
    }
    command = [sys.executable, "-m", "callboard", "--store", str(store), "demo"]
    return subprocess.run(command, env=environ, check=True, capture_output=True, text=True).stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        text = recorded(Path(folder) / "demo.db")
        text = text.replace(folder, "/home/you").replace(tempfile.gettempdir(), "/tmp")  # noqa: S108
    console = Console(width=WIDTH, record=True, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115, PTH123
    console.print(Text.from_ansi(text))
    svg = console.export_svg(title="callboard demo")
    svg = svg.replace("<text ", '<text xml:space="preserve" ')
    # the font is the reader's own; nothing is fetched
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    PICTURE.write_text(svg, "utf-8")


if __name__ == "__main__":
    main()
