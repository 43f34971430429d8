"""Putting another database in a store's place: after a crash at any moment it is the old one or the new
one, whole, and never one with the other's WAL.

A database and its WAL are two files, which no file system renames together. So the plan is written down
first, which decides the matter; whoever opens the store next finishes what a crash has left. The
new database waits in its staging place, without a WAL; as long as it is there, the rest is the old
one's. All of it happens while nobody has the store open (`occupancy`).
"""

import contextlib
import errno
import os
from pathlib import Path

import orjson

from callboard_rpc.errors import CallboardError

from .durable import sync_folder, write_whole
from .faultpoints import point as care_point

_COMPANIONS = ("-wal", "-journal")


def staging_of(store: Path) -> Path:
    """Where the database waits that is to take the store's place."""
    return store.with_name(store.name + ".incoming")


def _plan_of(store: Path) -> Path:
    return store.with_name(store.name + ".locks") / "swap.json"


def is_pending(store: Path) -> bool:
    """Whether a swap was decided and is not done."""
    return _plan_of(store).exists()


def swap(store: Path, aside: Path) -> None:
    """Puts the staged database in the store's place, and the old one to `aside`, in the same folder.

    The caller has the store alone, and has synced what is staged.
    """
    if aside.parent != store.parent:
        raise ValueError("a store is put aside in its own folder")
    write_whole(_plan_of(store), orjson.dumps({"aside": aside.name}))
    care_point("care.swap_decided")
    finish(store)


def finish(store: Path) -> None:
    """Does what is left of a swap that was decided; nothing when there is none."""
    plan = _plan_of(store)
    try:
        aside = store.with_name(_aside_name(plan))
    except FileNotFoundError:
        return
    staged = staging_of(store)
    if staged.exists():
        for tail in _COMPANIONS:
            with contextlib.suppress(FileNotFoundError):
                store.with_name(store.name + tail).rename(aside.with_name(aside.name + tail))
        store.with_name(store.name + "-shm").unlink(missing_ok=True)
        care_point("care.swap_wal_aside")
        _keep(store, aside)
        care_point("care.swap_kept")
        staged.replace(store)
        care_point("care.swap_replaced")
    sync_folder(store.parent)
    plan.unlink()
    sync_folder(plan.parent)


def _aside_name(plan: Path) -> str:
    try:
        name = orjson.loads(plan.read_bytes())["aside"]
    except (ValueError, KeyError, TypeError) as fault:
        raise CallboardError(
            "storeIo", f"{plan} was changed by somebody and tells no more what to do; remove it"
        ) from fault
    if not isinstance(name, str) or Path(name).name != name:
        raise CallboardError("storeIo", f"{plan} names no file of its store's folder; remove it")
    return name


def _keep(store: Path, aside: Path) -> None:
    """Gives the old database its second name, so that the first never stands for nothing."""
    try:
        os.link(store, aside)
    except FileNotFoundError:
        return  # there was none
    except FileExistsError:
        return  # done before a crash
    except OSError as fault:
        if fault.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
            raise
        store.rename(aside)  # a file system without links
