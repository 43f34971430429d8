"""Texts in pieces that fit a frame, whatever is in them."""

import orjson
from hypothesis import given
from hypothesis import strategies as st

from callboard.acp.agent.texts import cut, cut_values, fenced, pieces, weight

HOSTILE = st.text(alphabet=st.sampled_from('ab"\\\n\x00\x7f\u2028é漢🙂'), max_size=400)


@given(text=HOSTILE, limit=st.integers(min_value=16, max_value=200))
def test_pieces_are_the_text_and_each_fits(text: str, limit: int) -> None:
    found = list(pieces(text, limit))
    assert "".join(found) == text
    assert all(piece and weight(piece) <= limit for piece in found)


@given(text=HOSTILE, limit=st.integers(min_value=100, max_value=400))
def test_what_is_cut_fits_and_begins_and_ends_as_it_did(text: str, limit: int) -> None:
    shown = cut(text, limit)
    assert weight(shown) <= limit
    assert shown == text or (shown[:1] == text[:1] and shown[-1:] == text[-1:])


def test_values_are_cut_as_little_as_it_takes() -> None:
    small = {"path": "a", "edits": [{"old": "x"}]}
    assert cut_values(small, 1000) is small
    large = {"path": "a.txt", "content": "x" * 50_000}
    shown = cut_values(large, 12_000)
    assert shown["path"] == "a.txt" and weight(shown) <= 12_000
    many = {"paths": ["y" * 150] * 10_000}
    assert set(cut_values(many, 12_000)) == {"note"}


def test_a_fence_is_longer_than_any_in_the_text() -> None:
    shown = fenced("a\n```\nb")
    assert shown.startswith("````\n") and shown.endswith("\n````")
    assert orjson.dumps(shown)
