"""What a change to a file looks like: a bounded unified diff."""

import difflib
from typing import Literal

from callboard_rpc.common import FileChange

from .display import clip, well_formed

DIFF_LIMIT_BYTES = 64 * 1024
"""More of a diff than this is cut out of its middle."""

_COMPARED_LINES = 4_000
"""Beyond this many differing lines a line by line comparison costs more than anybody would read."""

_CONTEXT_LINES = 3


def file_change(path: str, before: str | None, after: str) -> FileChange:
    """How the file `path` (absolute) changes from `before` (None: it does not exist) to `after`.

    `added` and `removed` count lines and are exact for what is compared; a change too large to be
    compared line by line counts its whole differing stretch as removed and added.
    """
    operation: Literal["create", "modify"] = "create" if before is None else "modify"
    old, new = _lines(before or ""), _lines(after)
    text, added, removed = _unified(path, old, new, created=operation)
    clipped = clip(well_formed(text), DIFF_LIMIT_BYTES)
    return FileChange(
        path=path,
        operation=operation,
        diff=clipped.text,
        added=added,
        removed=removed,
        truncated=clipped.truncated,
    )


def _lines(text: str) -> list[str]:
    """Lines with their ends; only ``\\n`` ends one, as in every diff."""
    parts = text.split("\n")
    lines = [part + "\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def _unified(
    path: str, old: list[str], new: list[str], *, created: Literal["create", "modify"]
) -> tuple[str, int, int]:
    start, end = _common_ends(old, new)
    removed, added = old[start : len(old) - end], new[start : len(new) - end]
    # Only the stretch that differs, with a margin for context, goes into the slow comparison.
    lead = min(start, _CONTEXT_LINES)
    trail = min(end, _CONTEXT_LINES)
    name = path.lstrip("/").replace("\n", "\\n").replace("\t", "\\t")
    source = "/dev/null" if created == "create" else f"a/{name}"
    header = f"--- {source}\n+++ b/{name}\n"
    left = old[start - lead : len(old) - end + trail]
    right = new[start - lead : len(new) - end + trail]
    if len(removed) + len(added) > _COMPARED_LINES:
        groups = [[("replace", lead, lead + len(removed), lead, lead + len(added))]]
    else:
        # Lines that are everywhere (braces, blanks) are no anchors: with them it can take seconds.
        matcher = difflib.SequenceMatcher(None, left, right, autojunk=True)
        groups = list(matcher.get_grouped_opcodes(_CONTEXT_LINES))
    offset = start - lead
    out: list[str] = []
    plus = minus = 0
    for group in groups:
        first, last = group[0], group[-1]
        out.append(
            f"@@ -{_span(first[1] + offset, last[2] + offset)}"
            f" +{_span(first[3] + offset, last[4] + offset)} @@\n"
        )
        for tag, left_from, left_to, right_from, right_to in group:
            if tag == "equal":
                out.extend(_marked(" ", left[left_from:left_to]))
                continue
            minus += left_to - left_from
            plus += right_to - right_from
            out.extend(_marked("-", left[left_from:left_to]))
            out.extend(_marked("+", right[right_from:right_to]))
    return (header + "".join(out) if out else ""), plus, minus


def _common_ends(old: list[str], new: list[str]) -> tuple[int, int]:
    shortest = min(len(old), len(new))
    start = 0
    while start < shortest and old[start] == new[start]:
        start += 1
    end = 0
    while end < shortest - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return start, end


def _span(start: int, stop: int) -> str:
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _marked(mark: str, lines: list[str]) -> list[str]:
    return [
        mark + line if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"
        for line in lines
    ]
