"""A keyed request whose server dies, or whose work fails half-way, is done once all the same."""

import asyncio

import orjson
import pytest

from callboard.rpc.call import KeyedRequest
from callboard.rpc.handlers.remade import remakes
from callboard.rpc.idempotency import StoredAnswers
from callboard_rpc.errors import CallboardError
from harness.inside import CLIENT, host_in, idle, log_of, new_session, say

pytestmark = pytest.mark.anyio


class DiedError(BaseException):
    """Stands for the end of the process: the work is committed, nothing after it is."""


@pytest.fixture
def anyio_backend():
    return "asyncio"


def keyed(method, **params):
    return KeyedRequest(
        client_id="c", method=method, key="k", params=params, pass_turn=lambda: None
    )


def stored(host):
    return StoredAnswers(host.log, days=7, remakes=remakes(host))


async def never():
    raise AssertionError("it was done a second time")


async def dies(answers, request, work):
    async def start():
        await work()
        raise DiedError

    with pytest.raises(DiedError):
        await answers.run(request, start)


async def test_a_prompt_is_said_once_though_its_server_died_before_it_could_answer(tmp_path):
    async with host_in(tmp_path) as host:
        session = await new_session(host, tmp_path)
        ask = keyed("session/prompt", sessionId=session)
        await dies(stored(host), ask, lambda: say(host, session, "hello"))
        await idle(host, session)
    async with host_in(tmp_path) as host:
        answer = await stored(host).run(ask, never)
        assert answer == await stored(host).run(ask, never), "the answer is kept now"
        log = await log_of(host, session)
        said = [r for r in log if r.type == "message" and r.turn_id is None]
        turns = [r.turn_id for r in log if r.type == "turn_started"]
        assert len(said) == len(turns) == 1
        told = orjson.loads(answer)
        assert (told["eventSeq"], told["turnId"], told["outcome"]) == (
            said[0].seq, turns[0], "started",
        )  # fmt: skip
        with pytest.raises(CallboardError, match="another session/prompt"):
            await stored(host).run(keyed("session/prompt", sessionId="ses_other"), never)


async def test_a_session_is_made_once_though_its_server_died_before_it_could_answer(tmp_path):
    made = []

    async def make():
        made.append(await new_session(host, tmp_path))

    ask = keyed("session/create", cwd=str(tmp_path))
    async with host_in(tmp_path) as host:
        await dies(stored(host), ask, make)
    async with host_in(tmp_path) as host:
        told = orjson.loads(await stored(host).run(ask, never))
        assert [told["session"]["sessionId"]] == made


async def test_of_two_processes_that_are_asked_at_once_one_does_it(tmp_path):
    async with host_in(tmp_path) as host:
        session = await new_session(host, tmp_path)
        ask = keyed("session/prompt", sessionId=session)
        both = asyncio.Barrier(2)

        async def work():
            await both.wait()  # neither found an answer in the store
            posted = await say(host, session, "hello")
            return orjson.dumps({"eventSeq": posted.record.seq})

        one, two = await asyncio.gather(
            stored(host).run(ask, work), stored(host).run(ask, work)
        )  # fmt: skip
        await idle(host, session)
        said = [r for r in await log_of(host, session) if r.type == "message" and r.turn_id is None]
        assert len(said) == 1
        assert {orjson.loads(one)["eventSeq"], orjson.loads(two)["eventSeq"]} == {said[0].seq}


async def test_what_was_refused_is_not_done_and_may_be_asked_again(tmp_path):
    async with host_in(tmp_path) as host:
        session = await new_session(host, tmp_path)
        await host.sessions.set_archived(session, archived=True, by=CLIENT)
        ask = keyed("session/prompt", sessionId=session)

        async def work():
            await say(host, session, "hello")
            return b"{}"

        with pytest.raises(CallboardError) as refused:
            await stored(host).run(ask, work)
        assert refused.value.kind == "sessionArchived"
        await host.sessions.set_archived(session, archived=False, by=CLIENT)
        assert await stored(host).run(ask, work) == b"{}"
        await idle(host, session)
