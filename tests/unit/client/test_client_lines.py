from hypothesis import given
from hypothesis import strategies as st

from callboard_client.lines import LineSplitter

LINES = st.lists(
    st.binary(min_size=1, max_size=40).map(lambda b: b.replace(b"\n", b"_").strip() or b"x")
)


@given(LINES, st.lists(st.integers(1, 20), min_size=1))
def test_lines_come_whole_however_the_stream_is_cut(lines: list[bytes], sizes: list[int]) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    splitter, got, at, turn = LineSplitter(), [], 0, 0
    while at < len(stream):
        size = sizes[turn % len(sizes)]
        got += splitter.feed(stream[at : at + size])
        at, turn = at + size, turn + 1
    assert got == lines


def test_a_line_of_many_megabytes_is_read() -> None:
    splitter = LineSplitter()
    piece = b"x" * 65536
    for _ in range(160):
        assert splitter.feed(piece) == []
    (line,) = splitter.feed(b"\n")
    assert len(line) == 160 * 65536


def test_a_line_over_the_limit_is_left_out_and_the_next_one_is_intact() -> None:
    splitter = LineSplitter(limit_bytes=10)
    assert splitter.feed(b"12345678901") == []
    assert splitter.feed(b"2345\nnext\n1234567890\n") == [b"next", b"1234567890"]
    assert splitter.dropped == 1


def test_empty_lines_and_carriage_returns_do_not_matter() -> None:
    assert LineSplitter().feed(b"\r\n\n{}\r\n") == [b"{}"]
