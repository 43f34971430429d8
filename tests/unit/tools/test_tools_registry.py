"""The registry, and scopes that only ever narrow (`specs/session-messaging.md` 5, 11)."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.tools.builtin import builtin_tools
from callboard.tools.registry import Scope, ToolRegistry, in_scope, narrow

READ = next(tool for tool in builtin_tools() if tool.name == "read_file")


def test_the_first_registration_of_a_name_wins_and_a_second_is_an_error() -> None:
    registry = ToolRegistry([READ])
    with pytest.raises(ValueError, match="already a tool read_file"):
        registry.register(attrs.evolve(READ, description="another"))
    found = registry.get("read_file")
    assert found is not None and found.description == READ.description


@pytest.mark.parametrize("name", ["", "a b", "a.b", "x" * 65, "é", "a\n", "a/b"])
def test_names_that_no_provider_takes_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no name for a tool"):
        ToolRegistry([attrs.evolve(READ, name=name)])


def test_specs_are_in_the_order_of_registration_and_carry_a_schema() -> None:
    tools = [attrs.evolve(READ, name=name) for name in ("z", "a", "srv__x", "m")]
    registry = ToolRegistry(tools)
    assert [spec.name for spec in registry.specs()] == ["z", "a", "srv__x", "m"]
    assert [spec.name for spec in registry.specs(frozenset({"m", "z", "srv__*"}))] == [
        "z",
        "srv__x",
        "m",
    ]
    assert registry.specs(frozenset()) == ()
    assert registry.get("nope") is None
    assert registry.specs()[0].schema["properties"]["path"]["type"] == "string"
    assert [tool.name for tool in registry] == ["z", "a", "srv__x", "m"]


def test_a_given_schema_is_kept() -> None:
    registry = ToolRegistry([attrs.evolve(READ, schema={"type": "object"})])
    assert registry.specs()[0].schema == {"type": "object"}


def test_a_glob_holds_the_tools_of_its_server_and_nothing_else() -> None:
    scope = frozenset({"srv__*"})
    assert in_scope("srv__x", scope)
    for name in ("srv", "srv__", "srv_x", "other__x", "srvx", "my_srv__x"):
        assert not in_scope(name, scope)
    for glob in ("*", "s*", "srv_*"):
        assert not in_scope("srv__x", frozenset({glob}))


@pytest.mark.parametrize(
    ("parent", "child", "result"),
    [
        (None, None, None),
        (None, {"a"}, {"a"}),
        ({"a"}, None, {"a"}),
        ({"a", "b"}, {"b", "c"}, {"b"}),
        ({"a"}, set(), set()),
        ({"s__*"}, {"s__x", "t__x"}, {"s__x"}),
        ({"s__x"}, {"s__*"}, {"s__x"}),
        ({"s__*"}, {"s__*"}, {"s__*"}),
        ({"s__*"}, {"s__t__*"}, {"s__t__*"}),
        ({"s__t__*"}, {"s__*"}, {"s__t__*"}),
        ({"s__*"}, {"t__*"}, set()),
    ],
)
def test_narrowing(
    parent: set[str] | None, child: set[str] | None, result: set[str] | None
) -> None:
    def scope(names: set[str] | None) -> Scope:
        return None if names is None else frozenset(names)

    assert narrow(scope(parent), scope(child)) == scope(result)


_NAMES = ["a", "s", "s__x", "s__t__y", "t__x"]
_SCOPES = st.none() | st.frozensets(st.sampled_from([*_NAMES, "s__*", "s__t__*", "t__*"]))


@given(parent=_SCOPES, child=_SCOPES)
def test_peers_77_a_child_may_use_exactly_what_both_allow(parent: Scope, child: Scope) -> None:
    both = narrow(parent, child)
    for name in _NAMES:
        assert in_scope(name, both) == (in_scope(name, parent) and in_scope(name, child))
