"""Cursors, limits, folders and ranges: whatever a client sends is a value or a named error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.rpc.attachments import cut
from callboard.rpc.pages import LARGEST, is_folder_name, number, page_size, text
from callboard_rpc.common import Position, Range
from callboard_rpc.errors import CallboardError


@given(st.text() | st.from_regex(r"-{0,3}[0-9]{1,25}", fullmatch=True))
def test_a_cursor_is_a_number_that_the_store_can_hold_or_is_refused(cursor):
    try:
        found = number(cursor, 7)
    except CallboardError as error:
        assert error.kind == "invalidCursor" and len(error.message) < 700
    else:
        assert abs(found) <= LARGEST < 2**63


@given(st.integers(-LARGEST, LARGEST))
def test_a_cursor_that_was_given_is_understood(value):
    assert number(text(value), 7) == value


def test_no_cursor_is_the_beginning():
    assert number(None, 7) == 7 and text(None) is None


@given(st.none() | st.integers(-(2**64), 2**64), st.integers(1, 10_000))
def test_a_page_has_at_least_one_item_and_at_most_the_maximum(limit, maximum):
    if limit is not None and limit < 1:
        with pytest.raises(CallboardError) as raised:
            page_size(limit, maximum)
        assert raised.value.data["errors"][0]["path"] == "$.limit"
    else:
        assert 1 <= page_size(limit, maximum) <= maximum


@pytest.mark.parametrize(
    ("path", "fits"),
    [
        ("/", True), ("/a/b/", True), ("", False), ("a", False), ("./a", False), ("~/a", False),
        ("/a\x00", False), ("/" + "x" * 5_000, False),
    ],
)  # fmt: skip
def test_a_folder_is_named_by_an_absolute_path(path, fits):
    assert is_folder_name(path) is fits


# --- ranges of a text, as LSP counts -------------------------------------------------------------------

TEXT = "zero\none 😀 x\r\ntwo\rthree\x0b\u2028still three\n"


def between(start_line, start, end_line, end):
    return Range(
        start=Position(line=start_line, character=start), end=Position(line=end_line, character=end)
    )


@pytest.mark.parametrize(
    ("range_", "part"),
    [
        (between(0, 0, 0, 4), "zero"),
        (between(0, 1, 0, 3), "er"),
        (between(0, 0, 1, 0), "zero\n"),
        (between(1, 0, 2, 0), "one 😀 x\r\n"),
        (between(1, 4, 1, 6), "😀"),
        (between(1, 4, 1, 5), ""),
        (between(2, 0, 3, 5), "two\rthree"),
        (between(3, 0, 4, 0), "three\x0b\u2028still three\n"),
        (between(0, 0, 99, 99), TEXT),
        (between(0, 99, 1, 3), "one"),
        (between(1, 3, 1, 3), ""),
        (between(2, 0, 1, 0), ""),
        (between(50, 0, 60, 0), ""),
    ],
)
def test_a_range_is_from_its_start_up_to_but_without_its_end(range_, part):
    assert cut(TEXT, range_) == part


@given(
    st.text(alphabet="ab\r\n😀\u2028", max_size=30),
    st.tuples(*[st.integers(0, 6)] * 4),
)
def test_a_range_is_never_more_than_the_text(whole, places):
    assert cut(whole, between(*places)) in whole
    assert cut(whole, between(0, 0, 99, 0)) == whole
