"""Values of the contract are those that attrs makes, made in less time."""

import copy
import pickle
from typing import Any

import attrs
import pytest

from callboard_rpc.common import Actor, Page, TextContent
from callboard_rpc.frozen import frozen


@frozen(kw_only=True)
class Nothing:
    """A value without fields."""


@frozen(kw_only=True)
class One:
    value: Any = None


@attrs.frozen(kw_only=True)
class OfAttrs:
    value: Any = None
    other: str = "x"


@frozen(kw_only=True)
class Ours:
    value: Any = None
    other: str = "x"


@pytest.mark.parametrize("value", [None, 1, "a'b", (1, 2), [3], {"a": [1]}, float("inf")])
def test_a_value_reads_as_one_of_attrs(value: object) -> None:
    assert repr(Ours(value=value)) == repr(OfAttrs(value=value)).replace("OfAttrs", "Ours")


def test_values_are_equal_by_class_and_by_every_field() -> None:
    assert Nothing() == Nothing() and One() == One(value=None)
    assert Ours(value=1) == Ours(value=1, other="x")
    assert Ours(value=1) != Ours(value=2)
    assert Ours(value=1) != Ours(value=1, other="y")
    assert Ours(value=1) != OfAttrs(value=1) and Nothing() != One() and One() != None  # noqa: E711
    assert One(value=(1, 2)) != (1, 2)


def test_equal_values_are_one_key_and_what_they_hold_must_be_hashable() -> None:
    assert len({Ours(value=1), Ours(value=1), Ours(value=2), Nothing(), Nothing()}) == 3
    assert hash(One(value=1)) != hash(Ours(value=1))
    with pytest.raises(TypeError):
        hash(One(value=[]))


def test_a_value_cannot_be_changed_and_takes_nothing_else() -> None:
    one = One(value=1)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        one.value = 2  # pyright: ignore
    with pytest.raises(AttributeError):
        object.__setattr__(one, "more", 2)
    with pytest.raises(TypeError):
        One(1)  # pyright: ignore


def test_a_value_can_be_copied_changed_and_carried_away() -> None:
    actor = Actor(kind="client", id="c", name="n")
    assert attrs.evolve(actor, name=None) == Actor(kind="client", id="c")
    assert copy.deepcopy(actor) == actor == pickle.loads(pickle.dumps(actor))
    assert attrs.asdict(TextContent(text="t")) == {"type": "text", "text": "t"} | {
        name: None for name in attrs.fields_dict(TextContent) if name not in ("type", "text")
    }
    assert Page[str](data=("a",)) == Page[str](data=("a",))
