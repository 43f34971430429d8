"""Arguments: JSON Schema for the model, strict structuring, faults in words."""

from typing import Any, Literal

import orjson
import pytest
from attrs import field, frozen
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from callboard.tools.base import ToolFailure
from callboard.tools.builtin import builtin_tools
from callboard.tools.registry import ToolRegistry
from callboard.tools.schema import describe, json_schema, structure_arguments


@frozen(kw_only=True)
class Inner:
    name: str = field(metadata=describe("A name.", minLength=1))
    ratio: float = 1.0


@frozen(kw_only=True)
class Outer:
    items: tuple[Inner, ...] = field(metadata=describe("Things.", maxItems=2))
    kind: Literal["a", "b"] = field(metadata=describe("Which."))
    count: int | None = field(default=None, metadata=describe("How many.", minimum=1, maximum=9))
    flag: bool = False
    extra: dict[str, str] = field(factory=dict[str, str])


GOOD: dict[str, Any] = {"items": [{"name": "x"}], "kind": "a"}


def faults(raw: Any) -> list[str]:
    with pytest.raises(ToolFailure) as failure:
        structure_arguments(Outer, raw if isinstance(raw, str) else orjson.dumps(raw).decode())
    head, *lines = str(failure.value).split("\n")
    return lines or [head]


def test_the_schema_says_what_the_class_says() -> None:
    schema = json_schema(Outer)
    Draft202012Validator.check_schema(schema)
    assert schema["required"] == ["items", "kind"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["kind"] == {
        "type": "string",
        "enum": ["a", "b"],
        "description": "Which.",
    }
    assert schema["properties"]["count"]["maximum"] == 9
    assert schema["properties"]["flag"]["default"] is False
    assert schema["properties"]["items"]["items"]["properties"]["ratio"] == {
        "type": "number",
        "default": 1.0,
    }


def test_arguments_become_values() -> None:
    made = structure_arguments(Outer, {**GOOD, "count": None, "extra": {"k": "v"}})
    assert made == Outer(items=(Inner(name="x"),), kind="a", extra={"k": "v"})
    assert structure_arguments(Outer, {**GOOD, "count": 3.0}).count == 3
    assert structure_arguments(Inner, '{"name": "x", "ratio": 2}').ratio == 2.0


def test_every_fault_is_a_line_with_its_path_and_what_is_expected() -> None:
    lines = faults(
        {
            "items": [{"name": 5}, {"nme": "x"}],
            "kind": "c",
            "count": "3",
            "flag": 1,
            "extra": {"k": 2},
        }
    )
    assert lines == [
        "items[0].name: must be a string, is the number 5",
        "items[1].nme: is unknown; there are name, ratio",
        "items[1].name: is required: a string (A name)",
        'kind: must be one of a, b, is the string "c"',
        'count: must be an integer, is the string "3"',
        "flag: must be true or false, is the number 1",
        "extra.k: must be a string, is the number 2",
    ]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("{nonsense", "not valid JSON"),
        ("[1]", "must be an object, is an array"),
        ("null", "must be an object, is null"),
        ('"text"', "must be an object"),
        ("", "items: is required"),
        ("NaN", "not valid JSON"),
        ("[" * 5000, "not valid JSON"),
        ('{"a": "\ud800"}', "not valid JSON"),
        ({**GOOD, "count": 0}, "count: must be at least 1, is 0"),
        ({**GOOD, "count": True}, "count: must be an integer, is true"),
        ({**GOOD, "count": 1.5}, "count: must be an integer, is the number 1.5"),
        ({**GOOD, "flag": None}, "flag: must be true or false, is null"),
        ({**GOOD, "items": [{"name": ""}]}, r"items\[0\].name: must be at least 1 characters"),
        ({**GOOD, "items": [{"name": "x"}] * 3}, "items: must be at most 2 entries"),
        ({**GOOD, "items": [{"name": "a\x00"}]}, "holds a NUL"),
    ],
)
def test_bad_input_is_a_tool_result_and_no_other_exception(raw: Any, words: str) -> None:
    with pytest.raises(ToolFailure, match=words):
        structure_arguments(Outer, raw if isinstance(raw, str) else orjson.dumps(raw).decode())


def test_half_of_a_surrogate_pair_is_named() -> None:
    with pytest.raises(ToolFailure, match="name: holds half of a surrogate pair") as failure:
        structure_arguments(Inner, {"name": "a\ud800"})
    str(failure.value).encode()


def test_many_faults_and_long_names_stay_readable() -> None:
    lines = faults({**GOOD, **{f"{'x' * 500}{n}\u202e": n for n in range(100)}})
    assert len(lines) == 21 and "(and 80 more)" in lines[-1]
    assert all(len(line) < 200 and "\u202e" not in line for line in lines)


def test_a_type_without_a_rule_is_a_fault_of_the_program() -> None:
    @frozen
    class Odd:
        either: int | str

    with pytest.raises(TypeError):
        json_schema(Odd)
    with pytest.raises(TypeError):
        describe("x", pattern=1)


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 20)
    | st.floats(-2, 20)
    | st.text(max_size=3)
    | st.just("a"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "ratio", "kind", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)
_NEARLY = st.fixed_dictionaries(
    {"items": st.lists(st.fixed_dictionaries({"name": _JSON}), max_size=3) | _JSON, "kind": _JSON},
    optional={"count": _JSON, "flag": _JSON, "extra": _JSON, "other": _JSON},
)


@given(value=_NEARLY | _JSON)
def test_what_the_schema_allows_is_accepted_and_the_rest_fails_in_words(value: Any) -> None:
    valid = Draft202012Validator(json_schema(Outer)).is_valid(value)
    try:
        structure_arguments(Outer, orjson.dumps(value).decode())
    except ToolFailure as failure:
        assert not valid or "NUL" in str(failure)
    else:
        assert valid or value.get("count", 1) is None


def test_the_schemas_of_the_builtin_tools_are_valid() -> None:
    registry = ToolRegistry(builtin_tools())
    names = [spec.name for spec in registry.specs()]
    assert sorted(names) == sorted(
        [
            "read_file",
            "write_file",
            "edit_file",
            "list_files",
            "search_files",
            "run_command",
            "update_plan",
        ]
    )
    for spec in registry.specs():
        Draft202012Validator.check_schema(spec.schema)
        for name, prop in spec.schema["properties"].items():
            assert prop["description"], f"{spec.name}.{name}"
