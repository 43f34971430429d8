"""From classes to plain data: walks the method table and the event types.

A class that no message reaches is not published.
"""

import ast
import inspect
import itertools
import types
from collections.abc import Iterable, Iterator
from typing import Any, Literal, NewType, Union, get_args, get_origin

import attrs
from attrs import field, frozen

from .. import approvals, common, events, methods, server, sessions, streams
from ..common import Page, Unset
from ..convert import TAGGED_UNIONS, unstructure, wire_name
from ..errors import ERRORS
from ..events import EVENT_TYPES, Event, EventData, UnknownData
from ..methods import METHODS
from ..server import CallboardOptions, HandshakeResult
from .model import (
    Alias,
    AnyObject,
    Anything,
    Array,
    Choice,
    Const,
    Contract,
    EventKind,
    Mapped,
    Nullable,
    Object,
    OneOf,
    Primitive,
    Property,
    Ref,
    Type,
)

MODULES = (common, approvals, events, sessions, streams, server, methods)


def contract() -> Contract:
    """The whole contract, in an order that does not depend on anything but its content."""
    return _Collector().collect()


def published_classes() -> frozenset[Any]:
    """Every class that some message can hold; a page of items is a class of its own."""
    return frozenset(_reachable([*_sent_by_server(), *_sent_by_client()]) - {UnknownData})


def type_name(cls: Any) -> str:
    """The published name of a class: ``Page[Session]`` is ``SessionPage``."""
    if get_origin(cls) is Page:
        (item,) = get_args(cls)
        return f"{item.__name__}Page"
    return cls.__name__


def doc_of(cls: Any) -> str:
    return inspect.cleandoc((get_origin(cls) or cls).__doc__ or "")


def _alias_docs() -> dict[str, str]:
    """The text below an assignment, which Python itself does not keep."""
    docs: dict[str, str] = {}
    for module in MODULES:
        body = ast.parse(inspect.getsource(module)).body
        for statement, text in itertools.pairwise(body):
            match statement, text:
                case (
                    ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(name)),
                    ast.Expr(value=ast.Constant(value=str(doc))),
                ):
                    docs[name] = inspect.cleandoc(doc)
                case _:
                    pass
    return docs


def _is_literal(value: Any) -> bool:
    return get_origin(value) is Literal and len(get_args(value)) > 1


def _named_literals() -> Iterator[tuple[Any, str]]:
    for module in MODULES:
        for name, value in vars(module).items():
            if _is_literal(value) and not name.startswith("_"):
                yield value, name


def _same(left: Any, right: Any) -> bool:
    return _is_union(left) and _is_union(right) and set(get_args(left)) == set(get_args(right))


def _is_union(value: Any) -> bool:
    return get_origin(value) in (Union, types.UnionType)


@frozen
class _Collector:
    objects: dict[str, Object] = field(factory=dict[str, Object])
    aliases: dict[str, Alias] = field(factory=dict[str, Alias])
    docs: dict[str, str] = field(factory=_alias_docs)
    literals: tuple[tuple[Any, str], ...] = field(factory=lambda: tuple(_named_literals()))
    sent: set[Any] = field(factory=set[Any])
    """Every class that a server sends; their enums are open."""

    def collect(self) -> Contract:
        self.sent.update(_reachable(_sent_by_server()))
        for cls in sorted(published_classes(), key=type_name):
            if cls is not Event:
                self.objects[type_name(cls)] = self._object(cls)
        self.objects["ErrorData"] = _error_data()
        shared = self._object(Event)
        return Contract(
            objects=dict(sorted(self.objects.items())),
            aliases=dict(sorted(self.aliases.items())),
            events=tuple(
                EventKind(type=name, data=cls.__name__) for name, cls in sorted(EVENT_TYPES.items())
            ),
            envelope=attrs.evolve(
                shared, properties=tuple(p for p in shared.properties if p.name != "data")
            ),
        )

    def _object(self, cls: Any) -> Object:
        properties: list[Property] = []
        for attribute, kind in _fields(cls):
            required = attribute.default is attrs.NOTHING
            properties.append(
                Property(
                    name=wire_name(attribute.name),
                    type=self._type(kind, opened=cls in self.sent),
                    required=required,
                    default=None if required else _default(attribute),
                )
            )
        return Object(name=type_name(cls), properties=tuple(properties), doc=doc_of(cls))

    def _type(self, kind: Any, *, opened: bool) -> Type:
        if kind is Any:
            return Anything()
        if isinstance(kind, NewType):
            return self._alias(kind.__name__, Primitive("string"))
        if isinstance(kind, type) and kind in _PRIMITIVES:
            return Primitive(_PRIMITIVES[kind])
        origin, args = get_origin(kind), get_args(kind)
        if origin is Literal:
            return self._literal(kind, opened=opened)
        if _is_union(kind):
            return self._union(kind, opened=opened)
        if origin is tuple:
            return Array(self._type(args[0], opened=opened))
        if origin is dict:
            return AnyObject() if args[1] is Any else Mapped(self._type(args[1], opened=opened))
        if attrs.has(origin or kind):
            return Ref(type_name(kind))
        raise TypeError(f"the generator has no rule for {kind}")

    def _alias(self, name: str, kind: Type, *, tag: str | None = None) -> Ref:
        self.aliases[name] = Alias(name=name, type=kind, doc=self.docs.get(name, ""), tag=tag)
        return Ref(name)

    def _literal(self, kind: Any, *, opened: bool) -> Type:
        values: tuple[str, ...] = get_args(kind)
        if len(values) == 1:
            return Const(values[0])
        for literal, name in self.literals:
            if get_args(literal) == values:
                opened = opened or self._is_open(name)
                return self._alias(name, Choice(values, open=opened))
        return Choice(values, open=opened)

    def _is_open(self, name: str) -> bool:
        known = self.aliases.get(name)
        return known is not None and isinstance(known.type, Choice) and known.type.open

    def _union(self, kind: Any, *, opened: bool) -> Type:
        if _same(kind, EventData | UnknownData):
            return AnyObject()
        for tagged in TAGGED_UNIONS:
            if _same(kind, tagged.union):
                members = tuple(Ref(member.__name__) for member in get_args(tagged.union))
                return self._alias(_union_name(tagged.union), OneOf(members), tag=tagged.tag)
        members = [m for m in get_args(kind) if m is not Unset]
        plain = [m for m in members if m is not type(None)]
        inner = (
            self._type(plain[0], opened=opened)
            if len(plain) == 1
            else OneOf(tuple(self._type(m, opened=opened) for m in plain))
        )
        return Nullable(inner) if type(None) in members else inner


_PRIMITIVES: dict[type, Literal["string", "integer", "number", "boolean"]] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
}


def _union_name(union: Any) -> str:
    return next(
        name for module in MODULES for name, value in vars(module).items() if _same(value, union)
    )


def _default(attribute: "attrs.Attribute[Any]") -> Any:
    default: Any = attribute.default
    if isinstance(default, Unset):
        return None
    factory = getattr(default, "factory", None)
    return unstructure(default if factory is None else factory())


def _fields(cls: Any) -> Iterator[tuple["attrs.Attribute[Any]", Any]]:
    """Each attribute with its type; those of a generic class with its arguments put in."""
    base = attrs.resolve_types(get_origin(cls) or cls)
    parameters: tuple[Any, ...] = getattr(base, "__parameters__", ())
    bound = dict(zip(parameters, get_args(cls), strict=False))
    for attribute in attrs.fields(base):
        kind: Any = attribute.type
        if get_origin(kind) is tuple:
            item, *rest = get_args(kind)
            kind = types.GenericAlias(tuple, (bound.get(item, item), *rest))
        yield attribute, kind


def _error_data() -> Object:
    kinds = Choice(tuple(sorted(ERRORS)), open=True)
    return Object(
        name="ErrorData",
        doc="The ``data`` of every error. Clients decide by `kind`; some kinds add fields.",
        properties=(
            Property(name="kind", type=kinds, required=True),
            Property(name="retryable", type=Primitive("boolean"), required=True),
            Property(name="correlationId", type=Primitive("string"), required=True),
            Property(name="retryAfterMs", type=Primitive("integer"), required=False),
        ),
    )


def _sent_by_server() -> list[Any]:
    sent: list[Any] = [HandshakeResult, Event, *EVENT_TYPES.values()]
    for method in METHODS.values():
        sent.append(method.result if method.direction == "clientToServer" else method.params)
    return [cls for cls in sent if cls is not None]


def _sent_by_client() -> list[Any]:
    sent: list[Any] = [CallboardOptions]
    for method in METHODS.values():
        sent.append(method.params if method.direction == "clientToServer" else method.result)
    return [cls for cls in sent if cls is not None]


def _reachable(roots: Iterable[Any]) -> set[Any]:
    seen: set[Any] = set()
    waiting = list(roots)
    while waiting:
        kind = waiting.pop()
        if not _is_union(kind) and attrs.has(get_origin(kind) or kind):
            if kind in seen:
                continue
            seen.add(kind)
            waiting.extend(field_type for _, field_type in _fields(kind))
        else:
            waiting.extend(arg for arg in get_args(kind) if _may_hold_classes(arg))
    return seen


def _may_hold_classes(kind: Any) -> bool:
    if get_origin(kind) is Literal or kind in (Unset, Any, type(None), Ellipsis):
        return False
    return _is_union(kind) or get_origin(kind) is not None or isinstance(kind, type)
