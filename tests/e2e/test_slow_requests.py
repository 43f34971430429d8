"""specs/limits.md 1.3: requests that take long starve neither the reader nor the others."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.exports import long_session
from harness.process import ServerProcess, scenario

SLOW = 16
SESSION = "ses_" + "0" * 26


def _frame(request_id: str | None, method: str, **params: Any) -> bytes:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    if request_id is not None:
        message["id"] = request_id
    return json.dumps(message).encode() + b"\n"


@pytest.mark.parametrize("slow", ["session/search", "session/export"])
def test_limits_1_3_a_ping_and_a_cancel_are_answered_beside_sixteen_slow_requests(
    tmp_path: Path, slow: str
) -> None:
    """By the order of the answers, however fast the machine is: all requests arrive in one piece, so
    whatever waits for the slow ones comes behind them."""
    params: dict[str, Any] = {"sessionId": SESSION, "limit": 100}
    if slow == "session/search":
        params = {"query": "word", "limit": 100}  # a snippet of each is made of 60 kB
    with ServerProcess(tmp_path, model=scenario(tmp_path, "default: [{say: Heard.}]")) as server:
        text = long_session(SESSION, str(tmp_path), 100, words="word " * 12_000)
        assert server.call("session/import", content=text)["events"] >= 100
        ids = [f"slow-{n}" for n in range(SLOW)]
        burst = [_frame(each, slow, **params) for each in ids]
        burst.append(_frame("ping", "server/ping", echo="here"))
        burst.append(_frame(None, "$/cancelRequest", id=ids[-1]))
        together = b"".join(burst)
        assert len(together) < 4096  # what a pipe takes in as one
        assert server.process.stdin is not None
        server.process.stdin.write(together)
        server.process.stdin.flush()
        order: list[str] = []
        answers: dict[str, dict[str, Any]] = {}
        while len(order) < SLOW + 1:
            frame = server.receive()
            if isinstance(frame.get("id"), str):
                order.append(frame["id"])
                answers[frame["id"]] = frame
        for prompt in ("ping", ids[-1]):
            assert len(order) - order.index(prompt) > 8, order
        assert answers["ping"]["result"]["echo"] == "here"
        assert answers[ids[-1]]["error"]["data"]["kind"] == "requestCancelled"
        assert "result" in answers[ids[0]]
