"""The words around a match: of the text, with the match in it, and in a time that the text's length bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.log.excerpt import Excerpts
from callboard.log.sqlite import sqlite3

LONG = "lorem ipsum " * 100


@pytest.mark.parametrize(
    ("query", "text", "shown"),
    [
        ([("needle", False)], f"{LONG}the Needle is {LONG}", "the Needle is lorem"),
        ([("need", True)], f"{LONG}the needles are {LONG}", "the needles are lorem"),
        ([("need", False)], f"no needles here {LONG}and need {LONG}", "ipsum and need lorem"),
        ([("CAFÉ", False)], f"{LONG}a cafe {LONG}", "a cafe lorem"),
        ([("cafe", False)], f"{LONG}a Café. {LONG}", "a Café."),
        ([("cafe", False)], f"{LONG}a Cafe\u0301 {LONG}", "a Cafe\u0301 lorem"),
        ([("cafe\u0301", False)], f"{LONG}a CAFE {LONG}", "a CAFE lorem"),
        ([("foo_bar", False)], f"{LONG}foo, then foo-bar {LONG}", "foo, then foo-bar lorem"),
        ([("a", False), ("b", False)], f"a {LONG} b {LONG} b and a {LONG}", "b and a"),
    ],
)
def test_an_excerpt_shows_the_match_as_the_index_finds_it(
    query: list[tuple[str, bool]], text: str, shown: str
) -> None:
    excerpt = Excerpts(query).of(text)
    assert shown in excerpt
    assert excerpt[0] == excerpt[-1] == "…"
    assert len(excerpt.split()) <= 24


def test_a_short_text_is_shown_whole_and_one_without_a_match_from_its_beginning() -> None:
    assert Excerpts([("is", False)]).of("this is all") == "this is all"
    assert Excerpts([("absent", False)]).of(f"first {LONG}").startswith("first lorem")
    assert Excerpts([("absent", False)]).of("") == ""


@pytest.mark.parametrize("text", ["a " * 130_000, "a" * 260_000, " " * 260_000, "é" * 260_000])
@pytest.mark.parametrize(
    "query", [[("a", False), ("b", False)], [("a_b_a", False)], [("aaa", True)]]
)
def test_an_excerpt_of_a_long_text_is_short(text: str, query: list[tuple[str, bool]]) -> None:
    assert len(Excerpts(query).of(text)) < 600


WORDS = st.sampled_from(
    ["a", "b", "ab", "Äb", "e\u0301a", "É", "_a", "a_b", "2", "ß", "日本", "İ", "-"]
)


@given(st.lists(WORDS, min_size=1, max_size=60), st.lists(WORDS, min_size=1, max_size=3))
def test_what_the_index_finds_the_excerpt_shows(said: list[str], asked: list[str]) -> None:
    """Against FTS5's own idea of it, which marks each match."""
    terms = [(word, False) for word in asked if any(c.isalnum() for c in word)]
    if not terms:
        return
    text = " ".join(said)
    excerpt = Excerpts(terms).of(text)
    assert excerpt.strip("…") in text
    index = sqlite3.connect(":memory:")
    index.execute(
        "CREATE VIRTUAL TABLE search USING fts5 (text, tokenize = 'unicode61 remove_diacritics 2')"
    )
    index.executemany("INSERT INTO search VALUES (?)", [(text,), (excerpt,)])
    expression = " OR ".join(f'"{word}"' for word, _ in terms)
    found = index.execute("SELECT rowid FROM search WHERE search MATCH ?", (expression,)).fetchall()
    index.close()
    assert found in ([], [(1,), (2,)])
