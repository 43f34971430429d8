"""Commands as display terminals: what goes there, and which way is taken."""

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.acp.agent.displays import Display, notes_of, way_of
from callboard.acp.contract.server import ClientCapabilities
from callboard_rpc.events import ToolResult

BOTH = ClientCapabilities(terminal=True, meta={"terminal_output": True})
RUNS = ClientCapabilities(terminal=True)
SHOWS = ClientCapabilities(meta={"terminal_output": True})
NEITHER = ClientCapabilities(meta={"terminal_output": "yes"})


@pytest.mark.parametrize(
    ("able", "auto", "client", "own"),
    [
        (BOTH, "display", "client", "display"),
        (RUNS, "client", "client", "text"),
        (SHOWS, "display", "display", "display"),
        (NEITHER, "text", "text", "text"),
    ],
)
def test_the_way_is_chosen_by_what_is_declared_and_wanted(
    able: ClientCapabilities, auto: str, client: str, own: str
) -> None:
    assert (way_of(able, "auto"), way_of(able, "client"), way_of(able, "own")) == (
        auto,
        client,
        own,
    )


def shown(*pieces: str) -> str:
    display = Display("call_1")
    told = [display.printed(piece) for piece in pieces]
    return "".join(
        cast("Any", update.meta)["terminal_output"]["data"] for update in told if update is not None
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a\x1b[31mred\x1b[0m\tb\r\n", "a\x1b[31mred\x1b[0m\tb\r\n"),
        ("a\x1b[2J\x1b[Hb", "ab"),
        ("a\x1b]52;c;aGVsbG8=\x07b", "ab"),
        ("a\x1b]8;;https://example.org\x1b\\b", "ab"),
        ("a\x1bPq#0\x1b\\b", "ab"),
        ("a\x1b7\x1b(B\x1b=b\x07\x00\x9b5n", "ab5n"),
        ("a\x1b\x1b[K]52;c;eA==\x07b", "a]52;c;eA==b"),
        ("a\x1b", "a"),
    ],
)
def test_a_display_gets_text_and_colours_and_nothing_else(given: str, expected: str) -> None:
    assert shown(given) == expected


@given(st.text("\x1b\x07[]0;mKa\\(", max_size=30), st.data())
def test_it_does_not_matter_where_output_is_cut(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text)))
    assert shown(text[:at], text[at:]) == shown(text)


@given(st.lists(st.text(max_size=20), max_size=5))
def test_no_escape_but_of_colours_goes_through(pieces: list[str]) -> None:
    said = shown(*pieces)
    for part in said.split("\x1b")[1:]:
        head, m, _ = part.partition("m")
        assert m and head.startswith("[") and not head[1:].strip("0123456789;:")


def result(text: str, **more: Any) -> ToolResult:
    return ToolResult(call_id=cast("Any", "call_1"), name="run_command", text=text, **more)


def test_the_notes_of_a_result_follow_what_was_printed() -> None:
    display = Display("call_1")
    assert display.printed("out\n") is not None
    rest, over = display.ended(
        result("out\n[exit code 3]", status="error", exit_code=3), heard=True
    )
    assert rest is not None and rest.meta is not None
    assert rest.meta["terminal_output"]["data"] == "\n[exit code 3]\n"
    assert over.meta == {"terminal_exit": {"terminal_id": "call_1", "exit_code": 3, "signal": None}}
    assert over.content == display.content and over.status == "failed"


def test_of_what_nobody_heard_the_whole_is_shown() -> None:
    rest, over = Display("call_1").ended(result("out", status="ok", exit_code=0), heard=True)
    assert rest is not None and rest.meta is not None
    assert rest.meta["terminal_output"]["data"] == "out\n" and over.status == "completed"


def test_of_what_was_heard_in_part_the_text_stands_in_its_place() -> None:
    display = Display("call_1")
    rest, over = display.ended(result("out", status="ok", exit_code=0), heard=False)
    assert rest is None and over.content != display.content and over.meta is not None


def test_what_never_ran_has_a_text() -> None:
    display = Display("call_1")
    rest, over = display.ended(result("Denied: no.", status="denied"), heard=True)
    assert rest is None and over.content is not None and over.content != display.content


def test_notes_are_the_lines_in_brackets_at_the_end() -> None:
    assert notes_of("[a]\nout\n[exit code 1]\n[and more]") == "[exit code 1]\n[and more]"
    assert notes_of("out") == ""
