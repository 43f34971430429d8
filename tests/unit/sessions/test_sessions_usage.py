"""What was used: unknown is never zero, and every sum says how much it leaves out."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sessions_kit import Player, host_with, says

from callboard.log.transaction import Transaction
from callboard.models.base import ModelEvent, ModelRequest, Stop, TextDelta, UsageReport
from callboard.sessions.recovery import interrupt
from callboard.turns.projection import SQL as TURN_SQL
from callboard.turns.reservation import Grant
from callboard.turns.usage import add
from callboard_rpc.common import Actor, TextContent, Usage
from callboard_rpc.events import (
    Author,
    Message,
    SessionCreated,
    Summary,
    Trigger,
    TurnFinished,
    TurnStarted,
)
from callboard_rpc.transfer import Cost
from harness.inside import host_in, idle, new_session, say

pytestmark = pytest.mark.anyio

AGENT = Actor(kind="agent", id="a")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def run(tx: Transaction, session_id: str, model: str, usage: Usage | None) -> None:
    """A turn; one that has not ended when `usage` is None."""
    turn_id = tx.new_id("trn")
    index = tx.value("SELECT count(*) FROM turns WHERE session_id = ?", session_id)
    tx.append(
        session_id,
        TurnStarted(
            turn_id=turn_id, index=index, trigger=Trigger(kind="prompt"), model=model, mode="work"
        ),
        actor=AGENT,
        turn_id=turn_id,
    )
    if usage is not None:
        tx.append(
            session_id,
            TurnFinished(turn_id=turn_id, outcome="completed", answered_through=1, usage=usage),
            actor=AGENT,
            turn_id=turn_id,
        )


def summary(tx: Transaction, session_id: str, usage: Usage | None, model: str | None) -> None:
    author = Author(kind="system", name="callboard")
    tx.append(
        session_id,
        Summary(
            text="s", covers_through=1, author=author, reason="command", usage=usage, model=model
        ),
        actor=AGENT,
    )


def child(tx: Transaction, root: str, parent: str, depth: int) -> str:
    session_id = tx.new_id("ses")
    tx.begin_session(session_id, root)
    tx.append(
        session_id,
        SessionCreated(
            session_id=session_id,
            cwd="/nowhere",
            root_id=root,
            parent_id=parent,
            depth=depth,
            profile="default",
            mode="work",
        ),
        actor=AGENT,
    )
    return session_id


def used(tokens: int | None, cost: float | None = None, currency: str | None = None, **more: Any):
    return Usage(
        requests=1, input_tokens=tokens, output_tokens=tokens, cost=cost, currency=currency, **more
    )


def test_a_sum_with_an_unknown_part_stays_partial_whatever_comes_after() -> None:
    unknown = Usage(partial=True)
    known = used(5)
    for parts in ((unknown, known), (known, unknown), (known, unknown, known)):
        total = Usage()
        for part in parts:
            total = add(total, part)
        assert total.partial, parts
    assert not add(Usage(), known).partial
    assert add(used(None), used(3)).partial
    assert add(used(1, 0.5, "USD"), used(1)).partial


async def test_by_run_by_model_in_all_and_as_a_tree(tmp_path: Path) -> None:
    async with host_in(tmp_path) as host:
        root = await new_session(host, tmp_path)

        def fill(tx: Transaction) -> tuple[str, str]:
            run(tx, root, "a/one", used(10, 1.5, "USD", context_tokens=10))
            run(tx, root, "a/one", used(5, 0.5, "USD", context_tokens=15))
            run(tx, root, "b/two", used(7))
            run(tx, root, "b/two", used(None, 2.0, "EUR"))
            summary(tx, root, used(100), "a/one")
            summary(tx, root, used(3), None)
            first = child(tx, root, root, 1)
            second = child(tx, root, first, 2)
            run(tx, first, "a/one", used(1000, 1.0, "USD"))
            run(tx, second, "c/three", None)
            return first, second

        first, second = await host.log.transact(fill)
        result = await host.usage.of(root)
        assert [(r.index, r.model, r.usage.requests if r.usage else None) for r in result.runs] == [
            (0, "a/one", 1),
            (1, "a/one", 1),
            (2, "b/two", 1),
            (3, "b/two", 1),
        ]
        total = result.total
        assert total.usage == (await host.reading.session(root)).usage
        assert (total.usage.requests, total.usage.input_tokens, total.usage.partial) == (
            6,
            125,
            True,
        )
        assert (total.runs, total.summaries) == (4, 2)
        # one run told no tokens; four parts told no cost
        assert (total.unknown_tokens, total.unknown_cost) == (1, 3)
        assert total.costs == (
            Cost(amount=2.0, currency="EUR"),
            Cost(amount=2.0, currency="USD"),
        )
        models = {each.model: each.total for each in result.models}
        assert set(models) == {"a/one", "b/two", None}
        assert (models["a/one"].runs, models["a/one"].summaries) == (2, 1)
        assert models["a/one"].usage.input_tokens == 115
        assert models["a/one"].costs == (Cost(amount=2.0, currency="USD"),)
        assert (models["b/two"].unknown_tokens, models["b/two"].unknown_cost) == (1, 1)
        assert (models[None].runs, models[None].summaries) == (0, 1)
        assert [each.session_id for each in result.sessions] == [root, first, second]
        assert result.tree.usage.input_tokens == 1125
        assert (result.tree.runs, result.tree.unknown_tokens) == (6, 2)
        below = await host.usage.of(first)
        assert [each.session_id for each in below.sessions] == [first, second]
        assert below.total.usage.input_tokens == 1000
        unfinished = await host.usage.of(second)
        assert (unfinished.runs[0].usage, unfinished.total.unknown_tokens) == (None, 1)
        assert unfinished.total.usage == Usage()


async def test_runs_come_in_pages(tmp_path: Path) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        await host.log.transact(lambda tx: [run(tx, session_id, "m", used(n)) for n in range(7)])
        seen, after = [], -1
        while True:
            result = await host.usage.of(session_id, after=after, limit=3)
            seen += [each.index for each in result.runs]
            assert result.total.runs == 7
            if result.next_cursor is None:
                break
            after = int(result.next_cursor)
        assert seen == list(range(7))


async def test_an_answer_whose_provider_told_nothing_is_a_request_of_unknown_size(
    tmp_path: Path,
) -> None:
    async with host_with(tmp_path, Player([says("hello"), says("again", usage=used(9))])) as host:
        session_id = await new_session(host, tmp_path)
        for words in ("one", "two"):
            await say(host, session_id, words)
            await idle(host, session_id)
        result = await host.usage.of(session_id)
        assert [each.usage for each in result.runs] == [Usage(requests=1, partial=True), used(9)]
        assert (result.total.runs, result.total.unknown_tokens) == (2, 1)
        total = result.total.usage
        assert (total.requests, total.input_tokens, total.partial) == (2, 9, True)
        assert total == (await host.reading.session(session_id)).usage


async def test_an_answer_that_was_cut_off_is_not_for_nothing(tmp_path: Path) -> None:
    async def breaks(_: ModelRequest) -> AsyncIterator[ModelEvent]:
        yield TextDelta(text="half of it")
        raise RuntimeError("gone")

    async def reports_early(_: ModelRequest) -> AsyncIterator[ModelEvent]:
        yield UsageReport(usage=used(4))
        yield Stop(reason="end_turn")

    async with host_with(tmp_path, Player([breaks, reports_early])) as host:
        session_id = await new_session(host, tmp_path)
        await say(host, session_id, "one")
        await idle(host, session_id)
        (first,) = (await host.usage.of(session_id)).runs
        assert first.state == "failed"
        assert first.usage == Usage(requests=1, partial=True)


async def test_what_a_fork_inherits_was_used_by_its_origin(tmp_path: Path) -> None:
    player = Player([says(f"{n}", usage=used(10)) for n in range(5)] + [says("the summary")])
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path)
        for n in range(5):
            await say(host, session_id, f"prompt {n}")
            await idle(host, session_id)
        assert await host.compacting.compact(session_id, by=AGENT, instructions=None)
        await say(host, session_id, "last")
        await idle(host, session_id)
        total = (await host.usage.of(session_id)).total
        assert (total.runs, total.summaries, total.unknown_tokens) == (6, 1, 2)
        assert total.usage == (await host.reading.session(session_id)).usage
        fork = await host.forking.fork(session_id, at_turn_id=None, title=None, by=AGENT)
        inherited = (await host.usage.of(fork.session_id)).total
        assert (inherited.runs, inherited.summaries, inherited.usage) == (0, 0, Usage())
        assert fork.usage is None


async def test_a_turn_whose_server_died_has_used_what_its_messages_say(tmp_path: Path) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)

        def die(tx: Transaction) -> None:
            grant = Grant(session_id=session_id, turn_id=tx.new_id("trn"), fence=1)
            tx.execute(TURN_SQL["take"], session_id, 2, 1, "run", grant.turn_id, "host_gone")
            tx.append(
                session_id,
                TurnStarted(
                    turn_id=grant.turn_id,
                    index=0,
                    trigger=Trigger(kind="prompt"),
                    model="m",
                    mode="work",
                ),
                actor=AGENT,
                turn_id=grant.turn_id,
                fence=1,
            )
            tx.append(
                session_id,
                Message(
                    message_id=tx.new_id("msg"),
                    author=Author(kind="agent", name="default", id=session_id),
                    content=(TextContent(text="so far"),),
                    usage=used(21, 0.25, "USD"),
                ),
                actor=AGENT,
                turn_id=grant.turn_id,
                fence=1,
            )
            interrupt(tx, grant)

        await host.log.transact(die)
        (run_,) = (await host.usage.of(session_id)).runs
        assert run_.state == "interrupted"
        assert run_.usage == used(21, 0.25, "USD", partial=True)
