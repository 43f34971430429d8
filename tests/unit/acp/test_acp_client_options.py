"""What an agent lets its session be set to: told as the agent has it, set by a person, kept over restarts."""

from pathlib import Path
from typing import Any

import pytest
from acp_client_kit import CLIENT, Stage, stage
from test_acp_client_turns import of, said

from callboard.acp.client.offering import Offering
from callboard_rpc.common import UNSET, OptionValue
from callboard_rpc.errors import CallboardError

pytestmark = pytest.mark.anyio


def select(option_id: str, current: str, *values: str, **fields: Any) -> dict[str, Any]:
    options = [{"value": each, "name": each.title()} for each in values]
    told = {"id": option_id, "name": option_id.title(), "type": "select", "options": options}
    return {**told, "currentValue": current, **fields}


FAST = {"id": "fast", "name": "Fast", "type": "boolean", "currentValue": False}
MODEL = select("llm", "small", "small", "large", category="model")
OPENED = {"configOptions": [MODEL, FAST, {"id": "odd", "type": "slider", "name": "Odd"}]}
LEGACY = {
    "modes": {
        "currentModeId": "code",
        "availableModes": [{"id": each, "name": each} for each in ("code", "plan", "yolo")],
    },
    "models": {
        "currentModelId": "m1",
        "availableModels": [{"modelId": each, "name": each} for each in ("m1", "m2")],
    },
}
RESUMES = {"capabilities": {"sessionCapabilities": {"resume": {}}}}


async def put(play: Stage, session_id: str, **options: str | None) -> None:
    patch = await play.host.options_patch(session_id, options)
    await play.host.sessions.update(
        session_id,
        by=CLIENT,
        title=UNSET,
        pinned=UNSET,
        metadata=UNSET,
        mode=UNSET,
        model=UNSET,
        options=patch,
    )


async def shown(play: Stage, session_id: str) -> dict[str, str]:
    offers = (await play.host.cache.state(session_id)).offers
    return {each.option_id: each.value for each in offers.shown()}


def set_to(play: Stage) -> list[tuple[str, Any]]:
    return [
        (m["params"].get("configId", m["method"]), m["params"].get("value", m["params"].get("modelId", m["params"].get("modeId"))))
        for m in play.heard()
        if m.get("method", "").startswith("session/set_")
    ]  # fmt: skip


async def test_what_it_has_is_told_once_and_set_with_the_next_prompt(tmp_path: Path) -> None:
    async with stage(tmp_path, {"say": "ok"}, scene={"opened": OPENED}) as play:
        session_id = await play.session()
        await play.say(session_id)
        await play.idle(session_id)
        assert await shown(play, session_id) == {"llm": "small", "fast": "false"}
        await put(play, session_id, llm="large", fast="true")
        assert await shown(play, session_id) == {"llm": "large", "fast": "true"}
        assert set_to(play) == []
        for _ in range(2):
            await play.say(session_id)
            records = await play.idle(session_id)
        sent = [m["params"] for m in play.heard("session/set_config_option")]
    first, *_ = of(records, "external_options")
    (model, fast) = first.options
    assert (model.profile, model.category, [v.value for v in model.values]) == (
        "puppet",
        "model",
        ["small", "large"],
    )
    assert [v.value for v in fast.values] == ["true", "false"]
    assert [(p["configId"], p["value"], p.get("type")) for p in sent] == [
        ("llm", "large", None),
        ("fast", True, "boolean"),
    ]


async def test_models_and_modes_of_the_old_way_are_options_too(tmp_path: Path) -> None:
    async with stage(tmp_path, {"say": "ok"}, scene={"opened": LEGACY}) as play:
        session_id = await play.session()
        await play.say(session_id)
        await play.idle(session_id)
        assert await shown(play, session_id) == {"mode": "code", "model": "m1"}
        await put(play, session_id, mode="yolo", model="m2")
        for _ in range(2):
            await play.say(session_id)
            await play.idle(session_id)
        assert set_to(play) == [("session/set_mode", "yolo"), ("session/set_model", "m2")]
        await play.switch(session_id, "plan")
        await play.say(session_id)
        await play.idle(session_id)
        assert set_to(play)[2:] == [("session/set_mode", "plan")]
        assert (await shown(play, session_id))["mode"] == "yolo"
        await play.switch(session_id, "work")
        await play.say(session_id)
        await play.idle(session_id)
        assert set_to(play)[3:] == [("session/set_mode", "yolo")]


async def test_it_is_set_again_when_the_agent_is_started_again(tmp_path: Path) -> None:
    scene = {"opened": OPENED, **RESUMES}
    async with stage(tmp_path, {"say": "ok"}, scene=scene) as play:
        session_id = await play.session()
        await play.say(session_id)
        await play.idle(session_id)
        await put(play, session_id, llm="large")
        await play.say(session_id)
        await play.idle(session_id)
    async with stage(tmp_path, {"say": "ok"}, scene=scene) as play:
        assert await shown(play, session_id) == {"llm": "large", "fast": "false"}
        await play.say(session_id)
        await play.idle(session_id)
        assert len(play.heard("session/resume")) == 1
        assert set_to(play) == [("llm", "large")] * 2
        await put(play, session_id, llm=None)
    async with stage(tmp_path, {"say": "ok"}, scene=scene) as play:
        await play.say(session_id)
        await play.idle(session_id)
        assert set_to(play) == [("llm", "large")] * 2
        assert await shown(play, session_id) == {"llm": "small", "fast": "false"}


async def test_what_the_agent_changes_by_itself_stands(tmp_path: Path) -> None:
    small = {"sessionUpdate": "config_option_update", "configOptions": [MODEL, FAST]}
    scene = {"opened": OPENED, "prompts": [["/model", [{"update": small}, {"say": "small now"}]]]}
    async with stage(tmp_path, {"say": "ok"}, scene=scene) as play:
        session_id = await play.session()
        await play.say(session_id)
        await play.idle(session_id)
        await put(play, session_id, llm="large")
        await play.say(session_id)
        await play.idle(session_id)
        await play.say(session_id, "/model small")
        await play.idle(session_id)
        assert (await shown(play, session_id))["llm"] == "small"
        await play.say(session_id)
        await play.idle(session_id)
        assert set_to(play) == [("llm", "large")]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"llm": "huge"}, "cannot be 'huge'; it can be small, large"),
        ({"colour": "red"}, "is no option of 'puppet'; it has llm, fast"),
        ({"puppet/llm": "huge"}, "cannot be 'huge'"),
        ({"llm": True}, "must be a text"),
    ],
)
async def test_what_it_does_not_have_is_refused_by_name(
    tmp_path: Path, options: Any, words: str
) -> None:
    async with stage(tmp_path, {"say": "ok"}, scene={"opened": OPENED}) as play:
        session_id = await play.session()
        await play.say(session_id)
        await play.idle(session_id)
        with pytest.raises(CallboardError, match="options") as refused:
            await play.host.options_patch(session_id, options)
        assert words in refused.value.message
        assert refused.value.kind == "invalidParams"
        other = await play.session(profile="default")
        with pytest.raises(CallboardError, match="no agent of this session"):
            await play.host.options_patch(other, {"llm": "large"})


async def test_what_was_asked_for_before_it_was_started_fails_the_turn_by_name(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, {"say": "ok"}, scene={"opened": OPENED}) as play:
        session_id = await play.session()
        await put(play, session_id, llm="huge")
        await play.say(session_id)
        records = await play.idle(session_id)
        error = of(records, "turn_finished")[0].error
        assert error is not None
        assert "has no llm 'huge'; it can be small, large" in error.message
        await put(play, session_id, llm="large")
        await play.say(session_id)
        assert said(await play.idle(session_id)) == ["ok"]


async def test_an_agent_that_does_not_take_it_fails_the_turn(tmp_path: Path) -> None:
    fault = {"session/set_config_option": {"code": -32603, "message": "not on your plan"}}
    async with stage(tmp_path, {"say": "ok"}, scene={"opened": OPENED, "faults": fault}) as play:
        session_id = await play.session()
        await put(play, session_id, llm="large")
        await play.say(session_id)
        records = await play.idle(session_id)
    assert "not on your plan" in of(records, "turn_finished")[0].error.message


async def test_whoever_made_an_exported_log_sets_nothing_here(tmp_path: Path) -> None:
    async with stage(tmp_path, {"say": "ok"}, scene={"opened": LEGACY}) as play:
        session_id = await play.session()
        await put(play, session_id, mode="yolo")
        await play.say(session_id)
        await play.idle(session_id)
        assert set_to(play) == [("session/set_mode", "yolo")]
        text = (await play.host.writing_out.piece(session_id, cursor=None, limit=1_000)).text
        imported = await play.host.importing.run(text, as_new=True)
        assert (await play.host.cache.state(imported.session_id)).offers.wanted == {"puppet": {}}
        await play.say(imported.session_id)
        await play.idle(imported.session_id)
        assert set_to(play) == [("session/set_mode", "yolo")]


async def test_what_it_tells_is_bounded() -> None:
    offering = Offering("puppet")
    many = [OptionValue(value=f"v{i}", name="n" * 200, description="d" * 300) for i in range(5_000)]
    for number in range(200):
        offering.add(f"o{number}", "x" * 10_000, "v1", many, "x" * 10_000, "y" * 10_000)
    offering.add("l" * 201, "too long", "v1", many, None)
    assert len(offering.options) == 50
    size = sum(len(repr(each)) for each in offering.options)
    assert size < 120_000
    assert offering.options[0].category is None


async def test_what_cannot_be_shown_is_no_name_of_an_option_or_a_value(tmp_path: Path) -> None:
    """It would be told to terminals, in lists and in errors."""
    evil = "\x1b]52;c;aGk=\x07\u202e\n"
    options = [select(f"o{evil}", "a", "a"), select("llm", "small", "small", f"large{evil}")]
    modes = [{"id": each, "name": each} for each in ("code", f"plan{evil}", "x" * 1_000)]
    opened = {
        "configOptions": options,
        "modes": {"currentModeId": "code", "availableModes": modes},
    }
    async with stage(tmp_path, {"say": "ok"}, scene={"opened": opened}) as play:
        session_id = await play.session()
        await play.say(session_id)
        (told,) = of(await play.idle(session_id), "external_options")
    values = [(each.option_id, [value.value for value in each.values]) for each in told.options]
    assert values == [("llm", ["small"]), ("mode", ["code"])]
