"""A tool's arguments: from an attrs class to the JSON Schema that a model sees, and back, strictly.

A field's description and further JSON Schema keywords come from its metadata::

    path: str = field(metadata={"description": "Where to read.", "maxLength": 4096})

What the schema allows `structure_arguments` accepts; it also takes ``null`` for an optional field.
"""

import functools
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin

import attrs
import orjson

from callboard_rpc.common import Json

from .base import ToolFailure
from .display import one_line

T = TypeVar("T")

_NAMES: dict[Any, tuple[str, str]] = {
    str: ("string", "a string"),
    int: ("integer", "an integer"),
    float: ("number", "a number"),
    bool: ("boolean", "true or false"),
}
_KEYWORDS = ("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems")
_SHOWN_ERRORS = 20


def describe(text: str, **keywords: int) -> dict[str, Any]:
    """Metadata of a field: its description, and limits such as ``minimum=1``."""
    unknown = keywords.keys() - set(_KEYWORDS)
    if unknown:
        raise TypeError(f"not a keyword that is enforced: {', '.join(sorted(unknown))}")
    return {"description": text, **keywords}


# --- to a model -------------------------------------------------------------------------------


def json_schema(cls: type[Any]) -> Json:
    """The JSON Schema (2020-12) of the attrs class `cls`, nested classes written in place.

    Raises `TypeError` for a type that has no rule here.
    """
    fields = attrs.fields(attrs.resolve_types(cls))
    properties: dict[str, Json] = {}
    required: list[str] = []
    for attribute in fields:
        schema = {**_type_schema(attribute.type), **_stated(attribute)}
        if attribute.default is attrs.NOTHING:
            required.append(attribute.name)
        elif isinstance(attribute.default, str | int | float | bool):
            schema["default"] = attribute.default
        properties[attribute.name] = schema
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _stated(attribute: "attrs.Attribute[Any]") -> Json:
    wanted = ("description", *_KEYWORDS)
    return {key: attribute.metadata[key] for key in wanted if key in attribute.metadata}


def _type_schema(kind: Any) -> Json:
    kind = _without_none(kind)
    if kind in _NAMES:
        return {"type": _NAMES[kind][0]}
    if kind is Any:
        return {}
    if attrs.has(kind):
        return json_schema(kind)
    origin, args = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"type": "string", "enum": list(args)}
    if origin is tuple and len(args) == 2 and args[1] is Ellipsis:
        return {"type": "array", "items": _type_schema(args[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _type_schema(args[1])}
    raise TypeError(f"no JSON Schema for {kind}")


def _without_none(kind: Any) -> Any:
    if get_origin(kind) in (Union, types.UnionType):
        members = [member for member in get_args(kind) if member is not type(None)]
        if len(members) != 1:
            raise TypeError(f"no rule to tell the members of {kind} apart")
        return members[0]
    return kind


# --- from a model -----------------------------------------------------------------------------


def structure_arguments(cls: type[T], raw: str | Mapping[str, Any]) -> T:
    """The arguments that a model wrote, as a `cls`.

    Raises `ToolFailure` with a line for each fault: its path, what is there, and what is expected.
    Text that no file or command can hold (a NUL, half of a surrogate pair) is a fault too.
    """
    value = _parsed(raw) if isinstance(raw, str) else dict(raw)
    faults: list[str] = []
    made = _structure(cls, value, "", faults)
    if faults:
        lines = faults[:_SHOWN_ERRORS]
        if len(faults) > _SHOWN_ERRORS:
            lines.append(f"(and {len(faults) - _SHOWN_ERRORS} more)")
        raise ToolFailure("The arguments are not valid; nothing was done.\n" + "\n".join(lines))
    return cast(T, made)


def _parsed(raw: str) -> Any:
    if not raw.strip():
        return {}
    try:
        return orjson.loads(raw)
    except (ValueError, RecursionError) as fault:
        reason = getattr(fault, "msg", None) or "it cannot be encoded as UTF-8"
        place = f" (line {fault.lineno}, column {fault.colno})" if _placed(fault) else ""
        raise ToolFailure(
            f"The arguments are not valid JSON: {reason}{place}. They must be one JSON object; "
            "nothing was done."
        ) from None


def _placed(fault: BaseException) -> "typing.TypeGuard[orjson.JSONDecodeError]":
    return isinstance(fault, orjson.JSONDecodeError)


@functools.cache
def _fields(cls: type[Any]) -> dict[str, "attrs.Attribute[Any]"]:
    return {attribute.name: attribute for attribute in attrs.fields(attrs.resolve_types(cls))}


def _structure(kind: Any, value: Any, path: str, faults: list[str]) -> Any:
    if attrs.has(kind):
        return _structure_object(kind, value, path, faults)
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return None if value is None else _structure(_without_none(kind), value, path, faults)
    if origin is Literal:
        if not isinstance(value, str) or value not in args:
            return _fault(faults, path, f"must be one of {', '.join(args)}, is {_shown(value)}")
        return value
    if origin is tuple:
        if not isinstance(value, list):
            return _fault(faults, path, f"must be an array, is {_shown(value)}")
        items = cast("list[Any]", value)
        return tuple(_structure(args[0], x, f"{path}[{n}]", faults) for n, x in enumerate(items))
    if origin is dict:
        if not isinstance(value, dict):
            return _fault(faults, path, f"must be an object, is {_shown(value)}")
        entries = cast("dict[str, Any]", value)
        return {k: _structure(args[1], v, _under(path, k), faults) for k, v in entries.items()}
    if kind is Any:
        return value
    return _structure_plain(kind, value, path, faults)


def _structure_plain(kind: Any, value: Any, path: str, faults: list[str]) -> Any:
    if kind is int and type(value) is float and value.is_integer() and abs(value) < 2**53:
        return int(value)  # JSON Schema counts 3.0 among the integers
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        return _fault(faults, path, f"must be {_NAMES[kind][1]}, is {_shown(value)}")
    if kind is str:
        text = cast(str, value)
        if "\x00" in text:
            return _fault(faults, path, "holds a NUL character, which text cannot have")
        if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
            return _fault(faults, path, "holds half of a surrogate pair, which is no character")
    return value


def _structure_object(cls: type[Any], value: Any, path: str, faults: list[str]) -> Any:
    if not isinstance(value, dict):
        return _fault(faults, path, f"must be an object, is {_shown(value)}")
    given = cast("dict[str, Any]", value)
    fields = _fields(cls)
    before = len(faults)
    made: dict[str, Any] = {}
    for name in given.keys() - fields.keys():
        _fault(
            faults, _under(path, str(name)), f"is unknown; there are {', '.join(fields) or 'none'}"
        )
    for name, attribute in fields.items():
        where = _under(path, name)
        if name not in given:
            if attribute.default is attrs.NOTHING:
                _fault(faults, where, f"is required: {_expected(attribute)}")
            continue
        made[name] = _structure(attribute.type, given[name], where, faults)
        _check_limits(attribute, made[name], where, faults)
    return cls(**made) if len(faults) == before else None


def _expected(attribute: "attrs.Attribute[Any]") -> str:
    kind = _without_none(attribute.type)
    name = _NAMES[kind][1] if kind in _NAMES else _article(_type_schema(kind).get("type", "value"))
    described = attribute.metadata.get("description")
    return f"{name} ({described.rstrip('.')})" if described else name


def _article(name: str) -> str:
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def _check_limits(
    attribute: "attrs.Attribute[Any]", value: Any, path: str, faults: list[str]
) -> None:
    for keyword in _KEYWORDS:
        limit = attribute.metadata.get(keyword)
        if limit is None or value is None:
            continue
        size = value if keyword.endswith("imum") else len(value)
        unit = {"h": " characters", "s": " entries", "m": ""}[keyword[-1]]
        if keyword.startswith("min") and size < limit:
            _fault(faults, path, f"must be at least {limit}{unit}, is {size}")
        if keyword.startswith("max") and size > limit:
            _fault(faults, path, f"must be at most {limit}{unit}, is {size}")


def _under(path: str, name: str) -> str:
    shown = one_line(name, 60)
    return f"{path}.{shown}" if path else shown


def _fault(faults: list[str], path: str, message: str) -> None:
    faults.append(f"{path or 'arguments'}: {message}")


def _shown(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return f'the string "{one_line(value, 40)}"'
        case int() | float():
            return f"the number {value}"
        case list() | tuple():
            return "an array"
        case _:
            return "an object"
