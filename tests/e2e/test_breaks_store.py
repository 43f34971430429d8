"""A store that goes away under a running server: nothing is called durable that is not."""

import shutil
from pathlib import Path

import pytest

from harness.process import RpcError, ServerProcess, scenario


@pytest.fixture
def model(tmp_path: Path) -> str:
    (tmp_path / "work").mkdir()
    return scenario(tmp_path, "default: [{say: done}]\n")


def _kind(server: ServerProcess, session: str) -> str:
    with pytest.raises(RpcError) as refused:
        server.prompt(session, "hello")
    return refused.value.kind


def test_a_prompt_to_a_store_that_was_deleted_is_refused(tmp_path: Path, model: str) -> None:
    store = tmp_path / "store.db"
    with ServerProcess(tmp_path, model=model) as server:
        session = server.create(tmp_path / "work")
        store.rename(tmp_path / "away.db")
        assert _kind(server, session) == "storeIo"
        (tmp_path / "away.db").rename(store)
        assert server.prompt(session, "again")["outcome"] == "started"
        assert server.wait(session)["finalText"] == "done"
        assert server.close() == 0


def test_a_prompt_to_a_store_that_was_replaced_is_refused(tmp_path: Path, model: str) -> None:
    store = tmp_path / "store.db"
    with ServerProcess(tmp_path, model=model) as server:
        session = server.create(tmp_path / "work")
        shutil.copy(store, tmp_path / "other.db")
        (tmp_path / "other.db").replace(store)
        assert _kind(server, session) == "storeIo"
        assert server.close() == 0
        assert "Traceback" not in server.stderr()


def test_one_damaged_store_is_put_aside_once(tmp_path: Path, model: str) -> None:
    with ServerProcess(tmp_path, model=model):
        pass  # it was a store once
    (tmp_path / "store.db").write_bytes(b"no database " * 1000)
    for _ in range(2):
        with pytest.raises(RpcError, match="is damaged"):
            ServerProcess(tmp_path, model=model)
    assert len(list(tmp_path.glob("store.db.corrupt-*"))) == 1


def test_a_store_that_vanishes_while_the_server_starts_is_told_to_who_asks(
    tmp_path: Path, model: str
) -> None:
    with ServerProcess(tmp_path, model=model) as server:
        session = server.create(tmp_path / "work")
    server = ServerProcess(tmp_path, model=model, initialize=False)
    hello = server.request("initialize", callboard={"protocolVersions": ["1.0"]})
    asked = server.request("session/get", sessionId=session)
    server.until(lambda m: m.get("id") == hello)
    (tmp_path / "store.db").write_bytes(
        b""
    )  # before the host reads it, or after: both are survived
    try:
        server.result(asked)
    except RpcError as error:
        assert error.error["message"]
    server.close()
