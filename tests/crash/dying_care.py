"""Cares for stores in processes that are killed at the nth step: each call of the system that changes files,
and each of SQLite. Reads ``[what, store, other, nth]`` a line; writes how each process ended."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from callboard.log import backup, restoring, vacuuming
from callboard.log.clock import utc_now
from callboard.log.ids import IdSource
from callboard.log.sqlite import sqlite3
from callboard.log.store import open_store

_CALLS = ("open", "write", "fsync", "ftruncate", "link", "rename", "replace", "unlink", "mkdir")


def arm(nth: int) -> None:
    """Has this process killed before its nth step."""
    left = nth

    def step() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(function: Any) -> Any:
        def call(*args: Any, **more: Any) -> Any:
            step()
            return function(*args, **more)

        return call

    for name in _CALLS:
        setattr(os, name, counted(getattr(os, name)))

    class Counted(sqlite3.Connection):
        def execute(self, *args: Any) -> Any:
            # of the many statements that make a schema in one transaction, some will do
            if not args[0].lstrip().startswith(("CREATE INDEX", "CREATE TABLE", "ALTER", "--")):
                step()
            return super().execute(*args)

        def close(self) -> None:
            step()
            super().close()

        def backup(self, target: Any, **more: Any) -> None:
            told = more.pop("progress")

            def progress(*args: Any) -> None:
                step()
                told(*args)

            super().backup(target, progress=progress, **{**more, "pages": 8})

    connect = sqlite3.connect
    sqlite3.connect = lambda *args, **more: connect(*args, factory=Counted, **more)


def care(what: str, store: Path, other: Path) -> None:
    ids = IdSource()
    match what:
        case "backup":
            backup.back_up(store, other, now=utc_now, overwrite=True)
        case "restore":
            restoring.restore(store, other, ids=ids, now=utc_now, users=lambda _: [])
        case "vacuum":
            vacuuming.vacuum(store, now=utc_now, ids=ids, keep_answers_days=7)
        case _:
            open_store(store, ids=ids, now=utc_now).close()


def main() -> None:
    for line in sys.stdin:
        what, store, other, nth = json.loads(line)
        child = os.fork()
        if child == 0:
            arm(nth)
            code = 1
            try:
                care(what, Path(store), Path(other))
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


main()
