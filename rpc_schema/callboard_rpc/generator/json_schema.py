"""The contract as JSON Schema 2020-12: a ``$defs`` entry for each class, id, enum and union."""

from typing import Any

from ..version import PROTOCOL_VERSION
from .model import (
    Alias,
    AnyObject,
    Anything,
    Array,
    Choice,
    Const,
    Contract,
    Mapped,
    Nullable,
    Object,
    OneOf,
    Primitive,
    Property,
    Ref,
    Type,
)

Schema = dict[str, Any]


def json_schema(contract: Contract) -> Schema:
    defs: dict[str, Schema] = {
        **{alias.name: _alias(alias) for alias in contract.aliases.values()},
        **{item.name: _object(item) for item in contract.objects.values()},
        "Event": _event(contract),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:callboard:rpc:{PROTOCOL_VERSION}",
        "title": f"Callboard protocol {PROTOCOL_VERSION}",
        "description": "Every message is an entry of `$defs`; methods.json says which goes where.",
        "$defs": dict(sorted(defs.items())),
    }


def schema_of(kind: Type) -> Schema:
    match kind:
        case Primitive(name):
            return {"type": name}
        case Anything():
            return {}
        case AnyObject():
            return {"type": "object"}
        case Const(value):
            return {"const": value}
        case Choice(values, opened):
            closed: Schema = {"type": "string", "enum": list(values)}
            if not opened:
                return closed
            return {
                "description": "Open: later versions may add values.",
                "anyOf": [closed, {"type": "string"}],
            }
        case Ref(name):
            return {"$ref": f"#/$defs/{name}"}
        case Array(item):
            return {"type": "array", "items": schema_of(item)}
        case Mapped(value):
            return {"type": "object", "additionalProperties": schema_of(value)}
        case OneOf(members):
            return {"oneOf": [schema_of(member) for member in members]}
        case Nullable(inner):
            return {"anyOf": [schema_of(inner), {"type": "null"}]}


def _alias(alias: Alias) -> Schema:
    schema = schema_of(alias.type)
    return {"description": alias.doc, **schema} if alias.doc else schema


def _property(item: Property) -> Schema:
    schema = schema_of(item.type)
    return schema if item.default is None else {**schema, "default": item.default}


def _object(item: Object) -> Schema:
    schema: Schema = {"type": "object"}
    if item.doc:
        schema["description"] = item.doc
    schema["properties"] = {p.name: _property(p) for p in item.properties}
    schema["required"] = [p.name for p in item.properties if p.required]
    return schema


def _event(contract: Contract) -> Schema:
    """The envelope, and ``data`` as its ``type`` says; of a type not listed it may be anything."""
    schema = _object(contract.envelope)
    schema["properties"]["data"] = {}
    schema["required"] = [*schema["required"], "data"]
    known: list[Schema] = [
        {
            "title": kind.type,
            "properties": {"type": {"const": kind.type}, "data": schema_of(Ref(kind.data))},
        }
        for kind in contract.events
    ]
    unknown: Schema = {
        "title": "a type of a later version",
        "properties": {"type": {"not": {"enum": [kind.type for kind in contract.events]}}},
    }
    schema["oneOf"] = [*known, unknown]
    return schema
