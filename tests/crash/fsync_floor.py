"""How long the disk itself takes: what a commit's time is held against, measured while the commits are made.

As a process (``python fsync_floor.py FILE``) it writes 4 KiB and has them made durable, over and over with a
breath in between, until its input ends; then it prints what each took in ms, as JSON.
"""

import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_BREATH_S = 0.02
"""Between two writes: the disk is measured, not kept busy."""


class Floor:
    """What was measured; empty until the measuring has ended."""

    def __init__(self) -> None:
        self.taken_ms: list[float] = []

    def __str__(self) -> str:
        taken = sorted(self.taken_ms)
        return (
            f"a bare write and fdatasync beside them {statistics.median(taken):.1f} ms, "
            f"99th of 100 {taken[len(taken) * 99 // 100]:.1f}, slowest {taken[-1]:.0f} of {len(taken)}"
        )


@contextmanager
def measured(folder: Path) -> Iterator[Floor]:
    """Measures the disk of `folder`, in a process of its own, for as long as the context lasts."""
    floor = Floor()
    command = [sys.executable, __file__, str(folder / "floor")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield floor
        finally:
            said, _ = process.communicate()
    floor.taken_ms = json.loads(said)


def _main(path: Path) -> None:
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    page = os.urandom(4096)
    taken: list[float] = []
    while not taken or not over.wait(_BREATH_S):
        began = time.perf_counter()
        os.pwrite(descriptor, page, 4096 * (len(taken) % 256))
        os.fdatasync(descriptor)
        taken.append(1000 * (time.perf_counter() - began))
    print(json.dumps(taken))


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
