"""Writing to the terminal: text of others always passes through `callboard_client.terminal_text`."""

import json
import os
import sys

import orjson
from rich.console import Console
from rich.text import Text

from callboard_client.terminal_text import clean
from callboard_rpc.common import Json

_PIPED_WIDTH = 160
"""Where nobody says how wide it is shown."""


class _PlainConsole(Console):
    """Its own way out of a broken pipe would end the event loop before anything is cleaned up."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def open_console(*, stderr: bool = False) -> Console:
    """A console that treats what it prints as plain text: no markup, no emoji codes."""
    stream = sys.stderr if stderr else sys.stdout
    return _PlainConsole(
        file=stream,
        highlight=False,
        markup=False,
        emoji=False,
        width=None if stream.isatty() or _has_width() else _PIPED_WIDTH,
    )


def _has_width() -> bool:
    """Whether the environment says it; rich reads it there, too."""
    columns = os.environ.get("COLUMNS", "")
    return columns.isdecimal() and int(columns) > 0


def prepare_streams() -> None:
    """Characters that the locale cannot show become ``?`` instead of an error."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def line(*parts: str | tuple[str, str]) -> Text:
    """One line of cleaned parts; a tuple is a part with its style."""
    text = Text(no_wrap=True, overflow="ellipsis")
    for part in parts:
        words, style = (part, "") if isinstance(part, str) else part
        text.append(" ".join(clean(words).expandtabs(4).split("\n")), style)
    return text


def block(words: str, style: str = "", *, indent: str = "") -> Text:
    """Cleaned text of several lines, indented."""
    lines = clean(words).rstrip("\n").split("\n")
    return Text("\n".join(indent + each for each in lines), style)


def write_json_line(value: Json) -> None:
    """`value` as one line on stdout. On a terminal all but ASCII is escaped: controls stay text."""
    if sys.stdout.isatty():
        sys.stdout.write(json.dumps(value, separators=(",", ":")) + "\n")
        sys.stdout.flush()
    else:
        sys.stdout.buffer.write(orjson.dumps(value) + b"\n")
        sys.stdout.buffer.flush()
