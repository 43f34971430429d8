"""Exact replacements in a text: all of them or none, and words that help when one does not fit."""

import difflib
import re
from collections.abc import Sequence
from itertools import islice

from attrs import field, frozen

from .base import ToolFailure
from .display import one_line
from .schema import describe
from .textfile import TEXT_LIMIT_BYTES, LineEnd, with_line_ends

_CLOSE_LINES = 5_000
_SHOWN_PLACES = 10
_MOST_PLACES = 100_000


@frozen(kw_only=True)
class Edit:
    old_text: str = field(
        metadata=describe(
            "The exact text to replace, with enough around it to be unique.", minLength=1
        )
    )
    new_text: str = field(metadata=describe("What to put in its place; empty deletes it."))
    replace_all: bool = field(
        default=False, metadata=describe("Replace every occurrence instead of exactly one.")
    )


def apply_edits(text: str, edits: Sequence[Edit], *, line_end: LineEnd | None, name: str) -> str:
    """`text` after `edits`, each applied to what the one before left.

    A line break in an edit stands for whatever line end the text has there; new ones are written as
    `line_end`, and lines that no edit touches keep theirs. Raises `ToolFailure` that says which edit
    does not fit and why; `name` is the file's.
    """
    for number, edit in enumerate(edits, start=1):
        which = f"edit {number} of {len(edits)}" if len(edits) > 1 else "the edit"
        text = _apply(text, edit, line_end, which, name)
    return text


def _apply(text: str, edit: Edit, line_end: LineEnd | None, which: str, name: str) -> str:
    old = with_line_ends(edit.old_text, "\n")
    if not old:
        raise ToolFailure(f"{which}: old_text is empty; use write_file for a whole file.")
    if old == with_line_ends(edit.new_text, "\n"):
        raise ToolFailure(f"{which}: old_text and new_text are the same; nothing would change.")
    new = with_line_ends(edit.new_text, line_end)
    places = _places(text, old)
    if not places:
        raise ToolFailure(
            f"{which}: old_text was not found in {name}; nothing was changed.{_closest(text, old)}"
        )
    if len(places) > _MOST_PLACES or len(text) + len(places) * len(new) > TEXT_LIMIT_BYTES:
        raise ToolFailure(
            f"{which}: it would change {name} in too many places or make it too large; nothing was "
            "changed. Use a program for that, with run_command."
        )
    if len(places) > 1 and not edit.replace_all:
        lines = [str(text.count("\n", 0, start) + 1) for start, _ in places[:_SHOWN_PLACES]]
        if len(places) > _SHOWN_PLACES:
            lines.append("…")
        raise ToolFailure(
            f"{which}: old_text is not unique in {name}: it occurs {len(places)} times, at lines "
            f"{', '.join(lines)}. Nothing was changed. Add lines around it, or set replace_all."
        )
    return _replaced(text, places, new)


def _places(text: str, old: str) -> list[tuple[int, int]]:
    """Where `old` is in `text`, overlapping places included: two that overlap are not unique.

    Looks for no more than one place too many."""
    if "\r" in text and "\n" in old:
        escaped = re.escape(old).replace("\\\n", "\r?\n")
        matches = islice(re.finditer(f"(?=({escaped}))", text), _MOST_PLACES + 1)
        return [(match.start(), match.start() + len(match.group(1))) for match in matches]
    places: list[tuple[int, int]] = []
    start = text.find(old)
    while start != -1 and len(places) <= _MOST_PLACES:
        places.append((start, start + len(old)))
        start = text.find(old, start + 1)
    return places


def _replaced(text: str, places: list[tuple[int, int]], new: str) -> str:
    out: list[str] = []
    end = 0
    for start, stop in places:
        if start < end:
            continue  # overlaps the one before, which is gone
        out += (text[end:start], new)
        end = stop
    out.append(text[end:])
    return "".join(out)


def _closest(text: str, old: str) -> str:
    """A hint at the place that was probably meant."""
    lines = text.replace("\r\n", "\n").split("\n")
    wanted = [line.strip() for line in old.strip("\n").split("\n")]
    stripped = [line.strip() for line in lines]
    first = next((line for line in wanted if line), "")
    if not first:
        return " It is blank but for white space."
    offset = wanted.index(first)
    for index, line in enumerate(stripped):
        start = index - offset
        if line == first and start >= 0 and stripped[start : start + len(wanted)] == wanted:
            return (
                f" Lines {start + 1}-{start + len(wanted)} differ from it in white space only:\n"
                + _excerpt(lines, start, len(wanted))
            )
    sample = [line for line in dict.fromkeys(stripped[:_CLOSE_LINES]) if 0 < len(line) < 1000]
    near = difflib.get_close_matches(first[:1000], sample, n=1, cutoff=0.6)
    if not near:
        return " No line of it comes near; read the file again."
    at = stripped.index(near[0])
    return " The closest lines:\n" + _excerpt(lines, max(at - offset, 0), min(len(wanted), 8))


def _excerpt(lines: list[str], start: int, count: int) -> str:
    shown = lines[start : start + min(count, 12)]
    # Indentation is what matters here, so it is kept; the rest is cut to a line.
    return "\n".join(f"{start + n}: {_indented(line)}" for n, line in enumerate(shown, start=1))


def _indented(line: str) -> str:
    body = line.lstrip()
    return line[: len(line) - len(body)][:200] + one_line(body, 300)
