"""A process that is given input, whose two streams are kept apart, and that is ended as a whole."""

import asyncio
import errno
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from tools_workbench import every_thread_busy

from callboard.tools import processes
from callboard.tools.processes import MARK, Ended, ProcessLost, end_marked, run_process

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


# --- ended whatever goes wrong meanwhile ------------------------------------------------------


def blind(*_: object, **__: object) -> Any:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def ignored(_: bytes) -> None:
    """Output that nobody wants."""


async def until(condition: Callable[[], object]) -> None:
    with anyio.fail_after(20):
        while not condition():
            await anyio.sleep(0.005)


def gone(number: int) -> bool:
    try:
        return psutil.Process(number).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def shell(
    line: str, folder: Path, feed: Callable[[bytes], None], *, time_limit_s: float
) -> Ended:
    return await run_process(
        ("sh", "-c", line),
        cwd=folder,
        environment={"PATH": "/usr/bin:/bin"},
        mark=f"call_{folder.name}",
        time_limit_s=time_limit_s,
        feed=feed,
    )


LOOKS = ("psutil.pids", "psutil.Process.is_running", "psutil.Process.status")


@pytest.mark.parametrize("look", LOOKS)
async def test_a_late_command_is_killed_when_nobody_can_look_for_its_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look: str
) -> None:
    before = psutil.Process().children()
    with monkeypatch.context() as patch:
        patch.setattr(look, blind)
        with pytest.raises(ProcessLost, match="open files"):
            await shell("sleep 61.1; sleep 61.2", tmp_path, ignored, time_limit_s=0.2)
    assert psutil.Process().children() == before


@pytest.mark.parametrize("look", LOOKS)
async def test_a_cancel_stays_one_when_nobody_can_look_for_the_processes_that_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look: str
) -> None:
    printed = bytearray()
    running = asyncio.ensure_future(
        shell("echo $$; sleep 61.1; sleep 61.2", tmp_path, printed.extend, time_limit_s=60)
    )
    await until(lambda: printed.endswith(b"\n"))
    with monkeypatch.context() as patch:
        patch.setattr(look, blind)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert gone(int(printed))


async def test_what_was_seen_before_nobody_could_look_any_more_is_killed_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It has left the group, the session and the mark behind, and does not end when it is asked to.
    apart = "setsid env -i sh -c 'trap \"\" TERM; echo $$; exec /bin/sleep 61.4'"
    printed = bytearray()
    running = asyncio.ensure_future(
        shell(f"{apart} & wait", tmp_path, printed.extend, time_limit_s=60)
    )
    await until(lambda: printed.endswith(b"\n"))
    send = psutil.Process.send_signal

    def sent(process: psutil.Process, number: int) -> None:
        if number == signal.SIGTERM:  # all were seen, and are halted
            for look in LOOKS:
                patch.setattr(look, blind)
        send(process, number)

    with monkeypatch.context() as patch:
        patch.setattr("psutil.Process.send_signal", sent)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    await until(lambda: gone(int(printed)))


async def test_a_command_is_ended_though_no_thread_can_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def none_left(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("anyio.to_thread.run_sync", none_left)
    before = psutil.Process().children()
    ended = await shell("sleep 61.1; sleep 61.2", tmp_path, ignored, time_limit_s=0.2)
    assert ended.timed_out
    assert psutil.Process().children() == before


async def test_a_command_is_ended_while_every_thread_is_busy(tmp_path: Path) -> None:
    with every_thread_busy(), anyio.fail_after(20):
        ended = await shell("sleep 61.1", tmp_path, ignored, time_limit_s=0.1)
    assert ended.timed_out


async def test_the_group_of_a_leader_that_was_collected_is_sent_no_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    end_group, killpg = processes.end_group, os.killpg
    printed = bytearray()
    sent: list[int] = []

    def cancelled_meanwhile(leader: int) -> int:
        loop.call_soon_threadsafe(running.cancel)
        monkeypatch.setattr("os.killpg", lambda group, number: sent.append(number))  # pyright: ignore
        return end_group(leader)

    monkeypatch.setattr(processes, "end_group", cancelled_meanwhile)
    line = "sh -c 'trap \"\" TERM; echo $$; exec sleep 61.5' & read -r number < go"
    os.mkfifo(tmp_path / "go")
    running = asyncio.ensure_future(shell(line, tmp_path, printed.extend, time_limit_s=60))
    await until(lambda: printed.endswith(b"\n"))
    (tmp_path / "go").write_text("on\n")
    with pytest.raises(asyncio.CancelledError):
        await running
    monkeypatch.setattr("os.killpg", killpg)
    assert sent == []
    await until(lambda: gone(int(printed)))
