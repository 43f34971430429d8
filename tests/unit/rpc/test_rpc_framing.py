"""The parsers give the same frames for any splitting of the bytes, and never wedge."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.rpc.framing import (
    HEAD_BYTES,
    HEADER_LIMIT,
    Desync,
    Frame,
    FrameReader,
    Head,
    Oversize,
    encode_frame,
    read_head,
)

LIMIT = 64


def read(chunks, *, limit=LIMIT, framing=None):
    reader = FrameReader(limit=limit, framing=framing)
    items = [item for chunk in chunks for item in reader.feed(chunk)]
    return items + reader.finish()


def split(data, cuts):
    edges = [0, *sorted({c % (len(data) + 1) for c in cuts}), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


def header(length, *, name=b"Content-Length", end=b"\r\n", more=b""):
    return name + b": %d" % length + end + more + end


cuts = st.lists(st.integers(min_value=0, max_value=10_000), max_size=40)
bodies = st.lists(
    st.binary(min_size=1, max_size=LIMIT * 3).filter(lambda b: b"ength:" not in b), max_size=6
)
names = st.sampled_from(
    [b"Content-Length", b"content-length", b"CONTENT-LENGTH", b"Content-length"]
)
ends = st.sampled_from([b"\r\n", b"\n"])
extras = st.sampled_from(
    [b"", b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n", b"X-A:\n"]
)


@given(bodies, names, ends, extras, cuts, st.sampled_from([b"", b"\xef\xbb\xbf", b" \r\n\t"]))
def test_headers_in_any_case_with_either_line_end_split_anywhere_give_the_same_frames(
    frames, name, end, extra, places, before
):
    data = before + b"".join(header(len(b), name=name, end=end, more=extra) + b for b in frames)
    expected = [Frame(b) if len(b) <= LIMIT else Oversize(len(b), b[:HEAD_BYTES]) for b in frames]
    assert read(split(data, places), framing="lsp") == expected


@given(
    st.lists(
        st.binary(min_size=0, max_size=LIMIT * 3).filter(lambda b: b"\n" not in b), max_size=6
    ),
    cuts,
    st.booleans(),
)
def test_lines_split_anywhere_give_the_same_frames(lines, places, ended):
    data = b"\n".join([b"{}", *lines]) + (b"\n" if ended else b"")
    expected = [Frame(b"{}")]
    for line in lines:
        if len(line) > LIMIT:
            expected.append(Oversize(None, line[:HEAD_BYTES]))
        elif body := line.strip(b" \t\r\n"):
            expected.append(Frame(body))
    assert read(split(data, places), framing="ndjson") == expected


@given(st.binary(max_size=400), cuts)
def test_any_bytes_give_the_same_items_for_any_splitting(data, places):
    assert read(split(data, places)) == read([data])
    assert read(split(data, places), framing="lsp") == read([data], framing="lsp")


header_like = st.lists(
    st.sampled_from(
        [
            b"Content-Length: 5\r\n\r\n",
            b"content-length:3\n\n",
            b"{}",
            b'{"id":1}',
            b"\n",
            b"\r\n",
            b"x",
            b"Content-Length: 70\r\n\r\n",
            b"Content-Length: 9",
            b"Content-",
            b"A: b\r\n",
            b'"' * 70,
        ]
    ),
    max_size=12,
).map(b"".join)


@given(header_like, cuts, st.sampled_from(["lsp", "ndjson", None]))
def test_broken_streams_give_the_same_items_for_any_splitting(data, places, framing):
    assert read(split(data, places), framing=framing) == read([data], framing=framing)


@pytest.mark.parametrize(
    ("data", "framing"),
    [
        (b"Content-Length: 2\r\n\r\n{}", "lsp"),
        (b"content-length:2\n\n{}", "lsp"),
        (b'{"a":1}\n', "ndjson"),
        (b"[1]\n", "ndjson"),
        (b" \r\n\t{}\n", "ndjson"),
        (b"\xef\xbb\xbf{}\n", "ndjson"),
        (b"\xef\xbb\xbf\r\nContent-Length: 2\r\n\r\n{}", "lsp"),
        (b"17\n", "ndjson"),
    ],
)
def test_the_first_byte_that_is_not_blank_decides_the_framing(data, framing):
    for chunks in ([data], [bytes([b]) for b in data]):
        reader = FrameReader()
        items = [i for c in chunks for i in reader.feed(c)]
        assert reader.framing == framing
        assert len(items) == 1


def test_a_partial_byte_order_mark_decides_nothing():
    reader = FrameReader()
    assert reader.feed(b"\xef\xbb") == []
    assert reader.framing is None


@pytest.mark.parametrize(
    "data",
    [
        b"hello\r\n",
        b"Content-Type: x\r\n\r\n",
        b"Content-Length: ten\r\n\r\n",
        b"Content-Length: -5\r\n\r\n",
        b"Content-Length:\r\n\r\n",
        b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"Content-Length: 1000000000000000\r\n\r\n",
        b'}Content-Length: 5\r\n\r\n{"a"}',
        b"X: " + b"y" * HEADER_LIMIT + b"\r\n",
        b"X" * (HEADER_LIMIT + 1),
        b"A: b\r\n" * (HEADER_LIMIT // 6 + 1),
    ],
)
def test_a_header_block_that_cannot_be_one_is_reported_and_ends_the_stream(data):
    reader = FrameReader(framing="lsp")
    (item,) = reader.feed(data)
    assert isinstance(item, Desync)
    assert reader.feed(b"Content-Length: 2\r\n\r\n{}") == []


def test_a_length_that_is_too_small_is_noticed_at_the_next_header():
    items = read([header(5) + b'{"a":1}' + header(2) + b"{}"], framing="lsp")
    assert items[0] == Frame(b'{"a":')
    assert isinstance(items[1], Desync)


def test_a_length_that_is_too_large_is_noticed_while_the_next_message_arrives():
    reader = FrameReader(framing="lsp")
    assert reader.feed(header(1000) + b'{"a":1}') == []
    (item,) = reader.feed(header(7) + b'{"a":1}')
    assert isinstance(item, Desync)


def test_a_length_that_is_too_large_is_noticed_while_skipping():
    reader = FrameReader(limit=10, framing="lsp")
    assert reader.feed(header(100_000) + b'{"id":1}') == []
    items = reader.feed(header(7) + b'{"a":1}')
    assert items[0] == Oversize(100_000, b'{"id":1}' + header(7)[:-2])
    assert isinstance(items[1], Desync)


@pytest.mark.parametrize("framing", ["lsp", "ndjson"])
def test_a_frame_over_the_limit_is_skipped_exactly_and_not_buffered(framing):
    limit = 100_000
    big = b'{"id":7,"method":"m","params":"' + b"x" * (3 * limit) + b'"}'
    reader = FrameReader(limit=limit, framing=framing)
    data = encode_frame(framing, b"{}") + encode_frame(framing, big) + encode_frame(framing, b"[]")
    items, held = [], 0
    for start in range(0, len(data), 4096):
        items += reader.feed(data[start : start + 4096])
        held = max(held, len(reader._buffer))
    assert held <= limit + 4096
    assert [type(i) for i in items] == [Frame, Oversize, Frame]
    assert read_head(items[1].head) == Head(7, "request")


def test_a_frame_of_exactly_the_limit_is_accepted():
    body = b"[" + b"1" * (LIMIT - 2) + b"]"
    assert read([body + b"\n"], framing="ndjson") == [Frame(body)]
    assert read([encode_frame("lsp", body)], framing="lsp") == [Frame(body)]


def test_an_oversize_frame_is_reported_before_its_end_has_come():
    reader = FrameReader(limit=10, framing="lsp")
    (item,) = reader.feed(header(1_000_000) + b'{"id":"a",' + b" " * HEAD_BYTES)
    assert isinstance(item, Oversize)
    assert read_head(item.head).id == "a"


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"id":9', Head(7, "request")),
        (b'{"method":"m","id":"a\\"b","params":', Head('a"b', "request")),
        (b'{"params":{"id":9,"method":"x"},"id":3,', Head(3, "unknown")),
        (b'{"id":12', Head(None, "unknown")),
        (b'{"id":-12}', Head(-12, "unknown")),
        (b'{"id":1.5,"method":"m"}', Head(None, "request")),
        (b'{"id":null,"method":"m"}', Head(None, "request")),
        (b'{"id":"unfinished', Head(None, "unknown")),
        (b'{"id":4,"result":"xxxx', Head(4, "response")),
        (b'{"jsonrpc":"2.0","method":"m","params":"a long \\', Head(None, "request")),
        (b'[{"id":1}', Head(None, "unknown")),
        (b"not json", Head(None, "unknown")),
        (b'{"id":"\\ud83d"}', Head(None, "unknown")),
    ],
)
def test_the_id_is_read_from_the_top_level_of_a_head_only(head, expected):
    assert read_head(head) == expected


@given(st.binary(max_size=HEAD_BYTES))
def test_no_head_makes_the_reader_of_ids_fail(head):
    read_head(head)


@given(
    st.lists(st.binary(min_size=1, max_size=50).filter(lambda b: b.strip() == b and b"\n" not in b))
)
def test_what_is_encoded_is_read_back(frames):
    for framing in ("lsp", "ndjson"):
        data = b"".join(encode_frame(framing, b) for b in frames)
        if framing == "ndjson" and data.startswith(b"\xef\xbb\xbf"):
            continue
        assert read([data], framing=framing) == [Frame(b) for b in frames]
