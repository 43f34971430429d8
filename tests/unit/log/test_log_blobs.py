"""Large values: cut in the event, whole in a blob, kept as long as a session refers to them."""

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_workbench import AGENT, CLIENT, called, log_at, returned, said, session_in, texts

from callboard.log.text import LARGE, head_and_tail, restore, spill, well_formed
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import UnknownData

pytestmark = pytest.mark.anyio

_KEYS = st.text(st.sampled_from("ab/~01é"), max_size=4)
_TEXTS = st.one_of(
    st.text(max_size=20),
    st.builds(
        lambda c, n: c * n, st.sampled_from("aé漢🙂"), st.sampled_from([16_384, 22_000, 70_000])
    ),
)
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), _TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_KEYS, inner, max_size=3)),
    max_leaves=8,
)


@given(value=st.dictionaries(_KEYS, _VALUES, max_size=3))
def test_restore_is_the_inverse_of_spill_for_any_json(value: dict[str, Any]) -> None:
    original = json.loads(json.dumps(value))
    slim, parts = spill(value)
    assert value == original  # the value itself is left alone
    assert all(len(text.encode()) > LARGE for text in parts.values())
    stored = json.loads(json.dumps(slim))
    assert _longest(stored) <= LARGE
    assert restore(stored, parts) == original


def _longest(value: Any) -> int:
    match value:
        case str():
            return len(value.encode())
        case dict():
            return max((_longest(v) for v in value.values()), default=0)
        case list():
            return max((_longest(v) for v in value), default=0)
        case _:
            return 0


@given(st.text(st.characters(exclude_categories=()), max_size=50))
def test_interrupts_72_well_formed_text_is_valid_utf8_and_good_text_is_unchanged(text: str) -> None:
    clean = well_formed(text)
    clean.encode()
    assert well_formed(clean) == clean
    if "\x00" not in text and not any("\ud800" <= c <= "\udfff" for c in text):
        assert clean == text


def test_a_surrogate_pair_in_two_halves_becomes_its_character() -> None:
    assert well_formed("a\ud83d\ude42b") == "a🙂b"


@given(st.text(min_size=1, max_size=60), st.integers(1, 20))
def test_interrupts_71_head_and_tail_are_the_text_s_own(text: str, kept: int) -> None:
    cut = head_and_tail(text, kept)
    if len(text) <= 2 * kept:
        assert cut == text
    else:
        assert cut.startswith(text[:kept])
        assert cut.endswith(text[-kept:])


async def test_a_large_text_is_cut_in_the_event_and_comes_back_whole(store_path: Path) -> None:
    text = "".join(f"line {n} ünïcödé 🙂\n" for n in range(10_000))
    async with log_at(store_path) as log:
        await session_in(log)
        await log.append("ses_a", returned("c1", text), actor=AGENT, turn_id="trn")
    async with log_at(store_path) as log:
        record = (await log.session("ses_a"))[-1]
        assert len(record.data) < 40_000
        cut = record.value.text
        assert cut.startswith(text[:8_000])
        assert cut.endswith(text[-8_000:])
        assert "characters" in cut[8_000:8_100]
        assert (await log.whole(record))["text"] == text
        assert "_blobs" not in await log.whole(record)
        reference = json.loads(record.data)["_blobs"]["/text"]
        assert reference["bytes"] == len(text.encode())
        assert reference["blobId"] == f"blob_{hashlib.sha256(text.encode()).hexdigest()}"


async def test_several_large_texts_of_one_event_come_back_each_to_its_place(
    store_path: Path,
) -> None:
    arguments = {"a/b": "x" * 80_000, "~": ["small", "y" * 90_000], "": {"k": "é" * 40_000}}
    async with log_at(store_path) as log:
        await session_in(log)
        record = await log.append("ses_a", called("c1", **arguments), actor=AGENT, turn_id="trn")
        assert len(record.data) < 80_000
        assert (await log.whole(record))["arguments"] == arguments


async def test_many_texts_below_the_limit_stay_in_their_event(store_path: Path) -> None:
    odd = UnknownData(type="odd", data={str(n): "x" * 60_000 for n in range(5)})
    async with log_at(store_path) as log:
        await session_in(log)
        record = await log.append("ses_a", odd, actor=CLIENT)
        assert json.loads(record.data) == odd.data


async def test_a_blob_is_kept_once_and_goes_with_the_last_session_that_refers_to_it(
    store_path: Path,
) -> None:
    text = "z" * 100_000
    async with log_at(store_path) as log:
        for each in ("ses_a", "ses_b"):
            await session_in(log, each)
            for n in range(3):
                await log.append(each, returned(f"{each}{n}", text), actor=AGENT, turn_id="trn")
        own = await log.put_blob("ses_a", b"\x00\xff only here", "application/octet-stream")
        assert (await log.query("SELECT count(*) FROM blobs"))[0][0] == 2
        shared = f"blob_{hashlib.sha256(text.encode()).hexdigest()}"

        await log.transact(lambda tx: tx.delete_session("ses_a", actor=CLIENT))
        assert (await log.read_blob(shared))[1] == 100_000
        with pytest.raises(CallboardError) as error:
            await log.read_blob(own.blob_id)
        assert error.value.kind == "blobNotFound"
        record = (await log.session("ses_b"))[-1]
        assert (await log.whole(record))["text"] == text

        await log.transact(lambda tx: tx.delete_session("ses_b", actor=CLIENT))
        assert await log.query("SELECT * FROM blobs") == []
        assert await log.query("SELECT * FROM blob_refs") == []


async def test_a_blob_is_read_in_pieces(store_path: Path) -> None:
    data = bytes(range(256)) * 1_000
    async with log_at(store_path) as log:
        await session_in(log)
        reference = await log.put_blob("ses_a", data, "application/octet-stream")
        assert reference.bytes == len(data)
        pieces = [
            (await log.read_blob(reference.blob_id, offset=at, length=100_000))[0]
            for at in range(0, len(data), 100_000)
        ]
        assert b"".join(pieces) == data
        piece, size, mime_type = await log.read_blob(reference.blob_id, offset=999_999)
        assert (piece, size, mime_type) == (b"", len(data), "application/octet-stream")


async def test_a_failed_append_leaves_no_blob(store_path: Path) -> None:
    async with log_at(store_path) as log:
        await session_in(log)

        def fails(tx: Any) -> None:
            tx.append("ses_a", returned("c1", "q" * 80_000), actor=AGENT, turn_id="trn")
            raise RuntimeError("after all")

        jobs = [log.submit(fails), log.submit(fails)]
        outcomes = await asyncio.gather(*jobs, return_exceptions=True)
        assert all(isinstance(o, RuntimeError) for o in outcomes)
        assert await log.query("SELECT * FROM blobs") == []


async def test_a_deletion_leaves_only_that_it_happened(store_path: Path) -> None:
    async with log_at(store_path) as log:
        for each in ("ses_a", "ses_b"):
            await session_in(log, each)
            await log.append(each, said(f"hello from {each}"), actor=CLIENT)
            await log.append(each, returned(f"{each}1", "x" * 70_000), actor=AGENT, turn_id="trn")
            await log.append_draft(
                session_id=each, turn_id=f"trn_{each}", message_id="m", answer="draft", thought="",
                next_index="{}",
            )  # fmt: skip
        await log.index_all()
        seq = (await log.session("ses_a"))[-1].seq
        assert await log.transact(lambda tx: tx.delete_session("ses_a", actor=CLIENT))
        assert not await log.transact(lambda tx: tx.delete_session("ses_a", actor=CLIENT))

        left = await log.session("ses_a")
        assert [(r.type, r.seq) for r in left] == [("session_deleted", seq + 1)]
        assert await log.search("hello", session_id="ses_a", limit=9) == []
        assert [h.record.session_id for h in await log.search("hello", limit=9)] == ["ses_b"]
        assert await log.draft("trn_ses_a") is None
        assert await log.draft("trn_ses_b") is not None
        for table in ("heads", "blob_refs", "sessions", "triggers"):
            rows = await log.query(f"SELECT * FROM {table} WHERE session_id = 'ses_a'")
            assert rows == []
        assert await texts(log, "ses_b") == ["hello from ses_b"]
        with pytest.raises(CallboardError) as error:
            await log.append("ses_a", said("ghost"), actor=CLIENT)
        assert error.value.kind == "sessionNotFound"
