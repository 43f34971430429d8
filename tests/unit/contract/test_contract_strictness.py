"""What a client sends is taken literally: wrong types are named by their path, in wire names."""

from typing import Any

import pytest

from callboard_rpc.approvals import Approval
from callboard_rpc.common import Limits, Usage
from callboard_rpc.convert import StructureError, structure, structure_lenient
from callboard_rpc.events import Event
from callboard_rpc.server import HandshakeResult, InitializeParams
from callboard_rpc.sessions import (
    Session,
    SessionListParams,
    SessionPromptParams,
    SessionUpdateParams,
    SessionWaitParams,
)
from callboard_rpc.streams import SubscribeParams

PROMPT = {"sessionId": "ses_1", "content": [{"type": "text", "text": "hi"}]}
EVENT = {
    "pos": 1,
    "sessionId": "ses_1",
    "seq": 1,
    "eventId": "evt_1",
    "type": "message",
    "at": "2024-05-06T07:08:09Z",
    "actor": {"kind": "client", "id": "c"},
    "data": {"messageId": "msg_1", "author": {"kind": "person", "name": "P"}, "content": []},
}


def faults(wire: Any, cls: type[Any], read: Any = structure) -> dict[str, str]:
    with pytest.raises(StructureError) as caught:
        read(wire, cls)
    return {fault["path"]: fault["message"] for fault in caught.value.errors}


@pytest.mark.parametrize(
    ("cls", "wire", "path", "message"),
    [
        (Limits, {"turns": "3"}, "$.turns", "must be an integer, is a string"),
        (Limits, {"turns": True}, "$.turns", "must be an integer, is true"),
        (Limits, {"turns": 3.0}, "$.turns", "must be an integer, is a number"),
        (Limits, {"turns": 2**63}, "$.turns", "must be an integer of 64 bits, is a larger number"),
        (Limits, {"turns": -(2**63) - 1}, "$.turns", "must be an integer of 64 bits, is a larger number"),
        (Limits, {"cost": "1"}, "$.cost", "must be a number, is a string"),
        (Limits, {"cost": False}, "$.cost", "must be a number, is false"),
        (Usage, {"partial": 1}, "$.partial", "must be true or false, is a number"),
        (Usage, {"partial": None}, "$.partial", "must be true or false, is null"),
        (Usage, {"currency": 5}, "$.currency", "must be a string, is a number"),
        (Usage, [], "$", "must be an object, is an array"),
        (SessionListParams, {"archived": "yes"}, "$.archived", "must be true or false, is a string"),
        (SessionUpdateParams, {"sessionId": "s", "pinned": None}, "$.pinned", "must be true or false, is null"),
        (SessionWaitParams, {"sessionId": "s", "workDoneToken": True}, "$.workDoneToken", "must be a string or an integer, is true"),
        (SessionPromptParams, {**PROMPT, "content": "hi"}, "$.content", "must be an array, is a string"),
        (SessionPromptParams, {**PROMPT, "content": ["hi"]}, "$.content[0]", "must be an object, is a string"),
        (SessionPromptParams, {**PROMPT, "clientMessageId": 1}, "$.clientMessageId", "must be a string, is a number"),
        (SessionPromptParams, {**PROMPT, "limits": {"timeoutMs": "1"}}, "$.limits.timeoutMs", "must be an integer, is a string"),
        (SessionPromptParams, {**PROMPT, "_meta": []}, "$._meta", "must be an object, is an array"),
        (SubscribeParams, {"scope": {"kind": "all"}, "from": 3}, "$.from", "must be a string, is a number"),
        (InitializeParams, {"callboard": {"capabilities": {"applyEdit": 1}}}, "$.callboard.capabilities.applyEdit", "must be true or false, is a number"),
        (Event, {**EVENT, "pos": "1"}, "$.pos", "must be an integer, is a string"),
        (Event, {**EVENT, "data": {**EVENT["data"], "stopReason": 1}}, "$.data.stopReason", "must be a string, is a number"),
        (Event, {**EVENT, "data": None}, "$.data", "must be an object, is null"),
        (Event, "event", "$", "must be an object, is a string"),
    ],
)  # fmt: skip
def test_a_wrong_type_is_named_by_its_path(
    cls: type[Any], wire: Any, path: str, message: str
) -> None:
    assert faults(wire, cls) == {path: message}


def test_an_integer_is_a_number() -> None:
    limits = structure({"cost": 2}, Limits)
    assert (limits.cost, type(limits.cost)) == (2.0, float)


def test_what_is_missing_is_named() -> None:
    assert faults({}, SessionPromptParams) == {
        "$.sessionId": "is required",
        "$.content": "is required",
    }


def test_several_faults_are_reported_at_once() -> None:
    wire = {
        "content": [
            {"type": "text"},
            {"type": "image", "data": 1, "mimeType": 2},
            {"type": "poem", "text": "x"},
            {"text": "x"},
        ],
        "delivery": "later",
        "limits": {"tokens": "many", "timeoutMs": 1.5},
        "context": [{"uri": "file:///a", "range": {"start": {"line": 0}, "end": 3}}],
    }
    found = faults(wire, SessionPromptParams)
    assert set(found) == {
        "$.sessionId",
        "$.content[0].text",
        "$.content[1].data",
        "$.content[1].mimeType",
        "$.content[2]",
        "$.content[3]",
        "$.delivery",
        "$.limits.tokens",
        "$.limits.timeoutMs",
        "$.context[0].range.start.character",
        "$.context[0].range.end",
    }
    assert found["$.content[2]"] == "'type' must be one of text, image, resource_link, resource"
    assert found["$.delivery"] == "must be one of auto, queue, steer"


def test_faults_of_the_envelope_and_of_the_data_are_reported_together() -> None:
    wire = {**EVENT, "seq": "1", "data": {"messageId": 1, "author": {"kind": "ghost", "name": "G"}}}
    assert set(faults(wire, Event)) == {
        "$.seq",
        "$.data.messageId",
        "$.data.author.kind",
        "$.data.content",
    }


def test_values_of_a_map_are_checked() -> None:
    wire = {
        "protocolVersion": "1.0",
        "storeId": "s",
        "hostId": "h",
        "serverInfo": {"name": "callboard"},
        "features": {"peers": "on"},
        "limits": {"maxFrameBytes": 1, "pageItems": 1, "pageBytes": 1, "window": 1},
        "head": "c",
    }
    assert faults(wire, HandshakeResult) == {
        "$.features": "peers: must be true or false, is a string"
    }


def session(**changes: Any) -> dict[str, Any]:
    return {
        "sessionId": "ses_1",
        "rootId": "ses_1",
        "cwd": "/w",
        "profile": "default",
        "mode": "work",
        "status": "idle",
        "createdAt": "2024-05-06T07:08:09Z",
        "updatedAt": "2024-05-06T07:08:09Z",
        "headSeq": 1,
        "queueLength": 0,
        "pendingApprovals": 0,
        **changes,
    }


def test_a_client_lets_enum_values_of_a_later_server_pass() -> None:
    wire = session(status="hibernating", lastOutcome="postponed")
    assert faults(wire, Session).keys() == {"$.status", "$.lastOutcome"}
    read = structure_lenient(wire, Session)
    assert (read.status, read.last_outcome) == ("hibernating", "postponed")


def test_a_client_names_only_the_faults_that_it_minds() -> None:
    wire = session(status="hibernating", headSeq="1")
    assert faults(wire, Session, structure_lenient) == {
        "$.headSeq": "must be an integer, is a string"
    }
    assert faults(session(status=3), Session, structure_lenient).keys() == {"$.status"}


def test_a_form_carries_its_schema_untouched() -> None:
    schema = {"type": "object", "class": 1, "jsonrpc": "2.0", "_meta": {"a": [None]}}
    approval = {
        "approvalId": "apr_1",
        "sessionId": "ses_1",
        "rootId": "ses_1",
        "turnId": "trn_1",
        "callId": "call_1",
        "kind": "question",
        "title": "Which?",
        "tool": "ask",
        "subject": {"type": "form", "message": "Which?", "schema": schema},
        "options": [],
        "createdAt": "2024-05-06T07:08:09Z",
    }
    read = structure(approval, Approval)
    assert read.subject.type == "form"
    assert read.subject.schema == schema
