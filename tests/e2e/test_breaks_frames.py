"""Frames that are well-formed and meant badly: a short error by name, and a server that goes on."""

from pathlib import Path

import pytest

from harness.process import RpcError, ServerProcess


@pytest.fixture
def server(tmp_path: Path):
    with ServerProcess(tmp_path, model="scripted/demo") as server:
        yield server


def test_params_that_are_nested_too_deeply_are_refused_without_a_traceback(
    server: ServerProcess, tmp_path: Path
) -> None:
    deep: object = 1
    for _ in range(900):
        deep = {"a": deep}
    with pytest.raises(RpcError) as refused:
        server.call("session/create", cwd=str(tmp_path), metadata=deep)
    assert refused.value.kind == "invalidParams"
    assert server.call("server/ping")
    assert "Traceback" not in server.stderr()


def test_metadata_that_could_not_be_told_again_is_refused_and_what_is_kept_is_told(
    server: ServerProcess, tmp_path: Path
) -> None:
    """What is read deeper than it can be written would fail in every answer that holds it."""
    session = server.create(tmp_path)
    server.call("event/subscribe", scope={"kind": "session", "id": session}, **{"from": "now"})

    def nested(levels: int) -> dict[str, object]:
        deep: dict[str, object] = {}
        for _ in range(levels):
            deep = {"a": deep}
        return deep

    for more in ({}, {"idempotencyKey": "k"}):
        with pytest.raises(RpcError) as refused:
            server.call("session/update", sessionId=session, metadata=nested(300), **more)
        assert refused.value.kind == "invalidParams"
        assert "levels" in refused.value.error["message"]
    server.request("session/update", sessionId=session, metadata=nested(190), idempotencyKey="k")
    event = server.until_event(lambda e: e["type"] == "session_updated")
    assert event["data"]["changes"]["metadata"] == nested(190)
    assert server.events(session)[-1]["data"]["changes"]["metadata"] == nested(190)
    assert server.call("session/get", sessionId=session)["session"]["metadata"] == nested(190)
    assert "Traceback" not in server.stderr()


def test_context_of_a_folder_or_a_uri_that_is_none_is_refused_by_its_kind(
    server: ServerProcess, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    session = server.create(work)
    for uri in ("file://[x", "file://[::1/x", "http://]"):
        with pytest.raises(RpcError) as refused:
            server.prompt(session, "look", context=[{"uri": uri}])
        assert refused.value.kind == "invalidParams"
        assert refused.value.error["data"]["errors"][0]["path"] == "$.context[0].uri"
    work.rmdir()
    with pytest.raises(RpcError) as gone:
        server.prompt(session, "look", context=[{"uri": "a.txt"}])
    assert gone.value.kind == "pathNotFound"
    assert gone.value.error["data"]["path"] == str(work)
    assert "Traceback" not in server.stderr()


def test_a_method_of_endless_name_is_quoted_by_its_beginning(server: ServerProcess) -> None:
    with pytest.raises(RpcError) as refused:
        server.call("m" * 1_000_000)
    assert refused.value.error["code"] == -32601
    assert len(refused.value.error["message"]) < 500


def test_what_goes_with_an_error_is_without_secrets_too(server: ServerProcess) -> None:
    key = "ghp_abcdefghij0123456789abcdefghij0123"
    with pytest.raises(RpcError) as refused:
        server.call("session/create", cwd=f"/nowhere/{key}")
    assert refused.value.kind == "pathNotFound"
    assert key not in str(refused.value.error)
