"""Calls end with one answer each, and take nothing with them, whatever cannot be told."""

import asyncio

import anyio
import orjson
import pytest

from callboard.rpc.call import Call
from callboard.rpc.calls import Calls, error_message
from callboard.rpc.fault import Faults
from callboard.rpc.lifecycle import Phase
from callboard_rpc.errors import CallboardError
from callboard_rpc.methods import METHODS

pytestmark = pytest.mark.anyio

PING = METHODS["server/ping"]


class Caller:
    """A connection that runs its calls in one task group, as a real one does."""

    phase = Phase.OPEN
    framing = "ndjson"

    def __init__(self, tasks):
        self.tasks = tasks

    def make_call(self, method, request_id, correlation_id, key):
        return Call(
            method=method,
            client=None,
            connection=None,
            request_id=request_id,
            correlation_id=correlation_id,
            cancelled=anyio.CancelScope(),
        )

    def spawn(self, run):
        self.tasks.start_soon(run)


async def answers(*asked, redact=str, done=None):
    """What comes of calls with these ids and handlers, all in one task group."""
    said = []
    async with anyio.create_task_group() as tasks:
        calls = Calls(Caller(tasks), faults=Faults(redact), new_id=lambda: "c1")
        for request_id, handler in asked:
            calls.start(
                PING,
                request_id,
                {},
                handler,
                done or (lambda answer, after: said.append(answer and orjson.loads(answer))),
            )
        await calls.idle()
        assert len(calls) == 0
    return said


async def fine(_, __):
    await asyncio.sleep(0)
    return {"at": "now"}


async def fails(_, __):
    raise CallboardError("sessionNotFound", "there is none")


async def test_an_id_that_no_answer_can_bear_gets_internal_without_an_id_and_ends_nothing_else():
    lost, other = await answers((10**29, fine), (2, fine))
    assert (lost["id"], lost["error"]["data"]["kind"]) == (None, "internal")
    assert other == {"jsonrpc": "2.0", "id": 2, "result": {"at": "now"}}
    lost, other = await answers((10**29, fails), (2, fine))
    assert (lost["id"], lost["error"]["data"]["kind"]) == (None, "internal")
    assert other["id"] == 2


async def test_an_error_that_cannot_be_made_is_internal_with_the_id_that_was_asked():
    def redact(text):
        raise LookupError(text)

    lost, other = await answers((1, fails), (2, fine), redact=redact)
    assert (lost["id"], lost["error"]["data"]["kind"]) == (1, "internal")
    assert lost["error"]["data"]["correlationId"] == "c1"
    assert other["id"] == 2


async def test_a_notification_whose_failure_cannot_be_told_is_not_answered():
    def redact(text):
        raise LookupError(text)

    assert await answers((None, fails), redact=redact) == [None]


async def test_an_answer_that_nobody_takes_ends_nothing(caplog):
    def done(_, __):
        raise RuntimeError("the batch is broken")

    assert await answers((1, fine), (2, fine), done=done) == []
    assert caplog.text.count("has lost its answer") == 2


def test_an_error_whose_data_json_has_no_form_for_is_internal():
    error = CallboardError("sessionNotFound", "no", data={"seen": {1, 2}}).wire("c9")
    told = orjson.loads(error_message("a", error))
    assert (told["id"], told["error"]["code"]) == ("a", -32603)
    assert told["error"]["data"]["correlationId"] == "c9"
