"""All that a program under test has started, also what has lost its parent since."""

import time

import psutil

from .processes import bearing, ended


class Offspring:
    """The processes below one program, and those that bear its `mark` (``NAME=value`` of their environment)."""

    def __init__(self, mark: str) -> None:
        self.mark = mark
        self._known: set[psutil.Process] = set()

    def below(self, pid: int, *, itself: bool = False) -> list[psutil.Process]:
        """Those that live below the program now, and are remembered for `left`; with it when `itself`."""
        try:
            root = psutil.Process(pid)
            found = [*([root] if itself else []), *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            found = []
        found = [process for process in found if not ended(process)]
        self._known.update(found)
        return found

    def living(self) -> list[psutil.Process]:
        """All that were ever seen, or bear the mark, and live."""
        known = [process for process in self._known if not ended(process)]
        return [*known, *(process for process in bearing(self.mark) if process not in known)]

    def left(self, patience_s: float) -> list[psutil.Process]:
        """Those that still live after they had their time to end."""
        ends = time.monotonic() + patience_s
        while (left := self.living()) and time.monotonic() <= ends:
            time.sleep(0.02)  # the end of an orphan sends no event
        return left
