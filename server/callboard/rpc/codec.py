"""JSON text in and out: strict about JSON, forgiving about half a surrogate pair.

An editor may cut an emoji in two and send one half as an escape; no text with such a half can be
stored or sent, so it becomes U+FFFD at this edge (interrupts-and-peers 72).
"""

import re
from typing import Any, NoReturn, cast

import attrs
import orjson

from callboard_rpc import convert

_BOM = b"\xef\xbb\xbf"
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")


class NotJson(ValueError):
    """The bytes are no JSON text in UTF-8."""


class NotSerialisable(TypeError):
    """A result or params hold something that JSON has no form for."""


def decode(body: bytes) -> Any:
    """The value of a JSON text. Raises `NotJson`."""
    if body.startswith(_BOM):
        body = body[len(_BOM) :]
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as fault:
        if not _SURROGATE_ESCAPE.search(body):
            raise NotJson(str(fault)) from None
    return _decode_surrogates(body)


def _decode_surrogates(body: bytes) -> Any:
    import json

    try:
        return _whole(json.loads(body.decode(), parse_constant=_refuse_constant))
    except (ValueError, RecursionError) as fault:
        raise NotJson(str(fault) or type(fault).__name__) from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _whole(value: Any) -> Any:
    """`value` with each half of a surrogate pair replaced."""
    if isinstance(value, str):
        return _SURROGATE.sub("�", value)
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value)
        return {_whole(key): _whole(item) for key, item in items.items()}
    if isinstance(value, list | tuple):
        return [_whole(item) for item in cast("list[Any]", value)]
    return value


def _plain(value: Any) -> Any:
    cls = cast("type[Any]", type(value))
    if attrs.has(cls):
        return convert.unstructure(value)
    raise TypeError(f"no JSON form for {cls.__name__}")


def encode(value: Any) -> bytes:
    """The JSON text of plain values, of this project's attrs classes, and of `orjson.Fragment`.

    Raises `NotSerialisable`.
    """
    try:
        return orjson.dumps(value, default=_plain)
    except (TypeError, RecursionError) as fault:
        first = fault
    try:
        return orjson.dumps(_whole(convert.unstructure(value)), default=_plain)
    except (TypeError, RecursionError):
        raise NotSerialisable(str(first)) from None
