"""Hypothesis strategies for any class of the contract, made from its types."""

import types
from typing import Any, Literal, NewType, Union, get_args, get_origin

import attrs
from hypothesis import strategies as st

from callboard_rpc.common import UNSET, Unset
from callboard_rpc.events import EVENT_TYPES, Event, UnknownData

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
numbers = st.floats(allow_nan=False, allow_infinity=False)
integers = st.integers(-(2**53), 2**53)

json_values = st.recursive(
    st.none() | st.booleans() | integers | numbers | text,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["jsonrpc", "class", "type", "_meta"]) | text, inner)
    ),
    max_leaves=6,
)
json_objects = st.dictionaries(
    st.sampled_from(["jsonrpc", "class", "type", "_meta", "data"]) | text, json_values, max_size=3
)

_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    Any: json_values,
    str: text,
    int: integers,
    float: numbers,
    bool: st.booleans(),
    type(None): st.none(),
    Unset: st.just(UNSET),
}


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of `kind`: a class of the contract, or a type that one of its fields has."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    if isinstance(kind, NewType):
        return values(kind.__supertype__)
    if kind is Event:
        return _events()
    origin, args = get_origin(kind), get_args(kind)
    if origin is Literal:
        return st.sampled_from(args)
    if origin in (Union, types.UnionType):
        return st.one_of([values(arg) for arg in args])
    if origin is tuple:
        return st.lists(values(args[0]), max_size=2).map(tuple)
    if origin is dict:
        return json_objects if args[1] is Any else st.dictionaries(text, values(args[1]))
    cls = attrs.resolve_types(origin or kind)
    bound = dict(zip(getattr(cls, "__parameters__", ()), args, strict=False))
    return st.builds(cls, **{a.name: values(_put_in(a.type, bound)) for a in attrs.fields(cls)})


def _put_in(kind: Any, bound: dict[Any, Any]) -> Any:
    if get_origin(kind) is tuple and get_args(kind)[0] in bound:
        return types.GenericAlias(tuple, (bound[get_args(kind)[0]], ...))
    return kind


def _events() -> st.SearchStrategy[Event]:
    known = st.sampled_from(sorted(EVENT_TYPES)).flatmap(
        lambda name: st.tuples(st.just(name), values(EVENT_TYPES[name]))
    )
    unknown = st.tuples(text.filter(lambda name: name not in EVENT_TYPES), json_objects).map(
        lambda pair: (pair[0], UnknownData(type=pair[0], data=pair[1]))
    )
    fields = {
        a.name: values(a.type)
        for a in attrs.fields(attrs.resolve_types(Event))
        if a.name not in ("type", "data")
    }
    return (known | unknown).flatmap(
        lambda pair: st.builds(Event, type=st.just(pair[0]), data=st.just(pair[1]), **fields)
    )
