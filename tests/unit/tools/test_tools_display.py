"""Text from outside: storable, showable, short (`specs/interrupts-and-peers.md` #71, #72)."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.tools.display import clip, one_line, printable, well_formed
from callboard.tools.output import OutputBuffer

_HOSTILE = st.text(
    st.sampled_from("aé€😀\x00\ud83d\ude00\ud800\x1b\u202e\u2066\n\r\t\x85\ufeff\u200b"),
    max_size=40,
)


@given(text=_HOSTILE)
def test_peers_72_well_formed_text_is_valid_utf8_without_nul(text: str) -> None:
    made = well_formed(text)
    assert "\x00" not in made
    assert made.encode().decode() == made
    assert well_formed(made) == made


def test_peers_72_a_pair_of_surrogates_becomes_its_character() -> None:
    assert well_formed("\ud83d\ude00 \ud83d \x00") == "😀 \ufffd \ufffd"
    assert well_formed("plain é \x1b") == "plain é \x1b"


@given(text=_HOSTILE)
def test_printable_text_holds_nothing_that_moves_or_hides_text(text: str) -> None:
    made = printable(text)
    assert not set(made) & set("\x00\r\x1b\u202e\u2066\x85\ufeff\u200b\ud800")
    made.encode()
    title = one_line(text, 10)
    assert len(title) <= 10 and not set(title) & set("\n\t\r")


def test_printable_spells_out_what_it_takes_away() -> None:
    assert printable("a\u202eb\x1b[0m\r\nc\rd") == "a\\u202eb\\x1b[0m\nc\\x0dd"
    assert one_line("  a\n\n b\tc ") == "a b c"
    assert one_line("x" * 200) == "x" * 119 + "…"


@given(text=st.text(st.sampled_from("aé€😀\n"), max_size=300), limit=st.integers(0, 200))
def test_peers_71_clipping_keeps_head_and_tail_and_whole_characters(text: str, limit: int) -> None:
    clipped = clip(text, limit)
    if len(text.encode()) <= limit:
        assert (clipped.text, clipped.truncated) == (text, False)
        return
    assert clipped.truncated and "\ufffd" not in clipped.text
    head, _, rest = clipped.text.partition("\n[… ")
    left_out, _, tail = rest.partition(" bytes left out …]\n")
    assert text.startswith(head) and text.endswith(tail)
    assert len(head.encode()) + len(tail.encode()) <= limit
    assert int(left_out) == len(text.encode()) - len(head.encode()) - len(tail.encode())


@pytest.mark.parametrize("text", ["\ud800" * 100, "\x00" * 100])
def test_clipping_what_is_not_well_formed_does_not_fail(text: str) -> None:
    clip(text, 10).text.encode()


SECRET = "q7-known-to-the-process-0123456789"


@pytest.mark.parametrize("within", range(0, len(SECRET) + 3, 3))
def test_messaging_12_no_piece_of_a_secret_is_left_at_a_cut(within: int) -> None:
    """What stands there whole is known to the log, which hides it; half of one is not."""
    limit = 1_000
    before = ("a " * limit)[: limit // 2 - within - 1] + " "
    after = " " + (" c" * limit)[: limit // 2 - within - 1]
    text = f"{before}{SECRET}{' middle' * 400} {SECRET}{after}"
    buffer = OutputBuffer(kept_bytes=10 * len(text))
    buffer.feed(text.encode())
    for kept in (clip(text, limit), buffer.text(limit)):
        rest = kept.text.replace(SECRET, "")
        assert not any(piece in rest for piece in (SECRET[:1], SECRET[-1:] + " c", "known"))
        (left_out,) = re.findall(r"\[… (\d+) bytes left out …\]", kept.text)
        shown = len(kept.text.encode()) - len(f"\n[… {left_out} bytes left out …]\n".encode())
        assert shown + int(left_out) == len(text)


def test_a_word_without_end_is_cut_all_the_same() -> None:
    kept = clip("x" * 10_000, 4_000)
    assert kept.text == f"{'x' * 2_000}\n[… 6000 bytes left out …]\n{'x' * 2_000}"
