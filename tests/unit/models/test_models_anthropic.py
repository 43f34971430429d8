"""Anthropic's Messages API against a fake of it; the fixtures follow its public documentation."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from callboard.models.anthropic import Anthropic
from callboard.models.anthropic_request import request_body
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
from callboard.models.http import HttpClient
from fakes.anthropic import MessagesApi, error_reply
from fakes.http_fake import HttpFake, Reply, ways_to_split

pytestmark = pytest.mark.anyio

FIXTURES = Path(__file__).parents[2] / "fixtures" / "anthropic"
KEY = "sk-ant-test-0123456789"
CARD = ModelCard(
    model_id="anthropic/claude-sonnet-4-5",
    provider="anthropic",
    name="claude-sonnet-4-5",
    context_window=200_000,
    max_output_tokens=64_000,
    supports_images=True,
    extra={"thinking": "budget"},
)
READ = ToolSpec(name="read_file", description="Reads.", schema={"type": "object"})
LIST = ToolSpec(name="list_files", description="Lists.", schema={"type": "object"})


def fixture(name: str) -> bytes:
    return (FIXTURES / f"{name}.sse").read_bytes()


def user(text: str) -> UserMessage:
    return UserMessage(blocks=(Text(text=text),))


def results(*outputs: ToolOutput) -> ToolMessage:
    return ToolMessage(outputs=outputs)


def ask(*messages: ModelMessage, **rest: Any) -> ModelRequest:
    return ModelRequest(system="Be brief.", messages=messages or (user("Hello"),), **rest)


async def answer_of(
    fake: HttpFake, request: ModelRequest | None = None, card: ModelCard = CARD, **rest: Any
) -> list[ModelEvent]:
    http = HttpClient()
    model = Anthropic(card, http, fake.url, lambda: KEY, **rest)
    try:
        return [event async for event in model.stream(request or ask())]
    finally:
        await http.aclose()


async def failure_of(
    fake: HttpFake, request: ModelRequest | None = None
) -> tuple[list[ModelEvent], ModelError]:
    http = HttpClient()
    model = Anthropic(CARD, http, fake.url, lambda: KEY)
    events: list[ModelEvent] = []
    with pytest.raises(ModelError) as caught:
        async for event in model.stream(request or ask()):
            events.append(event)
    await http.aclose()
    return events, caught.value


async def play(name: str) -> list[ModelEvent]:
    async with HttpFake(Reply(chunks=(fixture(name),))) as fake:
        return await answer_of(fake)


def said(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def calls(events: list[ModelEvent]) -> list[ToolRequest]:
    return [event for event in events if isinstance(event, ToolRequest)]


def replay(events: list[ModelEvent]) -> AssistantMessage:
    """The answer as the loop keeps it."""
    blocks: list[Text | Reasoning | ToolUse] = []
    for event in events:
        match event:
            case TextDelta(text=text):
                if blocks and isinstance(blocks[-1], Text):
                    blocks[-1] = Text(text=blocks[-1].text + text)
                else:
                    blocks.append(Text(text=text))
            case ReasoningBlock(reasoning=reasoning):
                blocks.append(reasoning)
            case ToolRequest(call_id=str(call_id), name=name):
                blocks.append(ToolUse(call_id=call_id, name=name, arguments={"path": "x"}))
            case _:
                continue
    return AssistantMessage(blocks=tuple(blocks))


# --- the answer -------------------------------------------------------------------------------


async def test_text_streams_in_order_and_ends_with_a_stop() -> None:
    events = await play("text")
    assert [event.text for event in events if isinstance(event, TextDelta)] == [
        "Grüße",
        "! 你好 🙂",
    ]
    assert events[-1] == Stop(reason="end_turn", raw="end_turn")


@pytest.mark.parametrize("name", ["text", "tools", "thinking", "newer"])
async def test_an_answer_is_the_same_wherever_the_network_splits_it(name: str) -> None:
    whole = await play(name)
    for way, chunks in ways_to_split(fixture(name)).items():
        async with HttpFake(Reply(chunks=chunks)) as fake:
            assert await answer_of(fake) == whole, way


async def test_parallel_calls_come_whole_and_in_order_and_an_empty_input_is_an_empty_object() -> (
    None
):
    events = await play("tools")
    assert said(events) == "Let me look."
    assert calls(events) == [
        ToolRequest(call_id="toolu_01Read", name="read_file", arguments='{"path": "prices.py"}'),
        ToolRequest(call_id="toolu_02List", name="list_files", arguments="{}"),
        ToolRequest(call_id="toolu_03Plan", name="update_plan", arguments="{}"),
    ]
    assert events[-1] == Stop(reason="tool_use", raw="tool_use")


async def test_reasoning_is_reported_as_it_came_and_where_it_stood_between_calls() -> None:
    events = await play("thinking")
    order = [
        event for event in events if isinstance(event, ReasoningBlock | ToolRequest | TextDelta)
    ]
    first = {"type": "thinking", "thinking": "The tax is\n\nadded twice?"}
    second = {"type": "thinking", "thinking": "And the test beside it."}
    assert order == [
        ReasoningBlock(
            reasoning=Reasoning(
                text="The tax is\n\nadded twice?",
                provider="anthropic",
                opaque={**first, "signature": "EqQBCgIYAhIM1first=="},
            )
        ),
        ReasoningBlock(
            reasoning=Reasoning(
                text="",
                provider="anthropic",
                opaque={"type": "redacted_thinking", "data": "EmwKAhgBEgyredacted=="},
            )
        ),
        TextDelta(text="I will read it."),
        ToolRequest(call_id="toolu_11Read", name="read_file", arguments='{"path": "prices.py"}'),
        ReasoningBlock(
            reasoning=Reasoning(
                text="And the test beside it.",
                provider="anthropic",
                opaque={**second, "signature": "EqQBCgIYAhIM2second=="},
            )
        ),
        ToolRequest(
            call_id="toolu_12Read", name="read_file", arguments='{"path": "test_prices.py"}'
        ),
    ]
    thoughts = [event.text for event in events if isinstance(event, ThoughtDelta)]
    assert thoughts == ["The tax is", "\n\nadded twice?", "And the test beside it."]


async def test_usage_counts_the_cache_as_prompt_and_the_last_report_is_the_whole() -> None:
    async with HttpFake(Reply(chunks=(fixture("thinking"),))) as fake:
        price = Price(input=3, output=15, cache_read=0.3, cache_write=3.75)
        events = await answer_of(fake, card=evolve(CARD, price=price))
    usage = [event.usage for event in events if isinstance(event, UsageReport)][-1]
    assert (usage.requests, usage.input_tokens, usage.output_tokens) == (1, 4240, 120)
    assert (usage.cache_read_tokens, usage.cache_write_tokens) == (3000, 1200)
    assert (usage.context_tokens, usage.reasoning_tokens) == (4240, 64)
    expected = (40 * 3 + 120 * 15 + 3000 * 0.3 + 1200 * 3.75) / 1_000_000
    assert usage.cost == pytest.approx(expected)


async def test_coordination_14_2_what_was_not_reported_stays_unknown() -> None:
    usage = [event.usage for event in await play("text") if isinstance(event, UsageReport)][-1]
    assert (usage.input_tokens, usage.output_tokens) == (25, 15)
    assert usage.cache_read_tokens is None
    assert usage.cost is None


@pytest.mark.parametrize(
    ("name", "reason", "raw"),
    [
        ("refusal", "refusal", "refusal"),
        ("pause_turn", "other", "pause_turn"),
        ("context_window", "max_tokens", "model_context_window_exceeded"),
        ("stop_sequence", "end_turn", "stop_sequence"),
        ("cut_call", "max_tokens", "max_tokens"),
    ],
)
async def test_every_stop_reason_has_a_meaning(name: str, reason: str, raw: str) -> None:
    stop = (await play(name))[-1]
    assert isinstance(stop, Stop)
    assert (stop.reason, stop.raw) == (reason, raw)


async def test_what_a_later_version_adds_is_passed_over() -> None:
    events = await play("newer")
    assert said(events) == "As it says there."
    assert calls(events) == [
        ToolRequest(call_id="toolu_31", name="list_files", arguments='{"path":"."}')
    ]


async def test_a_call_that_the_token_limit_cut_off_is_passed_on_as_it_was_written() -> None:
    (call,) = calls(await play("cut_call"))
    assert call.arguments == '{"path": "a.txt", "text": "one\\ntw'


async def test_a_cut_off_call_without_any_arguments_is_no_call() -> None:
    stream = (
        fixture("cut_call")
        .replace(b'{\\"path\\": \\"a.txt\\"', b"")
        .replace(b', \\"text\\": \\"one\\\\ntw', b"")
    )
    async with HttpFake(Reply(chunks=(stream,))) as fake:
        assert calls(await answer_of(fake)) == []


async def test_an_answer_without_a_message_stop_is_whole_when_its_stop_reason_came() -> None:
    stream = fixture("text").split(b"event: message_stop")[0]
    async with HttpFake(Reply(chunks=(stream,))) as fake:
        assert (await answer_of(fake))[-1] == Stop(reason="end_turn", raw="end_turn")


# --- failures ---------------------------------------------------------------------------------


async def test_a_stream_that_just_ends_is_an_error_and_no_stop() -> None:
    async with HttpFake(Reply(chunks=(fixture("cut_off"),))) as fake:
        events, error = await failure_of(fake)
    assert said(events) == "Half an ans"
    assert not any(isinstance(event, Stop) for event in events)
    assert error.started
    assert error.failure.kind == "modelError"


async def test_a_connection_that_breaks_after_output_says_that_output_had_started() -> None:
    async with HttpFake(Reply(chunks=(fixture("cut_off"),), end="close")) as fake:
        _, error = await failure_of(fake)
    assert error.started


async def test_an_error_in_mid_stream_ends_the_answer_and_says_that_output_had_started() -> None:
    async with HttpFake(Reply(chunks=(fixture("overloaded"),))) as fake:
        events, error = await failure_of(fake)
    assert said(events) == "It be"
    assert error.started
    assert (error.failure.kind, error.failure.http_status) == ("modelError", 529)
    assert error.failure.retryable
    assert "Overloaded" in error.failure.message


async def test_an_overload_before_output_may_be_tried_again() -> None:
    async with HttpFake(Reply(chunks=(fixture("overloaded_first"),))) as fake:
        _, error = await failure_of(fake)
    assert not error.started
    assert error.failure.retryable


@pytest.mark.parametrize(
    ("status", "kind", "message", "expected", "retryable"),
    [
        (529, "overloaded_error", "Overloaded", "modelError", True),
        (500, "api_error", "Internal server error", "modelError", True),
        (401, "authentication_error", "invalid x-api-key", "authRequired", False),
        (403, "permission_error", "not for this key", "authRequired", False),
        (404, "not_found_error", "model: claude-none", "modelUnavailable", False),
        (400, "invalid_request_error", "messages: too odd", "modelError", False),
        (
            400,
            "invalid_request_error",
            "prompt is too long: 210000 tokens > 200000 maximum",
            "contextWindowExceeded",
            False,
        ),
    ],
)
async def test_an_http_error_has_the_kind_that_says_what_to_do(
    status: int, kind: str, message: str, expected: str, retryable: bool
) -> None:
    async with HttpFake(error_reply(status, kind, message)) as fake:
        _, error = await failure_of(fake)
    assert not error.started
    assert (error.failure.kind, error.failure.retryable) == (expected, retryable)
    assert error.failure.http_status == status


async def test_a_rate_limit_tells_when_to_come_back() -> None:
    reply = error_reply(429, "rate_limit_error", "slow down", {"retry-after": "7"})
    async with HttpFake(reply) as fake:
        _, error = await failure_of(fake)
    assert error.failure.retry_after_ms == 7000


async def test_the_key_is_in_no_error_also_when_the_provider_quotes_it() -> None:
    async with HttpFake(error_reply(401, "authentication_error", f"bad key {KEY}")) as fake:
        _, error = await failure_of(fake)
    assert KEY not in error.failure.message


@pytest.mark.parametrize(
    "garbage",
    [b"event: x\ndata: {oops\n\n", b"data: [1]\n\n", b"data: null\n\n", b"<html>no</html>"],
)
async def test_garbage_is_an_error_that_names_the_provider(garbage: bytes) -> None:
    async with HttpFake(Reply(chunks=(garbage,))) as fake:
        _, error = await failure_of(fake)
    assert "anthropic" in error.failure.message


async def test_json_of_the_wrong_shape_breaks_nothing() -> None:
    odd = (
        b'data: {"type":"content_block_delta","index":"a","delta":7}\n\n'
        b'data: {"type":"content_block_start","index":0,"content_block":null}\n\n'
        b'data: {"type":"message_delta","delta":null,"usage":{"output_tokens":true}}\n\n'
        b'data: {"type":7}\n\n'
    )
    async with HttpFake(Reply(chunks=(odd, fixture("text")))) as fake:
        assert said(await answer_of(fake)) == "Grüße! 你好 🙂"


async def test_leaving_the_stream_ends_the_request() -> None:
    async with HttpFake(Reply(chunks=(fixture("cut_off"),), end="hang")) as fake:
        http = HttpClient()
        stream = Anthropic(CARD, http, fake.url, lambda: KEY).stream(ask())
        async for event in stream:
            if isinstance(event, TextDelta):
                break
        await stream.aclose()  # type: ignore[attr-defined]
        await asyncio.wait_for(fake.left.wait(), 10)
        await http.aclose()


# --- the request ------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/", "/v1/messages"])
async def test_the_request_carries_the_version_and_the_key_to_the_one_endpoint(suffix: str) -> None:
    async with HttpFake(answer=MessagesApi(fixture("text"), key=KEY)) as fake:
        http = HttpClient()
        model = Anthropic(CARD, http, fake.url + suffix, lambda: KEY)
        assert said([event async for event in model.stream(ask())])
        await http.aclose()
        (request,) = fake.requests
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in request.headers


async def test_a_configured_proof_keeps_the_key_at_home() -> None:
    async with HttpFake(answer=MessagesApi(fixture("text"))) as fake:
        await answer_of(fake, headers={"Authorization": "Bearer other"})
        (request,) = fake.requests
    assert request.headers["authorization"] == "Bearer other"
    assert "x-api-key" not in request.headers


async def test_thinking_blocks_go_back_exactly_and_in_their_order_between_calls() -> None:
    api = MessagesApi(fixture("thinking"), fixture("text"))
    async with HttpFake(answer=api) as fake:
        first = await answer_of(fake, ask(tools=(READ,), effort="medium"))
        outputs = results(
            ToolOutput(call_id="toolu_11Read", text="one"),
            ToolOutput(call_id="toolu_12Read", text="two"),
        )
        request = ask(user("Hello"), replay(first), outputs, tools=(READ,), effort="medium")
        assert said(await answer_of(fake, request))
        sent = fake.requests[1].json["messages"][1]["content"]
    assert [block["type"] for block in sent] == [
        "thinking",
        "redacted_thinking",
        "text",
        "tool_use",
        "thinking",
        "tool_use",
    ]
    assert sent[0]["signature"] == "EqQBCgIYAhIM1first=="


async def test_the_fake_refuses_reasoning_that_was_touched() -> None:
    """The test above can fail: the fake sees a changed block."""
    api = MessagesApi(fixture("thinking"), fixture("text"))
    async with HttpFake(answer=api) as fake:
        message = replay(await answer_of(fake))
        touched = Reasoning(
            text="x",
            provider="anthropic",
            opaque={"type": "thinking", "thinking": "x", "signature": "s"},
        )
        message = evolve(message, blocks=(touched, *message.blocks[1:]))
        outputs = results(
            ToolOutput(call_id="toolu_11Read", text="1"),
            ToolOutput(call_id="toolu_12Read", text="2"),
        )
        _, error = await failure_of(fake, ask(user("Hello"), message, outputs))
    assert "cannot be modified" in error.failure.message


def test_reasoning_of_other_formats_and_without_a_signature_stays_at_home() -> None:
    message = AssistantMessage(
        blocks=(
            Reasoning(text="a", provider="openai_responses", opaque={"type": "reasoning"}),
            Reasoning(text="b", provider="anthropic"),
            Text(text="Hello."),
        )
    )
    body = request_body(CARD, ask(user("Hi"), message, user("And?")))
    assert body["messages"][1]["content"] == [{"type": "text", "text": "Hello."}]


def test_results_come_first_in_the_user_message_and_errors_are_marked() -> None:
    call = AssistantMessage(
        blocks=(
            ToolUse(call_id="a", name="read_file", arguments={}),
            ToolUse(call_id="b", name="read_file", arguments={}),
        )
    )
    outputs = results(
        ToolOutput(call_id="a", text="one"), ToolOutput(call_id="b", text="no", is_error=True)
    )
    body = request_body(CARD, ask(user("Hi"), call, outputs, user("Also this.")))
    content = body["messages"][2]["content"]
    assert [block["type"] for block in content] == ["tool_result", "tool_result", "text"]
    assert "is_error" not in content[0]
    assert content[1]["is_error"] is True


def test_a_person_who_spoke_before_the_results_stands_behind_them() -> None:
    call = AssistantMessage(blocks=(ToolUse(call_id="a", name="read_file", arguments={}),))
    body = request_body(
        CARD, ask(user("Hi"), call, user("Wait."), results(ToolOutput(call_id="a", text="1")))
    )
    assert [block["type"] for block in body["messages"][2]["content"]] == ["tool_result", "text"]


@pytest.mark.parametrize("turns", [1, 2, 5])
def test_cache_markers_stand_on_system_tools_and_the_last_two_user_turns(turns: int) -> None:
    messages: list[ModelMessage] = [user("turn 0")]
    for number in range(1, turns):
        messages += [AssistantMessage(blocks=(Text(text="ok"),)), user(f"turn {number}")]
    body = request_body(CARD, ask(*messages, tools=(READ, LIST)))
    assert "cache_control" in body["system"][-1]
    assert ["cache_control" in tool for tool in body["tools"]] == [False, True]
    marked = [
        message["content"][0]["text"]
        for message in body["messages"]
        if any("cache_control" in block for block in message["content"])
    ]
    assert marked == [f"turn {number}" for number in range(turns)][-2:]


def test_forbidding_tools_keeps_them_declared_so_that_the_cache_holds() -> None:
    body = request_body(CARD, ask(tools=(READ,), allow_tools=False))
    assert body["tools"][0]["name"] == "read_file"
    assert body["tool_choice"] == {"type": "none"}
    assert "tool_choice" not in request_body(CARD, ask(tools=(READ,)))


def test_max_tokens_is_always_there_and_within_the_models_limit() -> None:
    unknown = evolve(CARD, max_output_tokens=None)
    assert request_body(unknown, ask())["max_tokens"] == 8192
    assert request_body(CARD, ask())["max_tokens"] == 64_000
    assert request_body(CARD, ask(max_output_tokens=100))["max_tokens"] == 100
    assert request_body(CARD, ask(max_output_tokens=10**6))["max_tokens"] == 64_000


def test_effort_is_a_budget_or_adaptive_or_nothing_as_the_card_says() -> None:
    body = request_body(CARD, ask(effort="high", temperature=0.2))
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 24576}
    assert "temperature" not in body
    adaptive = evolve(CARD, extra={"thinking": "adaptive"})
    body = request_body(adaptive, ask(effort="low"))
    assert (body["thinking"], body["output_config"]) == ({"type": "adaptive"}, {"effort": "low"})
    plain = request_body(evolve(CARD, extra={}), ask(effort="high", temperature=1.7))
    assert "thinking" not in plain
    assert plain["temperature"] == 1.0


@pytest.mark.parametrize("limit", [1, 1500, 2048, 3000, 9000])
async def test_a_budget_always_leaves_room_for_the_answer(limit: int) -> None:
    async with HttpFake(answer=MessagesApi(fixture("text"))) as fake:
        await answer_of(fake, ask(effort="high", max_output_tokens=limit))


async def test_an_open_tool_loop_of_another_model_is_gone_on_with_without_thinking() -> None:
    call = AssistantMessage(blocks=(ToolUse(call_id="a", name="read_file", arguments={}),))
    request = ask(
        user("Hi"), call, results(ToolOutput(call_id="a", text="1")), tools=(READ,), effort="high"
    )
    async with HttpFake(answer=MessagesApi(fixture("text"))) as fake:
        assert said(await answer_of(fake, request))
        assert "thinking" not in fake.requests[0].json


async def test_whatever_ids_and_blanks_the_history_holds_the_request_is_valid() -> None:
    call = AssistantMessage(
        blocks=(
            Text(text="  \n"),
            ToolUse(call_id="functions.read:0", name="read_file", arguments={}),
            ToolUse(call_id="functions/read:0", name="read_file", arguments={}),
        )
    )
    outputs = results(
        ToolOutput(call_id="functions.read:0", text=""),
        ToolOutput(call_id="functions/read:0", text="x"),
    )
    request = ask(
        user(" "), call, outputs, AssistantMessage(blocks=(Text(text=" "),)), user("\x00 a \ud800")
    )
    async with HttpFake(answer=MessagesApi(fixture("text"))) as fake:
        assert said(await answer_of(fake, request))


def test_images_go_to_models_that_see_and_are_named_to_those_that_do_not() -> None:
    message = UserMessage(blocks=(Image(data="aGk=", mime_type="image/png"), Text(text="What?")))
    content = request_body(CARD, ask(message))["messages"][0]["content"]
    assert content[0]["source"] == {"type": "base64", "media_type": "image/png", "data": "aGk="}
    blind = request_body(evolve(CARD, supports_images=False), ask(message))
    assert "image/png" in blind["messages"][0]["content"][0]["text"]
