"""Runs one search in a process that can be ended: ripgrep, or `search_worker.py`.

Everything here blocks and is called in a worker thread, save `Job.stop`.
"""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final, cast

import orjson
from attrs import frozen

from . import beneath, tree
from .base import PathDenied, Workspace
from .environment import scrubbed_environment
from .paths import denied_text

FILE_LIMIT_BYTES = 4 * 1024 * 1024
"""Larger files are passed over."""

MOST_FILES = 100_000
_LINE_CHARS = 300
_CPU_SECONDS = 20
_WORKER: Final = Path(__file__).with_name("search_worker.py")
_RIPGREP_FAILED = 2


@frozen(kw_only=True)
class Search:
    """What to look for. `start` is a file or folder below the workspace root `root`, all resolved."""

    workspace: Workspace
    root: Path
    start: Path
    pattern: str
    glob: str | None
    ignore_case: bool
    limit: int


@frozen
class Match:
    """`path` is relative to the searched root."""

    path: str
    line: int
    text: str


class Job:
    """One search. `run` fills `matches`; `stop`, from any thread, ends it early."""

    def __init__(self, search: Search, ripgrep: str | None) -> None:
        self._search = search
        self._ripgrep = ripgrep
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self.matches: list[Match] = []
        self._looked_at = ("", False)
        """The file that matched last, and whether it is withheld."""
        self.incomplete = False
        """Not everything was searched."""
        self.fault: str | None = None
        """Why nothing could be searched."""

    def stop(self) -> None:
        """Ends the search: what was found so far stays."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                with contextlib.suppress(OSError):
                    self._process.kill()

    def run(self) -> None:
        try:
            # Ripgrep's expressions know no look-around and no back-references; Python's do.
            if self._ripgrep is None or not self._by_ripgrep(self._ripgrep):
                self._by_worker()
        except PathDenied as denied:
            self.fault = denied_text(self._search.workspace, denied)

    def _by_ripgrep(self, program: str) -> bool:
        search = self._search
        argv = [
            program, "--no-config", "--json", "--hidden", "--sort=path", "--no-require-git",
            "--no-ignore-global", "--no-ignore-dot", "--no-ignore-exclude", "--no-messages",
            f"--max-filesize={FILE_LIMIT_BYTES}", "--glob=!.git",
            *(["--ignore-case"] if search.ignore_case else []),
            *([f"--glob={search.glob}"] if search.glob else []),
            f"--regexp={search.pattern}", "--", "./",
        ]  # fmt: skip
        within = search.start.relative_to(search.root)
        with contextlib.ExitStack() as stack:
            try:
                here = stack.enter_context(beneath.folder(search.workspace, search.start))
            except NotADirectoryError:
                return False  # ripgrep would follow a link that takes the place of a single file
            process = stack.enter_context(self._started(argv, beneath.way_to(here, search.start)))
            assert process.stdin is not None and process.stdout is not None
            process.stdin.close()
            for line in process.stdout:
                row = orjson.loads(line)
                if row["type"] == "match" and not self._take(_from_ripgrep(row["data"], within)):
                    break
            else:
                return process.wait() != _RIPGREP_FAILED or bool(self.matches)
        return True

    def _by_worker(self) -> None:
        search = self._search
        with beneath.folder(search.workspace, search.root) as root:
            self._search_below(root)

    def _search_below(self, root: int | None) -> None:
        search = self._search
        paths = self._paths()
        job = {
            "root": str(search.root) if root is None else root,
            "pattern": search.pattern,
            "ignore_case": search.ignore_case,
            "limit": search.limit,
            "file_bytes": FILE_LIMIT_BYTES,
            "line_chars": _LINE_CHARS,
            "cpu_seconds": _CPU_SECONDS,
        }
        given = (
            orjson.dumps(job)
            + b"\n"
            + b"\0".join(p.encode("utf-8", "surrogateescape") for p in paths)
        )
        # -I and -S: nothing of the workspace or of the user's site is imported, and it starts at once.
        argv = [sys.executable, "-I", "-S", str(_WORKER)]
        cwd = search.root if root is None else Path("/")
        with self._started(argv, cwd, () if root is None else (root,)) as process:
            assert process.stdin is not None and process.stdout is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(given)
                process.stdin.close()
            for line in process.stdout:
                row = orjson.loads(line)
                if isinstance(row, dict):
                    reason = cast("dict[str, str]", row)["error"]
                    self.fault = f"pattern: is not a regular expression: {reason}."
                    return
                path, number, text = cast("tuple[str, int, str]", row)
                if not self._take(Match(path, number, text)):
                    return
            if process.wait() != 0:
                self.incomplete = True

    def _paths(self) -> list[str]:
        search = self._search
        wanted = tree.spec_of([search.glob]) if search.glob else None
        if not search.start.is_dir():
            return [search.start.relative_to(search.root).as_posix()]
        within = search.start.relative_to(search.root).as_posix()
        skip = 0 if within == "." else len(within) + 1
        paths: list[str] = []
        for entry in tree.walk(
            search.workspace, search.start, depth=64, stop=lambda: self._stopped
        ):
            if entry.kind != "file" or (wanted and not wanted.match_file(entry.path[skip:])):
                continue
            if len(paths) == MOST_FILES:
                self.incomplete = True
                break
            paths.append(entry.path)
        return paths

    def _take(self, match: Match) -> bool:
        """Keeps `match`. Returns whether more are wanted."""
        if match.path != self._looked_at[0]:  # those of one file come one after the other
            withheld = self._search.workspace.withholds(self._search.root / match.path)
            self._looked_at = (match.path, withheld)
        if not self._looked_at[1]:
            self.matches.append(match)
        return len(self.matches) < self._search.limit

    @contextlib.contextmanager
    def _started(
        self, argv: list[str], cwd: Path, descriptors: tuple[int, ...] = ()
    ) -> Generator["subprocess.Popen[bytes]", None, None]:
        """A process that `stop` can end, and that is gone when the block is left."""
        with self._lock:
            process = subprocess.Popen(
                argv,
                cwd=cwd,
                env=scrubbed_environment(os.environ),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=descriptors,
            )
            self._process = process
            if self._stopped:
                process.kill()
        try:
            yield process
        finally:
            with contextlib.suppress(OSError):
                process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()


def _from_ripgrep(data: dict[str, Any], within: Path) -> Match:
    text = _text(data["lines"]).rstrip("\r\n")
    if len(text) > _LINE_CHARS:
        raw = data["submatches"][0]["start"] if data["submatches"] else 0
        start = max(raw - _LINE_CHARS // 4, 0)
        text = ("…" if start else "") + text[start : start + _LINE_CHARS] + "…"
    path = (within / _text(data["path"])).as_posix()
    return Match(path, data["line_number"], text)


def _text(value: dict[str, str]) -> str:
    """Ripgrep writes what is not UTF-8 as base64."""
    if "text" in value:
        return value["text"]
    import base64

    return base64.b64decode(value["bytes"]).decode("utf-8", "replace")
