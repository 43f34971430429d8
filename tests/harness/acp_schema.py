"""Frames of the Agent Client Protocol, held against its published schema, in both directions.

Beyond the schema it refuses: fields that it does not name, own values without an underscore, null for a
result, what the client did not declare, answers to what is not open, an id in use twice. Methods with an
underscore pass as they are. Where the schema is not installed, our own classes stand in for it.
"""

import functools
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias

import jsonschema

from callboard.acp.contract import convert
from callboard.acp.contract.methods import CANCEL_REQUEST, METHODS

from .acp_closing import closed

Side: TypeAlias = Literal["agent", "client"]
Named: TypeAlias = dict[tuple[Side, str], str]
"""Shapes by the side that serves the method, and the method."""

SCHEMA: Final = (
    Path(__file__).parents[2]
    / ".tools/acp/node_modules/@agentclientprotocol/sdk/schema/v1/schema.json"
)
_TERMINAL: Final = ("terminal",)
_DISPLAYS: Final = ("_meta", "terminal_output")
_SHOWN: Final = ("terminal or _meta", "terminal_output")
"""What a call needs that shows a terminal: a terminal of the client's, or one that only displays."""
_OTHER: Final[dict[Side, Side]] = {"agent": "client", "client": "agent"}


class AcpInvalid(AssertionError):
    """A frame that the protocol does not allow. `problems` has a line for each fault."""

    def __init__(self, frame: Any, sender: Side, problems: list[str]) -> None:
        self.problems = problems
        text = json.dumps(frame, ensure_ascii=False)
        super().__init__(f"of the {sender}: {'; '.join(problems)}\n  in {text[:2000]}")


class Shapes(Protocol):
    """What methods there are, by the name of their shapes, and what is wrong with a value of one."""

    requests: Named
    results: Named
    notifications: Named

    def faults(self, name: str, value: Any, where: str) -> list[str]: ...


class PublishedShapes:
    """The published schema, closed."""

    def __init__(self, path: Path = SCHEMA) -> None:
        defs = json.loads(path.read_text("utf-8"))["$defs"]
        self.requests: Named = {}
        self.results: Named = {}
        self.notifications: Named = {}
        for ending, named in (
            ("Request", self.requests),
            ("Response", self.results),
            ("Notification", self.notifications),
        ):
            for name, body in defs.items():
                if "x-method" in body and name.endswith(ending):
                    sides = (body["x-side"],) if body["x-side"] in _OTHER else tuple(_OTHER)
                    named.update({(side, body["x-method"]): name for side in sides})
        assert self.requests.keys() == self.results.keys()
        self._defs = closed(defs)
        self._validators: dict[str, jsonschema.Draft202012Validator] = {}

    def faults(self, name: str, value: Any, where: str) -> list[str]:
        validator = self._validators.get(name)
        if validator is None:
            top = {"$ref": f"#/$defs/{name}", "$defs": self._defs}
            validator = self._validators[name] = jsonschema.Draft202012Validator(top)
        errors = list(validator.iter_errors(value))
        # What lies in a part that failed counts as not evaluated, too; the failure itself says more.
        telling = [each for each in errors if each.validator != "unevaluatedProperties"]
        return [_told(each, where) for each in telling or errors]


class OwnShapes:
    """Our own classes, for where the schema is not installed. They overlook fields that nobody knows."""

    def __init__(self) -> None:
        self.requests: Named = {}
        self.results: Named = {}
        self.notifications: Named = {(side, CANCEL_REQUEST): CANCEL_REQUEST for side in _OTHER}
        self._classes: dict[str, Any] = {}
        for method, entry in METHODS.items():
            named = self.notifications if entry.result is None else self.requests
            named[entry.side, method] = f"{method} params"
            self._classes[f"{method} params"] = entry.params
            if entry.result is not None:
                self.results[entry.side, method] = f"{method} result"
                self._classes[f"{method} result"] = entry.result

    def faults(self, name: str, value: Any, where: str) -> list[str]:
        if name == "Error":
            fits = isinstance(value, dict) and type(value.get("code")) is int
            return [] if fits and isinstance(value.get("message"), str) else [f"{where}: no error"]
        if name not in self._classes:
            return []
        if not isinstance(value, dict):
            return [f"{where}: not an object"]
        try:
            convert.structure(value, self._classes[name])
        except convert.StructureError as fault:
            return [f"{where}: {fault}"]
        return []


@functools.cache
def shapes() -> Shapes:
    """The published ones where they are installed."""
    return PublishedShapes() if SCHEMA.exists() else OwnShapes()


class Checker:
    """Judges the frames of one connection, those of both sides in the order of the wire.

    It remembers which method each request asked for, so that an answer is judged by that method's result.
    `beyond`: methods of the agent's that are none of the protocol; their results pass.
    """

    def __init__(self, of: Shapes | None = None, *, beyond: Collection[str] = ()) -> None:
        self._shapes = of or shapes()
        self._beyond = beyond
        self._open: dict[Side, dict[str, str]] = {"agent": {}, "client": {}}
        self._declared: dict[str, Any] = {}

    def open_requests(self, sender: Side) -> dict[str, str]:
        """What a side asked and got no answer to: ids, as JSON, and methods."""
        return dict(self._open[sender])

    def remember(self, frame: Any, sender: Side) -> None:
        """Takes note of what may be answered in a frame that is none."""
        if isinstance(frame, dict) and "result" not in frame and "error" not in frame:
            self._open[sender].setdefault(json.dumps(frame.get("id")), str(frame.get("method")))

    def check_line(self, line: bytes, sender: Side) -> dict[str, Any]:
        """One line of the wire; the frame in it. Raises `AcpInvalid`."""
        told = line.decode("utf-8", "replace")
        if not line.endswith(b"\n"):
            raise AcpInvalid(told, sender, ["the line has no newline at its end"])
        try:
            frame = json.loads(line.decode(), object_pairs_hook=_once, parse_constant=_refused)
        except ValueError as fault:
            raise AcpInvalid(told, sender, [f"not JSON: {fault}"]) from None
        self.check(frame, sender)
        return frame

    def check(self, frame: Any, sender: Side) -> str:
        """What a frame is: a method, or "METHOD result", or "METHOD error". Raises `AcpInvalid`; the id of a
        request that is wrong is remembered all the same."""
        if not isinstance(frame, dict):
            raise AcpInvalid(frame, sender, ["a frame is one object; there are no batches"])
        problems = [] if frame.get("jsonrpc") == "2.0" else ['"jsonrpc" is not "2.0"']
        judge = self._call if "method" in frame else self._answer
        what, more = judge(frame, sender)
        if problems or more:
            raise AcpInvalid(frame, sender, problems + more)
        return what

    def _call(self, frame: dict[str, Any], sender: Side) -> tuple[str, list[str]]:
        method, params = frame["method"], frame.get("params", {})
        problems = _unknown(frame, {"jsonrpc", "id", "method", "params"})
        if not isinstance(method, str):
            return "", [*problems, "the method is no string"]
        if "id" in frame:
            problems += self._take_id(frame["id"], method, sender)
        if not isinstance(params, dict):
            return method, [*problems, "params are no object"]
        if method.startswith("_"):
            return method, problems
        named = self._shapes.requests if "id" in frame else self._shapes.notifications
        name = named.get((_OTHER[sender], method))
        if name is None:
            kind = "request" if "id" in frame else "notification"
            return method, [*problems, f"no {kind} {method!r} of the {sender}"]
        problems += self._shapes.faults(name, params, "params")
        if not problems and method == "initialize":
            self._declared = params.get("clientCapabilities") or {}
        if not problems and sender == "agent":
            problems += self._undeclared(_needs(method, params))
        return method, problems

    def _take_id(self, request_id: Any, method: str, sender: Side) -> list[str]:
        if type(request_id) not in (str, int):
            return [f"the id {request_id!r} is neither a string nor an integer"]
        key = json.dumps(request_id)
        if key in self._open[sender]:
            return [f"the id {key} is still open for {self._open[sender][key]}"]
        self._open[sender][key] = method
        return []

    def _answer(self, frame: dict[str, Any], sender: Side) -> tuple[str, list[str]]:
        problems = _unknown(frame, {"jsonrpc", "id", "result", "error"})
        if "id" not in frame:
            return "", [*problems, "neither a method nor an id"]
        if ("result" in frame) == ("error" in frame):
            problems.append("an answer has either a result or an error")
        key = json.dumps(frame["id"])
        method = self._open[_OTHER[sender]].pop(key, None)
        if "error" in frame:
            problems += self._shapes.faults("Error", frame["error"], "error")
            if method is None and frame["id"] is not None:  # null: of what could not be read
                problems.append(f"no request with the id {key} is open")
            return f"{method} error", problems
        if method is None:
            return "", [*problems, f"no request with the id {key} is open"]
        if not method.startswith("_") and method not in self._beyond:
            problems += self._result(method, frame.get("result"), sender)
        return f"{method} result", problems

    def _result(self, method: str, result: Any, sender: Side) -> list[str]:
        name = self._shapes.results.get((sender, method))
        if name is None:
            return [f"{method!r} has no result; it had to be refused"]
        problems = self._shapes.faults(name, result, "result")
        if problems or sender == "client":
            return problems
        return self._undeclared(_result_needs(result))

    def _undeclared(self, needs: list[tuple[str, ...]]) -> list[str]:
        """Capabilities that a frame needs and that the client did not declare."""
        lacking: list[str] = []
        for path in needs:
            ways = (_TERMINAL, _DISPLAYS) if path == _SHOWN else (path,)
            if not any(map(self._declares, ways)):
                lacking.append(f"the client did not declare {'.'.join(path)}")
        return lacking

    def _declares(self, path: tuple[str, ...]) -> bool:
        value: Any = self._declared
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value is not None and value is not False


def _needs(method: str, params: dict[str, Any]) -> list[tuple[str, ...]]:
    """What a call of the agent's needs of the client's capabilities."""
    match method:
        case "fs/read_text_file":
            return [("fs", "readTextFile")]
        case "fs/write_text_file":
            return [("fs", "writeTextFile")]
        case "elicitation/create" if params.get("mode") in ("form", "url"):
            return [("elicitation", params["mode"])]
        case "elicitation/complete":
            return [("elicitation", "url")]
        case "session/request_permission":
            return _tool_needs(params["toolCall"])
        case "session/update":
            return _update_needs(params["update"])
        case _:
            return [_TERMINAL] if method.startswith("terminal/") else []


def _update_needs(update: dict[str, Any]) -> list[tuple[str, ...]]:
    needs = _tool_needs(update) + _option_needs(update)
    if update["sessionUpdate"] == "notice":
        needs.append(("session", "notices"))
    if update["sessionUpdate"].startswith("compaction_"):
        needs.append(("session", "compaction"))
    return needs


def _tool_needs(call: dict[str, Any]) -> list[tuple[str, ...]]:
    content = call.get("content")
    shown = isinstance(content, list) and any(each["type"] == "terminal" for each in content)
    return [_SHOWN] if shown else []


def _option_needs(holder: dict[str, Any]) -> list[tuple[str, ...]]:
    options = holder.get("configOptions") or []
    boolean = any(option["type"] == "boolean" for option in options)
    return [("session", "configOptions", "boolean")] if boolean else []


def _result_needs(result: dict[str, Any]) -> list[tuple[str, ...]]:
    methods = result.get("authMethods") or []
    terminal = any(method.get("type") == "terminal" for method in methods)
    return _option_needs(result) + ([("auth", "terminal")] if terminal else [])


def _unknown(frame: dict[str, Any], known: set[str]) -> list[str]:
    return [f"unknown member {name!r}" for name in sorted(frame.keys() - known)]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _told(error: jsonschema.ValidationError, where: str) -> str:
    """One line. Below a union it is the deepest fault that says what is wrong."""
    while error.context:
        best = jsonschema.exceptions.best_match(error.context)
        if best is None:
            break
        error = best
    return f"{where}{error.json_path[1:]}: {error.message[:400]}"
