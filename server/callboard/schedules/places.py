"""Where fresh sessions would be: looked at before the transaction that makes one, since it takes files."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from attrs import frozen

from callboard_rpc.common import Mode
from callboard_rpc.errors import CallboardError
from callboard_rpc.schedules import Schedule

from ..config import Settings
from ..sessions.profiles import ProfileBook
from .triggers import invalid


@frozen(kw_only=True)
class Place:
    """Where a fresh session would be, as it was found just before: its folder and mode, or why there can be
    none."""

    cwd: str
    mode: Mode = "ask"
    fault: CallboardError | None = None

    def checked(self) -> str:
        """The folder. Raises scheduleInvalid, pathNotFound, profileNotFound."""
        if self.fault is not None:
            raise self.fault
        return self.cwd


async def find_place(
    schedule: Schedule,
    settings: Callable[[str], Settings],
    profiles: Callable[[str], ProfileBook],
) -> Place | None:
    """Where a fresh session of a schedule would be now; None for one that has a session. `settings` and
    `profiles` are those of a folder."""
    fresh = schedule.target.fresh
    if fresh is None:
        return None
    try:
        cwd = str(await asyncio.to_thread(_folder, fresh.cwd))
        profile = profiles(cwd).get(schedule.profile)
        return Place(cwd=cwd, mode=profile.mode or settings(cwd).approvals.mode)
    except CallboardError as fault:
        return Place(cwd=fresh.cwd, fault=fault)


def _folder(path: str) -> Path:
    folder = Path(path)
    if not folder.is_absolute() or "\x00" in path:
        raise invalid(f"the folder {path[:200]!r} of fresh sessions is not an absolute path")
    try:
        resolved = folder.resolve(strict=True)
    except (OSError, RuntimeError) as fault:
        raise CallboardError(
            "pathNotFound", f"there is no folder {path[:200]}", data={"path": path}
        ) from fault
    if not resolved.is_dir():
        raise CallboardError("pathNotFound", f"{path[:200]} is not a folder", data={"path": path})
    return resolved
