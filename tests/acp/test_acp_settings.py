"""Modes, options and commands: the same whichever way they are set, and by whomever."""

from pathlib import Path
from typing import Any

import pytest
from acp_scenes import scenes, workspace

from harness.acp import AcpProcess, RpcError, allow, texts


@pytest.fixture
def agent(tmp_path: Path):
    with AcpProcess(tmp_path, model=scenes(tmp_path), permit=allow) as agent:
        yield agent


def options(answer: dict[str, Any]) -> dict[str, Any]:
    return {option["id"]: option for option in answer["configOptions"]}


def test_a_session_tells_its_modes_and_options(agent: AcpProcess, tmp_path: Path) -> None:
    answer = agent.call("session/new", cwd=str(workspace(tmp_path)), mcpServers=[])
    modes = answer["modes"]
    assert [m["id"] for m in modes["availableModes"]] == ["ask", "plan", "work"]
    found = options(answer)
    assert {o["category"] for o in found.values()} >= {"mode", "model"}
    assert found["mode"]["currentValue"] == modes["currentModeId"]
    model = found["model"]
    assert model["currentValue"] in {o["value"] for o in model["options"]}
    assert "scripted/demo" in {o["value"] for o in model["options"]}


def test_mode_and_option_are_one(agent: AcpProcess, tmp_path: Path) -> None:
    session = agent.new(workspace(tmp_path))
    assert agent.call("session/set_mode", sessionId=session, modeId="plan") == {}
    answer = agent.call(
        "session/set_config_option", sessionId=session, configId="mode", value="ask"
    )
    assert options(answer)["mode"]["currentValue"] == "ask"
    seen = [
        u["currentModeId"] for u in agent.updates() if u["sessionUpdate"] == "current_mode_update"
    ]
    while seen[-1:] != ["ask"]:
        seen.append(agent.until_update("current_mode_update")["currentModeId"])
    assert seen == ["plan", "ask"]
    assert agent.prompt(session, "write it") == "end_turn"
    assert agent.told("tool_call_update", status="failed"), "in that mode nothing is changed"
    assert not (tmp_path / "work" / "new.txt").exists()


@pytest.mark.parametrize("way", ["option", "legacy", "command"])
def test_the_model_can_be_set(agent: AcpProcess, tmp_path: Path, way: str) -> None:
    session = agent.new(workspace(tmp_path))
    match way:
        case "option":
            answer = agent.call(
                "session/set_config_option",
                sessionId=session, configId="model", value="scripted/demo",
            )  # fmt: skip
            assert options(answer)["model"]["currentValue"] == "scripted/demo"
        case "legacy":
            agent.call("session/set_model", sessionId=session, modelId="scripted/demo")
        case _:
            assert agent.prompt(session, "/model scripted/demo") == "end_turn"
    seen = [u for u in agent.updates() if u["sessionUpdate"] == "config_option_update"]
    told = seen[-1] if seen else agent.until_update("config_option_update")
    assert options(told)["model"]["currentValue"] == "scripted/demo"


def test_how_much_is_thought_can_be_set(agent: AcpProcess, tmp_path: Path) -> None:
    session = agent.new(workspace(tmp_path))
    answer = agent.call(
        "session/load", sessionId=session, cwd=str(tmp_path / "work"), mcpServers=[]
    )
    level = options(answer)["thought_level"]
    assert level["category"] == "thought_level" and level["currentValue"] == "default"
    for value in ("high", "default"):
        answer = agent.call(
            "session/set_config_option", sessionId=session, configId="thought_level", value=value
        )
        assert options(answer)["thought_level"]["currentValue"] == value
        told = agent.told("config_option_update", configOptions=answer["configOptions"])
        assert told, "whoever has it open is told, too"
    with pytest.raises(RpcError) as wrong:
        agent.call(
            "session/set_config_option", sessionId=session, configId="thought_level", value="wild"
        )
    assert wrong.value.error["code"] == -32602


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("session/set_mode", {"modeId": "fly"}),
        ("session/set_config_option", {"configId": "mode", "value": "fly"}),
        ("session/set_config_option", {"configId": "mode", "value": True, "type": "boolean"}),
        ("session/set_config_option", {"configId": "colour", "value": "red"}),
        ("session/set_model", {"modelId": 5}),
    ],
)
def test_what_cannot_be_set_is_refused(
    agent: AcpProcess, tmp_path: Path, method: str, params: dict[str, Any]
) -> None:
    session = agent.new(workspace(tmp_path))
    with pytest.raises(RpcError) as refused:
        agent.call(method, sessionId=session, **params)
    assert refused.value.error["code"] == -32602


def test_a_model_that_there_is_not_is_refused_with_words(agent: AcpProcess, tmp_path: Path) -> None:
    session = agent.new(workspace(tmp_path))
    with pytest.raises(RpcError) as refused:
        agent.call(
            "session/set_config_option", sessionId=session, configId="model", value="no/where"
        )
    assert refused.value.kind == "modelUnavailable" and "no" in refused.value.error["message"]


def test_every_command_that_is_offered_works(agent: AcpProcess, tmp_path: Path) -> None:
    session = agent.new(workspace(tmp_path))
    offered = agent.until_update("available_commands_update")["availableCommands"]
    for command in offered:
        seen = len(agent.seen)
        assert agent.prompt(session, f"/{command['name']}") == "end_turn"
        said = texts(agent.updates(since=seen))
        assert said and "You said" not in said, command
    assert agent.prompt(session, "/title A better name") == "end_turn"
    assert agent.told("session_info_update", title="A better name")


def test_what_a_command_cannot_do_is_said(agent: AcpProcess, tmp_path: Path) -> None:
    session = agent.new(workspace(tmp_path))
    assert agent.prompt(session, "/mode fly") == "end_turn"
    assert "ask, plan, work" in texts(agent.updates())
    assert agent.prompt(session, "/dance") == "end_turn"
    assert texts(agent.updates()).endswith("You said: /dance"), "what is no command is a prompt"
