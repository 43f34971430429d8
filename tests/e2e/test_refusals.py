"""Bad input, by the rows of session-messaging 17 that are ours to refuse: faults that others had to mend.

Left out, as they belong to what is not built: delivery to chat systems, schedules, MCP.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.process import RpcError, ServerProcess, scenario, types

SCENE = """
rules:
  - when: {last_tool: {name: run_command}}
    answer: [{say: "Ran it."}]
  - when: {last_user: {contains: run}}
    answer: [{call: {tool: run_command, arguments: {command: "echo x >> ran.txt"}}}]
  - when: {last_user: {contains: print}}
    answer: [{call: {tool: run_command, arguments: {command: "printf '\\\\360\\\\237\\\\246\\\\212%.0s' $(seq 40000)"}}}]
  - when: {last_user: {contains: wait}}
    answer: [{wait_ms: 300}, {say: "Heard."}]
default: [{say: "Heard."}]
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., ServerProcess]]:
    """Starts servers on the test's store; all end with the test."""
    model = scenario(tmp_path, SCENE)
    servers: list[ServerProcess] = []

    def start(folder: Path = tmp_path, **more: Any) -> ServerProcess:
        servers.append(ServerProcess(folder, model=model, **{"approvals": False, **more}))
        return servers[-1]

    yield start
    for server in servers:
        server.__exit__()


def _kind(server: ServerProcess, method: str, **params: Any) -> str:
    with pytest.raises(RpcError) as refused:
        server.call(method, **params)
    return refused.value.kind


def _asked(server: ServerProcess, work: Path) -> tuple[str, dict[str, Any]]:
    session_id = server.create(work, mode="work")
    server.prompt(session_id, "run")
    return session_id, server.wait(session_id, "attention")["approvals"][0]


def test_messaging_17_approve_picks_a_random_prompt(
    start: Callable[..., ServerProcess], work: Path, tmp_path: Path
) -> None:
    """An answer names its question, and an option of it; nothing else is near enough."""
    server = start()
    _, first = _asked(server, work)
    _, second = _asked(server, work)
    for named in (
        {},
        {"approvalId": None},
        {"approvalId": 1},
        {"approvalId": [first["approvalId"]]},
    ):
        assert _kind(server, "approval/answer", optionId="allow_once", **named) == "invalidParams"
    for name in ("", "latest", "apr_", first["approvalId"].upper(), first["approvalId"][:-1], "%"):
        kind = _kind(server, "approval/answer", approvalId=name, optionId="allow_once")
        assert kind == "approvalNotFound", name
    for option in ("", "approve", "yes", "ALLOW_ONCE", "allow"):
        kind = _kind(server, "approval/answer", approvalId=first["approvalId"], optionId=option)
        assert kind == "optionInvalid", option
    (tmp_path / "elsewhere").mkdir()
    elsewhere = start(tmp_path / "elsewhere")
    _, foreign = _asked(elsewhere, work)
    kind = _kind(server, "approval/answer", approvalId=foreign["approvalId"], optionId="allow_once")
    assert kind == "approvalNotFound", "a question of another store"
    states = [a["state"] for a in server.call("approval/list")["data"]]
    assert states == ["pending", "pending"]
    assert second["approvalId"] != first["approvalId"]
    assert not (work / "ran.txt").exists()


def test_messaging_17_unlisted_user_approving_by_reaction(
    start: Callable[..., ServerProcess], work: Path
) -> None:
    """A response to a request that nobody was sent answers nothing, whoever it comes from."""
    server, silent = start(client_id="asking", approvals=True), start(client_id="silent")
    session_id = server.create(work, mode="work")
    scope = {"kind": "session", "id": session_id}
    server.call("event/subscribe", scope=scope, **{"from": "start"})
    server.prompt(session_id, "run")
    offered = server.until(lambda m: m.get("method") == "approval/request")
    named = {"approvalId": offered["params"]["approval"]["approvalId"]}
    for request_id in (offered["id"], 1, 2, "1", named["approvalId"], None):
        for result in ({"optionId": "allow_once"}, {"approved": True}, "allow_once", []):
            silent.send({"jsonrpc": "2.0", "id": request_id, "result": result})
    silent.call("server/ping")
    assert silent.call("approval/get", **named)["approval"]["state"] == "pending"
    server.send({"jsonrpc": "2.0", "id": offered["id"], "result": {"approved": True}})
    server.call("server/ping")
    assert server.call("approval/get", **named)["approval"]["state"] == "pending"
    server.call("session/cancel", sessionId=session_id)
    assert server.wait(session_id)["turn"]["state"] == "cancelled"
    assert not (work / "ran.txt").exists(), "what is not understood is no approval"


def test_messaging_17_thirty_minute_approval_hang(
    start: Callable[..., ServerProcess], work: Path
) -> None:
    """A question ends by the server's clock, is told to be over, and the turn goes on."""
    server = start(callboard={"config": {"approvals": {"unattended": "expire", "expire_s": 1}}})
    session_id, approval = _asked(server, work)
    assert server.wait(session_id)["finalText"] == "Ran it."
    named = {"approvalId": approval["approvalId"], "optionId": "allow_once"}
    assert _kind(server, "approval/answer", **named) == "approvalExpired"
    results = [e["data"]["status"] for e in server.events(session_id) if e["type"] == "tool_result"]
    assert results in (["denied"], ["timed_out"])
    assert not (work / "ran.txt").exists()


def test_messaging_17_message_ignored_after_restart_and_duplicate_replies_on_bursts(
    start: Callable[..., ServerProcess], work: Path
) -> None:
    server = start()
    session_id = server.create(work)
    server.prompt(session_id, "wait")
    asked = [
        server.request(
            "session/prompt", sessionId=session_id, content=[{"type": "text", "text": t}]
        )
        for t in ("one", "two", "three")
    ]
    for request_id in asked:
        server.result(request_id)
    server.kill()
    again = start()
    again.wait(session_id)
    events = again.events(session_id)
    admitted = [seq for e in events if e["type"] == "ack" for seq in e["data"]["admits"]]
    said = [e["seq"] for e in events if e["type"] == "message" and "turnId" not in e]
    assert sorted(admitted) == said, "each is answered, and once"
    assert types(events).count("turn_finished") == types(events).count("turn_started") <= 4


def test_messaging_17_firing_into_a_closed_session(
    start: Callable[..., ServerProcess], work: Path
) -> None:
    server = start()
    closed, archived, deleted = (server.create(work) for _ in range(3))
    server.call("session/close", sessionId=closed)
    server.call("session/archive", sessionId=archived)
    server.call("session/delete", sessionId=deleted)
    for session_id, kind in (
        (closed, "sessionClosed"), (archived, "sessionArchived"), (deleted, "sessionNotFound"),
    ):  # fmt: skip
        before = server.call("server/diagnostics")["events"]
        for delivery in ("auto", "queue", "steer"):
            say = {"content": [{"type": "text", "text": "x"}], "delivery": delivery}
            assert _kind(server, "session/prompt", sessionId=session_id, **say) == kind
        assert _kind(server, "session/compact", sessionId=session_id) == kind
        assert server.call("server/diagnostics")["events"] == before, "nothing was written"


def test_messaging_17_a_limit_of_zero(start: Callable[..., ServerProcess], work: Path) -> None:
    """Nothing may be spent, so nothing is; and no time, as no limit is meant (execution 46)."""
    server = start()
    for limits, state in (
        ({"turns": 0}, "completed"),
        ({"tokens": 0}, "failed"),
        ({"cost": 0}, "completed"),  # the cost of this model is not known
        ({"timeoutMs": 0}, "completed"),
        ({"timeoutMs": -1}, "completed"),
    ):
        session_id = server.create(work)
        say = {"content": [{"type": "text", "text": "wait"}], "limits": limits}
        server.call("session/prompt", sessionId=session_id, **say)
        turn = server.wait(session_id)["turn"]
        assert turn["state"] == state, (limits, turn)
        server.prompt(session_id, "hello")
        assert server.wait(session_id)["finalText"] == "Heard.", "the session goes on"
    assert "Traceback" not in server.stderr()


def test_messaging_17_non_ascii_truncation(start: Callable[..., ServerProcess], work: Path) -> None:
    """Whatever is cut off is cut between characters."""
    server = start(callboard={"config": {"approvals": {"policy": {"run_command": "allow"}}}})
    fox = "\N{FOX FACE}"
    session_id = server.create(work, title=f"a{fox * 2_000}", mode="work")
    title = server.call("session/get", sessionId=session_id)["session"]["title"]
    assert title.strip(f"{fox}…") == "a"
    server.prompt(session_id, f"print {fox * 70_000}")
    assert server.wait(session_id)["finalText"] == "Ran it."
    (result,) = [e["data"] for e in server.events(session_id) if e["type"] == "tool_result"]
    assert result["status"] == "ok"
    assert fox in result["text"] and "\N{REPLACEMENT CHARACTER}" not in result["text"]
    for form in ("jsonl", "markdown"):
        text = server.call("session/export", sessionId=session_id, format=form)["text"]
        assert "\N{REPLACEMENT CHARACTER}" not in text
    assert "Traceback" not in server.stderr()
