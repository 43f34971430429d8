"""A strict copy of the published schema of the Agent Client Protocol.

The schema is made for readers: it closes no object, and lets a malformed variant pass as one that is not
known. In the copy every object is closed but for `_meta`, a union is decided by its tag, and an open enum
takes what it names or what begins with an underscore, as own values have to.
"""

from typing import Any

_IN_PLACE = ("allOf", "anyOf", "oneOf", "then", "else", "if", "not")
"""Keywords whose schemas are about the same value as their surroundings."""


def closed(defs: dict[str, Any]) -> dict[str, Any]:
    """Two copies of each definition: NAME closed, and ``NAME~`` open, for where another schema adds to it."""
    out: dict[str, Any] = {}
    for name, body in defs.items():
        opened = _walk(body)
        out[name + "~"] = opened
        out[name] = {**opened, "unevaluatedProperties": False} if _is_object(body, defs) else opened
    return out


def _walk(schema: Any, *, in_place: bool = True) -> Any:
    """Points references to the open copy where they share an object with their surroundings."""
    if isinstance(schema, list):
        return [_walk(item, in_place=in_place) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return {**schema, "$ref": schema["$ref"] + ("~" if in_place else "")}
    out: dict[str, Any] = {}
    for key, value in _enumerated(_decided(schema)).items():
        if key in _IN_PLACE:
            out[key] = _walk(value, in_place=in_place)
        elif key == "properties":
            out[key] = {name: _walk(body, in_place=False) for name, body in value.items()}
        elif key in ("items", "additionalProperties"):
            out[key] = _walk(value, in_place=False)
        else:
            out[key] = value
    return _own_values_only(out)


def _decided(schema: dict[str, Any]) -> dict[str, Any]:
    """A union with a tag as one if-then for each, so that a fault is told of the field that has it."""
    tag = schema.get("discriminator", {}).get("propertyName")
    if tag is None:
        return schema
    variants = schema["oneOf" if "oneOf" in schema else "anyOf"]
    tags = [variant["properties"][tag]["const"] for variant in variants]
    rest = {k: v for k, v in schema.items() if k not in ("oneOf", "anyOf", "discriminator")}
    known = {"type": "object", "required": [tag], "properties": {tag: {"enum": tags}}}
    chain = [
        {"if": {"properties": {tag: {"const": const}}, "required": [tag]}, "then": variant}
        for const, variant in zip(tags, variants, strict=True)
    ]
    return {**rest, "allOf": [*rest.get("allOf", []), known, *chain]}


def _enumerated(schema: dict[str, Any]) -> dict[str, Any]:
    """A union of constants as an enum, for the sake of what is told."""
    for key in ("oneOf", "anyOf"):
        parts = schema.get(key)
        if parts and all("const" in part for part in parts):
            rest = {k: v for k, v in schema.items() if k != key}
            return {**rest, "enum": [part["const"] for part in parts]}
    return schema


def _own_values_only(schema: dict[str, Any]) -> dict[str, Any]:
    if schema.get("title") != "other":
        return schema
    if schema.get("type") == "string":
        return {**schema, "pattern": "^_"}
    if schema.get("type") == "object":
        own = {name: {**body, "pattern": "^_"} for name, body in schema["properties"].items()}
        return {**schema, "properties": own}
    return schema


def _is_object(body: dict[str, Any], defs: dict[str, Any]) -> bool:
    if body.get("type") == "object" or "properties" in body:
        return True
    return any(
        _is_object(defs[part["$ref"].rsplit("/", 1)[1]] if "$ref" in part else part, defs)
        for key in ("allOf", "anyOf", "oneOf")
        for part in body.get(key, [])
    )
