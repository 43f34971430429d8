"""Text that streams: no way of cutting it shows a secret, and nothing of it is lost."""

import random

import pytest

from callboard.log.redact import Redactor
from callboard.log.redact_stream import RedactedStream

EXACT = "hunter2-hunter2"
PEM = "-----BEGIN RSA PRIVATE KEY-----\n" + "\n".join(["Zm9vYmFyYmF6cXV4" * 4] * 5)
PEM += "\n-----END RSA PRIVATE KEY-----"
SECRETS = [
    "sk-proj-abcdefghij0123456789abcdef",
    "sk-ant-api03-abcdefghij0123456789",
    "ghp_abcdefghij0123456789abcdefghij0123",
    "github_pat_abcdefghij0123456789abcd",
    "AKIAABCDEFGHIJ012345",
    "xoxb-0123456789-abcdefghij",
    "aws_secret_access_key = abcdefghij0123456789abcdefghij0123456789",
    "Authorization: Bearer abcdefghij0123456789",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefghij0123456789",
    "sk_live_abcdefghij0123456789",
    EXACT,
    PEM,
]


def streamed(pieces):
    stream = RedactedStream(Redactor([EXACT]))
    return [*(stream.feed(piece) for piece in pieces), stream.end()]


def cut(text, chance, longest):
    pieces, at = [], 0
    while at < len(text):
        size = chance.randint(1, longest)
        pieces.append(text[at : at + size])
        at += size
    return pieces


@pytest.mark.parametrize("secret", SECRETS, ids=lambda s: s[:14])
@pytest.mark.parametrize("around", [("it is ", " you see"), ('{"k":"', '"}'), ("", "\n")])
def test_no_cut_shows_a_secret(secret, around):
    text = secret.join(around) * 2
    expected = Redactor([EXACT]).text(text)
    assert "[redacted:" in expected
    for seed in range(40):
        pieces = cut(text, random.Random(seed), 1 + seed % 7)
        assert "".join(streamed(pieces)) == expected


def test_ordinary_text_is_not_held_back():
    for piece in (
        "I begin",
        " the task-free tests, ",
        "and then.\n",
        "| --- | --- |\n",
        "Zürich 🙂",
    ):
        stream = RedactedStream(Redactor([EXACT]))
        assert stream.feed(piece) == piece


def test_what_is_held_comes_with_the_end_or_when_it_turns_out_to_be_nothing():
    stream = RedactedStream(Redactor())
    assert stream.feed("see sk-") == "see "
    assert stream.feed("eleton") == ""
    assert stream.feed(" here gh") == "sk-eleton here "
    assert stream.end() == "gh"
    assert stream.end() == ""


def test_what_never_ends_is_not_held_for_ever():
    stream = RedactedStream(Redactor())
    shown = stream.feed("-----BEGIN PRIVATE KEY-----\n")
    for _ in range(40):
        shown += stream.feed("!" * 1023 + "\n")
    assert len(shown) > 16 * 1024
