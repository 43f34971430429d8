"""Params that are wrong in one place each, for every method: each request gets one answer that keeps the protocol,
none of them is an internal fault, and the agent goes on."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from acp_scenes import scenes, workspace

from harness.acp import AcpProcess

INTERNAL = -32603
GONE = object()
WRONG: tuple[Any, ...] = (
    GONE, None, True, -1, 1.5, 2**70, "", "\x00", "/", "ses_nothing", "x" * 5000, [], [None], {}, {"a": {"b": []}},
)  # fmt: skip
"""What a value is replaced with; `GONE` leaves it out."""

TEXT = {"type": "text", "text": "/status"}
"""A prompt that no model is asked for."""
EXAMPLES: dict[str, dict[str, Any]] = {
    "authenticate": {"methodId": "callboard"},
    "session/new": {
        "cwd": "CWD",
        "additionalDirectories": ["CWD"],
        "mcpServers": [
            {"name": "a", "command": "/bin/a", "args": ["b"], "env": [{"name": "c", "value": "d"}]},
            {"type": "http", "name": "e", "url": "https://e.test", "headers": []},
        ],
    },
    "session/load": {"sessionId": "SESSION", "cwd": "CWD", "mcpServers": []},
    "session/resume": {"sessionId": "SESSION", "cwd": "CWD", "mcpServers": []},
    "session/list": {"cwd": "CWD", "cursor": None},
    "session/set_mode": {"sessionId": "SESSION", "modeId": "work"},
    "session/set_config_option": {"sessionId": "SESSION", "configId": "mode", "value": "work"},
    "session/prompt": {
        "sessionId": "SESSION",
        "prompt": [
            TEXT,
            {"type": "resource_link", "uri": "file:///a", "name": "a"},
            {"type": "image", "mimeType": "image/png", "data": "AAAA"},
            {"type": "resource", "resource": {"uri": "file:///b", "text": "c"}},
        ],
    },
    "session/close": {"sessionId": "SESSION"},
    "session/delete": {"sessionId": "OTHER"},
}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in a value, its own place first."""
    yield path
    if isinstance(value, dict):
        for key, each in value.items():
            yield from places(each, (*path, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from places(each, (*path, index))


def mutated(params: dict[str, Any]) -> Iterator[Any]:
    for place in places(params):
        for wrong in WRONG:
            if not place:
                if wrong is not GONE:
                    yield wrong
                continue
            made = copy.deepcopy(params)
            holder: Any = made
            for step in place[:-1]:
                holder = holder[step]
            if wrong is GONE:
                del holder[place[-1]]
            else:
                holder[place[-1]] = wrong
            yield made


def filled(value: Any, known: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: filled(each, known) for key, each in value.items()}
    if isinstance(value, list):
        return [filled(each, known) for each in value]
    return known.get(value, value) if isinstance(value, str) else value


@pytest.mark.parametrize("method", EXAMPLES)
def test_whatever_is_wrong_is_answered(method: str, tmp_path: Path) -> None:
    with AcpProcess(tmp_path, model=scenes(tmp_path)) as agent:
        cwd = workspace(tmp_path)
        known = {"CWD": str(cwd), "SESSION": agent.new(cwd), "OTHER": agent.new(cwd)}
        example = filled(EXAMPLES[method], known)
        for params in mutated(example):
            answer = agent.answer_to(agent.request_with(method, params))
            code = answer.get("error", {}).get("code")
            assert code != INTERNAL, (params, answer)
            if code is not None:
                assert answer["error"]["message"], answer
        assert agent.prompt(agent.new(cwd), "hi") == "end_turn"
        assert agent.call("session/list")["sessions"]
        assert "Traceback" not in agent.stderr()
