"""The classes of the Agent Client Protocol: what comes in is taken leniently where agents deviate, what
goes out says no more than there is."""

from typing import Any

import pytest

from callboard.acp.contract import content, server, services, sessions, tool_calls, updates
from callboard.acp.contract.convert import (
    StructureError,
    structure,
    structure_lenient,
    unstructure,
)
from callboard.acp.contract.methods import METHODS
from callboard_rpc.common import UnknownVariant


def both_ways(value: dict[str, Any], cls: type[Any]) -> Any:
    structured = structure(value, cls)
    assert unstructure(structured) == value
    return structured


def test_what_is_offered_is_an_object_or_is_not_there() -> None:
    answer = server.InitializeResponse(
        protocol_version=1,
        agent_capabilities=server.AgentCapabilities(
            load_session=True,
            session_capabilities=server.SessionCapabilities(list=server.Marker()),
        ),
    )
    told = unstructure(answer)["agentCapabilities"]
    assert told["sessionCapabilities"] == {"list": {}}
    assert told["auth"] == {}


@pytest.mark.parametrize(
    ("said", "taken"), [(True, server.Marker()), (False, None), ({}, server.Marker())]
)
def test_an_agent_that_says_true_where_an_object_belongs_is_understood(
    said: Any, taken: Any
) -> None:
    told = {"protocolVersion": 1, "agentCapabilities": {"sessionCapabilities": {"resume": said}}}
    answer = structure_lenient(told, server.InitializeResponse)
    assert answer.agent_capabilities.session_capabilities.resume == taken


def test_null_is_as_if_it_was_not_there() -> None:
    asked = {
        "protocolVersion": 1,
        "clientInfo": None,
        "clientCapabilities": {"terminal": None, "fs": None},
    }
    assert structure(asked, server.InitializeRequest) == server.InitializeRequest(
        protocol_version=1
    )


def test_a_session_may_begin_without_mcp_servers_and_with_fields_that_nobody_knows() -> None:
    begun = structure({"cwd": "/work", "surprise": {"a": 1}}, sessions.NewSessionRequest)
    assert begun == sessions.NewSessionRequest(cwd="/work")


def test_mcp_servers_are_told_apart_by_their_type_and_one_without_runs_a_command() -> None:
    told = [
        {"name": "files", "command": "files", "args": ["-v"], "env": [{"name": "A", "value": "b"}]},
        {"type": "http", "name": "web", "url": "http://localhost/", "headers": []},
        {"type": "sse", "name": "old", "url": "http://localhost/", "headers": []},
    ]
    asked = both_ways(
        {"cwd": "/work", "mcpServers": told, "additionalDirectories": []},
        sessions.NewSessionRequest,
    )
    kinds = [type(each) for each in asked.mcp_servers]
    assert kinds == [sessions.McpServerStdio, sessions.McpServerHttp, sessions.McpServerSse]


def test_content_of_every_kind_goes_both_ways() -> None:
    told = [
        {"type": "text", "text": "a"},
        {"type": "image", "data": "AA==", "mimeType": "image/png"},
        {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
        {"type": "resource_link", "name": "a.py", "uri": "file:///a.py", "size": 3},
        {"type": "resource", "resource": {"uri": "file:///a.py", "text": "x"}},
        {"type": "resource", "resource": {"uri": "file:///a.png", "blob": "AA=="}},
    ]
    prompt = both_ways({"sessionId": "ses_1", "prompt": told}, sessions.PromptRequest)
    assert isinstance(prompt.prompt[4].resource, content.TextResourceContents)
    assert isinstance(prompt.prompt[5].resource, content.BlobResourceContents)


def test_what_is_wrong_is_named_by_its_place() -> None:
    with pytest.raises(StructureError) as wrong:
        structure({"sessionId": 1, "prompt": [{"type": "smell"}]}, sessions.PromptRequest)
    assert [each["path"] for each in wrong.value.errors] == ["$.sessionId", "$.prompt[0]"]


def test_an_update_of_a_kind_that_nobody_knows_is_kept_as_it_came() -> None:
    told = {"sessionId": "s", "update": {"sessionUpdate": "sneeze", "loud": True}}
    update = structure_lenient(told, updates.SessionNotification).update
    assert isinstance(update, UnknownVariant)
    assert update.fields == told["update"]
    with pytest.raises(StructureError):
        structure(told, updates.SessionNotification)


def test_updates_of_a_call_say_only_what_has_changed() -> None:
    changed = updates.SessionNotification(
        session_id="s", update=updates.ToolCallChanged(tool_call_id="c", status="completed")
    )
    assert unstructure(changed)["update"] == {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "c",
        "status": "completed",
    }


@pytest.mark.parametrize(
    ("told", "taken"),
    [
        ({"outcome": "cancelled"}, tool_calls.CancelledPermissionOutcome()),
        (
            {"outcome": "selected", "optionId": "yes"},
            tool_calls.SelectedPermissionOutcome(option_id="yes"),
        ),
    ],
)
def test_a_permission_is_selected_or_cancelled(told: dict[str, Any], taken: Any) -> None:
    answer = structure({"outcome": told}, tool_calls.RequestPermissionResponse)
    assert answer.outcome == taken


def test_options_are_in_groups_or_by_themselves() -> None:
    one = {"value": "m", "name": "M"}
    for options in ([one], [{"group": "g", "name": "G", "options": [one]}]):
        told = {
            "id": "model",
            "name": "Model",
            "type": "select",
            "currentValue": "m",
            "options": options,
        }
        both_ways({"configOptions": [told]}, sessions.SetSessionConfigOptionResponse)


def test_a_form_is_accepted_declined_or_cancelled() -> None:
    method = METHODS["elicitation/create"]
    kinds = {"accept": services.ElicitationAccepted, "decline": services.ElicitationDeclined}
    for action, kind in kinds.items():
        assert isinstance(structure({"action": action}, method.result), kind)
