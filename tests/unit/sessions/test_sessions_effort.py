"""How much a model is to think: the session's word, else its profile's, else nobody's."""

from pathlib import Path
from typing import Any

import pytest

from callboard.host import Host
from callboard.models.base import Model
from callboard.sessions.profiles import parse
from callboard_rpc.common import UNSET
from harness.inside import CLIENT, host_in, idle, new_session, say
from harness.puppets import Puppet

pytestmark = pytest.mark.anyio


def played(host: Host) -> Puppet:
    puppet = Puppet()

    async def resolve(model_id: str | None = None, *, text_tool_calls: bool = False) -> Model:
        return puppet

    host.catalog.resolve = resolve  # type: ignore[method-assign]
    return puppet


async def set_to(host: Host, session_id: str, effort: Any) -> None:
    unset: dict[str, Any] = dict.fromkeys(("title", "pinned", "metadata", "mode", "model"), UNSET)
    await host.sessions.update(session_id, by=CLIENT, effort=effort, **unset)


async def test_a_session_and_its_profile_say_how_much_is_thought(tmp_path: Path) -> None:
    agents = tmp_path / "config" / "agents"
    agents.mkdir(parents=True)
    (agents / "thinker.md").write_text("---\ndescription: Thinks.\neffort: low\n---\nThink.\n")
    async with host_in(tmp_path) as host:
        puppet = played(host)
        plain = await new_session(host, tmp_path)
        thinker = (
            await host.sessions.create(cwd=str(tmp_path), profile="thinker", mode="work", by=CLIENT)
        ).session_id
        for session_id in (plain, thinker):
            await say(host, session_id, "go")
            await idle(host, session_id)
            await set_to(host, session_id, "high")
            await say(host, session_id, "go on")
            await idle(host, session_id)
            await set_to(host, session_id, None)
            await say(host, session_id, "and on")
            await idle(host, session_id)
        assert [request.effort for request in puppet.requests] == [
            None, "high", None, "low", "high", "low",
        ]  # fmt: skip


async def test_it_holds_over_a_restart(tmp_path: Path) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        await set_to(host, session_id, "medium")
    async with host_in(tmp_path) as host:
        puppet = played(host)
        await say(host, session_id, "go")
        await idle(host, session_id)
        assert puppet.requests[0].effort == "medium"


def test_a_profile_can_say_only_what_there_is() -> None:
    with pytest.raises(ValueError, match="effort"):
        parse("---\neffort: wild\n---\nHello.\n", "wild", "user")
