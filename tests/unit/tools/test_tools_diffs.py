"""Unified diffs that another program can apply."""

import shutil
import subprocess
import time
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from callboard.tools.diffs import file_change

_TEXT = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "d"]), max_size=30).map("".join)


@given(before=_TEXT, after=_TEXT)
def test_counts_match_the_lines_of_the_diff(before: str, after: str) -> None:
    change = file_change("/w/f", before, after)
    lines = change.diff.split("\n")[2:]
    assert change.added == sum(line.startswith("+") for line in lines)
    assert change.removed == sum(line.startswith("-") for line in lines)
    assert (change.diff == "") == (before == after)


@given(before=_TEXT, after=_TEXT)
def test_a_diff_says_how_to_make_the_new_text_from_the_old(before: str, after: str) -> None:
    assert _patched(before, file_change("/w/f", before, after).diff) == after


def _patched(before: str, diff: str) -> str:
    """What a program that knows nothing but the format of unified diffs makes of `before`."""
    old = before.split("\n")
    old = [line + "\n" for line in old[:-1]] + ([old[-1]] if old[-1] else [])
    out: list[str] = []
    at = 0
    previous = ""
    for line in diff.split("\n")[2:]:
        mark, body = line[:1], line[1:] + "\n"
        if line.startswith("@@"):
            start, _, count = line.split()[1].removeprefix("-").partition(",")
            begin = int(start) - (0 if count == "0" else 1)
            out += old[at:begin]
            at = begin
        elif mark == "\\" and previous in "+ ":
            out[-1] = out[-1].removesuffix("\n")
        if mark in ("-", " "):
            assert old[at].rstrip("\n") + "\n" == body
            at += 1
        if mark in ("+", " "):
            out.append(body)
        previous = mark
    out += old[at:]
    return "".join(out)


def test_lines_that_are_everywhere_cost_no_time() -> None:
    before = "1\n" + "".join("ab"[n % 2] + "\n" for n in range(1900))
    after = "2\n" + "".join("ab"[n % 3 == 0] + "\n" for n in range(1900)) + "3\n"
    started = time.perf_counter()
    file_change("/w/f", before, after)
    assert time.perf_counter() - started < 1


def test_git_applies_the_diff(tmp_path: Path) -> None:
    git = shutil.which("git")
    before = "".join(f"{n}\n" for n in range(100))
    after = before.replace("5\n", "five\n") + "no end"
    (tmp_path / "f.txt").write_text(before)
    diff = file_change("f.txt", before, after).diff
    assert git is not None
    subprocess.run([git, "apply", "-"], input=diff.encode(), cwd=tmp_path, check=True)
    assert (tmp_path / "f.txt").read_text() == after
