"""Search: what a naive scan finds, newest first; nothing hidden, nothing hostile, nothing for ever."""

import asyncio
import re
import unicodedata
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_care_kit import alter, look, mend
from log_workbench import AGENT, CLIENT, called, log_at, returned, said, session_in, tables, told

from callboard.log import migrating, search, store
from callboard.log.search import match_expression, searchable_text
from callboard_rpc.common import EmbeddedResource, MessageId, TextContent, Thinking, Usage
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import (
    Ack,
    Author,
    Error,
    Failure,
    Message,
    Notice,
    PlanEntry,
    PlanUpdated,
    SessionUpdated,
    Summary,
    TurnFinished,
    UnknownData,
)

pytestmark = pytest.mark.anyio

_WORDS = st.sampled_from(
    [
        "alpha",
        "Beta",
        "beta",
        "gamma_ray",
        "x1",
        "naïve",
        "Straße",
        "日本",
        "don't",
        "a-b",
        "alphabet",
    ]
)
_LINES = st.lists(_WORDS, max_size=6).map(" ".join)
_EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["person", "agent", "directive", "result", "summary", "notice", "hidden"]),
        _LINES,
    ),
    max_size=12,
)


def _event(kind: str, text: str, n: int) -> Any:
    author = Author(kind="system", name="s")
    match kind:
        case "directive":
            return told(text)
        case "result":
            return returned(f"c{n}", text)
        case "summary":
            return Summary(text=text, covers_through=0, author=author, reason="command")
        case "notice":
            title, _, more = text.partition(" ")
            return Notice(severity="warning", title=title, description=more or None)
        case "hidden":
            return PlanUpdated(entries=(PlanEntry(content=text),))
        case _:
            return said(text, by=kind)


def _tokens(text: str) -> list[str]:
    plain = "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))
    return re.findall(r"[^\W_]+", plain.lower())


def _naive(events: list[tuple[str, str]], query: str) -> list[str]:
    """Texts, newest first, that hold every word of the query (a word with ``_`` is a phrase)."""
    phrases = [_tokens(word) for word in re.findall(r"\w+", query)]
    hits: list[str] = []
    for kind, text in events:
        tokens = _tokens(text)
        if kind != "hidden" and all(
            any(tokens[i : i + len(p)] == p for i in range(len(tokens))) for p in phrases
        ):
            hits.append(text)
    return hits[::-1]


@given(
    events=_EVENTS,
    query=st.lists(_WORDS, min_size=1, max_size=3).map(" ".join),
    cut=st.integers(0, 12),
)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_coordination_7_search_equals_a_naive_scan_whatever_is_indexed(
    tmp_path_factory: pytest.TempPathFactory,
    events: list[tuple[str, str]],
    query: str,
    cut: int,
) -> None:
    async def run() -> None:
        folder = tmp_path_factory.mktemp("search")
        async with log_at(folder / "store.db", projections=()) as log:
            await session_in(log)
            for n, (kind, text) in enumerate(events):
                if n == cut:
                    await log.index_all()
                await log.append("ses_a", _event(kind, text, n), actor=AGENT)
            wanted = _naive(events, query)
            for limit in (1, 3, 50):
                hits = await log.search(query, limit=limit)
                assert [_text(h.record) for h in hits] == wanted[:limit]
            paged: list[str] = []
            before: int | None = None
            while page := await log.search(query, session_id="ses_a", before=before, limit=2):
                paged += [_text(h.record) for h in page]
                before = page[-1].record.pos
            assert paged == wanted

    anyio.run(run)


def _text(record: Any) -> str:
    text = searchable_text(record.type, record.data) or ""
    return text.replace("\n", " ") if record.type == "notice" else text


async def test_coordination_8_only_what_was_said_answered_and_printed_comes_out(
    store_path: Path,
) -> None:
    word = "needle"
    failure = Failure(kind="internal", message=word)
    hidden: list[Any] = [
        called("c1", name=word, argument=word),
        Ack(admits=(1,)),
        Error(error=failure),
        SessionUpdated(changes={"title": word}),
        PlanUpdated(entries=(PlanEntry(content=word),)),
        TurnFinished(
            turn_id=MessageId("trn"),  # pyright: ignore[reportArgumentType]
            outcome="failed",
            answered_through=0,
            usage=Usage(),
            error=failure,
            final_text=word,
        ),
        *(
            UnknownData(type=kind, data={"text": word, "content": word})
            for kind in (
                "agent_spawned", "agent_message_queued", "agent_status_changed",
                "agent_report_created", "agent_interrupt_requested", "agent_interrupted",
                "agent_close_requested", "agent_closed", "agent_group_created",
                "agent_group_member_joined", "group_task_created", "group_task_claimed",
                "group_task_released", "group_task_status_changed", "group_message_queued",
                "group_message_delivered",
            )
        ),
    ]  # fmt: skip
    thought = Message(
        message_id=MessageId("m"),
        author=Author(kind="agent", name="a"),
        content=(
            Thinking(text=word, provider="text", opaque={"signature": word}),
            TextContent(text="spoken"),
        ),
    )
    async with log_at(store_path, projections=()) as log:
        await session_in(log)
        for data in (*hidden, thought):
            await log.append("ses_a", data, actor=AGENT)
        assert await log.search(word, limit=100) == []
        await log.index_all()
        assert await log.search(word, limit=100) == []
        assert len(await log.search("spoken", limit=100)) == 1
        # hidden events use up no part of a limit
        await log.append("ses_a", said(f"old {word}"), actor=CLIENT)
        for data in hidden:
            await log.append("ses_a", data, actor=AGENT)
        assert len(await log.search(word, limit=1)) == 1


async def test_a_notice_is_found_by_its_title_and_by_what_it_says(store_path: Path) -> None:
    whole = Notice(severity="info", title="The agent has begun anew", description="It was lost.")
    async with log_at(store_path, projections=()) as log:
        await session_in(log)
        await log.append("ses_a", whole, actor=AGENT)
        await log.append("ses_a", Notice(severity="error", title="Begun, and bare"), actor=AGENT)
        for _ in range(2):
            assert [h.record.seq for h in await log.search("begun", limit=5)] == [3, 2]
            (hit,) = await log.search("anew lost", limit=5)
            assert (hit.record.type, "lost" in hit.snippet) == ("notice", True)
            await log.index_all()


@pytest.mark.parametrize("noticed", [True, False])
async def test_notices_of_an_older_store_are_found_when_it_is_migrated(
    store_path: Path, monkeypatch: pytest.MonkeyPatch, noticed: bool
) -> None:
    steps = migrating.migrations()
    (step,) = [n for n, each in enumerate(steps) if "Notices are found" in each]
    with monkeypatch.context() as older:
        older.setattr(store, "migrations", lambda: steps[:step])
        older.setattr(
            search, "INDEXED_TYPES", tuple(t for t in search.INDEXED_TYPES if t != "notice")
        )
        async with log_at(store_path) as log:
            await session_in(log)
            await log.append("ses_a", said("before it"), actor=CLIENT)
            if noticed:
                await log.append("ses_a", Notice(severity="info", title="A needle"), actor=AGENT)
            await log.append("ses_a", said("behind it"), actor=CLIENT)
            head = await log.index_all()
            assert await log.search("needle", limit=5) == []
    async with log_at(store_path) as log:
        assert [len(await log.search(w, limit=5)) for w in ("needle", "it")] == [noticed, 2]
        assert await log.index_all() == head
        assert [len(await log.search(w, limit=5)) for w in ("needle", "it")] == [noticed, 2]
    assert look(store_path).problems == ()
    alter(store_path, "DELETE FROM search")
    assert [f.part for f in look(store_path).problems] == ["search"]
    mend(store_path)
    async with log_at(store_path) as log:
        await log.index_all()
        assert [len(await log.search(w, limit=5)) for w in ("needle", "it")] == [noticed, 2]


async def test_a_buffer_that_a_person_sent_along_is_found(store_path: Path) -> None:
    message = Message(
        message_id=MessageId("m"),
        author=Author(kind="person", name="p"),
        content=(EmbeddedResource(uri="file:///a.py", text="def frobnicate(): ..."),),
    )
    async with log_at(store_path, projections=()) as log:
        await session_in(log)
        await log.append("ses_a", message, actor=CLIENT)
        (hit,) = await log.search("frobnicate", limit=5)
        assert "frobnicate" in hit.snippet


async def test_a_large_unindexed_tail_is_searched_to_its_end(store_path: Path) -> None:
    async with log_at(store_path, projections=()) as log:
        await session_in(log)
        await log.append("ses_a", said("the oldest needle"), actor=CLIENT)

        def many(tx: Any) -> None:
            for n in range(1_200):
                tx.append("ses_a", said(f"hay {n}"), actor=CLIENT)

        await log.transact(many)
        (hit,) = await log.search("needle", limit=3)
        assert hit.record.seq == 2
        assert len(await log.search("hay", limit=1_150)) == 1_150


async def test_an_index_that_moves_on_meanwhile_gives_no_hit_twice(store_path: Path) -> None:
    async with log_at(store_path, projections=()) as log:
        await session_in(log)

        async def writes() -> None:
            for n in range(150):
                await log.append("ses_a", said(f"needle {n}"), actor=CLIENT)
                if n % 5 == 0:
                    await log.index_all()

        writing = asyncio.ensure_future(writes())
        while not writing.done():
            found = [h.record.seq for h in await log.search("needle", limit=1_000)]
            assert found == sorted(set(found), reverse=True)
            assert not found or found == list(range(found[0], 1, -1))
        await writing
        assert len(await log.search("needle", limit=1_000)) == 150


async def test_a_prefix_needs_three_letters(store_path: Path) -> None:
    async with log_at(store_path, projections=()) as log:
        await session_in(log)
        await log.append("ses_a", said("alphabet soup"), actor=CLIENT)
        for query, hits in (("alpha*", 1), ("alp*", 1), ("al*", 0), ("alpha", 0), ("alp* so*", 0)):
            assert len(await log.search(query, limit=5)) == hits, query


_HOSTILE = [
    "", " ", '"', '""', "'", "\"'`", "*", "**", "a*b*", "NEAR", "NEAR(a b)", "a NEAR/2 b", "AND", "a AND",
    "OR NOT", "NOT a", "-a", "+a", "^a", "text:a", "{text}:a", "search MATCH 'a'", "a' OR '1'='1",
    "); DROP TABLE events; --", "(", ")", "((((", "a\x00b", "\x00", "\ud800", "a\udfff", "🙂", "_", "__ _",
    "\u0301", "e\u0301", "日本語", "ﷺ", "İ", "²", "٣", "𝔘𝔫𝔦", "\u202ea", "%", "a%_", "\\", "a" * 100_000,
    "a " * 50_000, '"' * 9_999, "\n\t", "ⅷ", "\U000e0001",
]  # fmt: skip


@pytest.mark.parametrize("query", _HOSTILE, ids=[f"q{n}" for n in range(len(_HOSTILE))])
async def test_a_hostile_query_is_only_words(store_path: Path, query: str) -> None:
    async with log_at(store_path, projections=()) as log:
        await session_in(log)
        await log.append("ses_a", said("a NEAR and or not b text"), actor=CLIENT)
        unindexed = await log.search(query, limit=5)
        await log.index_all()
        indexed = await log.search(query, limit=5)
        assert [h.record.seq for h in unindexed] == [h.record.seq for h in indexed]
        if match_expression(query) is None:
            assert unindexed == []
        assert len(await log.search("near", limit=5)) == 1  # all is well afterwards


async def test_accents_and_case_do_not_matter_in_any_spelling(store_path: Path) -> None:
    async with log_at(store_path, projections=()) as log:
        await session_in(log)
        await log.append("ses_a", said("Café au lait"), actor=CLIENT)
        await log.append("ses_a", said("Cafe\u0301 noir"), actor=CLIENT)
        for query in ("cafe", "CAFÉ", "cafe\u0301", "Café"):
            assert len(await log.search(query, limit=5)) == 2, ascii(query)


async def test_a_search_ends_in_time_and_says_what_to_do(store_path: Path) -> None:
    async with log_at(store_path, projections=()) as log:
        await session_in(log)

        def many(tx: Any) -> None:
            for n in range(100):
                tx.append("ses_a", returned(f"c{n}", f"w{n} " * 10_000), actor=AGENT)

        await log.transact(many)
        log.search_limit_s = 0.01
        with pytest.raises(CallboardError) as error:
            await log.search("absent", limit=5)
        assert error.value.kind == "overloaded"
        assert "longer, words" in error.value.message
        log.search_limit_s = 60.0
        assert len(await log.search("w7", limit=5)) == 1  # and the next one works


async def test_texts_that_repeat_a_word_thousands_of_times_are_searched_like_any(
    store_path: Path,
) -> None:
    """FTS5's own excerpt of one such text takes minutes, in which nothing stops it."""
    async with log_at(store_path, projections=()) as log:
        await session_in(log)

        def many(tx: Any) -> None:
            for n in range(20):
                tx.append("ses_a", returned(f"c{n}", "y " * 31_000), actor=AGENT)

        await log.transact(many)
        log.search_limit_s = 60.0
        for _ in ("unindexed", "indexed"):
            hits = await log.search("y", limit=50)
            assert len(hits) == 20
            assert {hit.snippet for hit in hits} == {"y " * 23 + "y…"}
            await log.index_all()


async def test_a_cancelled_search_lets_the_next_one_go(store_path: Path) -> None:
    async with log_at(store_path, projections=()) as log:
        await session_in(log)
        await log.append("ses_a", said("needle"), actor=CLIENT)
        asked = [asyncio.ensure_future(log.search("needle", limit=5)) for _ in range(20)]
        await asyncio.sleep(0)
        for each in asked[::2]:
            each.cancel()
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
        assert all(isinstance(o, asyncio.CancelledError) for o in outcomes[::2])
        assert all(isinstance(o, list) and len(o) == 1 for o in outcomes[1::2])


async def test_the_index_follows_by_itself_and_goes_on_after_a_restart(store_path: Path) -> None:
    async with log_at(store_path, projections=()) as log:
        await session_in(log)
        await log.append("ses_a", said("needle"), actor=CLIENT)
    async with log_at(store_path, projections=()) as log:
        assert await log.index_all() == log.head
        assert await log.index_all() == log.head
        assert await log.query("SELECT count(*) FROM search") == [(1,)]


async def test_coordination_9_searching_and_reading_change_nothing(store_path: Path) -> None:
    async with log_at(store_path) as log:
        await session_in(log)
        await log.append("ses_a", said("needle"), actor=CLIENT)
        before, head = await tables(log), log.head
        await log.search("needle", limit=5)
        await log.session("ses_a")
        assert (await tables(log), log.head) == (before, head)


def test_the_expression_quotes_every_word() -> None:
    assert match_expression('say "hi" NEAR x*') == '"say" AND "hi" AND "NEAR" AND "x"'
    assert match_expression("foo_bar* __") == '"foo_bar"*'
    assert match_expression("?! _") is None
    assert len((match_expression("w " * 500) or "").split(" AND ")) == 64
