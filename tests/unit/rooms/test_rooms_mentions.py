"""Whom a text addresses (session-messaging 9): the table of the grammar, and its properties."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.rooms.mentions import mentioned, mentions, named

MEMBERS = ("alpha", "beta", "Gamma", "delta.v2", "eta_", "beta-two")


@pytest.mark.parametrize(
    ("text", "who"),
    [
        # at the start of a word
        ("@beta", "beta"),
        ("@beta have a look", "beta"),
        ("have a look, @beta", "beta"),
        ("\t@beta", "beta"),
        ("first\n@beta", "beta"),
        ("first\r\n@beta", "beta"),
        # after punctuation
        ("(@beta)", "beta"),
        ("**@beta**", "beta"),
        ("_@beta_", "beta"),
        ("__@beta__", "beta"),
        ("hi,@beta", "beta"),
        ("done.@beta", "beta"),
        ('"@beta"', "beta"),
        ("[@beta]", "beta"),
        ("@@beta", "beta"),
        ("¿@beta?", "beta"),
        ("…@beta…", "beta"),
        # the end of a sentence
        ("over to @beta.", "beta"),
        ("over to @beta...", "beta"),
        ("over to @beta!", "beta"),
        ("is it @beta?", "beta"),
        ("@beta: please", "beta"),
        ("@beta, please", "beta"),
        ("@beta's turn", "beta"),
        ("@beta-", "beta"),
        ("@beta — please", "beta"),
        # whole names, in whatever case
        ("@BETA", "beta"),
        ("@gamma", "Gamma"),
        ("@betatron", None),
        ("@bet", None),
        ("@beta-two", "beta-two"),
        ("@beta-three", None),
        ("@beta_two", None),
        ("@delta.v2", "delta.v2"),
        ("@delta.v2.", "delta.v2"),
        ("@delta.v", None),
        ("@eta_", "eta_"),
        ("@eta", None),
        ("@betä", None),
        # the first of several, of those who take part
        ("@stranger, @beta and @alpha", "beta"),
        ("@beta/@alpha", "beta"),
        # addresses and places
        ("me@beta", None),
        ("me@beta.org", None),
        ("me_@beta.org", None),
        ("mail <me@beta.org> now", None),
        ("@beta@example.org", None),
        ("https://example.org/@beta", None),
        ("see https://example.org/x?to=@beta", None),
        ("npm i @beta/core", None),
        (r"\@beta", None),
        # nothing
        ("", None),
        ("@", None),
        ("@ beta", None),
        ("beta", None),
        ("@.beta", None),
        # code
        ("`@beta`", None),
        ("``a ` @beta``", None),
        ("`a` @beta `b`", "beta"),
        ("` @beta", "beta"),
        ("`` @beta `", "beta"),
        ("`a\n@beta`", None),
        ("`a\n\n@beta`", "beta"),
        ("```\n@beta\n```", None),
        ("```\n@beta\n```\n@alpha", "alpha"),
        ("```py\n@beta\ndef f(): ...\n```", None),
        ("~~~\n@beta\n```\n~~~", None),
        ("````\n```\n@beta\n````", None),
        ("```\n@beta", None),
        ("```a`b\n@beta", "beta"),
        ("- ```\n  @beta\n  ```\n@alpha", "alpha"),
        ("```\r\n@beta\r\n```\r\n@alpha", "alpha"),
        ("```\n```@beta\n@alpha", None),
        # quotes
        ("> @beta", None),
        ("  > @beta said so", None),
        ("> > @beta", None),
        (">@beta", None),
        ("> @beta\n@alpha", "alpha"),
        ("a > @beta", "beta"),
        ("> ```\n@beta", "beta"),
    ],
)
def test_rooms_mention_grammar(text: str, who: str | None) -> None:
    assert mentioned(text, MEMBERS) == who


def test_rooms_a_member_that_mentions_itself_is_skipped_and_the_next_one_is_tried() -> None:
    assert mentioned("I, @alpha, ask @ALPHA and @beta", MEMBERS, by="Alpha") == "beta"
    assert mentioned("@alpha", MEMBERS, by="alpha") is None


def test_rooms_the_longest_name_is_meant() -> None:
    assert named("eta_", ("eta", "eta_")) == "eta_"
    assert named("eta_.", ("eta", "eta_")) == "eta_"
    assert named("eta-", ("eta", "eta_")) == "eta"


_NAMES = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9_.-]{0,12}\Z").filter(
    lambda name: name[-1] not in "._-"
)
_BEFORE = st.sampled_from(["", " ", "\n", "hi ", "(", "**", ", ", "!", "«", "[", "'", "x. "])
_AFTER = st.sampled_from(["", " ", ".", "...", ")", "**", ",", "!", "?", ":", "\n", " then", "»"])


@given(name=_NAMES, before=_BEFORE, after=_AFTER)
def test_rooms_a_name_is_found_between_whatever_a_sentence_has(
    name: str, before: str, after: str
) -> None:
    assert mentioned(f"{before}@{name}{after}", [name.swapcase()]) == name.swapcase()


@given(name=_NAMES, local=st.from_regex(r"\A[a-z0-9][a-z0-9._]{0,8}[a-z0-9]\Z"))
def test_rooms_an_address_is_no_mention(name: str, local: str) -> None:
    assert mentioned(f"write to {local}@{name}, please", [name]) is None


@given(name=_NAMES, other=_NAMES)
def test_rooms_only_the_whole_name_counts(name: str, other: str) -> None:
    found = mentioned(f"@{name}", [other])
    assert (found == other) == (name.casefold() == other.casefold())


@given(name=_NAMES, around=st.text(alphabet="ab \n", max_size=12))
def test_rooms_what_stands_in_a_fence_is_nobodys(name: str, around: str) -> None:
    fenced = f"```\n{around}\n@{name}\n{around}\n```"
    assert mentioned(fenced, [name]) is None
    assert mentioned(f"{fenced}\n@{name}", [name]) == name


@given(st.text(alphabet="@`~> \n\\_a.b-/:\r", max_size=200))
def test_rooms_any_text_is_read(text: str) -> None:
    for token in mentions(text):
        assert f"@{token}" in text


@pytest.mark.parametrize(
    "piece", ["@a", "`", "`a", "@_", "_", "```\n", "> ", "`` ` ", "@a/", "://@", "~~~x\n", "\\@"]
)
def test_rooms_no_text_makes_the_writer_wait(piece: str) -> None:
    """Whatever a prompt repeats: half a mebibyte of it is read in a moment."""
    text = piece * (512 * 1024 // len(piece))
    began = time.process_time()
    mentioned(text, MEMBERS)
    assert time.process_time() - began < 5
