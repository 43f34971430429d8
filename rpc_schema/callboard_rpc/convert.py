"""One converter between wire JSON and the classes of this package.

Attributes are snake_case, the wire is camelCase (``meta`` is ``_meta``, ``from_`` is ``from``).
Structuring is strict (a string is not an integer); unknown fields are ignored, values typed
`Json` or ``Any`` are left alone. Fields that are ``None`` by default are omitted when they are.
"""

import functools
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, Union, get_args, get_origin

import attrs
from cattrs import Converter, transform_error
from cattrs.errors import (
    AttributeValidationNote,
    BaseValidationError,
    ClassValidationError,
    IterableValidationError,
    IterableValidationNote,
)
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from .approvals import CommandSubject, FileChangeSubject, FormSubject, Subject, ToolCallSubject
from .common import (
    UNSET,
    Content,
    EmbeddedResource,
    ImageContent,
    MessageContent,
    ResourceLink,
    TextContent,
    Thinking,
    ToolUse,
    UnknownVariant,
    Unset,
)
from .events import EVENT_TYPES, Event, UnknownData

T = TypeVar("T")


def wire_name(attribute: str) -> str:
    """The wire's name of an attribute: ``input_tokens`` -> ``inputTokens``."""
    if attribute == "meta":
        return "_meta"
    head, *rest = attribute.rstrip("_").split("_")
    return head + "".join(word.capitalize() for word in rest)


class StructureError(ValueError):
    """The value does not fit the class. `errors` has a ``{path, message}`` for each fault."""

    def __init__(self, errors: list[dict[str, str]]) -> None:
        super().__init__("; ".join(f"{e['path']}: {e['message']}" for e in errors))
        self.errors = errors


_JSON_NAMES = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}


def _strict(kind: type, accepts: tuple[type, ...]) -> Callable[[Any, Any], Any]:
    def structure(value: Any, _: Any) -> Any:
        if type(value) not in accepts:
            raise ValueError(f"must be {_JSON_NAMES[kind]}, is {_describe(value)}")
        return kind(value) if kind is float else value

    return structure


def _integer(value: Any, _: Any) -> int:
    """One of 64 bits: what is larger the log could not hold."""
    if type(value) is not int:
        raise ValueError(f"must be {_JSON_NAMES[int]}, is {_describe(value)}")
    if not -(2**63) <= value < 2**63:
        raise ValueError("must be an integer of 64 bits, is a larger number")
    return value


def _describe(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return "a string"
        case int() | float():
            return "a number"
        case list() | tuple():
            return "an array"
        case _:
            return "an object"


@attrs.frozen(kw_only=True)
class TaggedUnion:
    """Classes that are told apart by the field `tag` of the wire; `otherwise` is the one without it."""

    union: Any
    members: Mapping[str, type[Any]]
    tag: str = "type"
    otherwise: type[Any] | None = None


def _tagged(
    tagged: TaggedUnion, converter: Converter, *, lenient: bool
) -> Callable[[Any, Any], Any]:
    hooks: dict[str, Callable[[Any, Any], Any]] = {}
    members = tagged.members

    def structure(value: Any, _: Any) -> Any:
        if type(value) is not dict:
            raise ValueError(f"must be an object, is {_describe(value)}")
        fields = typing.cast("dict[str, Any]", value)
        tag = fields.get(tagged.tag)
        cls = (
            members.get(tag) if isinstance(tag, str) else tagged.otherwise if tag is None else None
        )
        if cls is None:
            if lenient and isinstance(tag, str):
                return UnknownVariant(type=tag, fields=fields)
            raise ValueError(f"'{tagged.tag}' must be one of {', '.join(members)}")
        hook = hooks.get(cls.__name__)
        if hook is None:
            hook = hooks[cls.__name__] = converter.get_structure_hook(cls)
        return hook(value, cls)

    return structure


def _is_union(cls: Any) -> bool:
    return get_origin(cls) in (Union, types.UnionType)


def _is_model(cls: Any) -> bool:
    return attrs.has(get_origin(cls) or cls)


def _is_literal(cls: Any) -> bool:
    return get_origin(cls) is typing.Literal


CONTENT = {
    "text": TextContent,
    "image": ImageContent,
    "resource_link": ResourceLink,
    "resource": EmbeddedResource,
}
MESSAGE_CONTENT = {**CONTENT, "thinking": Thinking, "tool_use": ToolUse}
SUBJECTS = {
    "toolCall": ToolCallSubject,
    "command": CommandSubject,
    "fileChange": FileChangeSubject,
    "form": FormSubject,
}
TAGGED_UNIONS = (
    TaggedUnion(union=Content, members=CONTENT),
    TaggedUnion(union=MessageContent, members=MESSAGE_CONTENT),
    TaggedUnion(union=Subject, members=SUBJECTS),
)


def _plain_union(cls: Any, converter: Converter) -> Callable[[Any, Any], Any]:
    """``X | None``, ``X | Unset``, ``str | int``: decided by the JSON type of the value."""
    members = [a for a in get_args(cls) if a is not Unset]
    nullable = type(None) in members
    members = [a for a in members if a is not type(None)]
    if len(members) == 1:
        member = members[0]
        hook = converter.get_structure_hook(member)

        def structure(value: Any, _: Any) -> Any:
            if value is None and nullable:
                return None
            return hook(value, member)

        return structure

    primitives = {str: str, int: int, float: float, bool: bool}
    if not all(m in primitives for m in members):
        raise TypeError(f"no rule to tell the members of {cls} apart: give them a tag")

    def structure_primitive(value: Any, _: Any) -> Any:
        if (value is None and nullable) or type(value) in members:
            return value
        wanted = " or ".join(_JSON_NAMES[m] for m in members)
        raise ValueError(f"must be {wanted}, is {_describe(value)}")

    return structure_primitive


def make_converter(
    *,
    detailed: bool = False,
    lenient: bool = False,
    unions: Sequence[TaggedUnion] = TAGGED_UNIONS,
    null_is_absent: bool = False,
) -> Converter:
    """A converter for classes of this package's kind. `detailed` finds every fault (slower); `lenient` lets
    unknown enum values pass, as a client must (PROTOCOL 2); with `null_is_absent` a field that is null is
    taken for one that is not there."""
    converter = Converter(detailed_validation=detailed, forbid_extra_keys=False)

    def overrides(cls: type[Any]) -> dict[str, Any]:
        return {
            a.name: override(
                rename=wire_name(a.name),
                omit_if_default=a.default is None or a.default is UNSET,
            )
            for a in attrs.fields(cls)
        }

    def structure_factory(cls: type[Any]) -> Callable[[Any, Any], Any]:
        resolved = attrs.resolve_types(get_origin(cls) or cls)
        inner: Any = make_dict_structure_fn(cls, converter, **overrides(resolved))

        def structure(value: Any, t: Any) -> Any:
            if type(value) is not dict:
                raise ValueError(f"must be an object, is {_describe(value)}")
            if null_is_absent:
                fields = typing.cast("dict[str, Any]", value)
                value = {name: field for name, field in fields.items() if field is not None}
            return inner(value, t)

        return structure

    def unstructure_factory(cls: type[Any]) -> Callable[[Any], Any]:
        attrs.resolve_types(cls)
        return make_dict_unstructure_fn(cls, converter, **overrides(cls))

    def sequence_factory(cls: Any) -> Callable[[Any, Any], Any]:
        (member, *_rest) = get_args(cls)
        hook = converter.get_structure_hook(member)

        def structure(value: Any, _: Any) -> Any:
            if type(value) is not list and type(value) is not tuple:
                raise ValueError(f"must be an array, is {_describe(value)}")
            items = typing.cast("list[Any]", value)
            if not detailed:
                return tuple(hook(item, member) for item in items)
            return _structure_items(items, hook, member)

        return structure

    converter.register_structure_hook_factory(_is_model, structure_factory)
    converter.register_unstructure_hook_factory(attrs.has, unstructure_factory)

    def union_factory(cls: Any) -> Callable[[Any, Any], Any]:
        return _plain_union(cls, converter)

    converter.register_structure_hook_factory(_is_union, union_factory)
    converter.register_structure_hook_factory(
        lambda cls: get_origin(cls) is tuple, sequence_factory
    )
    for kind, accepts in ((str, (str,)), (float, (int, float)), (bool, (bool,))):
        converter.register_structure_hook(kind, _strict(kind, accepts))
    converter.register_structure_hook(int, _integer)

    def structure_literal(value: Any, cls: Any) -> Any:
        if type(value) is str and (lenient or value in get_args(cls)):
            return value
        allowed = ", ".join(str(a) for a in get_args(cls))
        raise ValueError(f"must be one of {allowed}")

    converter.register_structure_hook_func(_is_literal, structure_literal)
    converter.register_structure_hook_func(
        lambda cls: get_origin(cls) is dict or cls is dict, _structure_dict
    )
    for tagged in unions:
        hook = _tagged(tagged, converter, lenient=lenient)
        converter.register_structure_hook_func(lambda cls, union=tagged.union: cls == union, hook)
    converter.register_structure_hook(Event, _event_structure(converter, detailed=detailed))
    converter.register_unstructure_hook(UnknownData, lambda unknown: unknown.data)
    converter.register_unstructure_hook(UnknownVariant, lambda unknown: unknown.fields)
    return converter


def _noted(fault: Exception, note: Callable[..., str], place: str | int, kind: Any) -> Exception:
    """`fault` with the note from which cattrs builds the path of its message."""
    fault.add_note(note(f"at {place}", place, kind))
    return fault


def _group(kind: Callable[..., Exception], faults: list[Exception], cls: type[Any]) -> Exception:
    return kind(f"{len(faults)} faults", faults, cls)


def _structure_items(items: list[Any], hook: Callable[[Any, Any], Any], member: Any) -> Any:
    faults: list[Exception] = []
    out: list[Any] = []
    for index, item in enumerate(items):
        try:
            out.append(hook(item, member))
        except Exception as fault:
            faults.append(_noted(fault, IterableValidationNote, index, member))
    if faults:
        raise _group(IterableValidationError, faults, tuple)
    return tuple(out)


def _structure_dict(value: Any, cls: Any) -> Any:
    if type(value) is not dict:
        raise ValueError(f"must be an object, is {_describe(value)}")
    args = get_args(cls)
    if len(args) == 2 and args[1] in (bool, int, str):
        for key, item in typing.cast("dict[str, Any]", value).items():
            if type(item) is not args[1]:
                raise ValueError(f"{key}: must be {_JSON_NAMES[args[1]]}, is {_describe(item)}")
    return typing.cast("dict[str, Any]", value)


def _event_structure(converter: Converter, *, detailed: bool) -> Callable[[Any, Any], Event]:
    """An event's ``data`` is decided by its ``type``; of an unknown type it is kept as it came."""

    def as_it_came(value: Any, _: Any) -> Any:
        return value

    renames: dict[str, Any] = {
        a.name: override(rename=wire_name(a.name)) for a in attrs.fields(attrs.resolve_types(Event))
    }
    renames["data"] = override(struct_hook=as_it_came)
    envelope: Any = make_dict_structure_fn(Event, converter, **renames)

    def structure(value: Any, cls: Any) -> Event:
        event: Event = envelope(value, cls)
        data: Any = event.data
        data_class = EVENT_TYPES.get(event.type)
        known = (
            UnknownData(type=event.type, data=data)
            if data_class is None
            else converter.structure(data, data_class)
        )
        return attrs.evolve(event, data=known)

    def structure_detailed(value: Any, cls: Any) -> Event:
        if type(value) is not dict:
            raise ValueError(f"must be an object, is {_describe(value)}")
        fields = typing.cast("dict[str, Any]", value)
        faults: list[Exception] = []
        try:
            envelope(fields, cls)
        except ClassValidationError as group:
            faults.extend(group.exceptions)
        tag = fields.get("type")
        data_class = EVENT_TYPES.get(tag) if isinstance(tag, str) else None
        if data_class is not None and "data" in fields:
            try:
                converter.structure(fields["data"], data_class)
            except Exception as fault:
                faults.append(_noted(fault, AttributeValidationNote, "data", data_class))
        if faults:
            raise _group(ClassValidationError, faults, Event)
        return structure(fields, cls)

    return structure_detailed if detailed else structure


_fast = make_converter()
_lenient = make_converter(lenient=True)


@functools.cache
def _detailed(*, lenient: bool) -> Converter:
    return make_converter(detailed=True, lenient=lenient)


def structure(value: Any, cls: type[T]) -> T:
    """`value` (parsed JSON) as a `cls`. Raises `StructureError` that names each faulty path."""
    try:
        return _fast.structure(value, cls)
    except Exception as fault:
        raise explained(value, cls, fault, _detailed(lenient=False)) from None


def structure_lenient(value: Any, cls: type[T]) -> T:
    """Like `structure`, for what a server sent: unknown enum values pass."""
    try:
        return _lenient.structure(value, cls)
    except Exception as fault:
        raise explained(value, cls, fault, _detailed(lenient=True)) from None


def unstructure(value: Any) -> Any:
    """`value` as plain dicts and lists with the wire's names, ready for a JSON encoder."""
    return _fast.unstructure(value)


def explained(value: Any, cls: type[Any], fault: Exception, detailed: Converter) -> StructureError:
    """Every fault of a value that does not fit, as a `detailed` converter finds them; `fault` is what was
    found first."""
    try:
        detailed.structure(value, cls)
    except BaseValidationError as group:
        errors = [
            _path_and_message(line) for line in transform_error(group, format_exception=_format)
        ]
        return StructureError(errors)
    except Exception as single:
        return StructureError([{"path": "$", "message": str(single)}])
    return StructureError([{"path": "$", "message": str(fault)}])


def _format(fault: BaseException, _: type[Any] | None) -> str:
    if isinstance(fault, KeyError):
        return "is required"
    return str(fault) or type(fault).__name__


def _path_and_message(line: str) -> dict[str, str]:
    message, _, path = line.rpartition(" @ ")
    parts = path.split(".")
    named = [parts[0]] + [_wire_part(part) for part in parts[1:]]
    return {"path": ".".join(named), "message": message}


def _wire_part(part: str) -> str:
    name, bracket, rest = part.partition("[")
    return wire_name(name) + bracket + rest
