"""Keyed requests over a real log: one answer for one key, whatever happens to those who asked."""

import asyncio
import hashlib
from contextvars import Context

import pytest

from callboard.log.transaction import SQL
from callboard.rpc.call import KeyedRequest
from callboard.rpc.idempotency import StoredAnswers
from callboard_rpc.errors import CallboardError
from harness.inside import host_in

pytestmark = pytest.mark.anyio


def keyed(key="k", params=None, client="c", method="session/create", passed=None):
    return KeyedRequest(
        client_id=client,
        method=method,
        key=key,
        params=params or {"cwd": "/"},
        pass_turn=lambda: passed.append(key) if passed is not None else None,
    )


class Work:
    """A handler that is counted and may be held up."""

    def __init__(self, *, held=False, fault=None):
        self.runs = 0
        self.go = asyncio.Event()
        self.began = asyncio.Event()
        self.fault = fault
        if not held:
            self.go.set()

    async def __call__(self):
        self.runs += 1
        self.began.set()
        await self.go.wait()
        if self.fault is not None:
            raise self.fault
        return b'{"n":%d}' % self.runs


@pytest.fixture
async def host(tmp_path):
    async with host_in(tmp_path) as host:
        yield host


async def test_the_first_answer_is_kept_for_the_same_params_in_any_order(host):
    answers, work = StoredAnswers(host.log, days=7), Work()
    first = await answers.run(keyed(params={"a": 1, "b": {"c": 2, "d": 3}}), work)
    again = await answers.run(keyed(params={"b": {"d": 3, "c": 2}, "a": 1}), work)
    other = StoredAnswers(host.log, days=7)
    assert first == again == await other.run(keyed(params={"a": 1, "b": {"c": 2, "d": 3}}), work)
    assert work.runs == 1
    with pytest.raises(CallboardError) as conflict:
        await answers.run(keyed(params={"a": 2}), work)
    assert conflict.value.kind == "idempotencyConflict"
    for own in (keyed(client="d"), keyed(method="session/prompt"), keyed(key="l")):
        await answers.run(own, work)
    assert work.runs == 4


async def test_whoever_joins_waits_for_the_first_and_holds_up_nobody(host):
    answers, work, passed = StoredAnswers(host.log, days=7), Work(held=True), []
    first = asyncio.create_task(answers.run(keyed(), work))
    await work.began.wait()
    joined = asyncio.create_task(answers.run(keyed(passed=passed), work))
    await asyncio.sleep(0)
    assert passed == ["k"] and not joined.done()
    with pytest.raises(CallboardError, match="another session/create"):
        await answers.run(keyed(params={"cwd": "/other"}), work)
    work.go.set()
    assert await first == await joined == b'{"n":1}'


async def test_a_caller_that_is_cancelled_takes_neither_the_work_nor_those_who_joined(host):
    answers, work = StoredAnswers(host.log, days=7), Work(held=True)
    first = asyncio.create_task(answers.run(keyed(), work))
    await work.began.wait()
    joined = asyncio.create_task(answers.run(keyed(), work))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    work.go.set()
    assert await joined == b'{"n":1}'
    assert await answers.run(keyed(), work) == b'{"n":1}' and work.runs == 1


async def test_a_failure_is_not_kept(host):
    answers = StoredAnswers(host.log, days=7)
    failing = Work(fault=CallboardError("pathNotFound", "there is no folder"))
    with pytest.raises(CallboardError, match="no folder"):
        await answers.run(keyed(), failing)
    assert await answers.run(keyed(), Work()) == b'{"n":1}'


async def test_an_answer_that_another_process_kept_meanwhile_is_the_answer(host):
    one, two = StoredAnswers(host.log, days=7), StoredAnswers(host.log, days=7)
    slow, quick = Work(held=True), Work()
    late = asyncio.create_task(one.run(keyed(), slow))
    await slow.began.wait()
    quick.runs = 41
    assert await two.run(keyed(), quick) == b'{"n":42}'
    slow.go.set()
    assert await late == b'{"n":42}'


async def test_answers_are_forgotten_when_they_are_old(host, monkeypatch):
    answers, work = StoredAnswers(host.log, days=7), Work()
    await answers.run(keyed(), work)
    await answers.prune()
    await answers.run(keyed(), work)
    assert work.runs == 1
    soon = StoredAnswers(host.log, days=-1)
    await soon.prune()
    await answers.run(keyed(), work)
    assert work.runs == 2


async def test_a_try_that_was_rolled_back_guards_the_next_one_as_the_first(host):
    """Between two tries of one request another server does it: then it is done already."""
    done = []

    async def remade(outcome):
        return {"by": outcome["by"]}

    def server():
        return StoredAnswers(host.log, days=7, remakes={"session/create": remade})

    def decide(who, *, fails=False):
        def work(tx):
            tx.decided(by=who)
            if fails:
                raise LookupError("the disk was full")
            done.append(who)

        return host.log.transact(work)

    async def other():
        await decide("the other")
        return b'{"by":"the other"}'

    async def persistent():
        with pytest.raises(LookupError):
            await decide("the first", fails=True)
        elsewhere = asyncio.create_task(server().run(keyed(), other), context=Context())
        assert await elsewhere == b'{"by":"the other"}'
        await decide("the first")
        raise AssertionError("it was done twice")

    assert await server().run(keyed(), persistent) == b'{"by":"the other"}'
    assert done == ["the other"]


async def test_a_request_that_decides_in_two_transactions_is_not_in_its_own_way(host):
    async def twice():
        await host.log.transact(lambda tx: tx.decided(step=1))
        await host.log.transact(lambda tx: tx.decided(step=2))
        return b'{"n":2}'

    answers = StoredAnswers(host.log, days=7, remakes={"session/create": Work()})
    assert await answers.run(keyed(), twice) == b'{"n":2}'


async def test_what_an_older_server_claimed_without_a_mark_is_answered(host):
    async def remade(outcome):
        return outcome

    digest = hashlib.sha256(b'{"cwd":"/"}').hexdigest()
    await host.log.transact(
        lambda tx: tx.execute(
            SQL["keep_answer"], "session/create", "c", "k", digest, 'claim {"a":1}', tx.now()
        )
    )
    answers = StoredAnswers(host.log, days=7, remakes={"session/create": remade})
    assert await answers.run(keyed(), Work()) == b'{"a":1}'
