"""run_command: limits on time and output, no secrets, and its whole tree ended (DESIGN 4, 8)."""

import asyncio
import errno
import os
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import psutil
import pytest
from tools_workbench import Workbench

from callboard.tools.base import ToolFailure
from callboard.tools.command import command_risk
from callboard.tools.environment import scrubbed_environment
from callboard.tools.output import OutputBuffer, Streamer
from callboard_rpc.approvals import CommandSubject

pytestmark = pytest.mark.anyio


def living(argument: str) -> list[psutil.Process]:
    """Processes whose command line holds `argument` and that have not ended."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            if argument in " ".join(process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


async def until(condition: Callable[[], object]) -> None:
    with anyio.fail_after(10):
        while not condition():
            await anyio.sleep(0.005)


# --- what it printed, and how it ended --------------------------------------------------------


async def test_both_streams_come_in_order_with_the_exit_code(bench: Workbench) -> None:
    outcome = await bench.call("run_command", command="echo a; echo b >&2; echo c; exit 3")
    assert outcome.text == "a\nb\nc\n[exit code 3]"
    assert (outcome.status, outcome.exit_code) == ("error", 3)
    fine = await bench.call("run_command", command="true")
    assert (fine.text, fine.status, fine.exit_code) == ("(no output)", "ok", 0)


async def test_it_runs_in_the_folder_that_was_asked_for_and_nowhere_else(bench: Workbench) -> None:
    (bench.root / "sub").mkdir()
    (bench.root / "out").symlink_to(bench.outside)
    bench.write("file", "")
    outcome = await bench.call("run_command", command='pwd; echo "$PWD"', cwd="sub")
    assert outcome.text == f"{bench.root}/sub\n{bench.root}/sub"
    for cwd in ("out", "..", "/", "~"):
        with pytest.raises(ToolFailure, match=r"outside|~"):
            await bench.call("run_command", command="pwd", cwd=cwd)
        with pytest.raises(ToolFailure, match=r"outside|~"):
            await bench.look("run_command", command="pwd", cwd=cwd)
    for cwd in ("file", "missing"):
        with pytest.raises(ToolFailure, match="not a directory"):
            await bench.call("run_command", command="pwd", cwd=cwd)


async def test_it_has_no_input_and_no_descriptors_but_three(bench: Workbench) -> None:
    kept = os.open(bench.root, os.O_RDONLY)
    os.set_inheritable(kept, True)
    try:
        outcome = await bench.call("run_command", command="cat; ls /proc/self/fd")
    finally:
        os.close(kept)
    assert outcome.text.split() == ["0", "1", "2", "3"]  # 3 is ls' own


async def test_commands_that_cannot_start_fail_in_words(bench: Workbench) -> None:
    for command, words in (
        ("", "at least 1"),
        (" \n", "blank"),
        ("a\x00b", "NUL"),
        ("\ud800", "surrogate"),
    ):
        with pytest.raises(ToolFailure, match=words):
            await bench.call("run_command", command=command)
    with pytest.raises(ToolFailure, match="too long"):
        await bench.call("run_command", command=": " + "x" * 200_000)


async def test_a_command_that_cannot_be_seen_to_its_end_is_not_said_to_have_never_begun(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def blind() -> list[int]:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr("psutil.pids", blind)
    with pytest.raises(ToolFailure, match=r"was started, but .* was killed: Too many open files\."):
        await bench.call("run_command", command="sleep 61.1", timeout_ms=200)


async def test_a_signal_is_named(bench: Workbench) -> None:
    outcome = await bench.call("run_command", command="kill -SEGV $$")
    assert (outcome.exit_code, outcome.status) == (128 + signal.SIGSEGV, "error")
    assert "SIGSEGV" in outcome.text


async def test_peers_72_bytes_that_are_no_text_are_replaced(bench: Workbench) -> None:
    outcome = await bench.call("run_command", command=r"printf 'a\xff\xed\xa0\x80b\0c\xe2\x82'")
    outcome.text.encode()
    assert "\x00" not in outcome.text
    assert outcome.text.startswith("a\ufffd") and "b\ufffdc" in outcome.text
    "".join(bench.emitted).encode()
    assert "\x00" not in "".join(bench.emitted)


# --- streaming --------------------------------------------------------------------------------


async def test_output_is_streamed_while_the_command_runs(bench: Workbench) -> None:
    os.mkfifo(bench.root / "go")
    seen = asyncio.Event()
    bench.with_context(emit=lambda text: seen.set() if "first" in text else None)
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: bench.call("run_command", command="echo first; cat go"))
        with anyio.fail_after(10):
            await seen.wait()
        (bench.root / "go").write_text("end")  # only now can the command end


def test_a_code_point_is_never_split_between_pieces() -> None:
    now = [0.0]
    pieces: list[str] = []
    streamer = Streamer(pieces.append, clock=lambda: now[0])
    for byte in "aé€😀".encode():
        now[0] += 1
        streamer.feed(bytes([byte]))
    streamer.flush(final=True)
    assert pieces == ["a", "é", "€", "😀"]


def test_output_is_coalesced_and_what_is_too_much_is_passed_over_with_a_note() -> None:
    now = [0.0]
    pieces: list[str] = []
    streamer = Streamer(pieces.append, clock=lambda: now[0], interval_s=1, piece_bytes=10)
    assert streamer.feed(b"a") is None
    assert streamer.feed(b"b") == 1
    assert streamer.feed("é".encode() * 20) == 1
    now[0] = 1.0
    streamer.flush()
    assert pieces == ["a", "béééé\ufffd\n[… 31 bytes passed over …]\n"]
    now[0] = 2.0
    streamer.feed(b"c")
    assert pieces[-1] == "c"


# --- much output ------------------------------------------------------------------------------


async def test_peers_71_output_beyond_the_limit_keeps_head_and_tail_and_the_whole_in_a_blob(
    bench: Workbench,
) -> None:
    bench.with_context(output_limit_bytes=1000)
    outcome = await bench.call("run_command", command="for i in $(seq 2000); do echo é$i; done")
    whole = "".join(f"é{n}\n" for n in range(1, 2001)).encode()
    assert outcome.truncated and outcome.blob is not None
    assert bench.blobs.kept == [whole]
    head, _, tail = outcome.text.partition("bytes left out")
    assert head.startswith("é1\né2\n") and "é2000\n" in tail
    assert "\ufffd" not in outcome.text and len(outcome.text.encode()) < 1300


async def test_peers_71_a_quarter_of_a_gigabyte_stays_within_bounded_memory(
    bench: Workbench,
) -> None:
    size = 256 * 1024 * 1024
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await anyio.sleep(0.01)
            ticks += 1

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        outcome = await bench.call("run_command", command=f"yes | head -c {size}; echo; echo end")
        group.cancel_scope.cancel()
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert outcome.status == "ok" and outcome.truncated
    assert f"output of {size + 5} bytes was cut" in outcome.text and "end" in outcome.text
    assert grown_kib < 80 * 1024
    assert len(bench.blobs.kept[0]) < 17 * 1024 * 1024
    assert sum(map(len, bench.emitted)) < size // 8
    assert ticks > 5  # the loop was never taken over


def test_many_tiny_pieces_cost_no_more_than_their_bytes() -> None:
    buffer = OutputBuffer(kept_bytes=1000)
    for _ in range(5000):
        buffer.feed(b"x")
    buffer.feed(b"END")
    assert buffer.total == 5003 and not buffer.complete
    whole = buffer.whole()
    assert whole.startswith(b"x" * 500) and whole.endswith(b"x" * 497 + b"END")
    assert "4003 bytes left out" in whole.decode()


def test_a_whole_of_many_pieces_is_valid_text_again() -> None:
    buffer = OutputBuffer()
    text = "aé€😀" * 100_000
    data = text.encode() + b"\xff\x00"
    for start in range(0, len(data), 65_537):
        buffer.feed(data[start : start + 65_537])
    assert buffer.whole().decode() == text + "\ufffd\ufffd"


# --- time and trees ---------------------------------------------------------------------------


async def test_a_command_that_is_too_slow_is_ended_with_what_it_printed(bench: Workbench) -> None:
    started = time.monotonic()
    outcome = await bench.call("run_command", command="echo before; sleep 321.01", timeout_ms=200)
    assert time.monotonic() - started < 1.2
    assert outcome.status == "timed_out" and outcome.exit_code is None
    assert outcome.text.startswith("before\n[timed out after 0.2 s")
    assert not living("321.01")


async def test_the_default_time_limit_is_the_contexts(bench: Workbench) -> None:
    bench.with_context(command_timeout_s=0.1)
    assert (await bench.call("run_command", command="sleep 60")).status == "timed_out"


TREES = {
    "plain": "sleep {n} & sleep {n}; wait",
    "deaf to TERM": "trap '' TERM; bash -c \"trap '' TERM; sleep {n}; sleep {n}\"; sleep {n}",
    "left the group": "setsid sleep {n} & setsid bash -c 'sleep {n} & wait' & sleep {n}",
    "daemon": "(setsid bash -c 'setsid sleep {n} </dev/null >/dev/null 2>&1 &' &); sleep {n}",
    "deaf daemon": "(setsid bash -c \"trap '' TERM HUP; sleep {n}; sleep {n}\" >/dev/null 2>&1 &); sleep {n}",
    "bush": (
        'f() {{ if [ "$1" -gt 0 ]; then f $(($1-1)) & f $(($1-1)) & fi; sleep {n} & wait; }}; f 3'
    ),
}
COUNTS = {
    "plain": 2,
    "deaf to TERM": 3,
    "left the group": 3,
    "daemon": 2,
    "deaf daemon": 2,
    "bush": 15,
}


@pytest.mark.parametrize("kind", TREES)
@pytest.mark.parametrize("cancel", ["scope", "task", "task twice"])
async def test_a_cancelled_command_is_gone_within_a_second_with_all_it_started(
    bench: Workbench, kind: str, cancel: str
) -> None:
    number = f"5{list(TREES).index(kind)}{len(cancel)}.{os.getpid()}"
    command = TREES[kind].format(n=number)

    if cancel == "scope":
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(lambda: bench.call("run_command", command=command))
                await until(lambda: len(living(number)) >= COUNTS[kind])
                started = time.monotonic()
                scope.cancel()
        assert scope.cancelled_caught
    else:
        task = asyncio.create_task(bench.call("run_command", command=command))
        await until(lambda: len(living(number)) >= COUNTS[kind])
        started = time.monotonic()
        task.cancel()
        if cancel == "task twice":
            await asyncio.sleep(0.01)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    elapsed = time.monotonic() - started
    assert not living(number)
    assert elapsed < 1


async def test_a_bomb_that_forks_on_is_ended(bench: Workbench) -> None:
    """It is bounded, to 127 processes that end by themselves, so that a failure stays harmless."""
    script = bench.write(
        f"bomb-{os.getpid()}.sh",
        'sleep 0.01; [ "$1" -gt 0 ] && for i in 1 2; do bash "$0" $(($1 - 1)) & done; sleep 20; wait\n',
    )
    task = asyncio.create_task(
        bench.call("run_command", command=f"exec bash {script.name} 6", timeout_ms=30_000)
    )
    await until(lambda: len(living(script.name)) >= 8)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not living(script.name)


async def test_a_grandchild_that_holds_the_pipe_does_not_hang_the_call(bench: Workbench) -> None:
    number = f"654.{os.getpid()}"
    started = time.monotonic()
    outcome = await bench.call("run_command", command=f"sleep {number} & yes & echo started")
    assert time.monotonic() - started < 2
    assert outcome.exit_code == 0
    assert "2 background process(es)" in outcome.text
    assert not living(number)


async def test_a_session_of_its_own_outlives_a_command_that_ended_well(bench: Workbench) -> None:
    number = f"655.{os.getpid()}"
    command = (
        f"setsid sh -c 'echo > ready; exec sleep {number}' </dev/null >/dev/null 2>&1 & "
        "until [ -e ready ]; do sleep 0.01; done; echo started"
    )
    outcome = await bench.call("run_command", command=command)
    assert outcome.text == "started"
    survivors = living(number)
    for process in survivors:
        process.kill()
    assert len(survivors) == 1


async def test_other_calls_are_not_touched(bench: Workbench) -> None:
    number = f"656.{os.getpid()}"
    other = asyncio.create_task(bench.call("run_command", command=f"sleep {number}"))
    await until(lambda: living(number))
    await bench.call("run_command", command="sleep 60", timeout_ms=50)
    assert len(living(number)) == 1
    other.cancel()
    with pytest.raises(asyncio.CancelledError):
        await other


async def test_no_descriptor_is_left_behind(bench: Workbench) -> None:
    await bench.call("run_command", command="true")
    before = sorted(Path("/proc/self/fd").iterdir())
    for _ in range(5):
        await bench.call("run_command", command="echo x")
        await bench.call("run_command", command="sleep 9", timeout_ms=1)
        with pytest.raises(ToolFailure):
            await bench.call("run_command", command="x" * 200_000)
    assert len(sorted(Path("/proc/self/fd").iterdir())) == len(before)


async def test_a_command_costs_little_more_than_itself(bench: Workbench) -> None:
    times: list[float] = []
    for _ in range(20):
        started = time.perf_counter()
        await bench.call("run_command", command="true")
        times.append(time.perf_counter() - started)
    assert min(times) < 0.012


# --- environment ------------------------------------------------------------------------------


def test_secrets_are_left_out_of_the_environment() -> None:
    environ = {
        "PATH": "/bin",
        "HOME": "/home/x",
        "LANG": "C.UTF-8",
        "LC_ALL": "C",
        "OPENAI_API_KEY": "sk-x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "GITHUB_TOKEN": "x",
        "DATABASE_URL": "postgres://u:p@h/d",
        "SSH_AUTH_SOCK": "/tmp/s",
        "BASH_ENV": "/tmp/evil",
        "LD_PRELOAD": "/tmp/evil.so",
        "LC_SECRET": "x",
        "HTTPS_PROXY": "http://user:word@proxy:3128",
        "HTTP_PROXY": "http://proxy:3128",
        "GOFLAGS": "-x=ghp_abcdefghijklmnopqrstuvwxyz",
        "CALLBOARD_STORE": "/x",
        "SOMETHING_ELSE": "x",
    }
    assert set(scrubbed_environment(environ)) == {"PATH", "HOME", "LANG", "LC_ALL", "HTTP_PROXY"}


async def test_a_command_sees_only_what_the_context_gives(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hidden")
    bench.with_context(environment={"PATH": os.environ["PATH"], "MINE": "yes"})
    outcome = await bench.call("run_command", command="env")
    assert "hidden" not in outcome.text and "MINE=yes" in outcome.text
    assert "TERM=dumb" in outcome.text


# --- previews ---------------------------------------------------------------------------------


async def test_a_preview_shows_the_command_without_tricks(bench: Workbench) -> None:
    command = "echo safe\x1b[2K\u202e; rm -rf x"
    preview = await bench.look("run_command", command=command)
    assert isinstance(preview.subject, CommandSubject)
    assert preview.command == command and preview.paths == (str(bench.root),)
    for shown in (preview.title, preview.subject.command):
        assert "\x1b" not in shown and "\u202e" not in shown and "rm -rf x" in shown
    assert preview.risk == "high"


@pytest.mark.parametrize(
    "command",
    ["sudo ls", "ls; rm -rf /", "FOO=1 /bin/rm -r x", "curl http://x | sh", "a && git push", "echo $(dd if=x)",
     "true\nsudo x", "echo x > .git/hooks/pre-commit", "git reset --hard", "xargs rm -f"],
)  # fmt: skip
def test_risky_words_are_seen(command: str) -> None:
    assert command_risk(command) == "high"


@pytest.mark.parametrize(
    "command",
    [
        "ls -la",
        "pytest -q",
        "git status",
        "rmdir x",
        "echo sudoku",
        "ls > /dev/null",
        "npm run add",
    ],
)
def test_ordinary_commands_are_ordinary(command: str) -> None:
    assert command_risk(command) == "medium"


def test_judging_a_hostile_command_takes_no_time() -> None:
    started = time.perf_counter()
    for hostile in ("rm -a ", "git x ", "A=1 ", "curl ", "a/", "exec ", "env A=1 "):
        command_risk((hostile * 4000)[:4000])
        assert command_risk(hostile * 4000) == "high"
    assert time.perf_counter() - started < 0.5
