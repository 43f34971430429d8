"""A process that is given input, and whose two streams are kept apart."""

import os
import subprocess
from pathlib import Path

import psutil
import pytest

from callboard.tools.processes import MARK, end_marked, run_process

pytestmark = pytest.mark.anyio


async def test_input_is_read_and_the_streams_are_kept_apart(tmp_path: Path) -> None:
    out, errors = bytearray(), bytearray()
    given = b"x" * 3_000_000  # more than any pipe holds
    before = psutil.Process().num_fds()
    ended = await run_process(
        ("sh", "-c", "wc -c; echo trouble >&2; exit 3"),
        cwd=tmp_path,
        environment={"PATH": "/usr/bin:/bin"},
        mark="test",
        time_limit_s=30,
        feed=out.extend,
        feed_errors=errors.extend,
        given=given,
    )
    assert (ended.exit_code, bytes(out).strip(), bytes(errors)) == (3, b"3000000", b"trouble\n")
    assert psutil.Process().num_fds() == before


async def test_a_program_that_is_not_there_leaves_nothing_open(tmp_path: Path) -> None:
    before = psutil.Process().num_fds()
    with pytest.raises(FileNotFoundError):
        await run_process(
            (str(tmp_path / "nothing"),),
            cwd=tmp_path,
            environment={},
            mark="test",
            time_limit_s=30,
            feed=bytearray().extend,
            feed_errors=bytearray().extend,
            given=b"x",
        )
    assert psutil.Process().num_fds() == before


async def test_input_that_nobody_reads_hinders_nothing(tmp_path: Path) -> None:
    ended = await run_process(
        ("sh", "-c", "exit 0"),
        cwd=tmp_path,
        environment={"PATH": "/usr/bin:/bin"},
        mark="test",
        time_limit_s=30,
        feed=bytearray().extend,
        given=b"x" * 3_000_000,
    )
    assert ended.exit_code == 0


def test_a_shell_whose_command_is_ended_does_not_go_on_with_the_next(tmp_path: Path) -> None:
    after = tmp_path / "after"
    marked = {**os.environ, MARK: f"call_{tmp_path.name}"}
    # it ignores the first signal, and so lives until the second one, which its child may get before it
    line = f"trap '' TERM; for i in $(seq 40); do sleep 61.3; echo on >> {after}; done"
    shells = [
        subprocess.Popen(["sh", "-c", f"echo; {line}"], env=marked, stdout=subprocess.PIPE)
        for _ in range(10)
    ]
    try:
        for shell in shells:
            assert shell.stdout is not None and shell.stdout.readline() == b"\n"
        assert end_marked({marked[MARK]}) >= len(shells)
        assert [shell.wait(20) for shell in shells] == [-9] * len(shells)
        assert not after.exists()
    finally:
        for shell in shells:
            shell.kill()
            shell.wait()
            assert shell.stdout is not None
            shell.stdout.close()
