"""The validator of the Agent Client Protocol takes what the schema allows, and refuses what it only overlooks."""

import json
from typing import Any

import pytest

from harness.acp_order import Order
from harness.acp_schema import AcpInvalid, Checker, OwnShapes, PublishedShapes, Side

CAPABLE: dict[str, Any] = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "auth": {"terminal": True},
    "session": {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}},
    "elicitation": {"form": {}, "url": {}},
}
"""What a client can declare, all of it."""
TEXT = {"type": "text", "text": "x"}
SELECT = {"type": "select", "currentValue": "a", "options": [{"value": "a", "name": "A"}]}
UPDATES: list[dict[str, Any]] = [
    {"sessionUpdate": "user_message_chunk", "content": TEXT},
    {"sessionUpdate": "agent_message_chunk", "content": TEXT, "messageId": "m"},
    {
        "sessionUpdate": "agent_thought_chunk",
        "content": {"type": "resource", "resource": {"uri": "file:///a", "text": "x"}},
    },
    {
        "sessionUpdate": "tool_call",
        "toolCallId": "t",
        "title": "T",
        "kind": "edit",
        "status": "pending",
        "content": [
            {"type": "diff", "path": "/a", "oldText": None, "newText": "x"},
            {"type": "content", "content": TEXT},
            {"type": "terminal", "terminalId": "t"},
        ],
        "locations": [{"path": "/a", "line": 3}],
        "rawInput": {"any": {"deep": 1}},
    },
    {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed"},
    {
        "sessionUpdate": "plan",
        "entries": [{"content": "a", "priority": "high", "status": "pending"}],
    },
    {
        "sessionUpdate": "available_commands_update",
        "availableCommands": [{"name": "a", "description": "d", "input": {"hint": "h"}}],
    },
    {"sessionUpdate": "current_mode_update", "currentModeId": "ask"},
    {
        "sessionUpdate": "config_option_update",
        "configOptions": [
            {"id": "mode", "name": "Mode", "category": "mode", **SELECT},
            {"id": "own", "name": "Own", "category": "_own", **SELECT},
            {"id": "yes", "name": "Yes", "type": "boolean", "currentValue": True},
        ],
    },
    {"sessionUpdate": "session_info_update", "title": None},
    {"sessionUpdate": "usage_update", "used": 1, "size": 2},
    {"sessionUpdate": "notice", "severity": "info", "title": "t"},
    {"sessionUpdate": "compaction_update", "compactionId": "c", "status": "completed"},
    {"sessionUpdate": "compaction_summary_chunk", "compactionId": "c", "content": TEXT},
]
TO_DECLARE = {
    "tool_call", "config_option_update", "notice", "compaction_update", "compaction_summary_chunk"
}  # fmt: skip


def kind_of(update: dict[str, Any]) -> str:
    return update["sessionUpdate"]


def told(update: dict[str, Any]) -> dict[str, Any]:
    params = {"sessionId": "s", "update": update}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


def call(method: str, request_id: Any = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def result(value: Any, request_id: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": value}


def checker(capabilities: dict[str, Any] = CAPABLE, *, own: bool = False) -> Checker:
    """One of a connection whose client has declared this."""
    made = Checker(OwnShapes() if own else PublishedShapes())
    made.check(
        call("initialize", "first", protocolVersion=1, clientCapabilities=capabilities), "client"
    )
    made.check(result({"protocolVersion": 1}, "first"), "agent")
    return made


@pytest.mark.parametrize("own", [False, True], ids=["published", "own"])
@pytest.mark.parametrize("update", UPDATES, ids=kind_of)
def test_every_kind_of_update_passes_with_meta(update: dict[str, Any], own: bool) -> None:
    frame = told({**update, "_meta": {"x": {"y": 1}}})
    assert checker(own=own).check(frame, "agent") == "session/update"


@pytest.mark.parametrize("update", UPDATES, ids=kind_of)
def test_a_field_that_the_schema_does_not_name_is_refused(update: dict[str, Any]) -> None:
    with pytest.raises(AcpInvalid, match="colour"):
        checker().check(told({**update, "colour": 1}), "agent")


@pytest.mark.parametrize("update", UPDATES, ids=kind_of)
def test_what_the_client_did_not_declare_is_refused(update: dict[str, Any]) -> None:
    little = checker(
        {"fs": {"readTextFile": True}, "terminal": False, "session": {"notices": None}}
    )
    if kind_of(update) in TO_DECLARE:
        with pytest.raises(AcpInvalid, match="did not declare"):
            little.check(told(update), "agent")
    else:
        little.check(told(update), "agent")


@pytest.mark.parametrize(
    ("method", "params", "lacking"),
    [
        ("fs/write_text_file", {"path": "/a", "content": ""}, "fs.writeTextFile"),
        ("terminal/create", {"command": "x"}, "terminal"),
        (
            "elicitation/create",
            {"mode": "form", "message": "m", "requestedSchema": {}},
            "elicitation.form",
        ),
    ],
)
def test_requests_to_a_client_that_did_not_declare_them(
    method: str, params: dict[str, Any], lacking: str
) -> None:
    little = checker({"fs": {"readTextFile": True}})
    little.check(call("fs/read_text_file", 4, sessionId="s", path="/a"), "agent")
    with pytest.raises(AcpInvalid, match=f"did not declare {lacking}"):
        little.check(call(method, 5, sessionId="s", **params), "agent")


def test_a_login_in_a_terminal_for_a_client_without_one() -> None:
    little = checker({})
    little.check(call("initialize", protocolVersion=1), "client")
    terminal = {"id": "a", "name": "A", "type": "terminal"}
    with pytest.raises(AcpInvalid, match=r"auth\.terminal"):
        little.check(result({"protocolVersion": 1, "authMethods": [terminal]}), "agent")


@pytest.mark.parametrize(
    "update",
    [
        {"sessionUpdate": "nope"},
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text"}},
        {"sessionUpdate": "agent_message_chunk", "content": {**TEXT, "extra": 1}},
        {"sessionUpdate": "tool_call", "toolCallId": "t"},
        {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "x", "kind": "bash"},
        {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "x", "content": [TEXT]},
        {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "x", "status": "cancelled"},
        {"sessionUpdate": "usage_update", "used": -1, "size": 2},
        {
            "sessionUpdate": "config_option_update",
            "configOptions": [{"id": "b", "name": "B", "type": "boolean", "currentValue": "yes"}],
        },
        {
            "sessionUpdate": "config_option_update",
            "configOptions": [{"id": "b", "name": "B", "category": "modle", **SELECT}],
        },
        {"sessionUpdate": "notice", "severity": "fatal", "title": "x"},
    ],
)
def test_updates_that_are_wrong(update: dict[str, Any]) -> None:
    with pytest.raises(AcpInvalid):
        checker().check(told(update), "agent")


ANSWERED: list[tuple[Side, str, dict[str, Any], Any]] = [
    (
        "client",
        "session/new",
        {"cwd": "/", "mcpServers": [{"name": "a", "command": "/a", "args": [], "env": []}]},
        {"sessionId": "x", "modes": {"currentModeId": "a", "availableModes": []}},
    ),
    ("client", "session/prompt", {"sessionId": "s", "prompt": [TEXT]}, {"stopReason": "cancelled"}),
    (
        "client",
        "session/set_config_option",
        {"sessionId": "s", "configId": "c", "type": "boolean", "value": True},
        {"configOptions": []},
    ),
    (
        "client",
        "session/list",
        {},
        {"sessions": [{"sessionId": "s", "cwd": "/"}], "nextCursor": None},
    ),
    ("client", "session/close", {"sessionId": "s"}, {}),
    ("client", "session/delete", {"sessionId": "s"}, {}),
    (
        "agent",
        "session/request_permission",
        {
            "sessionId": "s",
            "toolCall": {"toolCallId": "t"},
            "options": [{"optionId": "a", "name": "A", "kind": "allow_once"}],
        },
        {"outcome": {"outcome": "selected", "optionId": "a"}},
    ),
    (
        "agent",
        "elicitation/create",
        {
            "sessionId": "s",
            "mode": "form",
            "message": "m",
            "requestedSchema": {
                "type": "object",
                "properties": {"a": {"type": "string", "enum": ["x"]}},
            },
        },
        {"action": "accept", "content": {"a": "x"}},
    ),
]


@pytest.mark.parametrize("own", [False, True], ids=["published", "own"])
@pytest.mark.parametrize(
    ("sender", "method", "params", "answer"), ANSWERED, ids=[each[1] for each in ANSWERED]
)
def test_a_request_and_its_answer(
    sender: Side, method: str, params: dict[str, Any], answer: Any, own: bool
) -> None:
    other: Side = "agent" if sender == "client" else "client"
    made = checker(own=own)
    made.check(call(method, **params), sender)
    assert made.open_requests(sender) == {"1": method}
    assert made.check(result(answer), other) == f"{method} result"
    assert not made.open_requests(sender)


def test_what_is_asked_to_be_cancelled_and_what_could_not_be_read() -> None:
    cancel = {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 1}}
    unread = {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "x"}}
    for sender in ("agent", "client"):
        checker().check(cancel, sender)
        checker().check(unread, sender)


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("session/new", {}),
        ("session/close", None),
        ("session/load", None),
        ("session/prompt", {"stopReason": "done"}),
        ("session/prompt", {"stopReason": "end_turn", "usage": {}}),
        ("session/new", {"sessionId": "x", "models": {}}),
        ("initialize", {"protocolVersion": "1"}),
        (
            "initialize",
            {"protocolVersion": 1, "agentCapabilities": {"sessionCapabilities": {"list": True}}},
        ),
    ],
)
def test_results_that_are_wrong(method: str, answer: Any) -> None:
    made = checker()
    with pytest.raises(AcpInvalid, match="params"):
        made.check(call(method, nothing=1), "client")  # its id counts
    with pytest.raises(AcpInvalid, match="result"):
        made.check(result(answer), "agent")


@pytest.mark.parametrize(
    ("frame", "sender"),
    [
        (told(UPDATES[0]), "client"),
        ({"jsonrpc": "2.0", "method": "session/updates", "params": {}}, "agent"),
        (call("session/fork", sessionId="s", cwd="/"), "client"),
        (call("session/cancel", sessionId="s"), "client"),
        (call("session/new", cwd="/"), "client"),
        (call("session/list", 1.5), "client"),
        (call("session/list", None), "client"),
        ([call("session/list")], "client"),
        ({"id": 1, "method": "session/list"}, "client"),
        (result({}), "agent"),
        ({**result({}), "error": {"code": 1, "message": "m"}}, "agent"),
        ({"jsonrpc": "2.0", "id": 9, "error": {"code": 1, "message": "m"}}, "agent"),
        ({"jsonrpc": "2.0", "id": None, "error": "a text"}, "agent"),
        (call("elicitation/create", sessionId="s", mode="fax", message="m"), "agent"),
    ],
)
def test_frames_that_are_wrong(frame: Any, sender: Side) -> None:
    with pytest.raises(AcpInvalid):
        checker().check(frame, sender)


def test_an_id_that_is_in_use() -> None:
    made = checker()
    made.check(call("session/list"), "client")
    made.check(call("session/list", "1"), "client")
    with pytest.raises(AcpInvalid, match="still open"):
        made.check(call("session/list"), "client")


@pytest.mark.parametrize(
    "line",
    [b"hello\n", b'{"jsonrpc": "2.0"', b'{"a": 1, "a": 1}\n', b'{"a": NaN}\n', b'{"a": "\xff"}\n'],
)
def test_lines_that_are_no_frames(line: bytes) -> None:
    with pytest.raises(AcpInvalid, match=r"not JSON|newline"):
        checker().check_line(line, "agent")


def test_our_table_of_methods_is_the_published_one() -> None:
    own, published = OwnShapes(), PublishedShapes()
    assert own.requests.keys() == published.requests.keys()
    assert own.results.keys() == published.results.keys()
    assert own.notifications.keys() == published.notifications.keys()


def test_a_session_is_named_only_once_it_is_known() -> None:
    order = Order()
    order.client(call("session/new", cwd="/", mcpServers=[]))
    with pytest.raises(AssertionError, match="does not know the session"):
        order.agent(told(UPDATES[0]))
    order.agent(result({"sessionId": "s"}))
    order.agent(told(UPDATES[0]))


def test_a_tool_call_is_told_before_anything_about_it() -> None:
    order = Order()
    order.client(call("session/load", sessionId="s", cwd="/", mcpServers=[]))
    asked = call("session/request_permission", sessionId="s", toolCall={"toolCallId": "t"})
    for frame in (told(UPDATES[4]), asked):
        with pytest.raises(AssertionError, match="nothing was told"):
            order.agent(json.loads(json.dumps(frame)))
    order.agent(call("terminal/create", 7, sessionId="s", command="true"))
    order.client(result({"terminalId": "t"}, 7))
    order.agent(told(UPDATES[3]))
    order.agent(told(UPDATES[4]))
    order.agent(asked)


def _opened() -> Order:
    """A session, a call, and a terminal of the client's."""
    order = Order()
    order.client(call("session/load", sessionId="s", cwd="/", mcpServers=[]))
    order.agent(told(_call()))
    order.agent(call("terminal/create", 7, sessionId="s", command="true"))
    order.client(result({"terminalId": "t"}, 7))
    return order


def _call(**more: Any) -> dict[str, Any]:
    return {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "C", **more}


def _changed(**more: Any) -> dict[str, Any]:
    return {"sessionUpdate": "tool_call_update", "toolCallId": "c", **more}


SHOWN = _changed(content=[{"type": "terminal", "terminalId": "t"}])


def test_a_terminal_is_shown_while_it_is_there_and_released_once() -> None:
    release = call("terminal/release", sessionId="s", terminalId="t")
    order = _opened()
    order.agent(told(SHOWN))
    order.agent(release)
    order.agent(told(SHOWN))
    for method in ("output", "kill", "release"):
        with pytest.raises(AssertionError, match="no such terminal"):
            order.agent(call(f"terminal/{method}", sessionId="s", terminalId="t"))
    late = _opened()
    late.agent(release)
    with pytest.raises(AssertionError, match="no such terminal"):
        late.agent(told(SHOWN))


def test_a_terminal_that_only_displays_is_told_with_its_call_and_ends_once() -> None:
    info = {"terminal_info": {"terminal_id": "d"}}
    output = _changed(_meta={"terminal_output": {"terminal_id": "d", "data": "x"}})
    over = _changed(_meta={"terminal_exit": {"terminal_id": "d", "exit_code": 0}})
    order = _opened()
    with pytest.raises(AssertionError, match="does not go on"):
        order.agent(told(output))
    with pytest.raises(AssertionError, match="no client looks"):
        order.agent(told(_changed(_meta=info)))
    order.agent(told(_call(toolCallId="e", _meta=info)))
    order.agent(told(output))
    order.agent(told(over))
    for behind in (output, over):
        with pytest.raises(AssertionError, match="does not go on"):
            order.agent(told(behind))


def test_a_call_shows_terminals_to_clients_that_declare_one_of_both_ways() -> None:
    for able in ({"terminal": True}, {"_meta": {"terminal_output": True}}):
        checker(able).check(told(SHOWN), "agent")
    with pytest.raises(AcpInvalid, match="did not declare"):
        checker({"_meta": {"terminal_output": False}}).check(told(SHOWN), "agent")
    with pytest.raises(AcpInvalid, match="did not declare terminal"):
        create = call("terminal/create", sessionId="s", command="true")
        checker({"_meta": {"terminal_output": True}}).check(create, "agent")
