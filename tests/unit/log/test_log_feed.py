"""What listeners are told: every commit, of whatever process, once and in order."""

from pathlib import Path

import anyio
import pytest
from log_workbench import CLIENT, log_at, said, session_in

from callboard.log.record import Record

pytestmark = pytest.mark.anyio


async def test_two_processes_are_told_of_each_other_in_one_order(store_path: Path) -> None:
    async with log_at(store_path) as here, log_at(store_path) as there:
        await session_in(here)
        heard: dict[str, list[int]] = {"here": [], "there": []}
        here.listen(lambda records: heard["here"].extend(r.pos for r in records))
        there.listen(lambda records: heard["there"].extend(r.pos for r in records))

        async def write(log: object, name: str) -> None:
            for n in range(60):
                await log.append("ses_a", said(f"{name} {n}"), actor=CLIENT)  # type: ignore[attr-defined]

        async with anyio.create_task_group() as group:
            group.start_soon(write, here, "here")
            group.start_soon(write, there, "there")
        here.refresh()
        there.refresh()
        assert heard["here"] == list(range(heard["here"][0], here.head + 1))
        # the other log was opened before the session began, so it hears of that, too
        assert heard["there"][-len(heard["here"]) :] == heard["here"]
        assert len(set(heard["there"])) == len(heard["there"])


async def test_a_commit_elsewhere_is_told_while_somebody_follows(store_path: Path) -> None:
    async with log_at(store_path) as here, log_at(store_path) as there:
        await session_in(here)
        told = anyio.Event()
        heard: list[Record] = []

        def listener(records: list[Record]) -> None:
            heard.extend(records)
            told.set()

        here.listen(listener)
        with here.feed.followed():
            await there.append("ses_a", said("from there"), actor=CLIENT)
            await told.wait()
        assert [(r.type, r.root_id) for r in heard] == [("message", "ses_a")]


async def test_what_was_derived_is_forgotten_when_too_much_was_committed_unseen(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callboard.log.feed._SKIPPED", 10)
    async with log_at(store_path) as here, log_at(store_path) as there:
        await session_in(here)
        heard: list[int] = []
        forgotten: list[str] = []
        here.listen(lambda records: heard.extend(r.pos for r in records))
        here.feed.on_skip(lambda: forgotten.append("all"))
        for n in range(12):
            await there.append("ses_a", said(str(n)), actor=CLIENT)
        own = await here.append("ses_a", said("own"), actor=CLIENT)
        assert forgotten == ["all"]
        assert heard == [own.pos]
        assert here.recent(own.pos - 3) is None
