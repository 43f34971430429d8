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
