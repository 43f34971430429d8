"""How a server begins: by whose configuration it opens its store, and what a person sees where nobody
speaks to it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.process import ANEW, RpcError, ServerProcess
from harness.waiting import wait_until


class Server(ServerProcess):
    """Nothing is said to it yet; it would open ``store.db`` by itself."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, model="scripted/demo", initialize=False, program=ANEW)

    def _read(self) -> None:
        """Every frame, batches among them."""
        for line in self.process.stdout:
            self._inbox.put(json.loads(line))
        self._inbox.put(None)

    def config(self, key: str) -> Any:
        (value,) = self.call("config/get", keys=[key])["values"]
        return value["value"]


def options(store: Path | str, **more: Any) -> dict[str, Any]:
    config = {"store": {"path": str(store), "waiting": "leave"}, "limits": {"window": 7}}
    return {"protocolVersions": ["1.0"], "clientId": "tests", "config": config, **more}


@pytest.fixture
def server(tmp_path: Path):
    with Server(tmp_path) as server:
        yield server


def serves(server: Server, store: Path) -> None:
    """It has the configuration, and the store, of the client that it answered; and no other store."""
    assert server.config("limits.window") == 7
    assert server.config("store.waiting") == "leave"
    assert server.call("server/info")["storePath"] == str(store)
    assert not (server.folder / "store.db").exists()
    session = server.create(server.folder)
    server.prompt(session, "hello")
    assert server.wait(session)["turn"]["state"] == "completed"


def test_what_comes_before_initialize_opens_nothing(server: Server, tmp_path: Path) -> None:
    with pytest.raises(RpcError) as early:
        server.call("server/ping")
    assert early.value.kind == "notInitialized"
    server.notify("event/ack", subscriptionId="s", cursor="c")
    store = tmp_path / "own" / "store.db"
    server.call("initialize", callboard=options(store))
    serves(server, store)


@pytest.mark.parametrize(
    ("first", "kind"),
    [
        ({"protocolVersions": ["9.0"]}, "unsupportedVersion"),
        ({"clientId": 5}, "invalidParams"),
        ({}, "storeIo"),
    ],
)
def test_the_configuration_is_that_of_the_initialize_that_was_answered(
    server: Server, tmp_path: Path, first: dict[str, Any], kind: str
) -> None:
    """Of one that was refused nothing stays, neither its store nor the lack of it."""
    (tmp_path / "file").write_text("no folder")
    wrong = options(tmp_path / "file" / "store.db", **first)
    for _ in range(2):
        with pytest.raises(RpcError) as refused:
            server.call("initialize", callboard=wrong)
        assert refused.value.kind == kind
    store = tmp_path / "own" / "store.db"
    server.call("initialize", callboard=options(store))
    serves(server, store)
    assert "Traceback" not in server.stderr()


def test_an_initialize_in_a_batch_is_one_and_what_stands_behind_it_is_served(
    server: Server, tmp_path: Path
) -> None:
    store = tmp_path / "own" / "store.db"
    asks = [
        {"method": "server/ping", "params": {}},
        {"method": "initialize", "params": {"callboard": options(store)}},
        {"method": "server/info", "params": {}},
        {"method": "config/get", "params": {"keys": ["limits.window"]}},
    ]
    server.send([{"jsonrpc": "2.0", "id": f"b{n}", **ask} for n, ask in enumerate(asks)])
    answers: Any = server.receive()
    by_id = {answer["id"]: answer for answer in answers}
    assert by_id["b0"]["error"]["data"]["kind"] == "notInitialized"
    assert by_id["b2"]["result"]["storePath"] == str(store)
    assert by_id["b3"]["result"]["values"][0]["value"] == 7
    serves(server, store)


def test_the_limit_of_a_frame_is_that_of_the_client_that_was_answered_late(
    server: Server, tmp_path: Path
) -> None:
    with pytest.raises(RpcError):
        server.call("server/ping")
    config = {"limits": {"frame_bytes": 100_000}}
    server.call("initialize", callboard=options("x", config=config))
    with pytest.raises(RpcError) as refused:
        server.call("server/ping", echo="x" * 100_001)
    assert refused.value.error["data"]["limit"] == 100_000
    assert server.call("server/ping", echo="y")["echo"] == "y"


def test_a_server_to_which_nobody_speaks_has_opened_no_store(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        assert server.close() == 0
    assert not (tmp_path / "store.db").exists()
    assert server.stderr() == ""


def test_ctrl_c_before_anything_was_said_ends_a_server_without_a_traceback(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        stdin = Path(f"/proc/{server.process.pid}/fd/0")
        while str(stdin.readlink()) != os.devnull:  # until it has taken its input and listens
            assert server.process.poll() is None
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(60) == 130
    assert server.stderr() == ""


@pytest.mark.parametrize("closed", ["0<&-", "1>&-"])
def test_a_server_without_stdin_or_stdout_says_so_in_a_line(tmp_path: Path, closed: str) -> None:
    command = f'exec {closed}; exec "$1" -m callboard serve'
    run = subprocess.run(
        ["sh", "-c", command, "sh", sys.executable],
        env={**os.environ, "HOME": str(tmp_path), "CALLBOARD_STORE": str(tmp_path / "store.db")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "Traceback" not in run.stderr
    if closed == "0<&-":
        assert run.returncode == 1
        (line,) = run.stderr.splitlines()
        assert line.startswith("callboard serve: stdin and stdout must be open")


def test_the_log_goes_where_the_setting_says_and_is_the_persons_alone(tmp_path: Path) -> None:
    file = tmp_path / "logs" / "server.log"
    config = {
        "log": {"file": str(file), "level": "info"},
        "store": {"path": str(tmp_path / "s.db")},
    }
    with Server(tmp_path) as server:
        server.call("initialize", callboard={**options(tmp_path / "s.db"), "config": config})
        session = server.create(server.folder)
        server.prompt(session, "hello")
        server.wait(session)
    assert "system prompt" in file.read_text("utf-8")
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_server_that_came_on_a_full_disk_serves_once_there_is_room(tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.touch()
    program = (str(Path(__file__).with_name("full_server.py")), "serve")
    with ServerProcess(
        tmp_path, model="scripted/demo", program=program, environ={"FULL": str(full)}
    ) as server:
        for _ in range(2):
            with pytest.raises(RpcError) as refused:
                server.call("session/list")
            assert (refused.value.kind, refused.value.error["data"]["retryable"]) == (
                "storeFull",
                True,
            )
        full.unlink()

        def there() -> bool:
            try:
                server.call("session/create", cwd=str(server.folder), idempotencyKey="once")
            except RpcError as error:
                assert error.kind == "storeFull"
                return False
            return True

        wait_until(
            there, "a server that serves", deadline_s=60, pause=lambda: server.process.poll()
        )
        # whoever found room first asks again, as one does whose answer was lost
        told = server.call("session/create", cwd=str(server.folder), idempotencyKey="once")
        (session,) = [each["sessionId"] for each in server.call("session/list")["data"]]
        assert told["session"]["sessionId"] == session
        server.prompt(session, "hello")
        assert server.wait(session)["turn"]["state"] == "completed"
        assert server.close() == 0
        assert "Traceback" not in server.stderr()


def test_a_server_whose_stderr_has_no_room_says_why_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = tmp_path / "file" / "store.db"
    asked = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"callboard": options(store)},
    }
    with Path("/dev/full").open("wb") as nowhere:
        run = subprocess.run(
            [sys.executable, *ANEW],
            input=json.dumps(asked).encode() + b"\n",
            env={**os.environ, "HOME": str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=nowhere,
            timeout=60,
            check=False,
        )
    (answer,) = map(json.loads, run.stdout.splitlines())
    assert answer["error"]["data"]["kind"].startswith("store")
