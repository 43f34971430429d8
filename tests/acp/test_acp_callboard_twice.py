"""Callboard drives Callboard, each on a store of its own: what the inner one asks, a person decides at the outer one;
and each outlives the death of the other."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from agent_play import Play, blocks, calls, end, of, play
from known_agents import KnownAgent

from harness.process import PATIENCE_S, ServerProcess, scenario
from harness.processes import is_server

SCENE = """
rules:
  - {when: {last_tool: {status: ok}}, answer: [{say: It is done.}]}
  - {when: {last_tool: {status: error}}, answer: [{say: Then not.}]}
  - {when: {last_user: {contains: go on}}, answer: [{say: "I go on."}]}
  - {when: {last_user: {contains: wait}}, answer: [{say: I wait.}, {hang: true}]}
default: [{say: I run it.}, {call: {tool: run_command, arguments: {command: "echo ran >> ran.txt"}}}]
"""


@pytest.fixture
def inner(tmp_path: Path) -> Path:
    """The folder of the inner store."""
    folder = tmp_path / "inner"
    (folder / "home" / "config").mkdir(parents=True)
    return folder


@pytest.fixture
def callboard(inner: Path) -> KnownAgent:
    model = scenario(inner, SCENE)
    return KnownAgent(
        name="second",
        command=lambda _: [sys.executable, "-m", "callboard", "serve", "--acp"],
        environ=lambda _, __: {
            "CALLBOARD_STORE": str(inner / "store.db"),
            "CALLBOARD_CONFIG_DIR": str(inner / "home" / "config"),
            "CALLBOARD_MODEL": model,
        },
        write=lambda _: "do it",
    )


def logged(inner: Path) -> list[dict[str, Any]]:
    """The one session of the inner store."""
    with ServerProcess(inner) as server:
        (session,) = server.call("session/list")["data"]
        return server.events(session["sessionId"])


def the_inner_one(stage: Play) -> psutil.Process:
    (process,) = [each for each in stage.left() if is_server(each)]
    return process


def outcomes(events: list[dict[str, Any]]) -> list[str]:
    return [each["outcome"] for each in of(events, "turn_finished")]


def results(events: list[dict[str, Any]]) -> list[str]:
    return [each["status"] for each in of(events, "tool_result")]


@pytest.mark.parametrize("terminals", ["own", "client"])
@pytest.mark.parametrize(
    ("answer", "status", "says"),
    [("allow_once", "ok", "It is done."), ("reject_once", "denied", "Then not.")],
)
def test_a_child_on_another_store_asks_through_both(
    tmp_path: Path,
    inner: Path,
    callboard: KnownAgent,
    answer: str,
    status: str,
    says: str,
    terminals: str,
) -> None:
    config = inner / "home" / "config" / "config.toml"
    config.write_text(f'[acp]\nterminals = "{terminals}"\n')
    model = scenario(tmp_path, "default: [{say: Noted.}]")
    with play(tmp_path, callboard) as stage:
        stage.answer = answer
        with stage.serve(model=model) as server:
            root = stage.session("default")
            child = server.call(
                "agent/spawn", parentId=root, name="far", message="do it", profile="second"
            )["agent"]["agentId"]
            report = server.told(
                lambda e: e["type"] == "agent_report_created" and e["sessionId"] == child
            )
            events = server.events(child)
        (asked,) = stage.asked
        assert [each["name"] for each in asked["path"]] == ["default", "far"]
        assert asked["subject"]["command"] == "echo ran >> ran.txt"
        assert says in report["data"]["report"]["summary"]
        assert end(events)["outcome"] == "completed"
        ((call, result),) = calls(events)
        assert (call["kind"], result["status"]) == ("execute", status)
    assert (tmp_path / "work" / "ran.txt").exists() == (status == "ok")
    beneath = logged(inner)
    assert results(beneath) == [status]
    assert outcomes(beneath) == ["completed"]


def test_a_cancel_goes_through_both(tmp_path: Path, inner: Path, callboard: KnownAgent) -> None:
    with play(tmp_path, callboard) as stage, stage.serve() as server:
        session = stage.session()
        server.prompt(session, "wait")
        stage.until_said("I wait.")
        server.call("session/cancel", sessionId=session)
        server.wait(session)
        stage.answer = None
        server.prompt(session, "do it")
        server.wait(session, until="attention")
        server.call("session/cancel", sessionId=session)
        server.wait(session)
        events = server.events(session)
        assert outcomes(events) == ["cancelled", "cancelled"]
        assert results(events) == ["cancelled"]
        assert blocks(stage.turn(session, "go on"), "text") == "I go on."
    beneath = logged(inner)
    assert outcomes(beneath) == ["cancelled", "cancelled", "completed"]
    assert results(beneath) == ["cancelled"]


def test_the_inner_one_is_killed_as_it_speaks(
    tmp_path: Path, inner: Path, callboard: KnownAgent
) -> None:
    with play(tmp_path, callboard) as stage, stage.serve() as server:
        session = stage.session()
        server.prompt(session, "wait")
        stage.until_said("I wait.")
        the_inner_one(stage).kill()
        server.wait(session)
        (failed,) = of(server.events(session), "turn_finished")
        assert failed["outcome"] == "failed"
        assert "SIGKILL" in failed["error"]["message"]
        said = stage.turn(session, "go on")
        assert blocks(said, "text") == "I go on."
        assert of(said, "notice") == []
    assert outcomes(logged(inner)) == ["interrupted", "completed"]


def test_the_inner_one_is_killed_as_it_asks(
    tmp_path: Path, inner: Path, callboard: KnownAgent
) -> None:
    """Its own question outlives it, and is asked again when it is there again."""
    with play(tmp_path, callboard) as stage, stage.serve() as server:
        stage.answer = None
        session = stage.session()
        server.prompt(session, "do it")
        server.wait(session, until="attention")
        the_inner_one(stage).kill()
        server.wait(session)
        events = server.events(session)
        assert outcomes(events) == ["failed"]
        assert results(events) == ["error"]
        (decision,) = of(events, "approval_decision")
        assert decision["resolution"]["outcome"] != "allowed"
        stage.answer = "allow_once"
        events = stage.turn(session, "go on")
        assert outcomes(events) == ["completed"]
        assert results(events) == ["ok"]
        assert len(stage.asked) == 2
        assert blocks(events, "text") == "It is done.I go on."
    assert (tmp_path / "work" / "ran.txt").read_text() == "ran\n"
    beneath = logged(inner)
    assert outcomes(beneath) == ["completed", "completed"]
    assert results(beneath) == ["ok"]


def test_the_outer_one_is_killed_as_the_inner_one_speaks(
    tmp_path: Path, inner: Path, callboard: KnownAgent
) -> None:
    with play(tmp_path, callboard) as stage:
        with stage.serve() as server:
            session = stage.session()
            server.prompt(session, "wait")
            stage.until_said("I wait.")
            left = the_inner_one(stage)
            server.kill()
        with stage.serve() as server:
            left.wait(PATIENCE_S)
            server.wait(session)
            assert outcomes(server.events(session)) == ["interrupted"]
            assert blocks(stage.turn(session, "go on"), "text") == "I go on."
    first, second = outcomes(logged(inner))
    assert (first in ("interrupted", "cancelled"), second) == (True, "completed")


def test_the_outer_one_is_killed_as_the_inner_one_asks(
    tmp_path: Path, inner: Path, callboard: KnownAgent
) -> None:
    """The question outlives it, and its answer stands for the same call."""
    with play(tmp_path, callboard) as stage:
        stage.answer = None
        with stage.serve() as server:
            session = stage.session()
            server.prompt(session, "do it")
            server.wait(session, until="attention")
            os.kill(server.process.pid, signal.SIGKILL)
            server.process.wait(PATIENCE_S)
        with stage.serve() as server:
            (approval,) = server.call("approval/list", state="pending")["data"]
            server.call("approval/answer", approvalId=approval["approvalId"], optionId="allow_once")
            server.wait(session)
            events = server.events(session)
            assert outcomes(events) == ["completed"]
            assert results(events) == ["interrupted", "ok"]
            assert blocks(events, "text").endswith("I go on.")
    assert (tmp_path / "work" / "ran.txt").read_text() == "ran\n"
    assert results(logged(inner)) == ["ok"]
