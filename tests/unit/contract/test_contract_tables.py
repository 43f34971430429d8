"""The method table and the error registry hold together, and tell what the protocol promises."""

import re
from pathlib import Path
from typing import Any, get_origin

import attrs
import orjson
import pytest

import callboard
from callboard.acp.contract.methods import METHODS as ACP_METHODS
from callboard_rpc import published
from callboard_rpc.errors import BY_CODE, ERRORS, CallboardError
from callboard_rpc.events import EVENT_NAMES, EVENT_TYPES
from callboard_rpc.methods import METHODS, Method
from callboard_rpc.version import PROTOCOL_VERSION, SUPPORTED_VERSIONS

SCHEMA = orjson.loads(published.read("json"))
TABLE = orjson.loads(published.read("methods"))
EACH_METHOD = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())

FIRST_MILESTONE = """
server/info server/ping server/diagnostics config/get model/list profile/list
session/create session/get session/list session/prompt session/cancel session/wait session/turns
session/update session/archive session/unarchive session/delete session/close
event/subscribe event/ack event/list approval/list approval/get approval/answer
""".split()  # fmt: skip
TRANSCRIPT = """
message directive tool_call tool_result ack error summary approval_request approval_decision
""".split()
RUNS = ["turn_started", "turn_finished", "turn_parked"]


@EACH_METHOD
def test_every_method_has_types(method: Method) -> None:
    assert attrs.has(get_origin(method.params) or method.params)
    if method.kind == "request":
        assert attrs.has(get_origin(method.result) or method.result)
    else:
        assert method.result is None
    assert method.doc


@EACH_METHOD
def test_every_error_that_a_method_names_exists(method: Method) -> None:
    assert [kind for kind in method.errors if kind not in ERRORS] == []
    assert len(set(method.errors)) == len(method.errors)


@EACH_METHOD
def test_methods_that_mutate_take_an_idempotency_key(method: Method) -> None:
    names = {a.name for a in attrs.fields(get_origin(method.params) or method.params)}
    assert method.mutates == ("idempotency_key" in names)


@EACH_METHOD
def test_the_published_table_names_types_of_the_published_schema(method: Method) -> None:
    row: dict[str, Any] = TABLE["methods"][method.name]
    assert row["params"] in SCHEMA["$defs"]
    assert row["result"] is None or row["result"] in SCHEMA["$defs"]
    assert (row["direction"], row["kind"], row["mutates"]) == (
        method.direction,
        method.kind,
        method.mutates,
    )


def test_every_method_of_the_first_milestone_is_there() -> None:
    assert [name for name in FIRST_MILESTONE if name not in METHODS] == []
    assert TABLE["methods"].keys() == METHODS.keys()


def test_every_event_type_of_transcript_and_runs_is_there() -> None:
    assert [name for name in [*TRANSCRIPT, *RUNS] if name not in EVENT_TYPES] == []


def test_an_event_type_has_one_class_and_a_class_one_event_type() -> None:
    assert {EVENT_NAMES[cls] for cls in EVENT_TYPES.values()} == EVENT_TYPES.keys()


def test_every_error_has_a_code_of_its_own_in_its_range() -> None:
    assert len(BY_CODE) == len(ERRORS)
    reserved = {-32700, -32600, -32601, -32602, -32603, -32002, -32800}
    assert [c for c in BY_CODE if not (c in reserved or -31999 <= c <= -31000)] == []


def test_an_error_on_the_wire_has_what_clients_switch_on() -> None:
    error = CallboardError(
        "turnInProgress", "busy", data={"turnId": "trn_1", "kind": "forged"}, retry_after_ms=20
    )
    assert error.wire("cor_1") == {
        "code": -31201,
        "message": "busy",
        "data": {
            "turnId": "trn_1",
            "kind": "turnInProgress",
            "retryable": True,
            "correlationId": "cor_1",
            "retryAfterMs": 20,
        },
    }


def test_the_version_that_is_described_can_be_spoken() -> None:
    assert PROTOCOL_VERSION in SUPPORTED_VERSIONS
    assert TABLE["protocolVersion"] == PROTOCOL_VERSION


ACP = {*ACP_METHODS, "session/set_model"}
"""The last is not in the protocol any more; some clients still call it."""


def test_what_a_text_tells_to_call_can_be_called() -> None:
    """Errors and documents name the way out, and so name methods; `acp` names those of its own protocol."""
    families = {name.partition("/")[0] for name in METHODS if "/" in name and name[0] != "$"}
    named = re.compile(rf"(?<![\w/.])(?:{'|'.join(sorted(families))})/[a-z][A-Za-z]*\b(?![/.*])")
    root = Path(callboard.__file__).parents[2]
    texts = [*(root / "server").rglob("*.py"), *(root / "docs").glob("*.md"), root / "README.md"]
    assert len(texts) > 100
    wrong = [
        (str(path.relative_to(root)), name)
        for path in texts
        for name in named.findall(path.read_text())
        if name not in METHODS and not (name in ACP and "/acp/" in path.as_posix())
    ]
    assert wrong == []
