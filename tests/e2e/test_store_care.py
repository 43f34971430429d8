"""``callboard store`` beside real servers: nobody is kept waiting, nobody's store is pulled away."""

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from cli_harness import Cli, Result

from callboard.cli.app import execute
from callboard.log.backup import back_up
from callboard.log.clock import utc_now
from harness.process import RpcError, ServerProcess, scenario, types

SCENE = """
rules:
  - when: {last_user: {contains: hang}}
    answer: [{say: "Working"}, {hang: true}]
  - when: {last_user: {contains: write}}
    answer: [{call: {tool: write_file, arguments: {path: made.txt, content: x}}}]
default: [{say: "Heard."}]
"""


@pytest.fixture
def model(tmp_path: Path) -> str:
    (tmp_path / "work").mkdir()
    return scenario(tmp_path, SCENE)


def _run(folder: Path, *arguments: str) -> Result:
    """The command on the store of a folder; in this process, which is no server."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    environment = {
        "HOME": str(folder / "home"),
        "CALLBOARD_STORE": str(folder / "store.db"),
        "CALLBOARD_CONFIG_DIR": str(folder / "home" / "config"),
    }
    with (
        patch.dict(os.environ, environment),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = execute(["store", *arguments])
    read = [stream.buffer.getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined]
    return Result(code, *read)


def _json(folder: Path, *arguments: str) -> Any:
    return json.loads(_run(folder, *arguments, "--json").out)


# --- the command by itself ------------------------------------------------------------------------


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    cli = Cli(tmp_path)
    yield cli
    cli.close()


def test_a_round_of_care_in_the_words_of_the_command(
    tmp_path: Path, model: str, capfd: pytest.CaptureFixture[str]
) -> None:
    backup = tmp_path / "b.db"
    for command in (("info",), ("check",), ("vacuum",), ("backup", str(backup))):
        absent = _run(tmp_path, *command)
        assert absent.code == 2
        assert "there is no store" in absent.err
    with ServerProcess(tmp_path, model=model) as server:
        server.create(tmp_path / "work")
    seen = _json(tmp_path, "info")
    assert (seen["sessions"], seen["lastBackup"], seen["lastCheck"]) == (1, None, None)
    assert seen["bytes"] > 0 and seen["walBytes"] == 0 and seen["users"] == []
    looked = _run(tmp_path, "check")
    assert (looked.code, looked.err) == (0, "")
    assert "nothing is wrong" in looked.out
    assert "backed up to" in _run(tmp_path, "backup", str(backup)).out
    again = _run(tmp_path, "backup", str(backup))
    assert again.code == 2
    assert "--force" in again.err
    with ServerProcess(tmp_path, model=model) as server:
        server.create(tmp_path / "work")
    restored = _run(tmp_path, "restore", str(backup))
    assert restored.code == 0
    assert "replaced-" in restored.out
    assert _json(tmp_path, "info")["sessions"] == 1
    (kept,) = tmp_path.glob("store.db.replaced-*[0-9]")
    assert _json(tmp_path, "restore", str(kept))["sessions"] == 2
    assert _json(tmp_path, "vacuum")["bytesAfter"] > 0
    assert "before" in _run(tmp_path, "vacuum").out
    report = _json(tmp_path, "check")
    assert (report["ok"], report["findings"], report["sessions"]) == (True, [], 2)
    shown = _run(tmp_path, "info").out
    assert str(backup) in shown
    assert "0 problems" in shown
    assert _run(tmp_path, "check", "--quick", "--repair").code == 2
    assert capfd.readouterr().out == ""


def test_the_command_is_found_by_its_name(cli: Cli) -> None:
    told = cli("store", "--help").out
    assert all(word in told for word in ("backup", "check", "info", "restore", "vacuum"))


def test_a_damaged_store_is_told_by_the_exit_code_and_by_its_way_out(
    tmp_path: Path, model: str
) -> None:
    with ServerProcess(tmp_path, model=model) as server:
        server.create(tmp_path / "work")
    assert _run(tmp_path, "backup", str(tmp_path / "b.db")).code == 0
    store = tmp_path / "store.db"
    data = bytearray(store.read_bytes())
    data[4096 : 8 * 4096] = b"\xa5" * (7 * 4096)
    store.write_bytes(bytes(data))
    looked = _run(tmp_path, "check")
    assert looked.code == 1
    assert "callboard store restore" in looked.out
    report = _json(tmp_path, "check")
    assert not report["ok"]
    assert {each["part"] for each in report["findings"]} == {"file"}
    with pytest.raises(RpcError) as refused:
        ServerProcess(tmp_path, model=model)
    assert refused.value.kind == "storeCorrupt"
    assert "callboard store restore" in str(refused.value)
    assert _run(tmp_path, "restore", str(tmp_path / "b.db")).code == 0
    with ServerProcess(tmp_path, model=model) as server:
        assert len(server.call("session/list")["data"]) == 1


_ORDINARY = """
import ctypes, os, sys
if os.getuid() == 0 and "ORDINARY" not in os.environ:
    # root may write everything, unless it gives up CAP_DAC_OVERRIDE
    assert ctypes.CDLL(None).prctl(24, 1, 0, 0, 0) == 0
    os.environ["ORDINARY"] = "1"
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
from callboard.cli.app import execute
for line in sys.argv[1:]:
    print(execute(["store", *line.split()]), flush=True)
"""


def test_a_store_that_may_not_be_written_can_be_checked_and_backed_up(
    tmp_path: Path, model: str
) -> None:
    home = tmp_path / "readonly"
    home.mkdir()
    with ServerProcess(tmp_path, model=model) as server:
        server.create(tmp_path / "work")
    (tmp_path / "store.db").rename(home / "store.db")
    (tmp_path / "store.db.locks").rename(home / "store.db.locks")
    (home / "home").mkdir()
    for each in (home / "store.db", *(home / "store.db.locks").iterdir()):
        each.chmod(0o400)
    for folder in (home / "store.db.locks", home):
        folder.chmod(0o500)
    backup = tmp_path / "b.db"
    lines = ["check --json", f"backup {backup} --json", "vacuum", f"restore {backup}"]
    try:
        done = subprocess.run(
            [sys.executable, "-c", _ORDINARY, *lines],
            env={"HOME": str(home / "home"), "CALLBOARD_STORE": str(home / "store.db")},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        report, first, made, *codes = done.stdout.splitlines()
        assert json.loads(report)["ok"]
        assert json.loads(made)["backup"] == str(backup)
        assert (first, codes) == ("0", ["0", "1", "1"])
        assert done.stderr.count("cannot be written") == 2
    finally:
        for folder in (home, home / "store.db.locks"):
            folder.chmod(0o700)
    assert _run(tmp_path, "check", "--store", str(backup)).code == 0


# --- beside servers -------------------------------------------------------------------------------

_WRITER = """
import asyncio, sys
from pathlib import Path
from callboard.host import projections_of
from callboard.log.clock import utc_now
from callboard.log.ids import IdSource
from callboard.log.log import Log
from callboard.log.store import open_store
from callboard.sessions.telling import RunListeners
from callboard_rpc.common import Actor, MessageId, SessionId, TextContent
from callboard_rpc.events import Author, Message, SessionCreated

ME = Actor(kind="client", id="c")

async def main():
    ids, session = IdSource(), sys.argv[2]
    store = open_store(Path(sys.argv[1]), ids=ids, now=utc_now)
    async with Log(store, ids=ids, now=utc_now, projections=projections_of(RunListeners())) as log:
        def begin(tx):
            tx.begin_session(session, session)
            tx.append(session, SessionCreated(session_id=SessionId(session),
                root_id=SessionId(session), cwd="/w", profile="p", mode="work"), actor=ME)
        await log.transact(begin)
        print("ready", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            for n in range(int(line)):
                message = Message(message_id=MessageId(f"m{n}"), author=Author(kind="agent", name="a"),
                                  content=(TextContent(text="words " * 500),))
                record = await log.append(session, message, actor=ME)
            print(record.seq, flush=True)

asyncio.run(main())
"""


class _Writer:
    def __init__(self, store: Path, session: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _WRITER, store, session],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def ask(self, count: int) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()

    def close(self) -> None:
        self.process.communicate()


def test_three_processes_write_on_while_a_backup_is_made_and_it_holds_one_moment(
    tmp_path: Path,
) -> None:
    store = tmp_path / "store.db"
    writers = [_Writer(store, f"ses_{n}") for n in range(3)]
    try:
        assert [writer.read() for writer in writers] == ["ready"] * 3
        for writer in writers:
            writer.ask(300)
        assert [writer.read() for writer in writers] == ["301"] * 3
        steps = 0

        def told(done: int, pages: int) -> None:
            """In the middle of the backup every process commits, and has its answer before it goes on."""
            nonlocal steps
            steps += 1
            if done < pages and steps <= 3:
                for writer in writers:
                    writer.ask(20)
                assert [writer.read() for writer in writers] == [f"{301 + 20 * steps}"] * 3

        made = back_up(store, tmp_path / "b.db", now=utc_now, told=told)
        assert steps > 3
        assert (made.head, made.sessions) == (903, 3)  # as it was when the backup began
        assert _run(tmp_path, "check", "--store", str(made.path)).code == 0
        for writer in writers:
            writer.ask(1)
        assert [writer.read() for writer in writers] == ["362"] * 3
    finally:
        for writer in writers:
            writer.close()
    report = _json(tmp_path, "check")
    assert (report["ok"], report["events"]) == (True, 3 * 362)


def test_a_live_server_keeps_its_store_and_is_named(tmp_path: Path, model: str) -> None:
    with ServerProcess(tmp_path, model=model) as server:
        session = server.create(tmp_path / "work")
        server.prompt(session, "hello")
        server.wait(session)
        assert _run(tmp_path, "backup", str(tmp_path / "b.db")).code == 0
        assert _json(tmp_path, "check")["ok"]
        (user,) = _json(tmp_path, "info")["users"]
        assert str(server.process.pid) in user
        for command in (
            ("restore", str(tmp_path / "b.db")),
            ("vacuum",),
        ):
            refused = _run(tmp_path, *command)
            assert refused.code == 1
            assert "in use" in refused.err
            assert str(server.process.pid) in refused.err
        server.prompt(session, "and on")
        assert server.wait(session)["finalText"] == "Heard."
    assert _run(tmp_path, "vacuum").code == 0
    assert _json(tmp_path, "check")["ok"]


def test_protocol_3_after_a_restore_old_cursors_are_refused_and_the_store_has_a_new_id(
    tmp_path: Path, model: str
) -> None:
    with ServerProcess(tmp_path, model=model) as server:
        session = server.create(tmp_path / "work")
        store_id = server.hello["capabilities"]["experimental"]["callboard"]["storeId"]
        _run(tmp_path, "backup", str(tmp_path / "b.db"))
        server.prompt(session, "hello")
        cursors = [
            server.hello["capabilities"]["experimental"]["callboard"]["head"],
            server.wait(session)["cursor"],
        ]
        assert cursors[0] != cursors[1]
    assert _run(tmp_path, "restore", str(tmp_path / "b.db")).code == 0
    with ServerProcess(tmp_path, model=model) as server:
        assert server.hello["capabilities"]["experimental"]["callboard"]["storeId"] != store_id
        for text in ("one", "two", "three"):  # beyond where the old store ended
            server.prompt(session, text)
            server.wait(session)
        for cursor in cursors:
            for method, more in (
                ("event/subscribe", {"from": cursor}),
                ("event/list", {"after": cursor}),
            ):
                with pytest.raises(RpcError) as refused:
                    server.call(method, scope={"kind": "all"}, **more)
                assert refused.value.kind == "invalidCursor"


def test_what_ran_when_the_backup_was_made_is_interrupted_once_where_it_is_restored(
    tmp_path: Path, model: str
) -> None:
    with ServerProcess(tmp_path, model=model) as server:
        running, asking = (server.create(tmp_path / "work") for _ in range(2))
        server.call("event/subscribe", scope={"kind": "all"}, **{"from": "now"})
        server.prompt(running, "hang")
        server.prompt(asking, "write")
        server.until_event(lambda e: e["type"] == "approval_request")
        assert _json(tmp_path, "check")["ok"]  # a turn that runs is no problem
        assert _run(tmp_path, "backup", str(tmp_path / "b.db")).code == 0
        server.kill()
    left = _json(tmp_path, "check")
    assert left["ok"]
    assert [each["severity"] for each in left["findings"]] == ["note"]
    assert "2 turns wait" in left["findings"][0]["message"]
    assert _run(tmp_path, "restore", str(tmp_path / "b.db")).code == 0
    for _ in range(2):
        with ServerProcess(tmp_path, model=model) as server:
            ends = [e for e in types(server.events(running)) if e == "turn_finished"]
            assert ends == ["turn_finished"]
            assert server.call("session/get", sessionId=asking)["session"]["status"] == "parked"
    assert list((tmp_path / "work").iterdir()) == []  # nothing was run again
    assert _json(tmp_path, "check")["findings"] == []
