"""JSON text in and out: strict about JSON, forgiving about half a surrogate pair.

An editor may cut an emoji in two and send one half as an escape; no text with such a half can be
stored or sent, so it becomes U+FFFD at this edge (interrupts-and-peers 72). What is read here can be
written here: numbers have 64 bits, and nesting has a bound.
"""

import math
import re
from typing import Any, NoReturn, cast

import attrs
import orjson

from callboard_rpc import convert

MAX_DEPTH = 200
"""How many levels objects and arrays may nest. orjson reads 1,024 and writes 254; between the two lies
room for what is wrapped around a client's value when it is told."""

_BOM = b"\xef\xbb\xbf"
_WRITABLE_DEPTH = 254
_DIGITS_OF_64_BITS = 20
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")


class NotJson(ValueError):
    """The bytes are no JSON text in UTF-8."""


class TooDeep(ValueError):
    """The bytes are JSON, but nest more than `MAX_DEPTH` levels. `value` is what they say."""

    def __init__(self, value: Any) -> None:
        super().__init__(f"nested more than {MAX_DEPTH} levels deep")
        self.value = value


class NotSerialisable(TypeError):
    """A result or params hold something that JSON has no form for."""


def decode(body: bytes) -> Any:
    """The value of a JSON text. Raises `NotJson`, `TooDeep`."""
    if body.startswith(_BOM):
        body = body[len(_BOM) :]
    value = _decode(body)
    # every level has a bracket of its own, so that few brackets need no closer look
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH and not is_shallow(value):
        raise TooDeep(value)
    return value


def is_shallow(value: Any) -> bool:
    """Whether a decoded value nests no more than `MAX_DEPTH` levels."""
    for _ in range(_WRITABLE_DEPTH - MAX_DEPTH):
        value = [value]
    try:
        orjson.dumps(value)
    except (TypeError, RecursionError):
        return False
    return True


def _decode(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as fault:
        if not _SURROGATE_ESCAPE.search(body):
            raise NotJson(str(fault)) from None
    return _decode_surrogates(body)


def _decode_surrogates(body: bytes) -> Any:
    import json

    try:
        return _whole(
            json.loads(
                body.decode(),
                parse_constant=_refuse_constant,
                parse_int=_integer,
                parse_float=_finite,
            )
        )
    except (ValueError, RecursionError) as fault:
        raise NotJson(str(fault) or type(fault).__name__) from None


def _integer(digits: str) -> int | float:
    """As orjson has it: what 64 bits do not hold is a float."""
    if len(digits) <= _DIGITS_OF_64_BITS and -(2**63) <= (value := int(digits)) < 2**64:
        return value
    return _finite(digits)


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError("a number is too large")
    return value


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
