"""Reads scenario files (see `scenario`). Whatever is wrong is said with its file, rule and field.

A scenario's path may come from a client, so no error quotes what the file holds beyond the names of
fields: a path to something private would show it.
"""

import re
import stat
from pathlib import Path
from typing import Any, Literal, cast, get_args

from attrs import evolve

from callboard.models.base import StopReason
from callboard.models.scenario import (
    TEMPLATE,
    Call,
    EndEarly,
    Fail,
    Hang,
    NumberTest,
    Pace,
    ReportUsage,
    Rule,
    Say,
    Scenario,
    ScenarioError,
    Step,
    StopWith,
    TextTest,
    ToolTest,
    Wait,
    When,
)
from callboard.models.scenario_fields import (
    Place,
    as_list,
    as_mapping,
    as_number,
    as_text,
    as_whole,
    optional,
)
from callboard_rpc.common import Failure, Json, Usage
from callboard_rpc.errors import ERRORS

DEMO = "demo"
"""The scenario of `make demo`, and the model of those who have none."""
BUILT_IN = frozenset({DEMO, "board", "team"})
"""The scenarios that come with the package, by name; ``board`` is that of `make demo-group`, ``team`` that of
`make demo-agents`."""

_MAX_BYTES = 4 * 1024 * 1024
_MAX_VALUES = 10_000
_MAX_DEPTH = 40
_NAMES = {"last_user", "last_tool", "open"}
_PACE = ("chunk", "chars_per_second", "delay_ms")


def built_in_scenario(name: str) -> Scenario:
    """One of `BUILT_IN`."""
    return load_scenario(Path(__file__).with_name("scenarios") / f"{name}.yaml", source=name)


def load_scenario(path: Path, *, source: str | None = None) -> Scenario:
    """The scenario in `path`, TOML by its suffix and YAML otherwise. Raises `ScenarioError`."""
    name = source or str(path)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ScenarioError(name, "", "is not a file")
        if status.st_size > _MAX_BYTES:
            raise ScenarioError(name, "", f"is larger than {_MAX_BYTES} bytes")
        text = path.read_text("utf-8")
    except OSError as error:
        raise ScenarioError(name, "", f"cannot be read ({error.strerror})") from None
    except ValueError:
        raise ScenarioError(name, "", "is not UTF-8 text") from None
    return parse_scenario(text, source=name, syntax="toml" if path.suffix == ".toml" else "yaml")


def parse_scenario(text: str, *, source: str, syntax: Literal["yaml", "toml"] = "yaml") -> Scenario:
    """The scenario in `text`; `source` is its name in errors. Raises `ScenarioError`."""
    place = Place(file=source)
    data = _toml(place, text) if syntax == "toml" else _yaml(place, text)
    top = as_mapping(place, data, ("description", "rules", "default", *_PACE))
    pace = _pace(place, top, Pace())
    rules = [
        _rule(place.at(f"rule {number}"), item, pace)
        for number, item in enumerate(as_list(place.at("rules"), top.get("rules", [])), start=1)
    ]
    if "default" in top:
        default = place.at("default")
        answer = _answer(default, top["default"], pace, groups=None)
        rules.append(Rule(name="default", answer=answer))
    if not rules:
        raise place.error("has neither rules nor a default")
    description = as_text(place.at("description"), top.get("description", ""))
    return Scenario(source=source, rules=tuple(rules), description=description)


def _yaml(place: Place, text: str) -> object:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return cast(object, yaml.load(text, Loader=loader))  # noqa: S506 - one of the safe loaders
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f"line {mark.line + 1}" if mark is not None else ""
        # PyYAML's `problem` names at most one character or key of the text; its snippet is left out.
        raise place.at(line).error("is not valid YAML here") from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise place.error("is not valid YAML") from None


def _toml(place: Place, text: str) -> object:
    import tomllib

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        at = re.search(r"\(at (line \d+), column \d+\)", str(error))
        raise place.at(at[1] if at else "").error("is not valid TOML here") from None


# --- rules and conditions ---------------------------------------------------------------------


def _rule(place: Place, value: object, pace: Pace) -> Rule:
    fields = as_mapping(place, value, ("name", "when", "answer", "times"))
    name = as_text(place.at("name"), fields.get("name", ""))
    if name:
        place = evolve(place, where=f"{place.where} ({name})")
    when = _when(place.at("when"), fields.get("when"))
    if "answer" not in fields:
        raise place.error("has no answer")
    return Rule(
        name=name or place.where,
        when=when,
        answer=_answer(place, fields["answer"], pace, groups=_groups(when)),
        times=optional(place, fields, "times", lambda at, v: as_whole(at, v, 1)),
    )


def _when(place: Place, value: object) -> When:
    if value is None:
        return When()
    names = ("last_user", "last_tool", "system", "turn", "step", "tools_include")
    fields = as_mapping(place, value, names)
    tools = fields.get("tools_include", [])
    tools = [tools] if isinstance(tools, str) else as_list(place.at("tools_include"), tools)
    return When(
        last_user=optional(place, fields, "last_user", _text_test),
        last_tool=optional(place, fields, "last_tool", _tool_test),
        system=optional(place, fields, "system", _text_test),
        turn=optional(place, fields, "turn", _number_test),
        step=optional(place, fields, "step", _number_test),
        tools_include=tuple(as_text(place.at("tools_include"), tool) for tool in tools),
    )


def _text_test(place: Place, value: object) -> TextTest:
    if isinstance(value, str):
        return TextTest(contains=value.casefold())
    return _patterns(place, as_mapping(place, value, ("contains", "regex")))


def _patterns(place: Place, fields: dict[str, object]) -> TextTest:
    contains = optional(place, fields, "contains", as_text)
    return TextTest(
        contains=contains.casefold() if contains is not None else None,
        regex=optional(place, fields, "regex", _regex),
    )


def _regex(place: Place, value: object) -> re.Pattern[str]:
    try:
        return re.compile(as_text(place, value))
    except re.error as error:
        raise place.error(f"is not a regular expression ({error.msg})") from None


def _tool_test(place: Place, value: object) -> ToolTest:
    if isinstance(value, str):
        return ToolTest(name=value)
    fields = as_mapping(place, value, ("name", "status", "contains", "regex"))
    status = fields.get("status")
    if status is not None and status not in ("ok", "error"):
        raise place.at("status").error("must be ok or error")
    return ToolTest(
        name=optional(place, fields, "name", as_text),
        status=status,
        text=_patterns(place, fields),
    )


def _number_test(place: Place, value: object) -> NumberTest:
    if not isinstance(value, dict):
        number = as_whole(place, value)
        return NumberTest(minimum=number, maximum=number)
    fields = as_mapping(place, cast(object, value), ("min", "max"))
    return NumberTest(
        minimum=optional(place, fields, "min", as_whole) or 0,
        maximum=optional(place, fields, "max", as_whole),
    )


def _groups(when: When) -> set[str]:
    """What ``{{match.X}}`` may name: the groups of all of a rule's expressions."""
    patterns = [
        test.regex
        for test in (when.last_user, when.system, when.last_tool.text if when.last_tool else None)
        if test is not None and test.regex is not None
    ]
    names = {name for pattern in patterns for name in pattern.groupindex}
    return names | {str(n) for pattern in patterns for n in range(pattern.groups + 1)}


# --- answers ----------------------------------------------------------------------------------


def _answer(
    place: Place, value: object, pace: Pace, *, groups: set[str] | None
) -> tuple[Step, ...]:
    steps = [value] if isinstance(value, str) else as_list(place.at("answer"), value)
    return tuple(
        _step(place.at(f"step {number}"), step, pace, groups or set())
        for number, step in enumerate(steps, start=1)
    )


def _step(place: Place, value: object, pace: Pace, groups: set[str]) -> Step:
    if isinstance(value, str):
        return _say(place, {"say": value}, "say", pace, groups)
    fields = as_mapping(place, value, (*_STEPS, *_PACE, "repeat"))
    verbs = [name for name in fields if name in _STEPS]
    if len(verbs) != 1:
        raise place.error(f"must be exactly one of {', '.join(_STEPS)}")
    verb = verbs[0]
    if verb in ("say", "think"):
        return _say(place, fields, verb, pace, groups)
    if len(fields) > 1:
        extra = ", ".join(name for name in fields if name != verb)
        raise place.error(f"{extra} can only stand beside say or think")
    at, inner = place.at(verb), fields[verb]
    match verb:
        case "call":
            return _call(at, inner, groups)
        case "usage":
            return _usage(at, inner)
        case "fail":
            return _fail(at, inner)
        case "wait_ms":
            return Wait(ms=as_number(at, inner))
        case "stop":
            if inner not in get_args(StopReason):
                raise at.error(f"must be one of {', '.join(get_args(StopReason))}")
            return StopWith(reason=cast(StopReason, inner))
        case _:
            if inner is not True:
                raise at.error("must be true, or be left out")
            return Hang() if verb == "hang" else EndEarly()


_STEPS = ("say", "think", "call", "usage", "fail", "wait_ms", "hang", "end_early", "stop")


def _say(place: Place, fields: dict[str, object], verb: str, pace: Pace, groups: set[str]) -> Say:
    at = place.at(verb)
    inner = fields[verb]
    if isinstance(inner, dict):
        nested = as_mapping(at, cast(object, inner), ("text", "repeat", *_PACE))
        fields = {**fields, **nested}
        inner = nested.get("text")
    text = as_text(at, inner)
    _check_templates(at, text, groups)
    if "repeat" in fields and "chunk" not in fields:
        pace = evolve(pace, chunk=0)
    return Say(
        text=text,
        kind="answer" if verb == "say" else "thought",
        pace=_pace(place, fields, pace),
        repeat=optional(place, fields, "repeat", lambda p, v: as_whole(p, v, 1)) or 1,
    )


def _pace(place: Place, fields: dict[str, object], outer: Pace) -> Pace:
    chunk = optional(place, fields, "chunk", lambda p, v: as_whole(p, v, 1))
    if chunk is not None:
        outer = evolve(outer, chunk=chunk)
    if "delay_ms" in fields and "chars_per_second" in fields:
        raise place.at("delay_ms").error("cannot stand beside chars_per_second; choose one")
    if "delay_ms" in fields:
        delay = as_number(place.at("delay_ms"), fields["delay_ms"])
        return evolve(outer, delay_ms=delay, chars_per_second=None)
    if "chars_per_second" in fields:
        speed = as_number(place.at("chars_per_second"), fields["chars_per_second"])
        return evolve(outer, chars_per_second=speed, delay_ms=None)
    return outer


def _call(place: Place, value: object, groups: set[str]) -> Call:
    fields = as_mapping(place, value, ("tool", "arguments", "raw_arguments", "id"))
    if "tool" not in fields:
        raise place.error("needs the name of a tool")
    if "arguments" in fields and "raw_arguments" in fields:
        raise place.error("takes arguments or raw_arguments, not both")
    arguments: Json | str
    if "raw_arguments" in fields:
        arguments = as_text(place.at("raw_arguments"), fields["raw_arguments"])
        _check_templates(place.at("raw_arguments"), arguments, groups)
    else:
        at = place.at("arguments")
        arguments = as_mapping(at, fields.get("arguments", {}), None)
        _check_json(at, arguments, groups)
    return Call(
        tool=as_text(place.at("tool"), fields["tool"]),
        arguments=arguments,
        call_id=optional(place, fields, "id", as_text),
    )


def _usage(place: Place, value: object) -> ReportUsage:
    counts = (
        "input_tokens",
        "output_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
        "reasoning_tokens",
        "context_tokens",
    )
    fields = as_mapping(place, value, (*counts, "cost", "currency"))
    known: dict[str, Any] = {
        name: as_whole(place.at(name), fields[name]) for name in counts if name in fields
    }
    cost = optional(place, fields, "cost", as_number)
    currency = optional(place, fields, "currency", as_text)
    if cost is not None and currency is None:
        currency = "USD"
    return ReportUsage(usage=Usage(requests=1, cost=cost, currency=currency, **known))


def _fail(place: Place, value: object) -> Fail:
    if isinstance(value, str):
        value = {"message": value}
    names = ("kind", "message", "retryable", "http_status", "retry_after_ms", "times")
    fields = as_mapping(place, value, names)
    kind = as_text(place.at("kind"), fields.get("kind", "modelError"))
    if kind not in ERRORS:
        raise place.at("kind").error(f"must be an error kind, such as {', '.join(_KINDS)}")
    retryable = fields.get("retryable", ERRORS[kind].retryable)
    if not isinstance(retryable, bool):
        raise place.at("retryable").error("must be true or false")
    failure = Failure(
        kind=kind,
        message=as_text(place.at("message"), fields.get("message", f"scripted {kind}")),
        retryable=retryable,
        provider="scripted",
        http_status=optional(place, fields, "http_status", as_whole),
        retry_after_ms=optional(place, fields, "retry_after_ms", as_whole),
    )
    times = optional(place, fields, "times", lambda at, v: as_whole(at, v, 1))
    return Fail(failure=failure, times=times)


_KINDS = ("modelError", "modelUnavailable", "authRequired", "contextWindowExceeded")


def _check_templates(place: Place, text: str, groups: set[str]) -> None:
    for found in TEMPLATE.finditer(text):
        name = found[1]
        if name in _NAMES or (name.startswith("match.") and name[6:] in groups):
            continue
        if name.startswith("env"):
            raise place.error("a scenario may not read the environment")
        if name.startswith("match."):
            raise place.error(f"{{{{{name[:60]}}}}} is no group of this rule's regex")
        raise place.error(
            f"{{{{{name[:60]}}}}} is not known; known are {{{{last_user}}}}, {{{{last_tool}}}}, "
            "{{match.1}} and {{open}} (two braces)"
        )


def _check_json(place: Place, arguments: Json, groups: set[str]) -> None:
    """Only what JSON can hold (YAML has dates and sets), known templates, and no YAML bomb."""
    rest: list[tuple[Place, object, int]] = [(place, arguments, 0)]
    for _ in range(_MAX_VALUES):
        if not rest:
            return
        at, value, depth = rest.pop()
        if depth > _MAX_DEPTH:
            raise place.error(f"is nested more than {_MAX_DEPTH} deep")
        match value:
            case str():
                _check_templates(at, value, groups)
            case dict():
                fields = as_mapping(at, cast(object, value), None)
                rest += [(at.at(name[:60]), item, depth + 1) for name, item in fields.items()]
            case list():
                rest += [(at, item, depth + 1) for item in cast("list[object]", value)]
            case None | bool() | int() | float():
                continue
            case _:
                raise at.error("is not a JSON value; put it in quotes")
    raise place.error(f"holds more than {_MAX_VALUES} values")
