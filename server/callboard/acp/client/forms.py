"""Forms that an agent wants filled in: what of them is taken, and what a person's answer comes to. Pure.

A form is flat: a few fields of plain values, as the protocol has it. What an agent sends is rebuilt of what is known,
within bounds; anything else is refused by name. Its patterns are shown and not tried: one could be made to take for ever.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import orjson
from attrs import frozen

from callboard_rpc.common import Json

from ...tools.display import one_line, printable, well_formed

MOST_FIELDS: Final = 50
_MOST_VALUES = 200
_NAME_CHARS = 200
_VALUE_CHARS = 1_000
_WORDS_CHARS = 2_000
_SCHEMA_BYTES = 64 * 1024
_ANSWER_ITEMS = 200

_YES: Final = frozenset(("true", "yes", "y", "1", "on"))
_NO: Final = frozenset(("false", "no", "n", "0", "off"))


class Unfit(Exception):
    """A schema that is no form, or an answer that does not fit one. The words say what and where."""


@frozen(kw_only=True)
class Field:
    """One field. `values` are those that it may have, with what each is called; none: any."""

    name: str
    type: str
    values: tuple[tuple[str, str], ...] = ()
    bounds: Mapping[str, float] = {}
    default: Any = None


@frozen(kw_only=True)
class Form:
    """`schema` is what was taken of the agent's."""

    schema: Json
    fields: tuple[Field, ...]
    required: frozenset[str]

    @property
    def choice(self) -> Field | None:
        """Its one field, where that is a choice among few: then nobody need write anything."""
        if len(self.fields) != 1:
            return None
        (field,) = self.fields
        if field.type == "boolean":
            return field
        return field if field.type == "string" and 0 < len(field.values) <= 8 else None


# --- what an agent wants ------------------------------------------------------------------------------


def form_of(schema: Json) -> Form:
    """Raises `Unfit`."""
    if len(orjson.dumps(schema)) > _SCHEMA_BYTES:
        raise Unfit(f"requestedSchema: is over {_SCHEMA_BYTES} bytes")
    if schema.get("type", "object") != "object":
        raise Unfit("requestedSchema.type: must be 'object'")
    given: Any = schema.get("properties") or {}
    if not isinstance(given, dict):
        raise Unfit("requestedSchema.properties: must be an object")
    properties = cast("Json", given)
    if len(properties) > MOST_FIELDS:
        raise Unfit(f"requestedSchema.properties: more than {MOST_FIELDS}")
    fields: list[Field] = []
    shown: Json = {}
    for name, each in properties.items():
        if not 0 < len(name) <= _NAME_CHARS or name != one_line(name, _NAME_CHARS):
            raise Unfit("requestedSchema.properties: a name is empty, too long, or not one line")
        field, about = _field(name, each)
        fields.append(field)
        shown[name] = about
    required: Any = schema.get("required") or []
    named = {field.name for field in fields}
    if not isinstance(required, list) or any(
        not isinstance(each, str) or each not in named for each in cast("list[Any]", required)
    ):
        raise Unfit("requestedSchema.required: must name properties")
    kept: Json = {"type": "object", "properties": shown}
    if required:
        kept["required"] = list(dict.fromkeys(cast("list[str]", required)))
    return Form(schema=kept, fields=tuple(fields), required=frozenset(kept.get("required", ())))


def _field(name: str, given: Any) -> tuple[Field, Json]:
    where = f"requestedSchema.properties.{name}"
    if not isinstance(given, dict):
        raise Unfit(f"{where}: must be an object")
    about = cast("Json", given)
    kind = about.get("type")
    if kind not in ("string", "number", "integer", "boolean", "array"):
        raise Unfit(f"{where}.type: must be string, number, integer, boolean or array")
    shown: Json = {"type": kind}
    for word in ("title", "description", "format", "pattern"):
        if isinstance(said := about.get(word), str) and said:
            shown[word] = printable(well_formed(said))[:_WORDS_CHARS]
    source = about if kind == "string" else about.get("items") if kind == "array" else None
    values = _values(where, cast("Json", source)) if isinstance(source, dict) else ()
    if kind == "array" and not values:
        raise Unfit(f"{where}.items: must have the values to choose from")
    if values:
        told = [value for value, _ in values]
        shown |= {"enum": told} if kind == "string" else {"items": {"type": "string", "enum": told}}
        names = ", ".join(f"{value} ({title})" for value, title in values if value != title)
        if names:
            shown["description"] = f"{shown.get('description', '')} {names}".strip()[:_WORDS_CHARS]
    bounds: dict[str, float] = {}
    for word in ("minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems"):
        bound: Any = about.get(word)
        if type(bound) in (int, float) and abs(bound) < 1e15:
            bounds[word] = float(bound)
    shown |= {word: int(bound) if bound.is_integer() else bound for word, bound in bounds.items()}
    field = Field(name=name, type=kind, values=values, bounds=bounds)
    if about.get("default") is not None:
        default = _fitting(field, about["default"])
        shown["default"] = default
        field = Field(name=name, type=kind, values=values, bounds=bounds, default=default)
    return field, shown


def _values(where: str, source: Json) -> tuple[tuple[str, str], ...]:
    """The values to choose from, by either way of telling them."""
    found: list[tuple[str, str]] = []
    for word in ("enum", "oneOf", "anyOf"):
        listed: Any = source.get(word)
        if not isinstance(listed, list):
            continue
        for each in cast("list[Any]", listed)[: _MOST_VALUES + 1]:
            const: Any = cast("Json", each).get("const") if isinstance(each, dict) else each
            title: Any = cast("Json", each).get("title") if isinstance(each, dict) else None
            if not isinstance(const, str) or len(const) > _VALUE_CHARS:
                raise Unfit(f"{where}.{word}: a value is no text, or over {_VALUE_CHARS} long")
            shown = title if isinstance(title, str) and title else const
            found.append((well_formed(const), one_line(shown, _NAME_CHARS) or const))
        break
    if len(found) > _MOST_VALUES:
        raise Unfit(f"{where}: more than {_MOST_VALUES} values")
    return tuple(found)


# --- what a person answers ----------------------------------------------------------------------------


def content_of(form: Form, answer: str | None) -> dict[str, Any]:
    """What was answered, by field: JSON, or lines of ``name: value``, or the value of the only field. A field that
    is left out has its default, if it has one. Raises `Unfit`."""
    given = _given(form, (answer or "").strip())
    known = {field.name: field for field in form.fields}
    for name in given:
        if name not in known:
            raise Unfit(
                f"There is no field {one_line(name, 80)!r}; the fields are: {', '.join(known)}."
            )
    content: dict[str, Any] = {}
    for name, field in known.items():
        if given.get(name) is not None:
            content[name] = _fitting(field, given[name])
        elif field.default is not None:
            content[name] = field.default
        elif name in form.required:
            raise Unfit(f"{name} has to be answered.")
    return content


def _given(form: Form, text: str) -> dict[str, Any]:
    if not text:
        return {}
    if text.startswith("{"):
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            value = None
        if isinstance(value, dict):
            return cast("dict[str, Any]", value)
    if len(form.fields) == 1:
        return {form.fields[0].name: text}
    given: dict[str, Any] = {}
    for line in text.splitlines():
        if not line.strip():
            continue
        name, colon, value = line.partition(":")
        if not colon:
            raise Unfit("Answer each field on a line of its own, as 'name: value', or all as JSON.")
        given[name.strip()] = value.strip()
    return given


def _fitting(field: Field, value: Any) -> Any:
    """A value as the field has it. Raises `Unfit`."""
    match field.type:
        case "boolean":
            return _truth(field, value)
        case "integer":
            return _number(field, value, int)
        case "number":
            return _number(field, value, float)
        case "array":
            items = cast("list[Any]", value) if isinstance(value, list) else str(value).split(",")
            if len(items) > _ANSWER_ITEMS:
                raise Unfit(f"{field.name}: too many values.")
            chosen = [
                _text(field, each.strip() if isinstance(each, str) else each) for each in items
            ]
            _within(field, len(chosen), "minItems", "maxItems", "values")
            return chosen
        case _:
            text = _text(field, value)
            _within(field, len(text), "minLength", "maxLength", "characters")
            return text


def _truth(field: Field, value: Any) -> bool:
    word = value.strip().casefold() if isinstance(value, str) else value
    if word is True or word in _YES:
        return True
    if word is False or word in _NO:
        return False
    raise Unfit(f"{field.name} is yes or no.")


def _number(field: Field, value: Any, kind: Callable[[Any], float]) -> float:
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError
        number = kind(value.strip() if isinstance(value, str) else value)
        if not abs(number) < 2**63 or (kind is int and number != float(value)):
            raise ValueError
    except (ValueError, OverflowError):
        what = "a whole number" if kind is int else "a number"
        raise Unfit(f"{field.name} is {what}.") from None
    _within(field, number, "minimum", "maximum", "")
    return number


def _text(field: Field, value: Any) -> str:
    if not isinstance(value, str):
        raise Unfit(f"{field.name} is a text.")
    if not field.values:
        return value
    if any(value == known for known, _ in field.values):
        return value
    for known, title in field.values:
        if value.casefold() in (known.casefold(), title.casefold()):
            return known
    raise Unfit(f"{field.name} is one of: {', '.join(v for v, _ in field.values)[:_WORDS_CHARS]}.")


def _within(field: Field, size: float, least: str, most: str, of: str) -> None:
    low, high = field.bounds.get(least), field.bounds.get(most)
    if low is not None and size < low:
        raise Unfit(f"{field.name} is at least {low:g} {of}".rstrip() + ".")
    if high is not None and size > high:
        raise Unfit(f"{field.name} is at most {high:g} {of}".rstrip() + ".")
