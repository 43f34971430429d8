"""Who takes part in a session: from its beginning, and later; and what of it a file may say."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rooms_kit import Stage, configure, profile, stage

from callboard.rooms.rosters import WantedRoom
from callboard.sessions.projection import find_room
from callboard.sessions.state import MAX_MEMBERS, Room, replay
from callboard.sessions.transfer import Refused
from callboard.sessions.vetting_rooms import RoomVetting
from callboard_rpc.common import SessionId
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import (
    MemberAdded,
    MemberMentioned,
    MemberRemoved,
    RoomHostChanged,
    SessionCreated,
    SessionUpdated,
    WakeSuppressed,
)
from harness.inside import CLIENT
from harness.puppets import of

pytestmark = pytest.mark.anyio

ROSTERS = """
[rooms.rosters.review]
members = ["beta", "alpha"]
host = "alpha"

[rooms.rosters.partly]
members = ["nobody", "gamma", "broken"]
host = "nobody"

[rooms.rosters.gone]
members = ["nobody"]

[rooms.rosters.wrong]
members = "alpha"
"""


def planned(s: Stage, *, profile: str | None = None, **wanted: Any) -> tuple[Room, str | None]:
    settings = s.host.settings_for(str(s.folder))
    return s.rooms.planned(str(s.folder), WantedRoom(**wanted), profile, settings)


@pytest.mark.parametrize(
    ("wanted", "members", "host", "own"),
    [
        ({}, (), None, None),
        ({"members": ()}, (), None, None),
        ({"members": ("beta", "alpha")}, ("beta", "alpha"), None, "beta"),
        ({"members": ("beta", "alpha"), "host": "ALPHA"}, ("beta", "alpha"), "alpha", "alpha"),
        ({"members": ("beta",), "profile": "gamma"}, ("beta",), None, "gamma"),
        ({"members": ("default", "beta")}, ("default", "beta"), None, "default"),
        ({"roster": "review"}, ("beta", "alpha"), "alpha", "alpha"),
        ({"roster": "review", "host": "beta"}, ("beta", "alpha"), "beta", "beta"),
        ({"roster": "partly"}, ("gamma",), None, "gamma"),
    ],
)
async def test_rooms_a_new_session_s_members_host_and_profile(
    tmp_path: Path,
    wanted: dict[str, Any],
    members: tuple[str, ...],
    host: str | None,
    own: str | None,
) -> None:
    configure(tmp_path, ROSTERS)
    async with stage(tmp_path) as s:
        room, profile = planned(s, **wanted)
        assert (room.members, room.host, profile) == (members, host, own)


@pytest.mark.parametrize(
    ("wanted", "kind", "says"),
    [
        (
            {"roster": "nope"},
            "invalidParams",
            "no roster 'nope'; there are: gone, partly, review, wrong",
        ),
        ({"roster": "wrong"}, "invalidParams", "members must be a list of names"),
        ({"roster": "gone"}, "profileNotFound", "none of the roster 'gone' can be used"),
        ({"roster": "review", "members": ("alpha",)}, "invalidParams", "the one or the other"),
        (
            {"members": ("alpha", "nobody")},
            "profileNotFound",
            "'nobody'; there are: alpha, beta, default",
        ),
        ({"members": ("broken",)}, "profileNotFound", "cannot be used"),
        ({"members": ("alpha", "alpha")}, "invalidParams", "names 'alpha' twice"),
        (
            {"members": ("alpha",), "host": "beta"},
            "invalidParams",
            "'beta' is not among the members",
        ),
        ({"host": "alpha"}, "invalidParams", "there are: nobody"),
        ({"members": ("alpha",) * 33}, "invalidParams", "33 agents; 32 may take part"),
        ({"burst_budget": 1001}, "invalidParams", "from 0 to 1000"),
        ({"burst_budget": -1}, "invalidParams", "from 0 to 1000"),
    ],
)
async def test_rooms_what_is_no_room_is_refused_before_there_is_a_session(
    tmp_path: Path, wanted: dict[str, Any], kind: str, says: str
) -> None:
    configure(tmp_path, ROSTERS)
    profile(tmp_path, "broken", nonsense="x")
    async with stage(tmp_path) as s:
        with pytest.raises(CallboardError) as error:
            planned(s, **wanted)
        assert error.value.kind == kind
        assert says in error.value.message


async def test_rooms_the_configured_roster_is_for_sessions_that_name_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    configure(tmp_path, f'[rooms]\nroster = "partly"\n{ROSTERS}')
    caplog.set_level(logging.WARNING)
    async with stage(tmp_path) as s:
        assert planned(s)[0].members == ("gamma",)
        assert "rooms.rosters.partly: the agent 'nobody' cannot be used here" in caplog.text
        assert planned(s, profile="alpha")[0].members == ()
        assert planned(s, members=())[0].members == ()
        assert planned(s, roster="review")[0].members == ("beta", "alpha")
        assert planned(s, members=("alpha",))[0].members == ("alpha",)


async def test_rooms_a_workspace_brings_no_roster(tmp_path: Path) -> None:
    (tmp_path / ".callboard").mkdir()
    (tmp_path / ".callboard" / "config.toml").write_text(f'[rooms]\nroster = "review"\n{ROSTERS}')
    async with stage(tmp_path) as s:
        assert planned(s)[0].members == ()
        with pytest.raises(CallboardError, match="there are: none"):
            planned(s, roster="review")


# --- members that come and go ---------------------------------------------------------------------------


async def names(s: Stage, room: str) -> tuple[list[str], str | None]:
    shown = await s.rooms.room(room)
    return [member.name for member in shown.members], shown.host


async def test_rooms_adding_and_removing_are_idempotent_and_the_host_goes_with_its_member(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as s:
        room = await s.room("alpha")
        await s.rooms.add(room, "beta", host=True, by=CLIENT)
        assert await names(s, room) == (["alpha", "beta"], "beta")
        before = len(await s.log(room))
        await s.rooms.add(room, "BETA", host=True, by=CLIENT)
        await s.rooms.add(room, "alpha", host=False, by=CLIENT)
        await s.rooms.remove(room, "gamma", by=CLIENT)
        assert len(await s.log(room)) == before
        await s.rooms.add(room, "alpha", host=True, by=CLIENT)
        assert await names(s, room) == (["alpha", "beta"], "alpha")
        await s.rooms.remove(room, "ALPHA", by=CLIENT)
        assert await names(s, room) == (["beta"], None)
        await s.rooms.remove(room, "alpha", by=CLIENT)
        assert await names(s, room) == (["beta"], None)
        # whose session it was has left, and comes back with nobody
        await s.rooms.add(room, "gamma", host=False, by=CLIENT)
        assert await names(s, room) == (["beta", "gamma"], None)
        await s.rooms.remove(room, "gamma", by=CLIENT)
        state = await s.host.cache.state(room)
        assert state == replay(record.value for record in await s.log(room))
        assert find_room(s.host.log.glance, room) == state.room
        await s.host.log.rebuild()
        assert find_room(s.host.log.glance, room) == state.room
        assert (await s.host.reading.session(room)).members == ("beta",)


async def test_rooms_who_was_alone_in_a_session_stays_when_the_first_one_is_added(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as s:
        session = await s.alone()
        assert await names(s, session) == ([], None)
        await s.rooms.add(session, "beta", host=False, by=CLIENT)
        assert await names(s, session) == (["default", "beta"], None)
        other = await s.room(profile="beta")
        await s.rooms.add(other, "beta", host=True, by=CLIENT)
        assert await names(s, other) == (["beta"], "beta")
        gone = await s.room(profile="gamma")
        (tmp_path / "config" / "agents" / "gamma.md").unlink()
        await s.rooms.add(gone, "beta", host=False, by=CLIENT)
        assert await names(s, gone) == (["beta"], None)


async def test_rooms_who_cannot_be_added(tmp_path: Path) -> None:
    many = [f"agent{n}" for n in range(MAX_MEMBERS)]
    async with stage(tmp_path, names=(*many, "alpha")) as s:
        full = await s.room(*many)
        closed, archived = await s.room("alpha"), await s.room("alpha")
        await s.host.sessions.close(closed, by=CLIENT)
        await s.host.sessions.set_archived(archived, archived=True, by=CLIENT)
        for room, name, kind in (
            (full, "alpha", "limitReached"),
            (full, "nobody", "profileNotFound"),
            (closed, "alpha", "sessionClosed"),
            (archived, "alpha", "sessionArchived"),
            ("ses_none", "alpha", "sessionNotFound"),
        ):
            with pytest.raises(CallboardError) as error:
                await s.rooms.add(room, name, host=False, by=CLIENT)
            assert error.value.kind == kind
        assert len(of(await s.log(full), "member_added")) == 0


async def test_rooms_the_status_says_who_can_be_used_and_what_is_wrong(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        room = await s.room("alpha", "beta", "gamma", host="gamma", budget=2)
        (tmp_path / "config" / "agents" / "beta.md").unlink()
        profile(tmp_path, "gamma", nonsense="x")
        shown = await s.rooms.room(room)
        assert [(m.name, m.available, m.is_host) for m in shown.members] == [
            ("alpha", True, False),
            ("beta", False, False),
            ("gamma", False, True),
        ]
        assert shown.members[0].description == "The agent alpha"
        assert "no profile 'beta'" in shown.members[1].description
        assert "cannot be used: nonsense" in shown.members[2].description
        assert (shown.burst.used, shown.burst.budget, shown.burst.exhausted) == (0, 2, False)


# --- what a file may say --------------------------------------------------------------------------------


def created(**more: Any) -> SessionCreated:
    ses = SessionId("ses_1")
    return SessionCreated(
        session_id=ses, root_id=ses, cwd="/", profile="alpha", mode="work", **more
    )


def mention(cls: Callable[..., Any], **more: Any) -> Any:
    return cls(**{"name": "alpha", "by": "beta", "message_seq": 1, "burst": 1, "budget": 6, **more})


@pytest.mark.parametrize(
    "events",
    [
        [created(members=("alpha", "ALPHA"))],
        [created(members=tuple(f"a{n}" for n in range(33)))],
        [created(members=("no name",))],
        [created(members=("alpha",), host="beta")],
        [created(host="beta")],
        [created(burst_budget=1001)],
        [created(), MemberAdded(name="<x>")],
        [created(members=("alpha",)), MemberAdded(name="Alpha")],
        [created(members=("alpha",)), MemberRemoved(name="beta")],
        [created(members=("alpha",)), RoomHostChanged(name="beta")],
        [created(), SessionUpdated(changes={"burstBudget": -1})],
        [created(), mention(MemberMentioned, message_seq=2)],
        [created(), mention(MemberMentioned, message_seq=0)],
        [created(), mention(WakeSuppressed, burst=-1)],
        [created(), mention(MemberMentioned, name="a b")],
        [created(parent_id=SessionId("ses_0"), members=("alpha",))],
        [created(parent_id=SessionId("ses_0")), MemberAdded(name="alpha")],
    ],
)
def test_rooms_a_file_with_a_room_that_cannot_be_is_refused(events: list[Any]) -> None:
    vetting = RoomVetting()
    for seq, event in enumerate(events[:-1], start=1):
        vetting.event(seq, event)
    with pytest.raises(Refused):
        vetting.event(len(events), events[-1])


def test_rooms_a_file_with_a_room_is_taken() -> None:
    vetting = RoomVetting()
    for seq, event in enumerate(
        [
            created(members=("alpha", "beta"), host="beta", burst_budget=0),
            MemberAdded(name="gamma"),
            RoomHostChanged(name="gamma"),
            mention(MemberMentioned, name="gamma"),
            MemberRemoved(name="gamma"),
            RoomHostChanged(name=None),
            SessionUpdated(changes={"burstBudget": None}),
            mention(WakeSuppressed, message_seq=7, name="gamma"),
        ],
        start=1,
    ):
        vetting.event(seq, event)
    assert vetting.room == Room(members=("alpha", "beta"))
