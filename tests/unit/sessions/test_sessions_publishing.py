"""What is published in pieces is published whole or not at all, also by a host that was taken for gone and
comes back: who has taken it for gone may have taken some of it back already."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from sessions_kit import Player, host_with

from callboard.host import Host
from callboard.sessions.importing import Importing
from callboard.sessions.recovery import conclude, seize_runs
from callboard.turns.reservation import SYSTEM
from callboard_rpc.common import TextContent
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import Author, Message
from harness.exports import Lines, lines_of, long_session, recounted, sealed
from harness.inside import CLIENT, idle, new_session, say

pytestmark = pytest.mark.anyio

EVENTS = 1_500
"""Six pieces; and three commits to take back four of them."""

Publish = Callable[[Host, Path], Awaitable[str]]


async def _forked(host: Host, folder: Path) -> str:
    session_id = await new_session(host, folder)
    await say(host, session_id, "one")
    turn = (await idle(host, session_id)).turn
    said = Message(
        message_id="msg_1",  # type: ignore[arg-type]
        author=Author(kind="agent", name="default"),
        content=(TextContent(text="on and on"),),
    )

    def write(tx: Any) -> None:
        for _ in range(EVENTS):
            tx.append(session_id, said, actor=SYSTEM, turn_id=turn.turn_id)

    await host.log.transact(write)
    made = await host.forking.fork(session_id, at_turn_id=None, title=None, by=CLIENT)
    return made.session_id


async def _imported(host: Host, folder: Path) -> str:
    made = await host.importing.run(long_session("ses_long", str(folder), EVENTS))
    return made.session_id


PUBLISHED = pytest.mark.parametrize("publish", [_forked, _imported])


def after_pieces(host: Host, count: int, then: Callable[[], Awaitable[None]]) -> None:
    """Does something when so many pieces are committed, before the next one."""
    transact = host.log.transact
    pieces = 0

    async def counting(function: Any) -> Any:
        nonlocal pieces
        result = await transact(function)
        if function.__qualname__.startswith(("Forking._publish.", "_Publication.publish_piece")):
            pieces += 1
            if pieces == count:
                await then()
        return result

    host.log.transact = counting  # type: ignore[method-assign]


async def _nothing_left(host: Host) -> None:
    assert await host.log.query("SELECT * FROM imports") == []
    assert await host.log.query("SELECT 1 FROM owners WHERE fence IS NOT NULL") == []
    headless = (
        "SELECT type FROM events WHERE type <> 'session_deleted' "
        "AND session_id NOT IN (SELECT session_id FROM heads)"
    )
    assert await host.log.query(headless) == []


async def _gone(host: Host) -> None:
    """The others forget this host, which has stood still for so long."""
    forget = "DELETE FROM hosts WHERE host_id = ?"
    await host.log.transact(lambda tx: tx.execute(forget, host.host_id))


@PUBLISHED
async def test_a_host_that_comes_back_between_two_steps_of_the_taking_back_publishes_nothing(
    tmp_path: Path, publish: Publish
) -> None:
    async with host_with(tmp_path, Player([])) as host:
        another = Importing(host.log, "host_another")
        go_on, over = asyncio.Event(), asyncio.Event()

        async def tidied() -> None:
            """Another host takes back what there is, and stands still after its first step."""
            await _gone(host)
            transact = host.log.transact

            async def stops(function: Any) -> Any:
                more = await transact(function)
                if function.__qualname__.startswith("Importing.take_back."):
                    assert more, "else it was one step, and nothing is shown"
                    host.log.transact = transact  # type: ignore[method-assign]
                    go_on.set()
                    await over.wait()
                return more

            host.log.transact = stops  # type: ignore[method-assign]
            tidying.append(asyncio.ensure_future(another.tidy()))
            await go_on.wait()

        tidying: list[asyncio.Future[None]] = []
        after_pieces(host, 4, tidied)
        with pytest.raises(CallboardError) as refused:
            await publish(host, tmp_path)
        assert refused.value.kind == "leaseLost"
        over.set()
        await tidying[0]
        await _nothing_left(host)


@PUBLISHED
async def test_execution_8_a_piece_under_a_fence_that_is_not_the_session_s_any_more_is_refused(
    tmp_path: Path, publish: Publish
) -> None:
    async with host_with(tmp_path, Player([])) as host:

        async def seized() -> None:
            beat = "SELECT heartbeat_at FROM hosts WHERE host_id = ?"
            ((at,),) = await host.log.query(beat, host.host_id)
            runs = await seize_runs(host.log, {host.host_id: at}, by="host_another")
            assert len(runs) == 1
            await conclude(host.log, runs)

        after_pieces(host, 2, seized)
        with pytest.raises(CallboardError) as refused:
            await publish(host, tmp_path)
        assert refused.value.kind == "leaseLost"
        await _nothing_left(host)


async def test_a_host_that_shows_itself_before_it_is_taken_for_gone_publishes_on(
    tmp_path: Path,
) -> None:
    """That it is gone is looked at again in the transaction that takes its import over."""
    async with host_with(tmp_path, Player([])) as host:
        another = Importing(host.log, "host_another")

        async def tidied() -> None:
            submit = host.log.submit
            ((pid, born),) = await host.log.query("SELECT pid, process_born FROM hosts")
            back = "INSERT INTO hosts VALUES (?, ?, ?, '', '')"
            await _gone(host)
            # the one that tidies has looked by the time at which the host is back
            commit = submit(lambda tx: tx.execute(back, host.host_id, pid, born))
            await another.tidy()
            await commit

        after_pieces(host, 2, tidied)
        session_id = await _imported(host, tmp_path)
        assert len(await host.log.session(session_id)) == EVENTS
        assert await host.log.query("SELECT * FROM imports") == []


# --- children ---------------------------------------------------------------------------------


def _child_of(root: str, folder: Path) -> Lines:
    lines = lines_of(long_session("ses_child", str(folder), EVENTS))
    lines[1]["data"].update(rootId=root, parentId=root, depth=1)
    return lines


async def _root(host: Host, folder: Path) -> str:
    text = long_session("ses_root", str(folder), 3)
    return (await host.importing.run(text)).session_id


async def test_a_child_whose_root_is_deleted_while_it_is_imported_is_not_left_alone(
    tmp_path: Path,
) -> None:
    async with host_with(tmp_path, Player([])) as host:
        root = await _root(host, tmp_path)

        async def deleted() -> None:
            assert await host.sessions.delete(root, by=CLIENT)

        after_pieces(host, 2, deleted)
        with pytest.raises(CallboardError) as refused:
            await host.importing.run(sealed(_child_of(root, tmp_path)))
        assert refused.value.kind == "importRefused"
        assert await host.log.query("SELECT session_id FROM heads") == []
        await _nothing_left(host)


@pytest.mark.parametrize("end", ["delete", "close"])
async def test_a_root_can_be_ended_while_a_child_is_imported_in_which_a_prompt_waits(
    tmp_path: Path, end: str
) -> None:
    async with host_with(tmp_path, Player([])) as host:
        root = await _root(host, tmp_path)
        lines = _child_of(root, tmp_path)
        prompt = {
            **lines[2],
            "eventId": "evt_prompt",
            "data": {
                "messageId": "msg_prompt",
                "author": {"kind": "person", "name": "tests", "id": "tests"},
                "content": [{"text": "is anybody there?", "type": "text"}],
                "delivery": "queue",
            },
        }
        lines.insert(2, prompt)

        async def ended() -> None:
            if end == "delete":
                assert await host.sessions.delete(root, by=CLIENT)
            else:
                assert (await host.sessions.close(root, by=CLIENT)).closed

        after_pieces(host, 2, ended)
        if end == "delete":
            with pytest.raises(CallboardError, match="not there any more"):
                await host.importing.run(sealed(recounted(lines)))
        else:
            await host.importing.run(sealed(recounted(lines)))
        await _nothing_left(host)
