import pytest

from callboard_client import Client, ClientError, RunResult
from callboard_rpc.common import SessionId
from callboard_rpc.events import Event

pytestmark = pytest.mark.anyio


async def outcome(client: Client, prompt: str) -> RunResult:
    return await client.run(prompt, cwd="/").result()


async def test_a_run_follows_a_new_session_from_its_first_event_to_the_end_of_its_turn(
    start,
) -> None:
    async with start() as client, client.run("hello", cwd="/") as run:
        types = [item.type async for item in run if isinstance(item, Event)]
        result = await run.result()
    assert types == ["session_created", "message", "ack", "turn_finished"]
    assert (result.outcome, result.final_text, result.turn_id) == ("completed", "done", "trn_1")


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [("hello", "completed"), ("park", "parked"), ("drop", "dropped"), ("record", "recorded")],
)
async def test_every_way_in_which_a_prompt_can_end_is_told(
    start, prompt: str, expected: str
) -> None:
    async with start() as client:
        assert (await outcome(client, prompt)).outcome == expected


async def test_cancelling_goes_on_to_the_end_that_it_leads_to(start) -> None:
    async with start() as client, client.run("wait", cwd="/") as run:
        async for item in run:
            if isinstance(item, Event) and item.type == "ack":
                await run.cancel()
        assert (await run.result()).outcome == "cancelled"


async def test_a_run_in_an_existing_session_shows_only_what_is_new(start) -> None:
    async with start() as client:
        session = (await outcome(client, "hello")).session_id
        async with client.run("again", session_id=session) as run:
            types = [item.type async for item in run if isinstance(item, Event)]
    assert types == ["message", "ack", "turn_finished"]


async def test_a_profile_cannot_be_given_to_a_session_that_has_one(start) -> None:
    async with start() as client:
        with pytest.raises(ClientError, match="ses_1"):
            await client.run("x", session_id=SessionId("ses_1"), profile="other").result()


async def test_a_run_survives_a_crash_of_the_server(start) -> None:
    async with start(restart=True) as client:
        await client.request("fake/crashBeforeReplyTo", {"method": "session/prompt"})
        result = await outcome(client, "hello")
    assert result.outcome == "completed"
