"""A server whose every frame is held against the published contract before a test may see it."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
from jsonschema.protocols import Validator

from .process import PATIENCE_S, RpcError, ServerProcess

GENERATED = Path(__file__).parents[2] / "rpc_schema" / "generated"
SCHEMA = json.loads((GENERATED / "schema.json").read_text("utf-8"))
METHODS: dict[str, dict[str, Any]] = json.loads((GENERATED / "methods.json").read_text("utf-8"))[
    "methods"
]
ERRORS: dict[str, dict[str, Any]] = json.loads((GENERATED / "errors.json").read_text("utf-8"))[
    "errors"
]
EVENTS: dict[str, dict[str, Any]] = json.loads((GENERATED / "events.json").read_text("utf-8"))[
    "events"
]
GENERAL_ERRORS = frozenset(
    {
        "invalidParams", "invalidRequest", "methodNotFound", "notInitialized", "requestCancelled",
        "overloaded", "shuttingDown", "messageTooLarge", "idempotencyConflict", "invalidCursor",
        "parseError",
    }
)  # fmt: skip
"""Kinds that any method may answer with (PROTOCOL 5); the others stand in the method's row."""


_seen_types: set[str] = set()
"""Event types of which one event was held against the whole of ``Event``, every variant of it."""


@functools.cache
def validator(name: str) -> Validator:
    """A validator for one entry of ``$defs``, and for `Envelope`: an event without its variants."""
    envelope = {k: v for k, v in SCHEMA["$defs"]["Event"].items() if k != "oneOf"}
    schema = {"$ref": f"#/$defs/{name}", "$defs": {**SCHEMA["$defs"], "Envelope": envelope}}
    return jsonschema.Draft202012Validator(schema)


def check(name: str, value: Any, where: str) -> None:
    """Fails when a value does not fit the published schema, or holds a text that is no UTF-8."""
    for fault in validator(name).iter_errors(value):
        path = "/".join(map(str, fault.absolute_path))
        raise AssertionError(f"{where}: {path or 'it'}: {fault.message[:500]}")
    json.dumps(value, ensure_ascii=False).encode()


def check_event(event: dict[str, Any]) -> None:
    """An event's envelope, and its data by its type; no type may be unpublished."""
    assert event["type"] in EVENTS, f"an event of the unpublished type {event['type']}"
    check("Envelope" if event["type"] in _seen_types else "Event", event, event["type"])
    _seen_types.add(event["type"])
    check(EVENTS[event["type"]]["data"], event["data"], f"data of {event['type']}")


def check_error(error: dict[str, Any], method: str | None) -> None:
    """An error's shape, its code for its kind, the kind's own data, and whether it is announced."""
    data = error["data"]
    spec = ERRORS[data["kind"]]
    assert error["code"] == spec["code"], error
    assert data["retryable"] is spec["retryable"], error
    assert isinstance(data["correlationId"], str) and data["correlationId"], error
    assert isinstance(error["message"], str) and error["message"], error
    assert "Traceback" not in json.dumps(error), error
    if data["kind"] in ("invalidParams", "alreadyResolved", "optionInvalid", "turnMismatch"):
        assert set(spec["data"]) <= set(data), f"{data['kind']} must carry {spec['data']}: {error}"
    if method in METHODS:
        announced = GENERAL_ERRORS | set(METHODS[method]["errors"])
        assert data["kind"] in announced, f"{method} does not announce {data['kind']}: {error}"


def events_of(message: dict[str, Any], subscription: str | None = None) -> list[dict[str, Any]]:
    """The events of a batch, none for another message or another subscription."""
    if message.get("method") != "event/batch":
        return []
    params = message["params"]
    return params["events"] if subscription in (None, params["subscriptionId"]) else []


class CheckedServer(ServerProcess):
    """As `ServerProcess`; `receive` fails on a frame that breaks the contract."""

    def __init__(self, folder: Path, **more: Any) -> None:
        self.asked: dict[int, str] = {}
        self.answers: dict[int, dict[str, Any]] = {}
        super().__init__(folder, **more)

    def request(self, method: str, **params: Any) -> int:
        self.asked[self._id + 1] = method
        return super().request(method, **params)

    def result(self, request_id: int) -> Any:
        """The answer to a request, whether it was read already or is still to come."""
        answer = self.answers.get(request_id)
        if answer is None:
            return super().result(request_id)
        if "error" in answer:
            raise RpcError(answer["error"])
        return answer["result"]

    def receive(self, timeout: float = PATIENCE_S) -> dict[str, Any]:
        message = super().receive(timeout)
        self.check(message)
        return message

    def find_event(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first subscribed event that is wanted, among those that were read, or as they come."""
        for message in self.seen:
            for event in events_of(message):
                if wanted(event):
                    return event
        return self.until_event(wanted)

    def check(self, message: dict[str, Any]) -> None:
        assert message["jsonrpc"] == "2.0"
        if "method" not in message:
            assert ("result" in message) != ("error" in message), message
            method = self.asked.get(message["id"])
            self.answers[message["id"]] = message
            if "error" in message:
                check_error(message["error"], method)
            elif method is not None:
                result = message["result"]
                if method == "event/list":
                    for event in result["data"]:
                        check_event(event)
                    result = {**result, "data": []}
                check(METHODS[method]["result"], result, f"the result of {method}")
            return
        method = message["method"]
        if method.startswith("$/"):
            return
        row = METHODS[method]
        assert row["direction"] == "serverToClient", method
        assert ("id" in message) == (row["kind"] == "request"), message
        params = message["params"]
        if method == "event/batch":
            for event in params["events"]:
                check_event(event)
            params = {**params, "events": []}
        check(row["params"], params, f"the params of {method}")
