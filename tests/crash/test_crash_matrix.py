"""SIGKILL at every named commit and between them: nothing is lost, and nothing is done twice.

Each case plays a scene on a real server that dies at one point, and compares what comes of it with what
was in the store at that moment (`crash_ledger`).
"""

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import crash_acp as acp
import crash_agents as agents
import crash_groups as groups
import crash_peers as peers
import crash_rooms as rooms
import crash_scenes as scenes
import crash_schedules as schedules
import crash_source
import pytest
from crash_ledger import (
    TOLD_APART,
    Snapshot,
    check_after,
    check_effects,
    held,
    said_in,
    sessions_of,
    snapshot,
    waiting_approvals,
)
from crash_scenes import PRELUDES, SHARED, Play
from crash_stage import CLIENT, Stage, die

from callboard.agents import projection as agents_projection
from callboard.approvals import service as approvals
from callboard.groups import projection as groups_projection
from callboard.host import Host
from callboard.log.search import searchable_text
from callboard.rooms import projection as rooms_projection
from callboard.sessions import projection as sessions
from callboard.turns import projection as turns
from callboard_rpc.errors import CallboardError
from harness.agent_invariants import is_agent
from harness.process import ServerProcess

pytestmark = pytest.mark.anyio

STAGES = ("deciding", "committed", "told")

PARTS = frozenset(
    {
        "agent.joining",
        "agents.feature",
        "callboard.compose",
        "groups.change",
        "groups.claim",
        "groups.create",
        "groups.delegation",
        "groups.reassign",
        "log.joined",
        "rooms.addressing",
        "rooms.feature",
        "sessions.close",
        "sessions.delete",
        "sessions.reserve_selected",
        "sessions.rewind",
        "sessions.wake",
        "turns.admit",
        "turns.writes",
    }
)
"""Written inside of other transactions; no commits by themselves."""

UNREACHED = frozenset(
    {
        "inbox.acknowledge",
        "inbox.activate",
        "inbox.authorise",
        "inbox.claim",
        "inbox.deliver",
        "inbox.renew",
        "inbox.request_activation",
        "inbox.send",
        "inbox.source",
        "log.append",
        "log.rebuild",
        "sessions.adopt",
        "sessions.forget",
        "sessions.tell",
        "sessions.wake_waiting",
    }
)
"""Commits that no request of a client leads to; of the inbox see `test_crash_inbox`."""


COMMITS: dict[str, tuple[Play, ...]] = {
    "client.append": (acp.consult,),
    "client.ask": (acp.consult,),
    "client.commit": (acp.consult,),
    "client.forget": (acp.consult,),
    "client.open": (acp.consult,),
    "client.recorded": (acp.consult,),
    "client.tell": (acp.come_back,),
    "client.withdraw": (acp.change_its_mind,),
    "client.write_result": (acp.consult,),
    "agents.ask": (agents.wonder,),
    "agents.close": (agents.dismiss,),
    "agents.end_overdue": (agents.outlast,),
    "agents.ended": (agents.call_away,),
    "agents.interrupt": (agents.halt, agents.correct),
    "agents.reconcile": (agents.reconcile,),
    "agents.reply": (agents.wonder,),
    "agents.send": (agents.tell, agents.tell_running, agents.whisper),
    "agents.spawn": (agents.delegate, agents.hand_over, agents.hire, agents.hire_elsewhere),
    "approvals.add_rule": (scenes.change,),
    "approvals.answer": (scenes.approve, scenes.resume, scenes.answering),
    "approvals.expire_due": (scenes.expire,),
    "approvals.remove_rule": (scenes.change,),
    "approvals.settle": (scenes.approve_for_good,),
    "groups.complete": (groups.finish,),
    "groups.decided": (groups.tend, groups.assign, groups.take_over),
    "groups.recover": (groups.take_over, groups.take_over_agent),
    "groups.send": (groups.announce, groups.take_over_agent),
    "log.append_draft": (scenes.talk, scenes.think),
    "log.index_batch": (scenes.talk,),
    "log.put_blob": (scenes.loud,),
    "peers.accept": (peers.befriend,),
    "peers.deliver": (peers.write,),
    "peers.invite": (peers.befriend,),
    "peers.leave": (peers.part,),
    "peers.send": (peers.write, peers.write_to_one_at_work),
    "peers.tidy": (peers.clean_up,),
    "rooms.add": (rooms.reshape,),
    "rooms.remove": (rooms.reshape,),
    "rpc.keep": (scenes.keyed,),
    "rpc.prune": (scenes.talk,),
    "schedules.create": (schedules.plan,),
    "schedules.delete": (schedules.plan,),
    "schedules.fire": (schedules.tick, schedules.tick_fresh),
    "schedules.run_now": (schedules.ring,),
    "schedules.update": (schedules.plan,),
    "sessions.cancel": (
        scenes.cancel,
        scenes.cancel_asking,
        scenes.cancel_queue,
        scenes.drop_parked,
        scenes.steering,
    ),
    "sessions.conclude": (scenes.recover,),
    "sessions.create": (scenes.talk, scenes.keyed),
    "sessions.leave": (scenes.leave,),
    "sessions.prompt": (scenes.talk, scenes.keyed),
    "sessions.publish": (scenes.fork,),
    "sessions.publish_piece": (scenes.bring_in,),
    "sessions.quietly": (scenes.close, scenes.delete),
    "sessions.register": (scenes.talk,),
    "sessions.remove": (scenes.edit_queue,),
    "sessions.seize_runs": (scenes.recover, scenes.resume),
    "sessions.set_archived": (scenes.change,),
    "sessions.stop": (scenes.close,),
    "sessions.summarise": (scenes.compact,),
    "sessions.take_back": (scenes.tidy,),
    "sessions.update": (scenes.change, scenes.edit_queue),
    "turns.abandon": (scenes.compact,),
    "turns.begin": (scenes.hooked,),
    "turns.boundary": (scenes.steer,),
    "turns.keep": (scenes.run, scenes.write, scenes.read),
    "turns.kept_from_ending": (scenes.hooked,),
    "turns.prepare": (scenes.compact, scenes.rewind),
    "turns.reserve": (scenes.talk, scenes.resume, scenes.watched),
    "turns.run_calls": (scenes.run, scenes.approve, scenes.watched),
    "turns.stream": (scenes.busy,),
    "turns.try_to_end": (scenes.talk, scenes.run, scenes.watched),
    "turns.write": (scenes.rewind,),
    "turns.write_end": (
        scenes.cancel,
        scenes.fail,
        scenes.cancel_asking,
        scenes.leave_asking,
        scenes.leave_running,
    ),
}
"""The scenes in which each commit is cut off, at all of its stages."""

MORE = {
    "agents.interrupt": (
        ("agents.interrupt.committed:2", agents.correct),
        ("agents.interrupt.told:2", agents.correct),
    ),
    "agents.send": (
        ("agents.send.committed:2", agents.tell),
        ("agents.send.committed:2", agents.reconcile),
    ),
    "agents.spawn": (
        ("agents.spawn.committed:2", agents.delegate),
        ("agents.spawn.told:2", agents.delegate),
        *((f"agents.spawn.{stage}", groups.assign) for stage in STAGES),
    ),
    "approvals.answer": (("approvals.answer.committed:2", scenes.approve),),
    "groups.complete": (
        # refused at first
        *((f"groups.complete.{stage}:2", groups.finish) for stage in STAGES),
    ),
    "groups.decided": (
        # a claim, a start, a completion, another claim, a release, a cancellation, by a person
        *(
            (f"groups.decided.{stage}:{nth}", groups.tend)
            for nth in range(3, 9)
            for stage in STAGES[:2]
        ),
        # a completion and a claim by an agent
        *((f"groups.decided.{stage}:{nth}", groups.assign) for nth in (3, 4) for stage in STAGES),
    ),
    "peers.deliver": tuple((f"peers.deliver.{stage}:2", peers.write) for stage in STAGES),
    "peers.send": (
        ("peers.send.committed:2", peers.part),
        *((f"peers.send.{stage}:3", peers.write_to_one_at_work) for stage in STAGES),
    ),
    "sessions.prompt": (
        ("sessions.prompt.committed:2", scenes.steer),
        ("sessions.prompt.committed:3", scenes.queue),
    ),
    "sessions.publish": (
        ("sessions.publish.deciding:2", scenes.fork),
        ("sessions.publish.committed:2", scenes.fork),
    ),
    "sessions.publish_piece": (
        ("sessions.publish_piece.deciding:2", scenes.bring_in),
        ("sessions.publish_piece.committed:2", scenes.bring_in),
    ),
    "sessions.quietly": (
        *(
            (f"sessions.quietly.{stage}:2", play)
            for play in (scenes.close, scenes.delete, agents.dismiss)
            for stage in STAGES
        ),
        *((f"sessions.quietly.{stage}", agents.finish_closing) for stage in STAGES),
    ),
    "sessions.summarise": (
        # in the middle of a turn, whose context has grown too large
        ("sessions.summarise.deciding", scenes.fork),
        ("sessions.summarise.committed", scenes.fork),
    ),
    "turns.boundary": (
        ("turns.boundary.committed", agents.correct),
        ("turns.boundary.deciding", agents.tell_running),
        ("turns.boundary.committed", agents.whisper),
        ("turns.boundary.committed", agents.delegate),
        *((f"turns.boundary.{stage}", peers.write_to_one_at_work) for stage in STAGES),
        # the second one is where the agent reads what was written to it
        *((f"turns.boundary.{stage}:2", groups.announce) for stage in STAGES),
    ),
    "turns.try_to_end": (
        # the child's, with its report; and its parent's
        ("turns.try_to_end.deciding", agents.hand_over),
        ("turns.try_to_end.committed", agents.hand_over),
        ("turns.try_to_end.told", agents.hand_over),
        ("turns.try_to_end.committed", agents.hire),
        ("turns.try_to_end.committed:2", agents.hire),
        ("turns.try_to_end.told:2", agents.hire),
        ("turns.try_to_end.deciding", agents.hire_elsewhere),
        ("turns.try_to_end.committed", agents.hire_elsewhere),
        ("turns.try_to_end.told", agents.hire_elsewhere),
        # what the clock has started, and what waits behind a person's
        *((f"turns.try_to_end.{stage}", schedules.tick) for stage in STAGES),
        *(
            (f"turns.try_to_end.{stage}{nth}", schedules.ring)
            for nth in ("", ":2")
            for stage in STAGES
        ),
        # a mention, another one, and one of which nobody is woken
        *(
            (f"turns.try_to_end.{stage}{nth}", rooms.converse)
            for nth in ("", ":2", ":3")
            for stage in STAGES
        ),
    ),
    "turns.write_end": (
        ("turns.write_end.deciding", agents.halt),
        ("turns.write_end.committed", agents.halt),
        ("turns.write_end.told", agents.halt),
    ),
    "turns.keep": (
        # the result that is the notification of a report
        ("turns.keep.deciding:3", agents.hand_over),
        ("turns.keep.committed:3", agents.hand_over),
        ("turns.keep.deciding:2", scenes.run),
        ("turns.keep.committed:2", scenes.run),
    ),
    "turns.reserve": (
        ("turns.reserve.committed:2", scenes.queue),
        *((f"turns.reserve.{stage}:2", rooms.converse) for stage in STAGES),
        *((f"turns.reserve.{stage}", rooms.take_over) for stage in STAGES),
        *((f"turns.reserve.{stage}", schedules.take_over) for stage in STAGES),
        *((f"turns.reserve.{stage}", peers.take_over) for stage in STAGES),
        *((f"turns.reserve.{stage}{nth}", peers.write) for nth in ("", ":2") for stage in STAGES),
        ("turns.reserve.deciding:2", scenes.cancel),
    ),
}
"""Later passings of the same points."""

BETWEEN: dict[str, tuple[tuple[str, Play], ...]] = {
    "log.checkpointed": (("", scenes.bulky),),
    "log.checkpointing": (("", scenes.bulky),),
    "log.migrated": (("", scenes.talk),),
    "log.migrating": (("", scenes.talk),),
    "log.store_made": (("", scenes.talk),),
    "sessions.commands_ended": (("", scenes.recover),),
    "sessions.import_played": (("", scenes.bring_in),),
    "sessions.host_gone": (("", scenes.recover), ("", scenes.resume)),
    "tools.command_started": (("", scenes.run), ("", scenes.watched)),
    "tools.file_filled": (("", scenes.write), (":2", scenes.write)),
    "tools.file_replaced": (("", scenes.write), (":2", scenes.write)),
    "turns.answered": (("", scenes.run), (":2", scenes.run), ("", scenes.watched)),
    "turns.call_begins": (("", scenes.run), (":2", scenes.run), ("", scenes.resume)),
    "turns.call_ran": (
        ("", scenes.run),
        (":2", scenes.run),
        ("", scenes.read),
        ("", scenes.resume),
        ("", scenes.watched_asking),
    ),
    "turns.draft_due": (("", scenes.talk), (":3", scenes.talk)),
    "turns.restored": (("", scenes.resume),),
    "turns.stopped": (("", scenes.cancel), ("", scenes.leave_running)),
    "turns.streamed": (
        ("", scenes.talk),
        (":4", scenes.talk),
        (":12", scenes.talk),
        (":2", scenes.think),
    ),
}


def _cases() -> Iterator[tuple[str, Play]]:
    for name, plays in COMMITS.items():
        yield from ((f"{name}.{stage}", play) for play in plays for stage in STAGES)
        yield from MORE.get(name, ())
    for name, cases in BETWEEN.items():
        yield from ((name + nth, play) for nth, play in cases)


CASES = tuple(_cases())


def test_execution_51_every_commit_and_every_point_has_its_cases() -> None:
    commits, known = crash_source.commits(), COMMITS.keys() | PARTS | UNREACHED
    new = commits - known
    assert not new, f"enter these in COMMITS, with a scene that passes them, or in PARTS: {new}"
    assert not known - commits, f"these are gone: {known - commits}"
    points = crash_source.points()
    new = points - BETWEEN.keys()
    assert not new, f"enter these in BETWEEN, with a scene that passes them: {new}"
    assert not BETWEEN.keys() - points, f"these are gone: {BETWEEN.keys() - points}"
    assert len({fault for fault, _ in CASES}) >= 60


@pytest.mark.parametrize(
    ("fault", "play"), CASES, ids=[f"{fault}-{play.__name__}" for fault, play in CASES]
)
async def test_execution_51_killed_at(fault: str, play: Play, tmp_path: Path) -> None:
    asks = play.__name__ in _ASKING
    stage = Stage(
        tmp_path,
        execute="ask" if asks else "allow",
        hooks=play is scenes.hooked,
        expire_s=1.0 if play is scenes.expire else None,
        running=1 if play in agents.ONE_AT_A_TIME else 4,
    )
    preludes = {**PRELUDES, **agents.PRELUDES, **groups.PRELUDES, **rooms.PRELUDES}
    preludes |= {**schedules.PRELUDES, **peers.PRELUDES, **acp.PRELUDES}
    preludes.get(play, _nothing)(stage)
    die(stage, fault, play)
    before = snapshot(stage.store, shared=play in SHARED | agents.SHARED)
    groups.check_groups(stage, before)
    rooms.check_rooms(stage, before)
    schedules.check_schedules(stage, before)
    peers.check_peers(stage, before)
    alive = {stage.host_id(server) for server in stage.others}
    _check_acknowledged(stage, before)
    stage.let_go()
    if stage.others:
        _finish_with(stage, stage.others[0])
    stage.end_others()
    if play is scenes.keyed:
        _send_again(stage)
    async with stage.restarted() as host:
        await schedules.come_due(host)
        await peers.come_in(stage, host)
        await _drive(stage, host, waiting_approvals(before, alive=alive) if not alive else set())
        await _check_projections(host)
    end = snapshot(stage.store)
    check_after(before, end, alive=alive)
    _check_acknowledged(stage, end)
    _check_prompts(stage, end)
    _check_search(end)
    check_effects(end, stage.ran, deleted=before.deleted)
    _check_files(stage, end)
    agents.check_agents(stage, end)
    groups.check_groups(stage, end)
    groups.check_all_read(end)
    rooms.check_rooms(stage, end)
    rooms.check_all_answered(end)
    schedules.check_schedules(stage, end)
    schedules.check_all_fired(stage, end)
    peers.check_peers(stage, end)
    peers.check_all_in(stage, end)
    async with stage.restarted():
        pass
    held(snapshot(stage.store).sessions == end.sessions, "another start wrote something")


_ASKING = frozenset(
    {
        "approve", "approve_for_good", "expire", "cancel_asking", "leave_asking", "resume",
        "drop_parked", "watched_asking", "answering", "consult", "come_back",
    }
)  # fmt: skip


def _nothing(_: Stage) -> None:
    pass


# --- the way on ------------------------------------------------------------------------------------


async def _drive(stage: Stage, host: Host, kept: set[str]) -> None:
    """Answers what is asked until all is idle. `kept` must still be asked, under the same ids, or have waited
    for as long as it was told to."""
    pending, _ = await host.approvals.page(state="pending")
    gone = kept - {a.approval_id for a in pending}
    expired, _ = await host.approvals.page(state="expired")
    held(gone <= {a.approval_id for a in expired}, "approvals are gone:", gone)
    while True:
        for approval in (await host.approvals.page(state="pending"))[0]:
            with contextlib.suppress(CallboardError):  # it has expired just now
                await host.approvals.answer(
                    approval.approval_id, "allow_once", by=CLIENT, via="method"
                )
        # the lowest first: what one says as it ends may wake the one above it
        for (session_id,) in await host.log.query(
            "SELECT session_id FROM sessions WHERE closed = 0 ORDER BY depth DESC, session_id"
        ):
            await host.waiting.wait(session_id, until="attention", turn_id=None, timeout_s=30)
        if not (await host.approvals.page(state="pending"))[0]:
            break
    await host.log.index_all()


def _finish_with(stage: Stage, server: ServerProcess) -> None:
    """Another process, which was there all along, does what is to be done."""
    for session in server.call("session/list")["data"]:
        stage.answer_all(server, session["sessionId"])


def _send_again(stage: Stage) -> None:
    """The client repeats its requests with their keys: each is done once, whatever became of it."""
    with ServerProcess(
        stage.folder, model=stage.model, client_id="tests", approvals=False
    ) as again:
        first = stage.create(again, idempotencyKey="create")
        held(set(stage.created) == {first}, "created twice:", stage.created)
        stage.creating = 1
        known = stage.said[0].seq if stage.said else None
        stage.said.clear()
        stage.prompt(again, first, "run", idempotencyKey="prompt")
        held(known in (None, stage.said[0].seq), "prompted twice:", known, stage.said)
        again.wait(first)


# --- what must hold --------------------------------------------------------------------------------


def _check_acknowledged(stage: Stage, shot: Snapshot) -> None:
    """What a client was told is there."""
    for session_id in stage.created:
        there = session_id in shot.sessions or session_id in shot.deleted
        held(there, "a session is gone:", session_id)
    found = sessions_of(shot)
    for said in stage.said:
        if said.seq is not None and said.session_id not in shot.deleted:
            there = found[said.session_id].triggers.get(said.seq)
            held(there == said.text[:TOLD_APART], "lost:", said.seq, there)


def _check_prompts(stage: Stage, end: Snapshot) -> None:
    """Each prompt is there once, or not at all when nobody was told that it is."""
    logs = sessions_of(end)
    whole = [said_in(end.sessions[session_id]) for session_id in logs]
    for copy in end.copied:
        held(said_in(end.sessions[copy]) in whole, copy, "is not all of", whole)
    found = Counter(text for session in logs.values() for text in session.triggers.values())
    said = Counter(said.text[:TOLD_APART] for said in stage.said)
    held(all(found[text] <= said[text] for text in found), "twice:", found - said)
    roots = [log for log in end.sessions.values() if not is_agent(log)]
    held(len(roots) <= stage.creating, len(roots), "of", stage.creating, "sessions")


def _check_search(end: Snapshot) -> None:
    import orjson

    texts = [
        e["pos"] for e in end.events if searchable_text(e["type"], orjson.dumps(e["data"]).decode())
    ]
    held(Counter(end.searchable) == Counter(texts), "the index has", end.searchable, "of", texts)


def _check_files(stage: Stage, end: Snapshot) -> None:
    """A file is the old or the new one, and the new one if that was said."""
    said = {
        e["data"]["name"]: e["data"]["status"] for e in end.events if e["type"] == "tool_result"
    }
    new = stage.cwd / "new.txt"
    held(not new.exists() or new.read_text() == "all of it", "half a file")
    held(new.exists() or said.get("write_file") != "ok", "a file is said to be written")
    seed = (stage.cwd / "seed.txt").read_text()
    held(seed in ("seed\n", "plant\n"), "half a file:", seed)
    held(seed == "plant\n" or said.get("edit_file") != "ok", "a file is said to be changed")


async def _check_projections(host: Host) -> None:
    names = [
        table
        for projection in (
            turns.PROJECTION,
            approvals.PROJECTION,
            sessions.PROJECTION,
            agents_projection.PROJECTION,
            groups_projection.PROJECTION,
            rooms_projection.PROJECTION,
        )
        for table in projection.tables
    ]

    async def rows() -> dict[str, list[object]]:
        return {
            name: sorted(await host.log.query(f"SELECT * FROM {name}"), key=repr) for name in names
        }

    before = await rows()
    await host.log.rebuild()
    held(await rows() == before, "the projections are not what the log says")
