"""The empty folders in which agents are probed, each named after the mark that its processes bear."""

import contextlib
import glob
import shutil
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from ...tools.offload import finished


@asynccontextmanager
async def folder_of(mark: str) -> AsyncGenerator[str]:
    """A folder for that long. It goes with all that the agent has put there, as far as that can go."""
    folder = tempfile.mkdtemp(prefix=_prefix(mark))
    try:
        yield folder
    finally:
        await finished(partial(_remove, folder))


def remove_left(mark: str) -> None:
    """Removes the folder of a probe whose server was killed in the middle of it, if there is one."""
    for folder in Path(tempfile.gettempdir()).glob(glob.escape(_prefix(mark)) + "*"):
        _remove(folder)


def _remove(folder: str | Path) -> None:
    with contextlib.suppress(RecursionError):  # of folders in folders in folders
        shutil.rmtree(folder, ignore_errors=True)


def _prefix(mark: str) -> str:
    return f"callboard-probe-{mark}-"
