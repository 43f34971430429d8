"""A disk that is full, below files that a running process writes."""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from attrs import define, field

_FILLER = "filler"


@define
class LittleDisk:
    """A folder that can be full, and have room again.

    The processes that write there are kept from it as well, since SQLite may still have room within its files.
    Where no disk can be mounted there is nothing but that, and SQLite calls it an error of input and output.
    """

    folder: Path
    mounted: bool
    _limits: list[tuple[psutil.Process, tuple[int, int]]] = field(
        factory=list[tuple[psutil.Process, tuple[int, int]]], init=False
    )

    def fill(self, *writers: psutil.Process) -> None:
        """Leaves no room for one byte more."""
        for writer in writers:
            before = writer.rlimit(psutil.RLIMIT_FSIZE)
            assert before is not None
            self._limits.append((writer, before))
            writer.rlimit(psutil.RLIMIT_FSIZE, (0, before[1]))
        if not self.mounted:
            return
        with (self.folder / _FILLER).open("ab", buffering=0) as filler:
            for size in (65_536, 4_096, 512, 1):
                with suppress(OSError):
                    while True:
                        filler.write(bytes(size))

    def free(self) -> None:
        (self.folder / _FILLER).unlink(missing_ok=True)
        while self._limits:
            writer, before = self._limits.pop()
            with suppress(psutil.NoSuchProcess):
                writer.rlimit(psutil.RLIMIT_FSIZE, before)


@contextmanager
def little_disk(folder: Path, *, kib: int) -> Generator[LittleDisk]:
    """An empty folder on a disk of its own, as long as it is used; then nothing may be open there."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kib}k,mode=700", "tmpfs", str(folder)]
    mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    disk = LittleDisk(folder, mounted)
    try:
        yield disk
    finally:
        disk.free()
        if mounted:
            # Detached at once: whoever still ends there holds on to it.
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
