"""What competing calls make of an agent, in every order of their awaits, in one host and across two:
coordination 18, 23, 24, 29, 30, 51, 57 and what holds beside them."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from agents_kit import Cast, Troupe, troupe
from agents_races import (
    ENOUGH,
    ORDERS,
    born,
    count,
    ended,
    refused,
    taken_in,
    tell,
    tree,
    troupes,
    verb,
)

from harness.inside import CLIENT
from harness.interleaving import Race, every_order
from harness.puppets import Pause, calls, pauses, speaks

pytestmark = pytest.mark.anyio

WAYS = pytest.mark.parametrize("most", ORDERS)
IN_HOSTS = pytest.mark.parametrize("hosts", [1, 2])


@WAYS
@IN_HOSTS
async def test_coordination_23_whoever_speaks_to_a_child_while_it_is_made_finds_one_worker(
    tmp_path: Path, hosts: int, most: int
) -> None:
    async with troupes(tmp_path, Cast(), hosts) as ts:
        first, last = ts[0], ts[-1]

        async def continues(root: str) -> None:
            await tell(last, await born(last, root, "one"), "and the other thing")

        async def informs(root: str) -> None:
            await tell(last, await born(last, root, "one"), "by the way", goes_on=False)

        async def scene(race: Race) -> None:
            root = await first.root()
            out = await race(first.spawn(root, "one", "the brief"), continues(root), informs(root))
            assert refused(out) == []
            agent_id = first.child(root, "one").agent_id
            log = (await tree(first, root))[agent_id]
            told = taken_in(log)
            assert told[0] == "the brief"
            assert told.count("and the other thing") == 1
            # what is only left for it is read with the next thing that it does
            assert told.count("by the way") == (0 if _waits(first, agent_id) else 1)
            turns = count(log, "turn_started")
            assert turns in (1, 2) and count(log, "agent_report_created") == turns

        assert await every_order(scene, *(t.host for t in ts), most=most) > ENOUGH


@WAYS
@IN_HOSTS
async def test_whoever_deletes_a_child_while_it_is_made_is_told_apart_from_a_fault(
    tmp_path: Path, hosts: int, most: int
) -> None:
    async with troupes(tmp_path, Cast(), hosts) as ts:
        first, last = ts[0], ts[-1]

        async def deletes(root: str) -> None:
            await last.host.sessions.delete(await born(last, root, "one"), by=CLIENT)

        async def scene(race: Race) -> None:
            root = await first.root()
            made, deleted = await race(first.spawn(root, "one", "the brief"), deletes(root))
            assert deleted is None
            assert refused([made]) in ([], ["agentNotFound"])
            assert first.agents.children(root) == ()

        assert await every_order(scene, *(t.host for t in ts), most=most) > ENOUGH


def _waits(t: Troupe, session_id: str) -> int:
    return t.host.log.glance("SELECT count(*) FROM inbox WHERE session_id = ?", session_id)[0][0]


@WAYS
@IN_HOSTS
async def test_coordination_24_messages_to_a_child_without_a_worker_find_one(
    tmp_path: Path, hosts: int, most: int
) -> None:
    async with troupes(tmp_path, Cast(), hosts) as ts:
        first, last = ts[0], ts[-1]

        async def scene(race: Race) -> None:
            root = await first.root()
            agent = await first.ended(await first.spawn(root, "one", "the brief"))
            out = await race(
                tell(first, agent.agent_id, "a"),
                tell(last, agent.agent_id, "b"),
                tell(last, agent.agent_id, "c", goes_on=False),
            )
            assert refused(out) == []
            log = (await tree(first, root))[agent.agent_id]
            told = taken_in(log)
            left = _waits(first, agent.agent_id)
            assert sorted(told) == sorted(["the brief", "a", "b", *(["c"] if not left else [])])
            turns = count(log, "turn_started")
            assert turns in (2, 3) and count(log, "agent_report_created") == turns

        assert await every_order(scene, *(t.host for t in ts), most=most) > ENOUGH


@WAYS
@IN_HOSTS
async def test_coordination_29_what_is_said_as_a_turn_ends_is_never_lost(
    tmp_path: Path, hosts: int, most: int
) -> None:
    cast = Cast()
    async with troupes(tmp_path, cast, hosts) as ts:
        first, last = ts[0], ts[-1]

        async def scene(race: Race) -> None:
            pause = Pause()
            cast.parts["one"] = [pauses(pause, "first")]
            root = await first.root()
            agent = await first.spawn(root, "one", "the brief")
            await pause.came()

            async def lets_it_end() -> None:
                pause.open.set()
                await ended(first, agent.agent_id)

            out = await race(lets_it_end(), tell(last, agent.agent_id, "one thing more"))
            assert refused(out) == []
            log = (await tree(first, root))[agent.agent_id]
            assert taken_in(log) == ["the brief", "one thing more"]
            turns = count(log, "turn_started")
            assert turns in (1, 2) and count(log, "agent_report_created") == turns

        assert await every_order(scene, *(t.host for t in ts), most=most) > ENOUGH


@WAYS
async def test_coordination_30_a_message_that_outlived_its_host_is_read_once(
    tmp_path: Path, most: int
) -> None:
    """Two hosts find, at the same time, what a third one had accepted."""
    cast = Cast()
    async with troupes(tmp_path, cast, 2) as ts:
        first, last = ts

        async def scene(race: Race) -> None:
            root = await first.root()
            agent = await first.ended(await first.spawn(root, "one", "the brief"))
            await _accepted_by_one_that_is_gone(first, agent.agent_id, "go on")
            out = await race(
                first.host.dispatcher.wake_waiting(),
                last.host.dispatcher.wake_waiting(),
                tell(last, agent.agent_id, "go on"),  # and somebody says the same once more
            )
            assert refused(out) == []
            log = (await tree(first, root))[agent.agent_id]
            assert taken_in(log) == ["the brief", "go on", "go on"]
            queued = {e["data"]["messageId"] for e in log if e["type"] == "agent_message_queued"}
            read = [
                e["data"]["delivered"]["deliveryId"] for e in log
                if e["type"] == "message" and e["data"].get("delivered")
            ]  # fmt: skip
            assert len(read) == 2 and set(read) == queued

        assert await every_order(scene, *(t.host for t in ts), most=most) > ENOUGH


async def _accepted_by_one_that_is_gone(t: Troupe, agent_id: str, text: str) -> None:
    from callboard.agents import mail
    from harness.inside import PERSON

    await t.host.log.transact(
        lambda tx: mail.send(
            tx, agent_id, text, goes_on=True, author=PERSON, by=CLIENT, host_id="host_gone"
        )
    )


@WAYS
@IN_HOSTS
async def test_coordination_18_of_those_who_want_one_name_one_gets_it(
    tmp_path: Path, hosts: int, most: int
) -> None:
    async with troupes(tmp_path, Cast(), hosts) as ts:
        first, last = ts[0], ts[-1]

        async def scene(race: Race) -> None:
            root = await first.root()
            out = await race(first.spawn(root, "one"), last.spawn(root, "one"))
            assert refused(out) == ["nameInUse"]
            assert len(first.agents.children(root)) == 1
            await tree(first, root)

        assert await every_order(scene, *(t.host for t in ts), most=most) > ENOUGH


@WAYS
@IN_HOSTS
async def test_coordination_34_a_close_that_races_with_everything_ends_it_once(
    tmp_path: Path, hosts: int, most: int
) -> None:
    cast = Cast()
    async with troupes(tmp_path, cast, hosts) as ts:
        first, last = ts[0], ts[-1]

        async def scene(race: Race) -> None:
            pause = Pause()
            cast.parts["one"] = [pauses(pause, "first")]
            root = await first.root()
            agent_id = (await first.spawn(root, "one", "the brief")).agent_id
            await pause.came()
            pause.open.set()
            out = await race(
                first.agents.close(agent_id, by=CLIENT),
                tell(last, agent_id, "go on"),
                last.agents.close(agent_id, by=CLIENT),
                last.agents.interrupt(agent_id, verb("interrupt")),
            )
            assert set(refused(out)) <= {"agentClosed", "sessionClosed"}
            log = (await tree(first, root))[agent_id]
            assert [e["type"] for e in log[-2:]] == ["agent_closed", "session_closed"]
            assert count(log, "agent_closed") == count(log, "session_closed") == 1
            assert first.host.dispatcher.live(agent_id) is None
            assert last.host.dispatcher.live(agent_id) is None

        assert await every_order(scene, *(t.host for t in ts), most=most) > ENOUGH


@WAYS
@pytest.mark.parametrize("kind", ["interrupt", "abort", "cancel", "steer"])
async def test_coordination_31_an_interrupt_that_races_with_the_end_has_one_outcome(
    tmp_path: Path, kind: str, most: int
) -> None:
    cast = Cast()
    async with troupe(tmp_path, cast) as t:

        async def scene(race: Race) -> None:
            pause = Pause()
            cast.parts["one"] = [pauses(pause, "first")]
            root = await t.root()
            agent = await t.spawn(root, "one", "the brief")
            await pause.came()

            async def lets_it_end() -> None:
                pause.open.set()
                await ended(t, agent.agent_id)

            _, done = await race(lets_it_end(), t.agents.interrupt(agent.agent_id, verb(kind)))
            refused([done])
            log = (await tree(t, root))[agent.agent_id]
            # a turn that had said its last is reported, whatever came too late for it (DESIGN 6)
            ends = [e["data"]["outcome"] for e in log if e["type"] == "turn_finished"]
            child = t.child(root, "one")
            assert child.pending is None and child.winding is None
            assert len(ends) == 1, ends
            if done.outcome == "already_finished":
                assert ends == ["completed"]
            if child.report is not None and ends == ["completed"] and kind != "cancel":
                assert child.report.status == "completed"

        assert await every_order(scene, t.host, most=most) > ENOUGH


@WAYS
@IN_HOSTS
async def test_coordination_51_57_a_report_that_races_with_the_end_of_its_parent_is_told_once(
    tmp_path: Path, hosts: int, most: int
) -> None:
    cast = Cast()
    async with troupes(tmp_path, cast, hosts) as ts:
        first, last = ts[0], ts[-1]

        async def scene(race: Race) -> None:
            above, below = Pause(), Pause()
            cast.parts["root"] = [pauses(above, "that is all")]
            cast.parts["one"] = [pauses(below, "found it")]
            cast.requests.clear()
            root = await first.root()
            await first.say(root)
            await above.came()
            agent = await last.spawn(root, "one", "the brief")
            await below.came()

            async def ends(pause: Pause, session_id: str) -> None:
                pause.open.set()
                await ended(first, session_id)

            out = await race(ends(above, root), ends(below, agent.agent_id))
            assert refused(out) == []
            await tree(first, root)
            assert cast.heard("root").count("found it") == 1
            for earlier in range(len(cast.requests["root"]) - 1):
                assert cast.heard("root", earlier).count("found it") == 0

        assert await every_order(scene, *(t.host for t in ts), most=most) > ENOUGH


@WAYS
async def test_coordination_52_a_report_that_races_with_a_wait_comes_behind_its_result(
    tmp_path: Path, most: int
) -> None:
    cast = Cast()
    async with troupe(tmp_path, cast) as t:

        async def scene(race: Race) -> None:
            pause, here = Pause(), Pause()

            async def waits(request: Any) -> Any:
                await here.here()
                async for event in calls(("wait_agents", {}))(request):
                    yield event

            cast.parts["root"] = [waits, speaks("all is well")]
            cast.parts["one"] = [pauses(pause, "found it")]
            cast.requests.clear()
            root = await t.root()
            agent = await t.spawn(root, "one")
            await pause.came()
            await t.say(root)
            await here.came()

            async def goes_on(pause: Pause, session_id: str) -> None:
                pause.open.set()
                await ended(t, session_id)

            out = await race(goes_on(here, root), goes_on(pause, agent.agent_id))
            assert refused(out) == []
            log = (await tree(t, root))[root]
            kinds = [e["type"] for e in log]
            told = next(
                n
                for n, e in enumerate(log)
                if e["type"] == "message" and e["data"].get("delivered")
            )
            call = kinds.index("tool_call")
            assert not call < told < kinds.index("tool_result")
            assert sum("found it" in text for text in taken_in(log)) == 1

        assert await every_order(scene, t.host, most=most) > ENOUGH


# --- limits -------------------------------------------------------------------------------------


@WAYS
@IN_HOSTS
async def test_limits_no_more_run_than_may_and_all_run(
    tmp_path: Path, hosts: int, most: int
) -> None:
    cast = Cast()
    environ = {"CALLBOARD_AGENTS_MAX_RUNNING": "1"}
    async with troupes(tmp_path, cast, hosts, environ=environ) as ts:
        first, last = ts[0], ts[-1]

        async def scene(race: Race) -> None:
            root = await first.root()
            out = await race(
                first.spawn(root, "one"), last.spawn(root, "two"), first.spawn(root, "three")
            )
            assert refused(out) == []
            for name in ("one", "two", "three"):
                await ended(first, first.child(root, name).agent_id)
            logs = await tree(first, root)
            del logs[root]
            moments = sorted(
                (e["pos"], e["type"], key) for key, log in logs.items() for e in log
                if e["type"] in ("turn_started", "turn_finished")
            )  # fmt: skip
            kinds = [kind for _, kind, _ in moments]
            assert kinds == ["turn_started", "turn_finished"] * 3
            begun = [key for _, kind, key in moments if kind == "turn_started"]
            spawned = sorted(logs, key=lambda key: logs[key][0]["pos"])
            assert begun == spawned, "not in the order in which they were spawned"

        assert await every_order(scene, *(t.host for t in ts), most=most) > ENOUGH


@WAYS
@IN_HOSTS
async def test_limits_no_more_are_open_than_may(tmp_path: Path, hosts: int, most: int) -> None:
    environ = {"CALLBOARD_AGENTS_MAX_OPEN": "2"}
    async with troupes(tmp_path, Cast(), hosts, environ=environ) as ts:
        first, last = ts[0], ts[-1]

        async def scene(race: Race) -> None:
            root = await first.root()
            await first.ended(await first.spawn(root, "one"))
            out = await race(first.spawn(root, "two"), last.spawn(root, "three"))
            assert refused(out) == ["limitReached"]
            assert len(first.agents.children(root)) == 2
            await tree(first, root)

        assert await every_order(scene, *(t.host for t in ts), most=most) > ENOUGH


def test_the_scheduler_plays_no_order_twice() -> None:
    from harness.interleaving import _schedules

    orders = list(itertools.islice(_schedules(6), 100))
    assert len(orders) == len(set(orders)) == 6 + 21
