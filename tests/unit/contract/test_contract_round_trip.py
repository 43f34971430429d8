"""Every class of the contract survives the wire, in the form that the published schema tells."""

import re
from typing import Any

import orjson
import pytest
from contract_strategies import json_objects, json_values, values
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from callboard_rpc import published
from callboard_rpc.common import UNSET
from callboard_rpc.convert import structure, structure_lenient, unstructure
from callboard_rpc.events import EVENT_TYPES, Event, UnknownData
from callboard_rpc.generator.collect import published_classes, type_name
from callboard_rpc.server import InitializeParams, PingParams
from callboard_rpc.sessions import SessionCreateParams, SessionUpdateParams

SCHEMA = orjson.loads(published.read("json"))
REGISTRY: Any = Registry().with_resource(SCHEMA["$id"], DRAFT202012.create_resource(SCHEMA))
CLASSES = sorted(published_classes(), key=type_name)

WIRE_NAME = re.compile(r"(?:_meta|[a-z][a-zA-Z0-9]*)\Z")


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": f"{SCHEMA['$id']}#/$defs/{name}"}, registry=REGISTRY)


def through_the_wire(value: Any) -> Any:
    return orjson.loads(orjson.dumps(unstructure(value)))


@pytest.mark.parametrize("cls", CLASSES, ids=type_name)
@settings(max_examples=15)
@given(data=st.data())
def test_every_class_survives_the_wire_and_fits_the_published_schema(
    cls: Any, data: st.DataObject
) -> None:
    value = data.draw(values(cls))
    wire = through_the_wire(value)
    assert structure(wire, cls) == value
    assert structure_lenient(wire, cls) == value
    validator(type_name(cls)).validate(wire)


@pytest.mark.parametrize("cls", CLASSES, ids=type_name)
@settings(max_examples=5)
@given(data=st.data())
def test_unknown_fields_are_ignored_everywhere(cls: Any, data: st.DataObject) -> None:
    value = data.draw(values(cls))
    wire = through_the_wire(value) | {"fieldOfALaterVersion": {"any": ["thing"]}}
    assert structure(wire, cls) == value
    validator(type_name(cls)).validate(wire)


def test_the_published_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_names_are_camel_case_on_the_wire_everywhere() -> None:
    names = {
        (title, name)
        for title, definition in SCHEMA["$defs"].items()
        for name in definition.get("properties", {})
    }
    assert len(names) > 400
    assert [pair for pair in names if not WIRE_NAME.match(pair[1])] == []


@given(metadata=json_objects, meta=json_objects, echo=json_values)
def test_json_that_callboard_only_carries_is_untouched(
    metadata: dict[str, Any], meta: dict[str, Any], echo: Any
) -> None:
    created = {"cwd": "/w", "additionalDirectories": [], "metadata": metadata, "_meta": meta}
    assert unstructure(structure(created, SessionCreateParams)) == created
    assert orjson.dumps(unstructure(PingParams(echo=echo))) == (
        b"{}" if echo is None else orjson.dumps({"echo": echo})
    )
    opened = structure({"initializationOptions": metadata}, InitializeParams)
    assert orjson.dumps(opened.initialization_options) == orjson.dumps(metadata)


def test_absent_leaves_unchanged_and_null_clears() -> None:
    absent = structure({"sessionId": "ses_1"}, SessionUpdateParams)
    cleared = structure(
        {"sessionId": "ses_1", "title": None, "metadata": None, "model": None}, SessionUpdateParams
    )
    assert (absent.title, absent.metadata, absent.model) == (UNSET, UNSET, UNSET)
    assert (cleared.title, cleared.metadata, cleared.model) == (None, None, None)
    assert unstructure(absent) == {"sessionId": "ses_1"}
    assert unstructure(cleared) == {
        "sessionId": "ses_1",
        "title": None,
        "metadata": None,
        "model": None,
    }


@given(
    type=st.text(st.characters(exclude_categories=["Cs"])).filter(lambda t: t not in EVENT_TYPES),
    data=json_objects,
)
def test_events_of_unknown_types_round_trip_byte_for_byte(type: str, data: dict[str, Any]) -> None:
    raw = orjson.dumps(
        {
            "pos": 7,
            "sessionId": "ses_1",
            "seq": 3,
            "eventId": "evt_1",
            "type": type,
            "at": "2024-05-06T07:08:09Z",
            "actor": {"kind": "system", "id": "host_1"},
            "data": data,
        }
    )
    event = structure(orjson.loads(raw), Event)
    assert event.data == UnknownData(type=type, data=data)
    assert orjson.dumps(unstructure(event)) == raw
