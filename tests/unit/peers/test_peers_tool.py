"""The tool `peer`: what a model may do with links, and what it is told."""

from pathlib import Path
from typing import Any

import pytest
from peers_kit import Links, links, pair

from callboard.agents.examining import Caller, Wanted
from callboard.agents.service import Agents
from harness.inside import CLIENT, host_in
from harness.puppets import Puppet, calls

pytestmark = pytest.mark.anyio


async def _call(p: Links, name: str, **arguments: Any) -> str:
    p.models[name].scenes = [calls(("peer", arguments))]
    await p.say(name)
    await p.idle(name)
    return (await p.events(name, "tool_result"))[-1].text


async def test_peers_a_model_sends_and_lists(tmp_path: Path) -> None:
    async with pair(tmp_path, leaves=True) as p:
        told = await _call(p, "one", op="send", to=p.ids["two"], text="hello")
        (sent,) = await p.events("one", "peer_message_sent")
        assert told.startswith(f"{sent.message_id} sent")
        assert "49 more within the hour" in told
        # it is an event of the turn that has sent it
        (record,) = [r for r in await p.log("one") if r.type == "peer_message_sent"]
        (started,) = await p.events("one", "turn_started")
        assert record.turn_id == started.turn_id
        assert record.fence > 0
        assert "it is sent once" in await _call(p, "one", op="send", to=p.ids["two"], text="hello")
        listed = await _call(p, "one", op="list")
        assert listed.startswith(f"{p.ids['two']} · 'two' · linked since ")
        assert listed.endswith("1 of your messages unread")
        await p.leave("one", "two")
        assert "linked to no other" in await _call(p, "one", op="list")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"op": "send", "to": "two", "text": "hello"}, "not_linked"),
        ({"op": "send", "to": "", "text": "hello"}, "not_linked"),
        ({"op": "send", "to": "OTHER", "text": " "}, "invalid_argument"),
        ({"op": "send", "to": "OTHER"}, "invalid_argument"),
        ({"op": "send", "text": "hello"}, "invalid_argument"),
        ({"op": "send", "to": "OTHER", "text": "x" * 16_001}, "invalid_argument"),
        ({"op": "send", "to": "OTHER", "text": 7}, "invalid_argument"),
        ({"op": "list", "to": "OTHER"}, "invalid_argument"),
        ({"op": "list", "text": "hello"}, "invalid_argument"),
        ({"op": "invite"}, "invalid_argument"),
        ({"op": "accept", "token": "x"}, "invalid_argument"),
        ({"op": "leave", "to": "OTHER"}, "invalid_argument"),
        ({}, "invalid_argument"),
    ],
)
async def test_peers_a_refused_call_is_a_result_with_a_code(
    tmp_path: Path, arguments: dict[str, Any], code: str
) -> None:
    async with pair(tmp_path, leaves=True) as p:
        given = {k: p.ids["two"] if v == "OTHER" else v for k, v in arguments.items()}
        told = await _call(p, "one", **given)
        assert told.startswith(f"{code}: "), told
        assert (await p.events("one", "turn_finished"))[-1].outcome == "completed"
        assert p.rows("peer_sent") == []
        assert len(p.rows("peer_links")) == 2


async def test_peers_a_full_hour_is_told_as_such(tmp_path: Path) -> None:
    async with pair(tmp_path, leaves=True, environ={"CALLBOARD_PEERS_HOURLY": "1"}) as p:
        await p.send("one", "two")
        told = await _call(p, "one", op="send", to=p.ids["two"], text="more")
        assert told.startswith("limit_reached: ")


async def test_peers_an_agent_of_a_session_is_refused(tmp_path: Path) -> None:
    async with pair(tmp_path, leaves=True) as p:
        agents = p.host.services["agents"]
        assert isinstance(agents, Agents)
        p.models["child"] = Puppet(calls(("peer", {"op": "list"})))
        child = await agents.spawn(
            Caller(parent_id=p.ids["one"], by=CLIENT),
            Wanted(name="child", message="work", model="puppet/child"),
        )
        p.ids["child"] = child.agent_id
        await p.idle("child")
        (result,) = await p.events("child", "tool_result")
        assert result.text.startswith("root_only: ")


async def test_peers_off_there_is_no_tool_no_drain_and_no_poller(tmp_path: Path) -> None:
    async with pair(tmp_path, leaves=True) as p:
        await p.send("one", "two", "hello")
        ids = p.ids
        await p.say("one")
        await p.idle("one")
        assert "peer" in [each.name for each in p.models["one"].requests[-1].tools]
    async with links(tmp_path, environ={"CALLBOARD_FEATURES": ""}) as p:
        p.ids.update(ids)
        p.models.update(one=Puppet(), two=Puppet())
        assert p.peers.poller.task is None
        p.host.opened.note(p.ids["two"])
        await p.say("two")
        await p.idle("two")
        assert "peer" not in [each.name for each in p.models["two"].requests[-1].tools]
        assert await p.received("two") == []
        # what lies there stays as it is
        assert p.waiting("two") == 1
        assert len(p.rows("peer_links")) == 2
        told = await _call(p, "one", op="list")
        assert "peer" in told
        assert "linked" not in told
        await p.host.sessions.delete(p.ids["one"], by=CLIENT)
        assert p.rows("peer_links") == []
    async with host_in(tmp_path) as host:
        assert host.services["peers"].poller.task is None  # off unless it is named
