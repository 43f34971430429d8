"""The Responses API: every documented event, and a history that carries its own reasoning."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from attrs import evolve

from callboard.models.base import (
    AssistantMessage,
    Image,
    ModelCard,
    ModelError,
    ModelEvent,
    ModelMessage,
    ModelRequest,
    Price,
    Reasoning,
    ReasoningBlock,
    Stop,
    Text,
    TextDelta,
    ThoughtDelta,
    ToolMessage,
    ToolOutput,
    ToolRequest,
    ToolSpec,
    ToolUse,
    UsageReport,
    UserMessage,
)
from callboard.models.http import HttpClient, Timeouts
from callboard.models.openai_responses import OpenAIResponses
from callboard_rpc.common import Usage
from fakes.http_fake import HttpFake, Reply, ways_to_split
from fakes.openai_responses import ResponsesApi

pytestmark = pytest.mark.anyio

FIXTURES = Path(__file__).parents[2] / "fixtures" / "openai_responses"
KEY = "sk-test-0123456789"
CARD = ModelCard(model_id="openai/gpt", provider="openai", name="gpt", supports_images=True)
READ = ToolSpec(name="read_file", description="Reads.", schema={"type": "object"})
LIST = ToolSpec(name="list_files", description="Lists.", schema={"type": "object"})
RATE_LIMIT_WORDS = "Rate limit reached for gpt-5.4."


def fixture(name: str) -> bytes:
    return (FIXTURES / f"{name}.sse").read_bytes()


def user(text: str) -> UserMessage:
    return UserMessage(blocks=(Text(text=text),))


def ask(*messages: ModelMessage, **rest: Any) -> ModelRequest:
    return ModelRequest(**{"system": "Be brief.", "messages": messages or (user("Hello"),), **rest})


def events_of(*pairs: tuple[str, dict[str, Any]]) -> bytes:
    return b"".join(
        f"event: {kind}\ndata: {json.dumps({'type': kind, **payload})}\n\n".encode()
        for kind, payload in pairs
    )


COMPLETED = ("response.completed", {"response": {"status": "completed", "output": []}})


async def answer_of(
    fake: HttpFake, request: ModelRequest | None = None, card: ModelCard = CARD
) -> list[ModelEvent]:
    http = HttpClient()
    model = OpenAIResponses(card, http, f"{fake.url}/v1", lambda: KEY)
    try:
        return [event async for event in model.stream(request or ask())]
    finally:
        await http.aclose()


async def play(*chunks: bytes, card: ModelCard = CARD) -> list[ModelEvent]:
    async with HttpFake(Reply(chunks=chunks)) as fake:
        return await answer_of(fake, card=card)


async def failure_of(*replies: Reply, **rest: Any) -> tuple[list[ModelEvent], ModelError]:
    events: list[ModelEvent] = []
    http = HttpClient()
    async with HttpFake(*replies) as fake:
        model = OpenAIResponses(CARD, http, f"{fake.url}/v1", lambda: KEY, **rest)
        with pytest.raises(ModelError) as caught:
            async for event in model.stream(ask()):
                events.append(event)
        await http.aclose()
    return events, caught.value


def merged(events: list[ModelEvent]) -> list[ModelEvent]:
    """Neighbouring deltas as one, since their boundaries mean nothing."""
    out: list[ModelEvent] = []
    for event in events:
        last = out[-1] if out else None
        if isinstance(event, TextDelta) and isinstance(last, TextDelta):
            out[-1] = TextDelta(text=last.text + event.text)
        elif isinstance(event, ThoughtDelta) and isinstance(last, ThoughtDelta):
            out[-1] = ThoughtDelta(text=last.text + event.text)
        else:
            out.append(event)
    return out


def replay(events: list[ModelEvent]) -> AssistantMessage:
    """The answer as the loop keeps it."""
    blocks: list[Text | Reasoning | ToolUse] = []
    for event in merged(events):
        match event:
            case TextDelta(text=text):
                blocks.append(Text(text=text))
            case ReasoningBlock(reasoning=reasoning):
                blocks.append(reasoning)
            case ToolRequest(call_id=str(call_id), name=name, arguments=arguments):
                blocks.append(ToolUse(call_id=call_id, name=name, arguments=json.loads(arguments)))
            case _:
                pass
    return AssistantMessage(blocks=tuple(blocks))


USAGE = UsageReport(
    usage=Usage(
        requests=1,
        input_tokens=328,
        output_tokens=52,
        cache_read_tokens=256,
        reasoning_tokens=32,
        context_tokens=328,
    )
)
SEALED_ONE = {
    "id": "rs_1",
    "type": "reasoning",
    "encrypted_content": "gAAAA-sealed-one",
    "summary": [
        {"type": "summary_text", "text": "**Looking** at a file"},
        {"type": "summary_text", "text": "Then at another"},
    ],
}
SEALED_TWO = {
    "id": "rs_2",
    "type": "reasoning",
    "encrypted_content": "gAAAA-sealed-two",
    "summary": [],
}
OPEN = {
    "id": "rs_9",
    "type": "reasoning",
    "summary": [],
    "content": [{"type": "reasoning_text", "text": "Open thoughts."}],
    "encrypted_content": None,
    "status": "completed",
}
THOUGHTS = "**Looking** at a file\n\nThen at another"


def block(text: str, opaque: dict[str, Any]) -> Reasoning:
    return Reasoning(text=text, provider="openai_responses", opaque=opaque)


EXPECTED: dict[str, list[ModelEvent]] = {
    "text": [
        TextDelta(text="Grüße 👋 aus der Küche"),
        USAGE,
        Stop(reason="end_turn", raw="completed"),
    ],
    "reasoning_tools": [
        ThoughtDelta(text=THOUGHTS),
        ReasoningBlock(reasoning=block(THOUGHTS, SEALED_ONE)),
        TextDelta(text="Let me look."),
        ToolRequest(call_id="call_a1", name="read_file", arguments='{"path":"ä.py"}'),
        ReasoningBlock(reasoning=block("", SEALED_TWO)),
        ToolRequest(call_id="call_a2", name="list_files", arguments="{}"),
        USAGE,
        Stop(reason="tool_use", raw="completed"),
    ],
    "refusal": [
        TextDelta(text="I can't help with that."),
        USAGE,
        Stop(reason="refusal", raw="completed"),
    ],
    "incomplete": [
        TextDelta(text="Once upon a"),
        USAGE,
        Stop(reason="max_tokens", raw="max_output_tokens"),
    ],
    "open_reasoning": [
        ThoughtDelta(text="Open thoughts."),
        ReasoningBlock(reasoning=block("Open thoughts.", OPEN)),
        TextDelta(text="Done."),
        USAGE,
        Stop(reason="end_turn", raw="completed"),
    ],
    "foreign_events": [
        TextDelta(text="Found."),
        USAGE,
        Stop(reason="end_turn", raw="completed"),
    ],
}
FAILING = {"failed", "error"}


@pytest.mark.parametrize("name", EXPECTED)
async def test_a_recorded_stream_means_the_same_however_it_is_split(name: str) -> None:
    for way, chunks in ways_to_split(fixture(name)).items():
        if way == "single bytes" and len(chunks) > 5_000:
            continue  # The shorter recordings have it; the rest would only take longer.
        assert merged(await play(*chunks)) == EXPECTED[name], way


def test_every_fixture_is_replayed() -> None:
    assert {path.stem for path in FIXTURES.glob("*.sse")} == EXPECTED.keys() | FAILING


@pytest.mark.parametrize("name", EXPECTED)
async def test_what_deltas_do_not_bring_the_finished_parts_do(name: str) -> None:
    stripped = b"".join(
        event + b"\n\n"
        for event in fixture(name).split(b"\n\n")
        if event and b".delta" not in event.splitlines()[0]
    )
    without = [event for event in EXPECTED[name] if not isinstance(event, ThoughtDelta)]
    found = merged(await play(stripped))
    assert [event for event in found if not isinstance(event, ThoughtDelta)] == without


@pytest.mark.parametrize("name", EXPECTED)
async def test_the_final_response_alone_is_an_answer(name: str) -> None:
    last = fixture(name).rstrip().rpartition(b"\n\n")[2] + b"\n\n"
    without = [event for event in EXPECTED[name] if not isinstance(event, ThoughtDelta)]
    found = merged(await play(last))
    assert [event for event in found if not isinstance(event, ThoughtDelta)] == without


# --- what is sent ---------------------------------------------------------------------------


async def sent(request: ModelRequest, card: ModelCard = CARD) -> dict[str, Any]:
    async with HttpFake(answer=ResponsesApi(fixture("text"), key=KEY)) as fake:
        await answer_of(fake, request, card)
        return fake.requests[0].json


async def test_the_smallest_request_is_stateless_and_asks_for_sealed_reasoning() -> None:
    assert await sent(ask()) == {
        "model": "gpt",
        "instructions": "Be brief.",
        "input": [
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "Hello"}],
            }
        ],
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"summary": "auto"},
    }


async def test_options_are_sent_when_set() -> None:
    body = await sent(
        ask(system="", max_output_tokens=9, temperature=0.5, effort="high", session_key="ses_1")
    )
    assert "instructions" not in body
    assert (body["max_output_tokens"], body["temperature"]) == (9, 0.5)
    assert body["reasoning"] == {"effort": "high", "summary": "auto"}
    assert body["prompt_cache_key"] == "ses_1"


async def test_tools_stay_declared_when_their_use_is_forbidden() -> None:
    allowed = await sent(ask(tools=(READ, LIST)))
    forbidden = await sent(ask(tools=(READ, LIST), allow_tools=False))
    assert allowed["tool_choice"] == "auto"
    assert forbidden == {**allowed, "tool_choice": "none"}
    assert allowed["tools"][0] == {
        "type": "function",
        "name": "read_file",
        "description": "Reads.",
        "parameters": {"type": "object"},
        "strict": False,
    }


async def test_images_go_as_data_urls_and_are_named_where_they_cannot_go() -> None:
    image = UserMessage(blocks=(Image(data="AAAA", mime_type="image/png"),))
    (item,) = (await sent(ask(image)))["input"]
    assert item["content"] == [{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]
    (item,) = (await sent(ask(image), evolve(CARD, supports_images=False)))["input"]
    assert "image/png" in item["content"][0]["text"]


async def test_reasoning_goes_back_exactly_once_each_right_before_what_it_led_to() -> None:
    api = ResponsesApi(fixture("reasoning_tools"), fixture("text"))
    async with HttpFake(answer=api) as fake:
        answer = replay(await answer_of(fake))
        outputs = (
            ToolOutput(call_id="call_a1", text="one"),
            ToolOutput(call_id="call_a2", text="two", is_error=True),
        )
        history = (user("Hello"), answer, ToolMessage(outputs=outputs))
        assert merged(await answer_of(fake, ask(*history))) == EXPECTED["text"]
        items = fake.requests[1].json["input"]
    assert items[1:] == [
        SEALED_ONE,
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}],
        },
        {
            "type": "function_call",
            "call_id": "call_a1",
            "name": "read_file",
            "arguments": '{"path":"ä.py"}',
        },
        SEALED_TWO,
        {"type": "function_call", "call_id": "call_a2", "name": "list_files", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_a1", "output": "one"},
        {"type": "function_call_output", "call_id": "call_a2", "output": "two"},
    ]


async def test_reasoning_that_cannot_be_replayed_stays_out() -> None:
    sealed = block("", SEALED_ONE)
    foreign = Reasoning(text="x", provider="anthropic", opaque={"encrypted_content": "x"})
    unsealed = block("", OPEN)
    said = Text(text="So.")
    first = AssistantMessage(blocks=(sealed, foreign, unsealed, said))
    again = AssistantMessage(blocks=(sealed, said))
    trailing = AssistantMessage(blocks=(said, block("", SEALED_TWO)))
    api = ResponsesApi(fixture("reasoning_tools"), fixture("text"))
    async with HttpFake(answer=api) as fake:
        await answer_of(fake)
        request = ask(user("a"), first, user("b"), again, user("c"), trailing, user("d"))
        await answer_of(fake, request)
        items = fake.requests[1].json["input"]
    assert [item for item in items if item["type"] == "reasoning"] == [SEALED_ONE]
    assert items[1] == SEALED_ONE


async def test_reasoning_of_another_account_is_left_out_once_it_was_refused() -> None:
    answer = AssistantMessage(blocks=(block("", SEALED_ONE), Text(text="So.")))
    http = HttpClient()
    async with HttpFake(answer=ResponsesApi(fixture("text"))) as fake:
        model = OpenAIResponses(CARD, http, f"{fake.url}/v1", lambda: KEY)
        request = ask(user("a"), answer, user("b"))
        assert merged([event async for event in model.stream(request)]) == EXPECTED["text"]
        await http.aclose()
    kinds = [[item["type"] for item in request.json["input"]] for request in fake.requests]
    assert kinds == [["message", "reasoning", "message", "message"], ["message"] * 3]


@pytest.mark.parametrize(
    ("part", "words", "options"),
    [
        ("include", "Encrypted content is not supported with this model.", {}),
        ("summary", "Your organization must be verified to generate reasoning summaries.", {}),
        ("summary", "Unsupported parameter: 'reasoning.summary' is not supported with this model.", {}),
        ("temperature", "Unsupported parameter: 'temperature' is not supported with this model.", {"temperature": 0.0}),
        ("prompt_cache_key", "Unknown parameter: 'prompt_cache_key'.", {"session_key": "s"}),
    ],
)  # fmt: skip
async def test_what_a_server_refuses_is_left_out_once_and_for_all(
    part: str, words: str, options: dict[str, Any]
) -> None:
    http = HttpClient()
    async with HttpFake(answer=ResponsesApi(fixture("text"), refuses={part: words})) as fake:
        model = OpenAIResponses(CARD, http, f"{fake.url}/v1", lambda: KEY)
        for _ in range(2):
            events = [event async for event in model.stream(ask(**options))]
            assert merged(events) == EXPECTED["text"]
        await http.aclose()
    assert len(fake.requests) == 3


# --- odd streams ----------------------------------------------------------------------------


async def test_events_without_a_type_are_read_by_their_name_and_a_sentinel_is_passed_over() -> None:
    stream = (
        b'event: response.output_text.delta\ndata: {"output_index":0,"content_index":0,"delta":"x"}\n\n'
        b"data: [DONE]\n\ndata:\n\n"
    )
    events = await play(stream + events_of(COMPLETED))
    assert events[0] == TextDelta(text="x")


async def test_items_that_all_claim_one_place_are_each_given_once() -> None:
    items = [
        {"type": "function_call", "call_id": f"c{n}", "name": "list_files", "arguments": "{}"}
        for n in range(3)
    ]
    done = [("response.output_item.done", {"output_index": 0, "item": item}) for item in items]
    response = {"status": "completed", "output": items}
    events = await play(events_of(*done, ("response.completed", {"response": response})))
    assert [event.call_id for event in events if isinstance(event, ToolRequest)] == [
        "c0",
        "c1",
        "c2",
    ]


async def test_arguments_that_only_deltas_brought_are_kept() -> None:
    item = {"type": "function_call", "call_id": "c", "name": "read_file", "arguments": ""}
    events = await play(
        events_of(
            ("response.function_call_arguments.delta", {"output_index": 0, "delta": '{"a"'}),
            ("response.function_call_arguments.delta", {"output_index": 0, "delta": ":1}"}),
            ("response.output_item.done", {"output_index": 0, "item": item}),
            COMPLETED,
        )
    )
    assert ToolRequest(call_id="c", name="read_file", arguments='{"a":1}') in events


@pytest.mark.parametrize(
    ("why", "reason"),
    [("max_output_tokens", "max_tokens"), ("content_filter", "refusal"), ("other_thing", "other")],
)
async def test_why_a_response_is_incomplete(why: str, reason: str) -> None:
    response = {"status": "incomplete", "incomplete_details": {"reason": why}}
    events = await play(events_of(("response.incomplete", {"response": response})))
    assert events[-1] == Stop(reason=reason, raw=why)  # pyright: ignore[reportArgumentType]


async def test_usage_that_never_came_is_unknown_and_not_zero() -> None:
    events = await play(events_of(COMPLETED))
    assert events[-2] == UsageReport(usage=Usage(requests=1, partial=True))


async def test_a_price_gives_the_cost() -> None:
    card = evolve(CARD, price=Price(input=1.0, output=8.0, cache_read=0.1))
    report = (await play(fixture("text"), card=card))[-2]
    assert isinstance(report, UsageReport)
    assert report.usage.cost == pytest.approx((72 * 1.0 + 256 * 0.1 + 52 * 8.0) / 1e6)


async def test_the_end_of_the_response_ends_the_stream_of_a_server_that_stays() -> None:
    async with HttpFake(Reply(chunks=(fixture("text"),), end="hang")) as fake:
        with anyio.fail_after(10):
            assert merged(await answer_of(fake)) == EXPECTED["text"]


# --- failures -------------------------------------------------------------------------------


async def test_a_failed_response_is_an_error() -> None:
    events, error = await failure_of(Reply(chunks=(fixture("failed"),)))
    assert events == []
    assert not error.started
    assert error.failure.retryable
    assert "The server had an error" in error.failure.message


async def test_an_error_event_in_mid_stream_is_an_error() -> None:
    events, error = await failure_of(Reply(chunks=(fixture("error"),)))
    assert merged(events) == [TextDelta(text="Half an answer")]
    assert error.started
    assert RATE_LIMIT_WORDS in error.failure.message


async def test_an_error_event_with_its_error_inside_is_an_error_too() -> None:
    stream = events_of(("error", {"error": {"code": "context_length_exceeded", "message": "full"}}))
    _, error = await failure_of(Reply(chunks=(stream,)))
    assert error.failure.kind == "contextWindowExceeded"


@pytest.mark.parametrize("end", ["clean", "close"])
async def test_a_stream_that_just_ends_was_cut_off(end: Any) -> None:
    half = fixture("text").partition(b"event: response.output_text.done")[0]
    events, error = await failure_of(Reply(chunks=(half,), end=end))
    assert merged(events) == [TextDelta(text="Grüße 👋 aus der Küche")]
    assert error.started


async def test_execution_5_an_empty_response_is_never_asked_for_again() -> None:
    events, error = await failure_of(Reply(chunks=()))
    assert events == []
    assert "empty response" in error.failure.message
    assert not error.failure.retryable


async def test_a_call_that_was_cut_off_is_no_call_but_counts_as_begun() -> None:
    begun = fixture("reasoning_tools").partition(b"event: response.function_call_arguments.delta")
    events, error = await failure_of(Reply(chunks=(begun[0],)))
    assert not any(isinstance(event, ToolRequest) for event in events)
    assert error.started


async def test_a_server_that_only_says_in_progress_says_nothing() -> None:
    waiting = events_of(("response.in_progress", {"response": {}})) * 4_000
    _, error = await failure_of(
        Reply(chunks=(waiting,), end="hang"),
        timeouts=Timeouts(first_semantic_s=0.0, idle_s=60),
    )
    assert "(first-semantic)" in error.failure.message


async def test_cancelling_the_reader_ends_the_request_at_once() -> None:
    async with HttpFake(Reply(chunks=(fixture("text")[:2000],), end="hang")) as fake:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                group.start_soon(answer_of, fake)
                await fake.wait_for_requests(1)
                group.cancel_scope.cancel()
            await fake.left.wait()
