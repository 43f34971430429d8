"""Checks ACP version 1 frames against the published JSON schema.

    checker = Checker("schema.json")
    checker.check(frame, "agent->client")      # raises AcpInvalid
    checker.open_requests("client->agent")     # ids that were never answered

One `Checker` watches one connection. It remembers which method each request id asked for, so that a
response is judged by that method's result. Feed it the frames of both directions in the order of the wire.

It is stricter than the schema, which is made for readers: the schema closes no object and lets a malformed
known variant pass. What it refuses beyond the schema, unless `strict=False`:
  * a field that the schema does not name (ACP reserves them all; `_meta` is the place for one's own),
  * a value of an open union (notice severity, category, elicitation mode, ...) that is neither known nor starts with `_`,
  * a null where an object is asked for as a result, a frame with both or none of result and error,
  * what the client did not declare in its `initialize` (fs, terminal, elicitation, notices, compaction, boolean
    options, terminal authentication); a connection whose `initialize` was not fed counts as declaring nothing,
  * a response to an id that is not open, a request id in use twice, a null or fractional id.
Extension methods (`_name`) pass without a look at their params.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema

AGENT_TO_CLIENT, CLIENT_TO_AGENT = "agent->client", "client->agent"
DIRECTIONS = (AGENT_TO_CLIENT, CLIENT_TO_AGENT)
_SIDE = {
    AGENT_TO_CLIENT: "client",
    CLIENT_TO_AGENT: "agent",
}  # who serves a method that travels this way
_OTHER = {AGENT_TO_CLIENT: CLIENT_TO_AGENT, CLIENT_TO_AGENT: AGENT_TO_CLIENT}
_IN_PLACE = ("allOf", "anyOf", "oneOf", "then", "else", "if", "not")


class AcpInvalid(AssertionError):
    """A frame that the protocol does not allow. `problems` has one line each."""

    def __init__(self, frame: Any, direction: str, problems: list[str]) -> None:
        self.frame, self.direction, self.problems = frame, direction, problems
        text = json.dumps(frame, ensure_ascii=False)
        super().__init__(f"{direction}: {'; '.join(problems)}\n  in {text[:2000]}")


class Checker:
    """Judges the frames of one connection."""

    def __init__(self, schema_path: str | Path, *, strict: bool = True) -> None:
        schema = json.loads(Path(schema_path).read_text("utf-8"))
        self.requests: dict[tuple[str, str], str] = {}
        self.results: dict[tuple[str, str], str] = {}
        self.notifications: dict[tuple[str, str], str] = {}
        self._collect(schema["$defs"])
        self._strict = strict
        self._defs = _strict_defs(schema["$defs"]) if strict else schema["$defs"]
        self._validators: dict[str, jsonschema.Draft202012Validator] = {}
        self._open: dict[str, dict[str, str]] = {d: {} for d in DIRECTIONS}
        self._declared: dict[str, Any] = {}

    def _collect(self, defs: dict[str, Any]) -> None:
        """Files every annotated definition under (side, method)."""
        for name, body in defs.items():
            if "x-method" not in body:
                continue
            key = (body["x-side"], body["x-method"])
            for ending, table in (
                ("Request", self.requests),
                ("Response", self.results),
                ("Notification", self.notifications),
            ):
                if name.endswith(ending):
                    table[key] = name
        # Terminal methods end in Request too; nothing else may be left over.
        assert self.requests.keys() == self.results.keys(), (
            "a request without a result, or the reverse"
        )

    # -- the table ------------------------------------------------------------------------------

    def methods(self, direction: str) -> dict[str, str]:
        """The methods that may travel this way: name to "request" or "notification"."""
        side = _SIDE[direction]
        table = {m: "request" for s, m in self.requests if s == side}
        table |= {m: "notification" for s, m in self.notifications if s in (side, "protocol")}
        return table

    def open_requests(self, direction: str) -> dict[str, str]:
        """Requests sent this way that have no answer yet: id (as JSON) to method."""
        return dict(self._open[direction])

    def reset(self) -> None:
        """Forgets the open requests: another connection begins."""
        self._open = {direction: {} for direction in DIRECTIONS}
        self._declared = {}

    # -- the check ------------------------------------------------------------------------------

    def check(self, frame: Any, direction: str, *, method: str | None = None) -> str:
        """Returns what the frame is ("session/update", "session/new result", "session/new error"), or raises
        AcpInvalid. `method` names what a response answers when the request itself was not fed."""
        if direction not in DIRECTIONS:
            raise ValueError(f"direction is one of {DIRECTIONS}")
        kind, problems = self._judge(frame, direction, method)
        if problems:
            raise AcpInvalid(frame, direction, problems)
        return kind

    def check_line(self, line: bytes | str, direction: str) -> str:
        """The same for one line of the wire: one JSON object, UTF-8, no duplicate keys, ended by a newline."""
        raw = line.encode() if isinstance(line, str) else line
        if not raw.endswith(b"\n"):
            raise AcpInvalid(
                raw.decode("utf-8", "replace"), direction, ["the line has no newline at its end"]
            )
        try:
            frame = json.loads(
                raw.decode("utf-8"), object_pairs_hook=_no_duplicates, parse_constant=_no_constant
            )
        except ValueError as error:
            raise AcpInvalid(
                raw.decode("utf-8", "replace"), direction, [f"not JSON: {error}"]
            ) from None
        return self.check(frame, direction)

    def _judge(self, frame: Any, direction: str, answered: str | None) -> tuple[str, list[str]]:
        if not isinstance(frame, dict):
            return "", ["a frame is one JSON object (ACP has no batches)"]
        problems = [] if frame.get("jsonrpc") == "2.0" else ['"jsonrpc" is not "2.0"']
        if "method" in frame:
            kind, more = self._judge_call(frame, direction)
        else:
            kind, more = self._judge_response(frame, direction, answered)
        return kind, problems + more

    def _judge_call(self, frame: dict[str, Any], direction: str) -> tuple[str, list[str]]:
        method, params = frame["method"], frame.get("params")
        problems = _unknown(frame, {"jsonrpc", "id", "method", "params"})
        if not isinstance(method, str):
            return "", [*problems, "method is not a string"]
        is_request = "id" in frame
        if is_request:
            problems += self._take_id(frame["id"], method, direction)
        if params is not None and not isinstance(params, dict):
            problems.append("params is not an object")
        if method.startswith("_"):
            return method, problems
        side = _SIDE[direction]
        table = self.requests if is_request else self.notifications
        name = table.get((side, method)) or (
            None if is_request else table.get(("protocol", method))
        )
        if name is None:
            known = self.methods(direction).get(method) or self.methods(_OTHER[direction]).get(
                method
            )
            what = "request" if is_request else "notification"
            why = f", though there is a {known} of that name" if known else ""
            return method, [*problems, f"no {what} {method!r} in this direction{why}"]
        # `params` may be left out only where an empty object would do.
        problems += self._against(name, {} if params is None else params, "params")
        if not problems and params and method == "initialize":
            self._declared = params.get("clientCapabilities") or {}
        if not problems and self._strict and direction == AGENT_TO_CLIENT:
            problems += self._undeclared(_needs(method, params or {}))
        return method, problems

    def _undeclared(self, needs: list[tuple[str, ...]]) -> list[str]:
        """The capabilities that a frame needs and that the client did not declare."""
        missing = []
        for path in needs:
            value: Any = self._declared
            for name in path:
                value = value.get(name) if isinstance(value, dict) else None
            if value is None or value is False:
                missing.append(f"the client did not declare {'.'.join(path)}")
        return missing

    def _take_id(self, request_id: Any, method: str, direction: str) -> list[str]:
        if isinstance(request_id, bool) or not isinstance(request_id, (str, int)):
            return [f"request id {request_id!r} is neither a string nor an integer"]
        key = json.dumps(request_id)
        if key in self._open[direction]:
            return [f"request id {key} is still open for {self._open[direction][key]}"]
        self._open[direction][key] = method
        return []

    def _judge_response(
        self, frame: dict[str, Any], direction: str, answered: str | None
    ) -> tuple[str, list[str]]:
        problems = _unknown(frame, {"jsonrpc", "id", "result", "error"})
        if "id" not in frame:
            return "", [*problems, "neither a method nor an id"]
        if ("result" in frame) == ("error" in frame):
            problems.append("a response has either result or error")
        key = json.dumps(frame["id"])
        method = self._open[_OTHER[direction]].pop(key, None) or answered
        if "error" in frame:
            problems += self._against("Error", frame["error"], "error")
            if method is None and frame["id"] is not None:  # null: the request could not be read
                problems.append(f"no request with id {key} is open")
            return f"{method} error", problems
        if method is None:
            return "", [*problems, f"no request with id {key} is open"]
        if not method.startswith("_"):
            name = self.results.get((_SIDE[_OTHER[direction]], method))
            if name is None:
                problems.append(
                    f"{method!r} is not a method that has a result: it should have been refused"
                )
            else:
                problems += self._against(name, frame.get("result"), "result")
                if not problems and self._strict and direction == AGENT_TO_CLIENT:
                    problems += self._undeclared(_result_needs(frame["result"]))
        return f"{method} result", problems

    def _against(self, name: str, value: Any, where: str) -> list[str]:
        validator = self._validators.get(name)
        if validator is None:
            top = {"$ref": f"#/$defs/{name}", "$defs": self._defs}
            validator = self._validators[name] = jsonschema.Draft202012Validator(top)
        errors = list(validator.iter_errors(value))
        # What lies in a part that failed counts as unevaluated too; the failure itself is the better news.
        told = [error for error in errors if error.validator != "unevaluatedProperties"] or errors
        return [_tell(error, where) for error in told]

    def validate(self, name: str, value: Any) -> None:
        """Checks a value against one definition of the schema (`"ToolCall"`, `"Plan"`, ...)."""
        problems = self._against(name, value, name)
        if problems:
            raise AcpInvalid(value, name, problems)


_BOOLEAN = ("session", "configOptions", "boolean")


def _needs(method: str, params: dict[str, Any]) -> list[tuple[str, ...]]:
    """What a call of the agent's needs of the client's capabilities."""
    if method.startswith("terminal/"):
        return [("terminal",)]
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
            update = params["update"]
            kind = update["sessionUpdate"]
            needs = _tool_needs(update) + _option_needs(update)
            if kind == "notice":
                needs.append(("session", "notices"))
            if kind.startswith("compaction_"):
                needs.append(("session", "compaction"))
            return needs
        case _:
            return []


def _tool_needs(call: dict[str, Any]) -> list[tuple[str, ...]]:
    content = call.get("content")
    return (
        [("terminal",)]
        if isinstance(content, list) and any(c["type"] == "terminal" for c in content)
        else []
    )


def _option_needs(holder: dict[str, Any]) -> list[tuple[str, ...]]:
    return (
        [_BOOLEAN] if any(o["type"] == "boolean" for o in holder.get("configOptions") or []) else []
    )


def _result_needs(result: dict[str, Any]) -> list[tuple[str, ...]]:
    terminal = any(m.get("type") == "terminal" for m in result.get("authMethods") or [])
    return _option_needs(result) + ([("auth", "terminal")] if terminal else [])


def _unknown(frame: dict[str, Any], known: set[str]) -> list[str]:
    return [f"unknown member {name!r}" for name in frame.keys() - known]


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key appears twice in one object")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _tell(error: jsonschema.ValidationError, where: str) -> str:
    """One line on an error: the deepest one below a union is the one that says what is wrong."""
    while error.context:
        best = jsonschema.exceptions.best_match(error.context)
        if best is None:
            break
        error = best
    return f"{where}{error.json_path[1:]}: {error.message[:400]}"


# -- the strict copy of the schema ------------------------------------------------------------------


def _strict_defs(defs: dict[str, Any]) -> dict[str, Any]:
    """Two copies of each definition: NAME closed, `NAME~` open for use where another schema adds to it."""
    out: dict[str, Any] = {}
    for name, body in defs.items():
        opened = _walk(copy.deepcopy(body))
        out[name + "~"] = opened
        out[name] = {**opened, "unevaluatedProperties": False} if _is_object(body, defs) else opened
    return out


def _walk(schema: Any, *, in_place: bool = True, sole: bool = False) -> Any:
    """Points references to the open copy where they share an object with their surroundings."""
    if isinstance(schema, list):
        return [_walk(item, in_place=in_place, sole=sole) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return {**schema, "$ref": schema["$ref"] + ("~" if in_place else "")}
    schema = _enum(_tagged(schema))
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _IN_PLACE:
            out[key] = _walk(value, in_place=in_place)
        elif key == "properties":
            out[key] = {name: _walk(body, in_place=False) for name, body in value.items()}
        elif key in ("items", "additionalProperties"):
            out[key] = _walk(value, in_place=False)
        else:
            out[key] = value
    return _extension_only(out)


def _tagged(schema: dict[str, Any]) -> dict[str, Any]:
    """Turns a union with a discriminator into one if-then per tag, so that an error names the field at fault."""
    tag = schema.get("discriminator", {}).get("propertyName")
    if tag is None:
        return schema
    variants = schema["oneOf" if "oneOf" in schema else "anyOf"]
    consts = [variant["properties"][tag]["const"] for variant in variants]
    rest = {k: v for k, v in schema.items() if k not in ("oneOf", "anyOf", "discriminator")}
    known = {"type": "object", "required": [tag], "properties": {tag: {"enum": consts}}}
    chain = [
        {"if": {"properties": {tag: {"const": const}}, "required": [tag]}, "then": variant}
        for const, variant in zip(consts, variants, strict=True)
    ]
    return {**rest, "allOf": [*rest.get("allOf", []), known, *chain]}


def _enum(schema: dict[str, Any]) -> dict[str, Any]:
    """Turns a union of constants into an enum, for the sake of the message."""
    for key in ("oneOf", "anyOf"):
        parts = schema.get(key)
        if parts and all("const" in part for part in parts):
            rest = {k: v for k, v in schema.items() if k != key}
            return {**rest, "enum": [part["const"] for part in parts]}
    return schema


def _extension_only(schema: dict[str, Any]) -> dict[str, Any]:
    """An open "other" variant takes only what starts with an underscore."""
    if schema.get("title") != "other":
        return schema
    if schema.get("type") == "string":
        return {**schema, "pattern": "^_"}
    if schema.get("type") == "object":
        return {
            **schema,
            "properties": {k: {**v, "pattern": "^_"} for k, v in schema["properties"].items()},
        }
    return schema


def _is_object(body: dict[str, Any], defs: dict[str, Any]) -> bool:
    if body.get("type") == "object" or "properties" in body:
        return True
    return any(
        _is_object(defs[part["$ref"].rsplit("/", 1)[1]] if "$ref" in part else part, defs)
        for key in ("allOf", "anyOf", "oneOf")
        for part in body.get(key, [])
    )
