"""Server-sent events: whatever the network does to the bytes, the same events come out."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.models.sse import SseEvent, SseParser, SseTooLarge
from fakes.http_fake import ways_to_split


def parse(*chunks: bytes) -> list[SseEvent]:
    parser = SseParser()
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return events + parser.close()


def data(*texts: str) -> list[SseEvent]:
    return [SseEvent(event=None, data=text) for text in texts]


STREAM = "\ufeff: hello\n\nevent: greeting\ndata: Grüße 🧀\ndata:\ndata:  two\nid: 7\nretry: 10\n\n:\ndata: {}\n\n".encode()
EVENTS = [SseEvent(event="greeting", data="Grüße 🧀\n\n two"), SseEvent(event=None, data="{}")]


@pytest.mark.parametrize("way", ways_to_split(STREAM))
def test_boundaries_and_line_ends_change_nothing(way: str) -> None:
    assert parse(*ways_to_split(STREAM)[way]) == EVENTS


@given(st.lists(st.integers(0, len(STREAM)), max_size=12), st.sampled_from(["\n", "\r\n", "\r"]))
def test_any_boundaries_change_nothing(cuts: list[int], line_end: str) -> None:
    stream = STREAM.replace(b"\n", line_end.encode())
    edges = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    chunks = [stream[a:b] for a, b in pairwise(edges)]
    assert parse(*chunks) == EVENTS


def test_mixed_line_ends_within_one_stream() -> None:
    assert parse(b"data: a\r\n\r\ndata: b\r\rdata: c\n\n") == data("a", "b", "c")


def test_a_lone_cr_ends_its_line_without_waiting_for_the_next_chunk() -> None:
    parser = SseParser()
    assert parser.feed(b"data: a\r\r") == data("a")
    assert parser.feed(b"\ndata: b\n\n") == data("b")


def test_an_event_without_data_is_none() -> None:
    assert parse(b"event: ping\n\ndata: a\n\n") == data("a")


def test_a_name_holds_for_one_event_only() -> None:
    assert parse(b"event: x\ndata: a\n\ndata: b\n\n") == [
        SseEvent(event="x", data="a"),
        SseEvent(event=None, data="b"),
    ]


def test_only_one_space_belongs_to_the_field_and_unknown_fields_to_nobody() -> None:
    assert parse(b"data:x\ndata:  y\ndatum: z\ndata\n\n") == data("x\n y\n")


def test_the_end_completes_an_event_that_lacks_its_blank_line() -> None:
    assert parse(b"data: a\n\ndata: [DONE]") == data("a", "[DONE]")
    assert parse(b"data: [DONE]\n") == data("[DONE]")


def test_bytes_that_are_no_utf8_become_replacement_characters() -> None:
    assert parse(b"data: a\xffb\n\n") == data("a\ufffdb")


def test_a_byte_order_mark_counts_at_the_start_only() -> None:
    assert parse(b"\xef\xbb", b"\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n") == data("a")


@pytest.mark.parametrize("lines", [b"data: ", b"event: e\ndata: x\ndata: "])
def test_an_event_is_bounded_in_one_line_and_over_many(lines: bytes) -> None:
    parser = SseParser(max_event_bytes=1000)
    with pytest.raises(SseTooLarge, match="1000 bytes"):
        for _ in range(200):
            parser.feed(lines + b"y" * 10)
            if lines.startswith(b"event"):
                parser.feed(b"\n")


def test_the_bound_is_of_an_event_and_not_of_a_stream() -> None:
    parser = SseParser(max_event_bytes=100)
    for _ in range(100):
        assert parser.feed(b"data: " + b"y" * 40 + b"\n\n") == data("y" * 40)
    for _ in range(100):
        assert parser.feed(b": a comment that says nothing\n") == []
