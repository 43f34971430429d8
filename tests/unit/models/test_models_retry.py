"""Retry of the initial request: execution 5 and 42-44, on a model that fails as told."""

from collections.abc import AsyncIterator

import anyio
import pytest

from callboard.models.base import (
    ModelCard,
    ModelError,
    ModelEvent,
    ModelRequest,
    Stop,
    TextDelta,
    UsageReport,
)
from callboard.models.http import HttpClient
from callboard.models.openai_chat import OpenAIChat
from callboard.models.retry import (
    BOUNDED,
    NEVER,
    UNTIL_CANCELLED,
    RetryPolicy,
    delay_ms,
    stream_with_retry,
)
from callboard_rpc.common import Failure, Usage
from fakes.http_fake import HttpFake, Reply, json_reply

pytestmark = pytest.mark.anyio

REQUEST = ModelRequest(system="", messages=())
ANSWER: list[ModelEvent] = [TextDelta(text="hi"), Stop(reason="end_turn")]


def failure(status: int = 503, *, retryable: bool = True, after: int | None = None) -> Failure:
    return Failure(
        kind="modelError",
        message=f"answered {status}",
        retryable=retryable,
        http_status=status,
        retry_after_ms=after,
    )


class FailingModel:
    """Plays one script a request: events, then perhaps an error."""

    def __init__(self, *scripts: list[ModelEvent | ModelError]) -> None:
        self._scripts = list(scripts)
        self.requests = 0

    @property
    def card(self) -> ModelCard:
        return ModelCard(model_id="fake/model", provider="fake", name="model")

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        script = self._scripts[min(self.requests, len(self._scripts) - 1)]
        self.requests += 1
        for step in script:
            if isinstance(step, ModelError):
                raise step
            yield step


class Waits:
    """Instead of sleeping: what was waited for, in seconds."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


async def play(
    model: FailingModel, policy: RetryPolicy = BOUNDED, fraction: float = 0.0
) -> tuple[list[ModelEvent], Waits]:
    waits = Waits()
    events = [
        event
        async for event in stream_with_retry(
            model, REQUEST, policy=policy, sleep=waits, fraction=lambda: fraction
        )
    ]
    return events, waits


@pytest.mark.parametrize("failures", [0, 1, 2, 3])
async def test_execution_42_a_bounded_run_asks_once_more_for_each_failure_up_to_three(
    failures: int,
) -> None:
    model = FailingModel(*[[ModelError(failure())]] * failures, ANSWER)
    events, waits = await play(model)
    assert events == ANSWER
    assert model.requests == failures + 1
    assert waits.seconds == [0.25, 0.5, 1.0][:failures]


async def test_execution_42_the_last_failure_is_raised_as_it_was() -> None:
    last = ModelError(failure(502))
    model = FailingModel(*[[ModelError(failure())]] * 3, [last])
    with pytest.raises(ModelError) as caught:
        await play(model)
    assert caught.value is last
    assert model.requests == 4


async def test_execution_42_what_is_not_retryable_is_asked_once() -> None:
    model = FailingModel([ModelError(failure(400, retryable=False))], ANSWER)
    with pytest.raises(ModelError):
        await play(model)
    assert model.requests == 1


@pytest.mark.parametrize(
    "script",
    [
        [TextDelta(text="ha"), ModelError(failure())],
        [ModelError(failure(), started=True)],
        [TextDelta(text="ha"), ModelError(failure(), started=False)],
    ],
)
async def test_execution_42_nothing_is_asked_again_after_output_began(
    script: list[ModelEvent | ModelError],
) -> None:
    model = FailingModel(script, ANSWER)
    with pytest.raises(ModelError):
        await play(model)
    assert model.requests == 1


async def test_usage_alone_is_not_output() -> None:
    report = UsageReport(usage=Usage(requests=1))
    model = FailingModel([report, ModelError(failure())], ANSWER)
    events, _ = await play(model)
    assert events == [report, *ANSWER]


async def test_execution_43_retry_after_wins_over_the_cap_up_to_its_ceiling() -> None:
    assert delay_ms(BOUNDED, 1, failure(after=2_000), 0.0) == 2_000
    assert delay_ms(BOUNDED, 1, failure(after=45_000), 0.0) == 45_000
    assert delay_ms(BOUNDED, 1, failure(after=120_000), 0.0) == 60_000


async def test_a_retry_after_of_zero_does_not_make_it_spin() -> None:
    assert delay_ms(BOUNDED, 1, failure(after=0), 0.0) == 250


async def test_the_wait_doubles_to_its_cap_with_jitter_between_half_and_full() -> None:
    full = [delay_ms(BOUNDED, attempt, failure(), 1.0) for attempt in range(1, 10)]
    half = [delay_ms(BOUNDED, attempt, failure(), 0.0) for attempt in range(1, 10)]
    assert full == [500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000]
    assert half == [each // 2 for each in full]
    assert delay_ms(UNTIL_CANCELLED, 10_000, failure(), 1.0) == 30_000


async def test_execution_43_a_cancel_ends_the_wait_at_once() -> None:
    model = FailingModel([ModelError(failure(after=60_000))])
    waiting = anyio.Event()

    async def announce(attempt: int, delay: int, why: Failure) -> None:
        waiting.set()

    async def ask() -> None:
        async for _ in stream_with_retry(model, REQUEST, on_retry=announce):
            raise AssertionError("nothing can come")

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await waiting.wait()
            group.cancel_scope.cancel()
    assert model.requests == 1


async def test_execution_44_until_cancelled_outlives_the_count() -> None:
    model = FailingModel(*[[ModelError(failure())]] * 40, ANSWER)
    events, waits = await play(model, UNTIL_CANCELLED)
    assert events == ANSWER
    assert len(waits.seconds) == 40


async def test_execution_44_until_cancelled_still_stops_at_what_no_repetition_helps() -> None:
    model = FailingModel([ModelError(failure(401, retryable=False))])
    with pytest.raises(ModelError):
        await play(model, UNTIL_CANCELLED)
    assert model.requests == 1


async def test_never_means_one_request() -> None:
    model = FailingModel([ModelError(failure())], ANSWER)
    with pytest.raises(ModelError):
        await play(model, NEVER)
    assert model.requests == 1


async def test_each_retry_is_announced_and_awaited_before_its_wait() -> None:
    model = FailingModel([ModelError(failure(502))], [ModelError(failure(503))], ANSWER)
    seen: list[object] = []

    async def announce(attempt: int, delay: int, why: Failure) -> None:
        await anyio.lowlevel.checkpoint()
        seen.append((attempt, delay, why.http_status, model.requests))

    async def sleep(seconds: float) -> None:
        seen.append(seconds)

    async for _ in stream_with_retry(
        model, REQUEST, on_retry=announce, sleep=sleep, fraction=lambda: 0.0
    ):
        pass
    assert seen == [(1, 250, 502, 1), 0.25, (2, 500, 503, 2), 0.5]


async def test_execution_42_over_http_503_then_200_then_an_answer() -> None:
    answer = b'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    busy = json_reply({"error": {"message": "busy"}}, status=503, headers={"retry-after": "120"})
    waits = Waits()
    http = HttpClient()
    card = ModelCard(model_id="fake/m", provider="fake", name="m")
    async with HttpFake(busy, busy, Reply(chunks=(answer,))) as fake:
        model = OpenAIChat(card, http, fake.url, lambda: None)
        events = [event async for event in stream_with_retry(model, REQUEST, sleep=waits)]
        await http.aclose()
    assert events[0] == TextDelta(text="hi")
    assert waits.seconds == [60.0, 60.0]
    assert len(fake.requests) == 3


async def test_execution_42_over_http_a_break_in_mid_stream_is_never_asked_again() -> None:
    begun = b'data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n'
    http = HttpClient()
    card = ModelCard(model_id="fake/m", provider="fake", name="m")
    async with HttpFake(Reply(chunks=(begun,), end="close")) as fake:
        model = OpenAIChat(card, http, fake.url, lambda: None)
        with pytest.raises(ModelError) as caught:
            async for _ in stream_with_retry(model, REQUEST, sleep=Waits()):
                pass
        await http.aclose()
    assert caught.value.started
    assert len(fake.requests) == 1
