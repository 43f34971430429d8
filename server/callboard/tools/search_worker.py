"""Searches files for a regular expression, in a process of its own that can be ended at any moment.

Python's matcher cannot be interrupted and holds the interpreter while it works; a pattern that
backtracks would stop every session of the host. This file is run as a script, imports nothing of
ours, and reads from standard input one JSON line, the job, then paths that end in NUL bytes::

    {"root", "pattern", "ignore_case", "limit", "file_bytes", "line_chars", "cpu_seconds"}

`root` is a descriptor that it was given, or a path where the system has no such thing.
It prints a JSON array for each match: path, line from 1, the line's text; or one JSON object,
``{"error"}``, when the pattern is no regular expression.
"""

import contextlib
import json
import os
import re
import stat
import sys

_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_SNIFF_BYTES = 8192
_MARKS = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)


def read(root: int, path: str, limit: int) -> str | None:
    """The text of the file `path` below the folder `root`, followed through no link; None when it is
    no text, no file, or larger than `limit` bytes."""
    *folders, name = path.split("/")
    here = os.dup(root)
    try:
        for folder in folders:
            below = os.open(folder, _FLAGS | getattr(os, "O_DIRECTORY", 0), dir_fd=here)
            os.close(here)
            here = below
        with open(os.open(name, _FLAGS, dir_fd=here), "rb") as file:  # noqa: PTH123 - a descriptor
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_size > limit:
                return None
            data = file.read(limit)
    except OSError:
        return None
    finally:
        os.close(here)
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    if b"\x00" in data[:_SNIFF_BYTES]:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def excerpt(line: str, match: "re.Match[str]", chars: int) -> str:
    """The line, or of a long one the part around the match."""
    line = line.rstrip("\r")
    if len(line) <= chars:
        return line
    start = max(match.start() - chars // 4, 0)
    return ("…" if start else "") + line[start : start + chars] + "…"


def main() -> None:
    job = json.loads(sys.stdin.buffer.readline())
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        seconds = job["cpu_seconds"]
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    try:
        pattern = re.compile(job["pattern"], re.IGNORECASE if job["ignore_case"] else 0)
    except (re.error, OverflowError, RecursionError) as fault:
        sys.stdout.write(json.dumps({"error": str(fault)}) + "\n")
        return
    paths = sys.stdin.buffer.read().decode("utf-8", "surrogateescape").split("\x00")
    root = job["root"]
    if isinstance(root, str):
        root = os.open(root, os.O_RDONLY)
    left = job["limit"]
    for path in filter(None, paths):
        text = read(root, path, job["file_bytes"])
        if text is None:
            continue
        for number, line in enumerate(text.split("\n"), start=1):
            match = pattern.search(line)
            if match is None:
                continue
            row = [path, number, excerpt(line, match, job["line_chars"])]
            sys.stdout.write(json.dumps(row) + "\n")
            left -= 1
            if left == 0:
                return
        sys.stdout.flush()


if __name__ == "__main__":
    main()
