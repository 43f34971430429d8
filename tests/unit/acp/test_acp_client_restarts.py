"""What an agent knows over the ends of its process and of our server; and what is said to it while it works."""

from pathlib import Path
from typing import Any

import psutil
import pytest
from acp_client_kit import CLIENT, command, permission, printed, stage, tool_update, write_agent
from test_acp_client_turns import of, said

from callboard_rpc.common import TextContent

pytestmark = pytest.mark.anyio

RESUMES = {"capabilities": {"sessionCapabilities": {"resume": {}}}}
LOADS = {"capabilities": {"loadSession": True}}


async def _after_a_restart(folder: Path, scene: dict[str, Any], **more: Any) -> Any:
    """A prompt in each of two servers, one after the other; the records, and what the agent heard."""
    async with stage(folder, {"say": "first answer"}, scene=scene) as play:
        session_id = await play.session()
        await play.say(session_id, "first")
        await play.idle(session_id)
    async with stage(folder, {"say": "second answer"}, scene={**scene, **more}) as play:
        await play.say(session_id, "second")
        return await play.idle(session_id), play


async def test_one_that_resumes_is_told_only_what_is_new(tmp_path: Path) -> None:
    records, play = await _after_a_restart(tmp_path, RESUMES)
    assert play.told() == ["first", "second"]
    (resumed,) = play.heard("session/resume")
    assert resumed["params"]["sessionId"] == "agent-session-1"
    assert of(records, "notice") == []


async def test_what_is_replayed_by_a_load_is_not_said_again(tmp_path: Path) -> None:
    old = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "replayed"}}
    records, play = await _after_a_restart(
        tmp_path, LOADS, before={"session/load": [{"update": old}]}
    )
    assert play.told() == ["first", "second"]
    assert said(records) == ["first answer", "second answer"]


@pytest.mark.parametrize("code", [-32601, -32602, -32603, -32002])
async def test_one_that_cannot_go_on_begins_anew_and_says_so(tmp_path: Path, code: int) -> None:
    faults = {"session/resume": {"code": code, "message": "what session?"}}
    records, play = await _after_a_restart(tmp_path, RESUMES, faults=faults, session="another")
    assert len(play.heard("session/new")) == 2
    last = play.told()[1]
    assert "<person>\nfirst\n</person>" in last
    assert "first answer" in last
    assert last.endswith("second")
    (notice,) = of(records, "notice")
    assert notice.severity == "warning"
    assert "puppet 1.0" in notice.description
    assert [e.agent_session_id for e in of(records, "external_session")] == [
        "agent-session-1",
        "another",
    ]


async def test_an_approval_outlives_the_server_and_the_turn_goes_on(tmp_path: Path) -> None:
    asks = [{"say": "May I?"}, permission(**command())]
    async with stage(tmp_path, *asks, scene=RESUMES) as play:
        session_id = await play.session()
        await play.say(session_id, "go")
        approval = await play.asked()
    again = [
        permission("t2", **command()),
        tool_update("t2", status="completed", content=printed("made")),
        {"say": "Done."},
    ]
    async with stage(tmp_path, *again, scene=RESUMES) as play:
        assert (await play.asked()).approval_id == approval.approval_id
        await play.answer(feedback="be quick")
        records = await play.idle(session_id)
        assert "'touch made' was allowed" in play.told()[1]
    assert len(of(records, "turn_started")) == 1
    assert len(of(records, "turn_finished")) == 1
    assert of(records, "turn_finished")[0].outcome == "completed"
    assert [r.status for r in of(records, "tool_result")] == ["interrupted", "ok"]
    assert len(of(records, "approval_request")) == 1
    assert said(records) == ["May I?", "[allow]Done."]


async def test_what_was_decided_before_a_restart_stands_for_the_same_call_only(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, permission(**command()), scene=RESUMES) as play:
        session_id = await play.session()
        await play.say(session_id, "go")
        await play.asked()
    other = [permission("t2", **command("touch other"))]
    async with stage(tmp_path, *other, scene=RESUMES) as play:
        await play.answer()
        await play.seen(session_id, "approval_request", 2)
        await play.answer("reject_once")
        records = await play.idle(session_id)
    assert [r.status for r in of(records, "tool_result")] == ["interrupted", "denied"]


def _diff(path: Path, text: str) -> list[dict[str, Any]]:
    return [{"type": "diff", "path": str(path), "newText": text}]


@pytest.mark.parametrize("what", ["another file", "another text", "another folder", "another call"])
async def test_what_was_decided_before_a_restart_stands_for_what_was_shown_only(
    tmp_path: Path, what: str
) -> None:
    (tmp_path / "below").mkdir()
    a, b = tmp_path / "a.txt", tmp_path / "b.txt"
    line = {"command": "rm -rf *"}
    shown, other = {
        "another file": ({"content": _diff(a, "A")}, {"content": _diff(b, "A")}),
        "another text": ({"content": _diff(a, "A")}, {"content": _diff(a, "B")}),
        "another folder": (
            {"rawInput": {**line, "cwd": str(tmp_path / "below")}},
            {"rawInput": {**line, "cwd": str(tmp_path)}},
        ),
        "another call": ({"title": "Look"}, {"title": "Delete"}),
    }[what]
    kind = {"another folder": "execute", "another call": "other"}.get(what, "edit")
    async with stage(tmp_path, permission(kind=kind, **shown), scene=RESUMES) as play:
        session_id = await play.session()
        await play.say(session_id, "go")
        await play.asked()
    again = [permission("t2", kind=kind, **each) for each in (other, shown)]
    async with stage(tmp_path, *again, scene=RESUMES) as play:
        await play.answer()
        await play.seen(session_id, "approval_request", 2)
        await play.answer("reject_once")
        records = await play.idle(session_id)
    assert said(records) == ["[reject]", "[allow]"]
    assert len(of(records, "approval_request")) == 2


async def test_a_rewound_session_is_begun_anew_at_the_agent(tmp_path: Path) -> None:
    async with stage(tmp_path, {"say": "ok"}, scene=RESUMES) as play:
        session_id = await play.session()
        for text in ("one", "two"):
            await play.say(session_id, text)
            records = await play.idle(session_id)
        second = of(records, "turn_started")[1].turn_id
        await play.host.rewinding.rewind(session_id, second, by=CLIENT)
        await play.say(session_id, "three")
        await play.idle(session_id)
        last = play.told()[-1]
    assert "one" in last
    assert "two" not in last
    assert last.endswith("three")


async def test_a_steer_calls_the_agent_away_and_is_told_in_the_same_turn(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    works = [{"say": "Working"}, {"touch": str(begun)}, {"until_cancelled": True}]
    scene = {"prompts": [["left", [{"say": "Turning left"}]], ["go", works]]}
    async with stage(tmp_path, scene=scene) as play:
        session_id = await play.session()
        await play.say(session_id, "go")
        await play.seen(session_id, "external_session")
        await play.until_file(begun)
        await play.say(session_id, "left", delivery="steer")
        records = await play.idle(session_id)
    assert len(of(records, "turn_started")) == 1
    assert said(records) == ["Working", "Turning left"]


async def test_one_that_takes_corrections_is_not_called_away(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    works = [{"say": "Working. "}, {"touch": str(begun)}, {"until_steered": True}]
    scene = {"prompts": [["go", works]], "meta": {"steering": {"supported": True}}}
    async with stage(tmp_path, scene=scene) as play:
        session_id = await play.session()
        await play.say(session_id, "go")
        await play.until_file(begun)
        await play.say(session_id, "left", delivery="steer")
        records = await play.idle(session_id)
        assert play.heard("session/cancel") == []
        assert play.told() == ["go"]
    assert said(records) == ["Working. corrected: left"]
    assert len(of(records, "turn_started")) == 1


@pytest.mark.parametrize(
    "answer",
    [{}, {"outcome": "promptRequired", "reason": "noRunningTurn"}, {"outcome": "failed"}, "?"],
)
async def test_one_that_has_not_taken_a_correction_is_called_away_for_it(
    tmp_path: Path, answer: object
) -> None:
    begun = tmp_path / "begun"
    works = [{"say": "Working"}, {"touch": str(begun)}, {"until_cancelled": True}]
    scene = {
        "prompts": [["go", works], ["left", [{"say": "Turning left"}]]],
        "meta": {"steering": {"supported": True}},
        "steering": answer,
    }
    async with stage(tmp_path, scene=scene) as play:
        session_id = await play.session()
        await play.say(session_id, "go")
        await play.until_file(begun)
        await play.say(session_id, "left", delivery="steer")
        records = await play.idle(session_id)
        assert len(play.heard("session/cancel")) == 1
    assert said(records) == ["Working", "Turning left"]
    assert len(of(records, "turn_started")) == 1


async def test_its_process_ends_with_the_session(tmp_path: Path) -> None:
    async with stage(tmp_path, {"say": "{pid}"}) as play:
        session_id = await play.session()
        await play.say(session_id)
        records = await play.idle(session_id)
        pid = int(said(records)[0])
        assert psutil.pid_exists(pid)
        (connection,) = play.host.services["acp"].connections()
        await play.host.sessions.close(session_id, by=CLIENT)
        await connection.over()
        assert not psutil.pid_exists(pid)


async def test_its_process_ends_when_it_has_nothing_to_do(tmp_path: Path) -> None:
    async with stage(tmp_path, {"say": "{pid}"}, config="[acp]\nidle_s = 1\n") as play:
        session_id = await play.session()
        await play.say(session_id)
        await play.idle(session_id)
        (connection,) = play.host.services["acp"].connections()
        await connection.over()
        assert play.host.services["acp"].connections() == []


async def test_a_profile_that_changes_is_another_agent(tmp_path: Path) -> None:
    async with stage(tmp_path, {"say": "old"}, scene=RESUMES) as play:
        session_id = await play.session()
        await play.say(session_id)
        await play.idle(session_id)
        scene = {"prompts": [["", [{"say": "new"}]]], **RESUMES}
        write_agent(tmp_path, scene, env={"COLOUR": "red"})
        await play.say(session_id)
        records = await play.idle(session_id)
    assert said(records) == ["old", "new"]


async def test_the_first_prompt_brings_the_profiles_instructions(tmp_path: Path) -> None:
    async with stage(tmp_path, {"say": "ok"}, scene={"prompt": "Be brief."}) as play:
        session_id = await play.session()
        for text in ("one", "two"):
            await play.say(session_id, text)
            await play.idle(session_id)
        first, second = play.told()
    assert first == "<instructions>\nBe brief.\n</instructions>\none"
    assert second == "two"


async def test_images_and_resources_reach_only_one_that_takes_them(tmp_path: Path) -> None:
    from callboard_rpc.common import EmbeddedResource, ImageContent
    from harness.inside import PERSON

    given = [
        TextContent(text="Look"),
        ImageContent(data="aGk=", mime_type="image/png"),
        EmbeddedResource(uri="file:///a.txt", text="what it is"),
    ]
    async with stage(tmp_path, {"say": "ok"}) as play:
        session_id = await play.session()
        await play.host.sessions.prompt(session_id, given, author=PERSON, by=CLIENT)
        await play.idle(session_id)
        takes = {"promptCapabilities": {"image": True, "embeddedContext": True}}
        scene = {"prompts": [["", [{"say": "ok"}]]], "capabilities": takes}
        write_agent(tmp_path, scene, name="seeing")
        session_id = await play.session(profile="seeing")
        await play.host.sessions.prompt(session_id, given, author=PERSON, by=CLIENT)
        await play.idle(session_id)
        kinds = [[b["type"] for b in m["params"]["prompt"]] for m in play.heard("session/prompt")]
    assert kinds == [["text"] * 3, ["text", "image", "resource"]]
