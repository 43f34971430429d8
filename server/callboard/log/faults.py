"""SQLite's and the file system's failures, as errors that name the store and the way out."""

import errno
import shutil
from pathlib import Path

from callboard_rpc.errors import CallboardError

from .quarantine import WAY_OUT
from .sqlite import sqlite3
from .text import quoted

_LEAST_BYTES = 64 * 1024


class StaleFence(Exception):
    """The run that tried to write no longer owns its session: nothing was written (execution 8)."""

    def __init__(self, session_id: str, fence: int) -> None:
        super().__init__(f"session {session_id} is no longer owned under fence {fence}")
        self.session_id = session_id
        self.fence = fence


def no_session(session_id: str) -> CallboardError:
    """Somebody named a session that is not there."""
    return CallboardError("sessionNotFound", f"there is no session {quoted(session_id)}")


def store_error(fault: BaseException, path: Path) -> CallboardError | None:
    """The named error for a failure of the store, or None when it is not one."""
    if isinstance(fault, CallboardError):
        return fault
    if isinstance(fault, OSError):
        return _from_os(fault, path)
    if not isinstance(fault, sqlite3.Error):
        return None
    code = getattr(fault, "sqlite_errorcode", None)
    primary = code & 0xFF if isinstance(code, int) else _guess(str(fault))
    match primary:
        case 5 | 6:
            return CallboardError(
                "storeBusy", f"the store {path} is busy; try again", retry_after_ms=250
            )
        case 8 | 3 | 14:
            return CallboardError(
                "storeReadOnly",
                f"the store {path} cannot be written; check the permissions of the file and its folder",
            )
        case 13:
            return _full(path)
        case 10:
            if _is_full(path):  # without room for its shared memory SQLite speaks of an I/O error
                return _full(path)
            return CallboardError(
                "storeIo", f"the store {path} cannot be read or written just now: {fault}"
            )
        case 11 | 26:
            return CallboardError(
                "storeCorrupt",
                f"the store {path} is damaged ({fault}). {WAY_OUT}",
            )
        case _:
            return None


def _full(path: Path) -> CallboardError:
    return CallboardError(
        "storeFull", f"the disk that holds the store {path} is full; free some space and try again"
    )


def _is_full(path: Path) -> bool:
    """Whether not even a few pages would find room beside the store."""
    try:
        return shutil.disk_usage(path.parent).free < _LEAST_BYTES
    except OSError:
        return False


def _guess(text: str) -> int | None:
    """The primary result code by SQLite's own texts, for libraries that do not pass the code on."""
    known = {
        "database is locked": 5,
        "attempt to write a readonly database": 8,
        "unable to open database file": 14,
        "database or disk is full": 13,
        "disk I/O error": 10,
        "database disk image is malformed": 11,
        "file is not a database": 26,
    }
    return next((code for part, code in known.items() if part in text), None)


def _from_os(fault: OSError, path: Path) -> CallboardError:
    match fault.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return CallboardError(
                "storeFull",
                f"the disk that holds the store {path} is full; free some space and try again",
            )
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return CallboardError(
                "storeReadOnly",
                f"the store {path} cannot be written; check the permissions of the file and its folder",
            )
        case _:
            return CallboardError(
                "storeIo", f"the store {path} cannot be opened: {fault.strerror or fault}"
            )
