"""Terminals of clients that others have made: the two SDKs' and acpx."""

from typing import Any

import psutil
from acp_clients import Acpx, Place, SdkClient

from harness.process import ServerProcess
from harness.processes import ended


def results(place: Place) -> list[dict[str, Any]]:
    """Of the calls of the only session."""
    with ServerProcess(place.folder, approvals=False) as other:
        (session,) = other.call("session/list")["data"]
        events = other.events(session["sessionId"])
    return [event["data"] for event in events if event["type"] == "tool_result"]


def test_sdk_runs_a_command_in_its_terminal(client: SdkClient, place: Place) -> None:
    client.connect(terminal=True)
    session = client.do("session/new", cwd=str(place.cwd))["sessionId"]
    client.do("answer", kinds=["allow_once"])
    assert client.do("session/prompt", sessionId=session, text="run")["stopReason"] == "end_turn"
    if not any("released" in message for message in client.heard):
        client.until(lambda message: "released" in message)
    (made,) = [message for message in client.heard if "created" in message]
    assert made["command"][1:] == ["-c", "echo out; echo x >> ran; exit 3"]
    assert (place.cwd / "ran").read_text() == "x\n"
    terminal = {"type": "terminal", "terminalId": made["created"]}
    told = client.updates("tool_call_update")
    assert [u["status"] for u in told if terminal in (u.get("content") or [])] == [
        "in_progress",
        "failed",
    ]
    client.leave()
    (result,) = results(place)
    assert (result["exitCode"], result["text"]) == (3, "out\n[exit code 3]")


def test_sdk_cancels_a_command_in_its_terminal(client: SdkClient, place: Place) -> None:
    client.connect(terminal=True)
    session = client.do("session/new", cwd=str(place.cwd))["sessionId"]
    client.do("answer", kinds=["allow_once"])
    turn = client.start("session/prompt", sessionId=session, text="stay")
    client.until(
        lambda m: any(
            each["type"] == "terminal"
            for each in m.get("update", {}).get("content") or ()
            if isinstance(each, dict)
        )
    )
    client.do("session/cancel", sessionId=session)
    assert client.result(turn)["stopReason"] == "cancelled"
    if not any("released" in message for message in client.heard):
        client.until(lambda message: "released" in message)
    client.leave()
    (result,) = results(place)
    assert result["status"] == "cancelled"
    pid = place.cwd / "pid"
    assert not pid.exists() or not _lives(int(pid.read_text()))


def _lives(number: int) -> bool:
    return psutil.pid_exists(number) and not ended(psutil.Process(number))


def test_acpx_runs_a_command_in_its_terminal(place: Place) -> None:
    done = Acpx(place).run("exec", "run", options=("--approve-all",))
    assert done.returncode == 0 and "It ran." in done.stdout, done.stderr
    kinds = place.judge()
    for method in ("create", "wait_for_exit", "output", "release"):
        assert f"terminal/{method}" in kinds
    assert kinds.count("terminal/create") == 1
    assert (place.cwd / "ran").read_text() == "x\n"
    (result,) = results(place)
    assert (result["exitCode"], result["text"]) == (3, "out\n[exit code 3]")


def test_acpx_denies(place: Place) -> None:
    denied = Acpx(place).run("exec", "run", options=("--deny-all",))
    assert denied.returncode == 5
    assert "terminal/create" not in place.judge()
    assert not (place.cwd / "ran").exists()
