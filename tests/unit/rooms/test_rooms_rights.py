"""What a member may do, and hand on: never more than its own profile says (DESIGN 5, session-messaging 5)."""

from pathlib import Path
from typing import Any

import pytest
from rooms_kit import Actors, Stage, configure, profile, stage, users

from callboard_rpc.errors import CallboardError
from callboard_rpc.events import AgentSpawned
from callboard_rpc.methods import METHODS
from harness.inside import CLIENT
from harness.puppets import calls, of, speaks

pytestmark = pytest.mark.anyio

WRITE = ("write_file", {"path": "made.txt", "content": "x"})
ALLOW = '[approvals.policy]\nwrite = "allow"\nexecute = "allow"\n'


def spawns(**more: Any) -> Any:
    return calls(("spawn_agent", {"name": "helper", "message": "go", "wait": True, **more}))


async def child(s: Stage, room: str) -> tuple[str, AgentSpawned]:
    rows = await s.host.log.query("SELECT session_id FROM sessions WHERE parent_id = ?", room)
    ((child_id,),) = rows
    return child_id, of(await s.log(child_id), "agent_spawned")[0]


async def test_rooms_a_child_has_the_tools_of_the_member_that_started_it(tmp_path: Path) -> None:
    profile(tmp_path, "beta", tools="[spawn_agent, read_file]")
    configure(tmp_path, ALLOW)
    actors = Actors(beta=[spawns(), speaks("done")], helper=[calls(WRITE), speaks("no")])
    async with stage(tmp_path, actors) as s:
        room = await s.room("alpha", "beta")
        await s.told(room, "@beta go")
        child_id, spawned = await child(s, room)
        assert spawned.session.tools == ("read_file", "spawn_agent")
        assert spawned.session.profile == "beta"
        assert not (tmp_path / "made.txt").exists()
        (result,) = of(await s.log(child_id), "tool_result")
        assert result.status == "error"
        brief = users(s.actors.of("helper")[0])
        assert any("'beta'" in text for text in brief)


async def test_rooms_a_child_asked_for_with_another_profile_or_more_tools_gets_no_more(
    tmp_path: Path,
) -> None:
    profile(tmp_path, "beta", tools="[spawn_agent, read_file]")
    actors = Actors(
        beta=[
            spawns(profile="alpha"),
            calls(("spawn_agent", {"name": "two", "message": "go", "tools": ["write_file"]})),
            speaks("done"),
        ]
    )
    async with stage(tmp_path, actors) as s:
        room = await s.room("alpha", "beta")
        await s.told(room, "@beta go")
        _, spawned = await child(s, room)
        assert (spawned.session.profile, spawned.session.tools) == (
            "alpha",
            ("read_file", "spawn_agent"),
        )
        refused = of(await s.log(room), "tool_result")[1]
        assert refused.status == "error" and "write_file" in refused.text


async def test_rooms_a_child_is_in_no_wider_mode_than_its_member(tmp_path: Path) -> None:
    profile(tmp_path, "beta", mode="plan")
    configure(tmp_path, ALLOW)
    actors = Actors(
        alpha=[spawns(), speaks("done")],
        beta=[spawns(profile="alpha"), speaks("done")],
        helper=[calls(WRITE), speaks("no")],
    )
    async with stage(tmp_path, actors) as s:
        room = await s.room("alpha", "beta")
        await s.told(room, "@beta go")
        child_id, spawned = await child(s, room)
        assert spawned.session.mode == "plan"
        assert [r.status for r in of(await s.log(child_id), "tool_result")] == ["denied"]
        assert not (tmp_path / "made.txt").exists()


async def test_rooms_a_child_has_the_model_of_the_member_that_started_it(tmp_path: Path) -> None:
    profile(tmp_path, "alpha", model="models/alpha")
    profile(tmp_path, "beta", model="models/beta")
    async with stage(tmp_path, Actors(beta=[spawns(), speaks("done")])) as s:
        room = await s.room("alpha", "beta")
        await s.told(room, "@beta go")
        _, spawned = await child(s, room)
        assert spawned.session.model == "models/beta"


async def test_rooms_a_child_of_a_session_without_a_room_is_as_ever(tmp_path: Path) -> None:
    async with stage(tmp_path, Actors(beta=[spawns(), speaks("done")])) as s:
        session = await s.room(profile="beta", mode="work")
        await s.told(session, "go")
        _, spawned = await child(s, session)
        assert (spawned.session.profile, spawned.session.mode) == ("beta", "work")
        assert spawned.session.tools is None


async def test_rooms_a_tool_that_a_member_does_not_have_is_none_for_it(tmp_path: Path) -> None:
    profile(tmp_path, "beta", tools="[read_file]")
    configure(tmp_path, ALLOW)
    async with stage(tmp_path, Actors(beta=[calls(WRITE), speaks("no")])) as s:
        room = await s.room("alpha", "beta")
        await s.told(room, "@beta go")
        assert [tool.name for tool in s.actors.of("beta")[0].tools] == ["read_file"]
        assert len(s.actors.of("beta")) == 2 and not (tmp_path / "made.txt").exists()


async def test_rooms_a_child_s_session_is_no_room(tmp_path: Path) -> None:
    async with stage(tmp_path, Actors(alpha=[spawns(), speaks("done")])) as s:
        room = await s.room("alpha", "beta")
        await s.told(room, "go")
        child_id, _ = await child(s, room)
        with pytest.raises(CallboardError, match="add members to ses_") as error:
            await s.rooms.add(child_id, "beta", host=False, by=CLIENT)
        assert error.value.kind == "rootOnly"
        with pytest.raises(CallboardError) as error:
            await s.rooms.remove(child_id, "beta", by=CLIENT)
        assert error.value.kind == "rootOnly"
        assert error.value.kind in METHODS["session/memberRemove"].errors
