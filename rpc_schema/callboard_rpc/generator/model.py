"""The contract as plain data: what the writers of each language need, and nothing of Python's."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from attrs import frozen


@frozen
class Primitive:
    name: Literal["string", "integer", "number", "boolean"]


@frozen
class Anything:
    """Any JSON value."""


@frozen
class AnyObject:
    """A JSON object that is carried and never looked into."""


@frozen
class Const:
    value: str


@frozen
class Choice:
    """One of `values`; when `open`, a later server may send others."""

    values: tuple[str, ...]
    open: bool


@frozen
class Ref:
    name: str


@frozen
class Array:
    item: "Type"


@frozen
class Mapped:
    """An object with any keys, whose values are all alike."""

    value: "Type"


@frozen
class OneOf:
    members: tuple["Type", ...]


@frozen
class Nullable:
    inner: "Type"


Type: TypeAlias = (
    Primitive | Anything | AnyObject | Const | Choice | Ref | Array | Mapped | OneOf | Nullable
)


@frozen(kw_only=True)
class Property:
    """A field by its wire name. `default` is in wire form and means nothing when `required`."""

    name: str
    type: Type
    required: bool
    default: Any = None


@frozen(kw_only=True)
class Object:
    name: str
    properties: tuple[Property, ...]
    doc: str = ""


@frozen(kw_only=True)
class Alias:
    """A named type that is no object: an id, an enum, a union."""

    name: str
    type: Type
    doc: str = ""
    tag: str | None = None
    """The property that tells the members of a union apart."""


@frozen(kw_only=True)
class EventKind:
    """An event type: its name on the wire, and the name of the class of its ``data``."""

    type: str
    data: str


@frozen(kw_only=True)
class Contract:
    objects: Mapping[str, Object]
    aliases: Mapping[str, Alias]
    events: tuple[EventKind, ...]
    envelope: Object
    """What all events share; `data` is left out, since `events` tells it."""
