import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard_client.terminal_text import TerminalText, clean, clean_line

OBEYED = "\x1b\x9b\x07\r\x08\x00\x7f\x90\x9d\u202e\u2066\u200f\u2028\ufeff\U000e0041"


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]52;c;cm0gLXJm\x1b\\text", "text"),
        ("\x9b2Jcleared", "cleared"),
        ("\x1bP+q544e\x1b\\x", "x"),
        ("\x1bcreset", "reset"),
        ("\x1b(Bcharset", "charset"),
        ("a\rb", "a\nb"),
        ("a\r\nb", "a\nb"),
        ("rm\u202e fr- \u202c", "rm fr- "),
        ("a\u2066b\u2069", "ab"),
        ("tag\U000e0041\U000e0042", "tag"),
        ("bell\x07 null\x00 back\x08", "bell null back"),
        ("lone \ud800 surrogate", "lone \ufffd surrogate"),
        ("tab\tline\n", "tab\tline\n"),
        ("é 漢字 👩‍💻 עברית", "é 漢字 👩‍💻 עברית"),
        ("\x1b]0;never ended\nnext line", "\nnext line"),
        ("a\u2028b\x85c\x0bd", "a\nb\nc\nd"),
        ("cut \x1b", "cut "),
        ("nested \x1b\x1b[1mx", "nested x"),
    ],
)
def test_nothing_that_a_terminal_obeys_remains(hostile: str, shown: str) -> None:
    assert clean(hostile) == shown


@given(st.text(alphabet=st.sampled_from("ab;0[]PX^_\\mH \n" + OBEYED), max_size=80), st.data())
def test_text_in_pieces_is_shown_as_the_whole_would_be(text: str, data: st.DataObject) -> None:
    machine, got, at = TerminalText(), "", 0
    while at < len(text):
        size = data.draw(st.integers(1, 7))
        got += machine.feed(text[at : at + size])
        at += size
    assert got + machine.finish() == clean(text)


@given(st.text())
def test_the_result_is_printable_lines_and_tabs(text: str) -> None:
    shown = clean(text)
    assert not any(char in shown for char in OBEYED)
    assert shown.encode().decode() == shown
    assert clean(shown) == shown


def test_an_unfinished_control_string_hides_no_more_than_its_limit() -> None:
    assert clean("\x1b]" + "x" * 10_000).endswith("x" * 5_000)


def test_a_line_is_one_line_and_no_longer_than_asked() -> None:
    assert clean_line("a\n\x1b[31m b\t c") == "a b c"
    assert clean_line("x" * 50, 10) == "x" * 9 + "…"
