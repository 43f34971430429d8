"""What a terminal has printed since it was last looked at."""

from hypothesis import given
from hypothesis import strategies as st

from callboard.acp.agent.growth import GAP, Growth

KEPT = 1000


def taken(*looks: tuple[str, bool]) -> list[str]:
    growth = Growth()
    return [growth.take(output, cut=cut, kept_chars=KEPT) for output, cut in looks]


@given(st.lists(st.text(st.characters(blacklist_characters="\r"), max_size=40), max_size=8))
def test_what_only_grows_is_passed_on_once(pieces: list[str]) -> None:
    so_far = ["".join(pieces[: i + 1]) for i in range(len(pieces))]
    assert "".join(taken(*((text, False) for text in so_far))) == "".join(pieces)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=20))
def test_what_loses_its_beginning_is_passed_on_once_while_the_looks_overlap(
    counts: list[int],
) -> None:
    numbers = iter(range(10_000))
    growth, whole, seen = Growth(), "", ""
    for count in counts:
        whole += "".join(f"{next(numbers)}\n" for _ in range(count))
        seen += growth.take(whole[-KEPT:], cut=len(whole) > KEPT, kept_chars=KEPT)
    assert seen == whole


def test_a_hole_is_told() -> None:
    first, second = taken(("a" * 50, False), ("b" * 50, True))
    assert (first, second) == ("a" * 50, GAP + "b" * 50)
    assert taken(("tail", True)) == [GAP + "tail"], "there was something before it"


def test_what_is_longer_than_asked_for_counts_as_cut() -> None:
    growth = Growth()
    assert growth.take("x" * (KEPT + 1), cut=False, kept_chars=KEPT) == GAP + "x" * KEPT
    assert growth.cut


def test_lines_that_are_drawn_over_come_again() -> None:
    assert taken(("one\n10%", False), ("one\n100%\ntwo", False)) == ["one\n10%", "\n100%\ntwo"]
    assert taken(("one\ntwo\n", False), ("", False)) == ["one\ntwo\n", ""], "it was cleared"


def test_line_ends_of_terminals_are_line_ends() -> None:
    assert taken(("one\r\ntwo\r\n", False)) == ["one\ntwo\n"]
