"""Tests in another language, run by a runner of their own: how it ended, and what counts as a pass."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple


class ForeignRun(NamedTuple):
    """How a program ended, and all that it wrote."""

    code: int
    said: str

    def assert_all_ran(self, *, passed: int, left_out: int) -> None:
        """Fails unless the runner was content, and had run something and left out nothing."""
        assert self.code == 0, self.said
        assert passed > 0, f"no test ran:\n{self.said}"
        assert left_out == 0, f"a test is left out:\n{self.said}"

    def assert_failed(self, told: str) -> None:
        """Fails unless the runner failed and said why."""
        assert self.code != 0, self.said
        assert told in self.said


def run_foreign(
    command: Sequence[str | Path],
    *,
    folder: Path,
    environ: Mapping[str, str],
    timeout_s: float = 100,
) -> ForeignRun:
    """Runs a program that asks nobody anything, with this environment and no other."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    return ForeignRun(done.returncode, done.stdout)
