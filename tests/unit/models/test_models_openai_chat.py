"""Chat Completions: every documented chunk, and what compatible servers make of them."""

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
from callboard.models.openai_chat import OpenAIChat
from callboard_rpc.common import Usage
from fakes.http_fake import HttpFake, Reply, json_reply, ways_to_split
from fakes.openai_chat import ChatApi

pytestmark = pytest.mark.anyio

FIXTURES = Path(__file__).parents[2] / "fixtures" / "openai_chat"
KEY = "sk-test-0123456789"
CARD = ModelCard(model_id="fake/model", provider="fake", name="model", supports_images=True)
READ = ToolSpec(name="read_file", description="Reads.", schema={"type": "object"})
LIST = ToolSpec(name="list_files", description="Lists.", schema={"type": "object"})
DONE = b"data: [DONE]\n\n"


def fixture(name: str) -> bytes:
    return (FIXTURES / f"{name}.sse").read_bytes()


def user(text: str) -> UserMessage:
    return UserMessage(blocks=(Text(text=text),))


def ask(*messages: ModelMessage, **rest: Any) -> ModelRequest:
    return ModelRequest(**{"system": "Be brief.", "messages": messages or (user("Hello"),), **rest})


def chunk(delta: dict[str, Any], finish: str | None = None, **rest: Any) -> bytes:
    payload = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **rest}
    return f"data: {json.dumps(payload)}\n\n".encode()


def fragment(**rest: Any) -> bytes:
    return chunk({"tool_calls": [rest]})


def function(name: str | None = None, arguments: Any = None) -> dict[str, Any]:
    pairs = {"name": name, "arguments": arguments}
    return {key: value for key, value in pairs.items() if value is not None}


async def answer_of(
    fake: HttpFake, request: ModelRequest | None = None, card: ModelCard = CARD, **rest: Any
) -> list[ModelEvent]:
    http = HttpClient()
    model = OpenAIChat(card, http, f"{fake.url}/v1", lambda: KEY, **rest)
    try:
        return [event async for event in model.stream(request or ask())]
    finally:
        await http.aclose()


async def play(*chunks: bytes, card: ModelCard = CARD, **rest: Any) -> list[ModelEvent]:
    async with HttpFake(Reply(chunks=chunks)) as fake:
        return await answer_of(fake, ask(**rest), card)


async def failure_of(*replies: Reply, **rest: Any) -> tuple[list[ModelEvent], ModelError]:
    events: list[ModelEvent] = []
    http = HttpClient()
    async with HttpFake(*replies) as fake:
        model = OpenAIChat(CARD, http, f"{fake.url}/v1", lambda: KEY, **rest)
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


def calls(events: list[ModelEvent]) -> list[tuple[str | None, str, str]]:
    return [(e.call_id, e.name, e.arguments) for e in events if isinstance(e, ToolRequest)]


def stop(events: list[ModelEvent]) -> Stop:
    last = events[-1]
    assert isinstance(last, Stop)
    assert sum(isinstance(event, Stop) for event in events) == 1
    return last


def usage(events: list[ModelEvent]) -> Usage:
    return [event.usage for event in events if isinstance(event, UsageReport)][-1]


OPENAI_USAGE = UsageReport(
    usage=Usage(
        requests=1,
        input_tokens=1117,
        output_tokens=46,
        cache_read_tokens=1024,
        reasoning_tokens=12,
        context_tokens=1117,
    )
)
DETAIL = {
    "type": "reasoning.text",
    "text": "Add them.",
    "signature": "EpMB/Zg==",
    "format": "anthropic-claude-v1",
    "index": 0,
}
EXPECTED: dict[str, list[ModelEvent]] = {
    "text": [
        TextDelta(text="Der Käse ist 🧀 gut.\nSehr."),
        OPENAI_USAGE,
        Stop(reason="end_turn", raw="stop"),
    ],
    "tools": [
        TextDelta(text="I look."),
        ToolRequest(call_id="call_Jk1", name="read_file", arguments='{"path":"a/ü.py"}'),
        ToolRequest(call_id="call_Jk2", name="list_files", arguments="{}"),
        OPENAI_USAGE,
        Stop(reason="tool_use", raw="tool_calls"),
    ],
    "refusal": [
        TextDelta(text="I can't help with that."),
        OPENAI_USAGE,
        Stop(reason="refusal", raw="stop"),
    ],
    "length": [
        TextDelta(text="Once upon"),
        OPENAI_USAGE,
        Stop(reason="max_tokens", raw="length"),
    ],
    "content_filter": [
        TextDelta(text="Well"),
        OPENAI_USAGE,
        Stop(reason="refusal", raw="content_filter"),
    ],
    "function_call": [
        ToolRequest(call_id=None, name="read_file", arguments='{"path":"x"}'),
        OPENAI_USAGE,
        Stop(reason="tool_use", raw="function_call"),
    ],
    "deepseek_reasoning": [
        ThoughtDelta(text="Which file? The first."),
        ReasoningBlock(
            reasoning=Reasoning(
                text="Which file? The first.",
                provider="openai_chat",
                opaque={
                    "model": "fake/model",
                    "fields": {"reasoning_content": "Which file? The first."},
                },
            )
        ),
        TextDelta(text="Reading."),
        ToolRequest(call_id="call_0_a1", name="read_file", arguments='{"path": "one"}'),
        UsageReport(
            usage=Usage(
                requests=1,
                input_tokens=120,
                output_tokens=30,
                cache_read_tokens=64,
                reasoning_tokens=9,
                context_tokens=120,
            )
        ),
        Stop(reason="tool_use", raw="tool_calls"),
    ],
    "openrouter_reasoning": [
        ThoughtDelta(text="Add them."),
        ReasoningBlock(
            reasoning=Reasoning(
                text="Add them.",
                provider="openai_chat",
                opaque={"model": "fake/model", "fields": {"reasoning_details": [DETAIL]}},
            )
        ),
        TextDelta(text="Five."),
        UsageReport(
            usage=Usage(
                requests=1,
                input_tokens=40,
                output_tokens=20,
                cache_read_tokens=0,
                cache_write_tokens=0,
                reasoning_tokens=7,
                context_tokens=40,
                cost=0.00042,
                currency="USD",
            )
        ),
        Stop(reason="end_turn", raw="stop"),
    ],
    "ollama_tools": [
        ThoughtDelta(text="Look first."),
        ReasoningBlock(
            reasoning=Reasoning(text="Look first.", provider="openai_chat", opaque=None)
        ),
        ToolRequest(call_id="call_yb6w2zkp", name="read_file", arguments='{"path":"a"}'),
        ToolRequest(call_id="call_1xq9mrt0", name="read_file", arguments='{"path":"b"}'),
        UsageReport(usage=Usage(requests=1, input_tokens=26, output_tokens=12, context_tokens=26)),
        Stop(reason="tool_use", raw="stop"),
    ],
    "llama_cpp": [
        TextDelta(text="Hi there"),
        UsageReport(usage=Usage(requests=1, input_tokens=9, output_tokens=3, context_tokens=9)),
        Stop(reason="end_turn", raw="stop"),
    ],
}


@pytest.mark.parametrize("name", EXPECTED)
async def test_a_recorded_stream_means_the_same_however_it_is_split(name: str) -> None:
    for way, chunks in ways_to_split(fixture(name)).items():
        assert merged(await play(*chunks)) == EXPECTED[name], way


def test_every_fixture_is_replayed() -> None:
    failing = {"openrouter_error"}
    assert {path.stem for path in FIXTURES.glob("*.sse")} == EXPECTED.keys() | failing


# --- what is sent ---------------------------------------------------------------------------


async def sent(request: ModelRequest, card: ModelCard = CARD, **rest: Any) -> dict[str, Any]:
    async with HttpFake(answer=ChatApi(fixture("text"), key=KEY)) as fake:
        await answer_of(fake, request, card, **rest)
        return fake.requests[0].json


async def test_the_smallest_request() -> None:
    assert await sent(ask()) == {
        "model": "model",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_no_system_prompt_is_no_system_message() -> None:
    assert [each["role"] for each in (await sent(ask(system="")))["messages"]] == ["user"]


async def test_options_are_sent_when_set() -> None:
    body = await sent(ask(max_output_tokens=99, temperature=0.0, effort="low", session_key="ses"))
    assert (body["max_tokens"], body["temperature"], body["reasoning_effort"]) == (99, 0.0, "low")
    assert "prompt_cache_key" not in body


async def test_openai_proper_gets_its_own_names() -> None:
    http = HttpClient()
    seen: list[dict[str, Any]] = []

    def answer(request: Any) -> Reply:
        seen.append(request.json)
        return Reply(chunks=(fixture("text"),))

    async with HttpFake(answer=answer) as proxy:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HTTP_PROXY", proxy.url)
            model = OpenAIChat(CARD, http, "http://api.openai.com/v1/", lambda: KEY)
            request = ask(max_output_tokens=99, session_key="ses_1")
            assert merged([event async for event in model.stream(request)])
            await http.aclose()
        assert proxy.requests[0].path == "http://api.openai.com/v1/chat/completions"
    assert seen[0]["max_completion_tokens"] == 99
    assert "max_tokens" not in seen[0]
    assert seen[0]["prompt_cache_key"] == "ses_1"


async def test_tools_stay_declared_when_their_use_is_forbidden() -> None:
    allowed = await sent(ask(tools=(READ, LIST)))
    forbidden = await sent(ask(tools=(READ, LIST), allow_tools=False))
    assert "tool_choice" not in allowed
    assert forbidden == {**allowed, "tool_choice": "none"}
    assert allowed["tools"][0] == {
        "type": "function",
        "function": {
            "name": "read_file",
            "description": "Reads.",
            "parameters": {"type": "object"},
        },
    }


HISTORY: tuple[ModelMessage, ...] = (
    user("Read both"),
    AssistantMessage(
        blocks=(
            Text(text="Reading."),
            ToolUse(call_id="c1", name="read_file", arguments={"path": "ü"}),
            ToolUse(call_id="c2", name="list_files", arguments={}),
        )
    ),
    ToolMessage(
        outputs=(
            ToolOutput(call_id="c1", text="one"),
            ToolOutput(call_id="c2", text="no", is_error=True),
        )
    ),
    user("And now?"),
)


async def test_a_history_with_calls_is_sent_in_the_documented_form() -> None:
    body = await sent(ask(*HISTORY, tools=(READ, LIST)))
    assert body["messages"][1:] == [
        {"role": "user", "content": "Read both"},
        {
            "role": "assistant",
            "content": "Reading.",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "read_file", "arguments": '{"path":"ü"}'},
                },
                {
                    "id": "c2",
                    "type": "function",
                    "function": {"name": "list_files", "arguments": "{}"},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
        {"role": "tool", "tool_call_id": "c2", "content": "no"},
        {"role": "user", "content": "And now?"},
    ]


async def test_images_go_as_data_urls_and_are_named_where_they_cannot_go() -> None:
    image = UserMessage(blocks=(Text(text="See"), Image(data="AAAA", mime_type="image/png")))
    body = await sent(ask(image))
    assert body["messages"][1]["content"] == [
        {"type": "text", "text": "See"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]
    blind = await sent(ask(image), evolve(CARD, supports_images=False))
    assert "image/png" in blind["messages"][1]["content"]


@pytest.mark.parametrize("name", ["deepseek_reasoning", "openrouter_reasoning"])
async def test_reasoning_goes_back_in_the_fields_in_which_it_came(name: str) -> None:
    block = next(e.reasoning for e in EXPECTED[name] if isinstance(e, ReasoningBlock))
    assert block.opaque is not None
    call = ToolUse(call_id="c", name="read_file", arguments={})
    history = (
        user("x"),
        AssistantMessage(blocks=(block, call)),
        ToolMessage(outputs=(ToolOutput(call_id="c", text="y"),)),
    )
    ((field, value),) = block.opaque["fields"].items()
    assert (await sent(ask(*history)))["messages"][2][field] == value
    other = await sent(ask(*history), evolve(CARD, model_id="fake/other"))
    assert field not in other["messages"][2]


async def test_reasoning_without_calls_goes_back_only_where_it_is_signed() -> None:
    plain = {"model": "fake/model", "fields": {"reasoning_content": "hm"}}
    signed = {"model": "fake/model", "fields": {"reasoning_details": [DETAIL]}}
    foreign = Reasoning(text="x", provider="anthropic", opaque={"signature": "s"})
    for opaque, fields in ((plain, set[str]()), (signed, {"reasoning_details"})):
        block = Reasoning(text="hm", provider="openai_chat", opaque=opaque)
        answer = AssistantMessage(blocks=(foreign, block, Text(text="so")))
        body = await sent(ask(user("x"), answer, user("y")))
        assert body["messages"][2].keys() - {"role", "content"} == fields


async def test_the_key_is_asked_for_at_each_request_and_configured_headers_go_along() -> None:
    keys = iter(["first-key", "second-key"])
    http = HttpClient()
    async with HttpFake(Reply(chunks=(fixture("text"),))) as fake:
        model = OpenAIChat(CARD, http, fake.url, lambda: next(keys), {"x-title": "Callboard"})
        for _ in range(2):
            assert [event async for event in model.stream(ask())]
        await http.aclose()
    assert [r.headers["authorization"] for r in fake.requests] == [
        "Bearer first-key",
        "Bearer second-key",
    ]
    assert fake.requests[0].headers["x-title"] == "Callboard"


async def test_without_a_key_no_authorization_is_sent() -> None:
    http = HttpClient()
    async with HttpFake(Reply(chunks=(fixture("text"),))) as fake:
        model = OpenAIChat(CARD, http, fake.url, lambda: None)
        assert [event async for event in model.stream(ask())]
        await http.aclose()
    assert "authorization" not in fake.requests[0].headers


# --- servers that take less -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "words", "options"),
    [
        ("stream_options", "Unrecognized request argument supplied: stream_options", {}),
        ("tools", "registry.example/library/gemma:2b does not support tools", {"tools": (READ,)}),
        ("tools", "tools param requires --jinja flag", {"tools": (READ,)}),
        ("tools", '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set', {"tools": (READ,)}),
        ("tools", "No endpoints found that support tool use.", {"tools": (READ,)}),
        ("temperature", "Unsupported value: 'temperature' does not support 0 with this model.", {"temperature": 0.0}),
        ("reasoning_effort", "Unrecognized request argument supplied: reasoning_effort", {"effort": "low"}),
        ("max_tokens", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", {"max_output_tokens": 5}),
    ],
)  # fmt: skip
async def test_what_a_server_refuses_is_left_out_once_and_for_all(
    part: str, words: str, options: dict[str, Any]
) -> None:
    http = HttpClient()
    async with HttpFake(answer=ChatApi(fixture("text"), refuses={part: words})) as fake:
        model = OpenAIChat(CARD, http, f"{fake.url}/v1", lambda: KEY)
        for _ in range(2):
            events = [event async for event in model.stream(ask(**options))]
            assert merged(events) == EXPECTED["text"]
        await http.aclose()
    assert [part in request.json for request in fake.requests] == [True, False, False]
    if part == "max_tokens":
        assert fake.requests[1].json["max_completion_tokens"] == 5


async def test_a_refused_field_is_recognised_in_a_list_of_validation_errors() -> None:
    detail = [
        {
            "type": "extra_forbidden",
            "loc": ["body", "stream_options"],
            "msg": "Extra inputs are not permitted",
        }
    ]
    refusal = json_reply({"detail": detail}, status=422)
    async with HttpFake(refusal, Reply(chunks=(fixture("text"),))) as fake:
        assert merged(await answer_of(fake)) == EXPECTED["text"]
    assert "stream_options" not in fake.requests[1].json


async def test_another_error_is_not_taken_for_a_refusal() -> None:
    refusal = json_reply(
        {"error": {"message": "Invalid schema for function 'read_file': not supported"}}, status=400
    )
    async with HttpFake(refusal) as fake:
        with pytest.raises(ModelError, match="Invalid schema"):
            await answer_of(fake, ask(tools=(READ,)))
    assert len(fake.requests) == 1


async def test_without_tools_a_history_of_calls_is_sent_as_text_with_alternating_roles() -> None:
    card = evolve(CARD, supports_tools=False, text_tool_calls=True)
    body = await sent(ask(*HISTORY, tools=(READ, LIST)), card)
    assert "tools" not in body
    assert [each["role"] for each in body["messages"]] == ["system", "user", "assistant", "user"]
    assert '"name":"read_file"' in body["messages"][0]["content"]
    assert (
        '<tool_call>{"name":"read_file","arguments":{"path":"ü"}}</tool_call>'
        in body["messages"][2]["content"]
    )
    assert "<tool_result>\none\n</tool_result>" in body["messages"][3]["content"]
    assert body["messages"][3]["content"].endswith("And now?")


# --- tool calls as they come ----------------------------------------------------------------

A = '{"path":"a"}'
B = '{"path":"b"}'


@pytest.mark.parametrize(
    ("fragments", "expected"),
    [
        pytest.param(
            [fragment(function=function("read_file", "")), fragment(function=function(arguments=A))],
            [(None, "read_file", A)],
            id="neither index nor id",
        ),
        pytest.param(
            [fragment(function=function("read_file", A)), fragment(function=function("read_file", B))],
            [(None, "read_file", A), (None, "read_file", B)],
            id="two whole calls, neither index nor id",
        ),
        pytest.param(
            [
                fragment(id="x", function=function("read_file", "")),
                fragment(id="x", function=function(arguments=A)),
                fragment(id="y", function=function("list_files", "{}")),
            ],
            [("x", "read_file", A), ("y", "list_files", "{}")],
            id="no index, id repeated in each fragment",
        ),
        pytest.param(
            [
                fragment(index=0, id="x", function=function("read_file", '{"path"')),
                fragment(index=0, id="x", function=function("read_file", ':"a"}')),
            ],
            [("x", "read_file", A)],
            id="id and name repeated in each fragment",
        ),
        pytest.param(
            [
                fragment(index=0, id="x", function=function("read_file", A)),
                fragment(index=0, id="y", function=function("read_file", B)),
            ],
            [("x", "read_file", A), ("y", "read_file", B)],
            id="index 0 for every call",
        ),
        pytest.param(
            [
                fragment(index=0, id="x", function=function("read_file", A)),
                fragment(index=1, id="x", function=function("read_file", B)),
            ],
            [("x", "read_file", A), ("x", "read_file", B)],
            id="two calls with one id",
        ),
        pytest.param(
            [
                fragment(id="x", function=function("read_file", A)),
                fragment(id="x", function=function("read_file", B)),
            ],
            [("x", "read_file", A), ("x", "read_file", B)],
            id="two whole calls with one id and no index",
        ),
        pytest.param(
            [fragment(index=0, function=function("read_file", {"path": "a"}))],
            [(None, "read_file", A)],
            id="arguments as an object",
        ),
        pytest.param(
            [
                fragment(index=0, id="x", function=function("read_", "")),
                fragment(index=0, function=function("file", A)),
            ],
            [("x", "read_file", A)],
            id="name in pieces",
        ),
        pytest.param(
            [
                fragment(index=1, id="y", function=function("list_files", "{")),
                fragment(index=0, id="x", function=function("read_file", "")),
                fragment(index=1, function=function(arguments="}")),
                fragment(index=0, function=function(arguments=A)),
            ],
            [("y", "list_files", "{}"), ("x", "read_file", A)],
            id="interleaved",
        ),
        pytest.param(
            [fragment(index=0, id="", type="function", function=function("read_file", "not JSON"))],
            [(None, "read_file", "not JSON")],
            id="arguments that are no JSON are passed on",
        ),
        pytest.param(
            [chunk({"tool_calls": None}), chunk({"tool_calls": []})], [], id="null and empty"
        ),
    ],
)  # fmt: skip
async def test_tool_calls_are_put_together_as_servers_cut_them(
    fragments: list[bytes], expected: list[tuple[str | None, str, str]]
) -> None:
    events = await play(*fragments, chunk({}, "tool_calls"), DONE)
    assert calls(events) == expected
    assert stop(events).reason == ("tool_use" if expected else "other")


async def test_calls_written_as_text_become_calls_when_the_card_says_so() -> None:
    text = (
        "Let me see.\n<tool_call>" + '{"name": "read_file", "arguments": {"path": "a"}}</tool_call>'
    )
    pieces = [chunk({"content": text[at : at + 3]}) for at in range(0, len(text), 3)]
    stream = (*pieces, chunk({}, "stop"), DONE)
    tools = (READ, LIST)
    found = merged(await play(*stream, card=evolve(CARD, text_tool_calls=True), tools=tools))
    assert found[:2] == [
        TextDelta(text="Let me see.\n"),
        ToolRequest(call_id=None, name="read_file", arguments=A),
    ]
    assert stop(found) == Stop(reason="tool_use", raw="stop")
    assert merged(await play(*stream, tools=tools))[0] == TextDelta(text=text)
    forbidden = await play(
        *stream, card=evolve(CARD, text_tool_calls=True), tools=tools, allow_tools=False
    )
    assert merged(forbidden)[0] == TextDelta(text=text)


# --- odd streams ----------------------------------------------------------------------------


async def test_other_choices_empty_ones_and_unknown_fields_are_passed_over() -> None:
    events = await play(
        b'data: {"choices":[],"prompt_filter_results":[]}\n\n',
        b'data: {"choices":null}\n\n',
        b'data: {"choices":[{"index":1,"delta":{"content":"no"}},{"index":0,"delta":{"content":"yes","x":1}}]}\n\n',
        b'data: {"choices":[{"delta":null}]}\n\n',
        b"data:\n\n",
        chunk({}, "stop"),
        DONE,
    )
    assert merged(events)[0] == TextDelta(text="yes")


async def test_a_message_in_place_of_a_delta_and_typed_parts_are_read() -> None:
    whole = {
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "all"},
                "finish_reason": "stop",
            }
        ]
    }
    assert merged(await play(f"data: {json.dumps(whole)}\n\n".encode(), DONE))[0] == TextDelta(
        text="all"
    )
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "so"},
    ]
    events = await play(chunk({"content": parts}), chunk({}, "stop"), DONE)
    assert [type(event) for event in events[:3]] == [ThoughtDelta, ReasoningBlock, TextDelta]


async def test_reasoning_that_comes_under_two_names_is_taken_once() -> None:
    events = await play(
        chunk({"reasoning": "a", "reasoning_content": "a"}), chunk({}, "stop"), DONE
    )
    assert events[0] == ThoughtDelta(text="a")
    assert sum(isinstance(event, ThoughtDelta) for event in events) == 1


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        ("stop", "end_turn"),
        ("length", "max_tokens"),
        ("content_filter", "refusal"),
        ("eos", "other"),
    ],
)
async def test_finish_reasons(finish: str, reason: str) -> None:
    events = await play(chunk({"content": "x"}), chunk({}, finish), DONE)
    assert stop(events) == Stop(reason=reason, raw=finish)  # pyright: ignore[reportArgumentType]


async def test_a_finished_answer_needs_no_sentinel_and_survives_a_broken_end() -> None:
    assert stop(await play(chunk({"content": "x"}, "stop"))).reason == "end_turn"
    async with HttpFake(Reply(chunks=(chunk({"content": "x"}, "stop"),), end="close")) as fake:
        assert stop(await answer_of(fake)).reason == "end_turn"


async def test_the_sentinel_is_an_end_where_a_server_gives_no_reason() -> None:
    assert stop(await play(chunk({"content": "x"}), DONE)) == Stop(reason="end_turn", raw=None)


async def test_the_sentinel_ends_the_answer_of_a_server_that_stays() -> None:
    async with HttpFake(Reply(chunks=(chunk({"content": "x"}), DONE), end="hang")) as fake:
        with anyio.fail_after(10):
            assert stop(await answer_of(fake)).reason == "end_turn"


async def test_usage_that_never_came_is_unknown_and_not_zero() -> None:
    report = usage(await play(chunk({"content": "x"}, "stop"), DONE))
    assert report == Usage(requests=1, partial=True)


async def test_the_last_usage_of_a_stream_counts() -> None:
    first = {"prompt_tokens": 5, "completion_tokens": 1}
    last = {"prompt_tokens": 5, "completion_tokens": 2}
    events = await play(chunk({"content": "x"}, usage=first), chunk({}, "stop", usage=last), DONE)
    assert usage(events).output_tokens == 2


async def test_a_price_gives_the_cost_only_when_the_provider_gave_none() -> None:
    card = evolve(CARD, price=Price(input=2.0, output=10.0, cache_read=0.5))
    cost = usage(await play(fixture("text"), card=card))
    assert cost.cost == pytest.approx((93 * 2.0 + 1024 * 0.5 + 46 * 10.0) / 1e6)
    assert (cost.currency, cost.partial) == ("USD", False)
    assert usage(await play(fixture("openrouter_reasoning"), card=card)).cost == 0.00042


# --- failures -------------------------------------------------------------------------------


async def test_an_error_object_in_mid_stream_ends_it() -> None:
    events, error = await failure_of(Reply(chunks=(fixture("openrouter_error"),)))
    assert events == [TextDelta(text="Half a")]
    assert error.started
    assert (error.failure.http_status, error.failure.retryable) == (502, True)
    assert "Provider disconnected unexpectedly" in error.failure.message


@pytest.mark.parametrize("end", ["clean", "close"])
async def test_a_stream_that_just_ends_was_cut_off(end: Any) -> None:
    events, error = await failure_of(Reply(chunks=(chunk({"content": "Half"}),), end=end))
    assert events == [TextDelta(text="Half")]
    assert error.started


async def test_a_call_that_was_cut_off_is_no_call_but_counts_as_begun() -> None:
    begun = fragment(index=0, id="x", function=function("read_file", '{"pa'))
    events, error = await failure_of(Reply(chunks=(begun,)))
    assert events == []
    assert error.started


@pytest.mark.parametrize("chunks", [(), (DONE,), (b'data: {"choices":[]}\n\n', DONE)])
async def test_execution_5_an_empty_response_is_never_asked_for_again(
    chunks: tuple[bytes, ...],
) -> None:
    events, error = await failure_of(Reply(chunks=chunks))
    assert events == []
    assert "empty response" in error.failure.message
    assert not error.failure.retryable


@pytest.mark.parametrize("garbage", [b"data: {broken\n\n", b"data: 5\n\n", b'data: "text"\n\n'])
async def test_garbage_in_the_stream_is_an_error_that_shows_it(garbage: bytes) -> None:
    events, error = await failure_of(Reply(chunks=(chunk({"content": "a"}), garbage)))
    assert events == [TextDelta(text="a")]
    assert error.started
    assert "JSON objects" in error.failure.message


async def test_the_key_leaves_in_no_error_of_a_stream() -> None:
    said = {"error": {"message": f"bad key {KEY}", "code": 401}}
    _, error = await failure_of(Reply(chunks=(f"data: {json.dumps(said)}\n\n".encode(),)))
    assert KEY not in error.failure.message
    assert error.failure.kind == "authRequired"


async def test_a_model_that_never_answers_is_given_up() -> None:
    limits = Timeouts(first_byte_s=0.05)
    _, error = await failure_of(Reply(end="silent"), timeouts=limits)
    assert "(bootstrap)" in error.failure.message
    assert not error.started


async def test_closing_the_iterator_ends_the_request_at_once() -> None:
    http = HttpClient()
    async with HttpFake(Reply(chunks=(chunk({"content": "a"}),), end="hang")) as fake:
        stream = OpenAIChat(CARD, http, fake.url, lambda: KEY).stream(ask())
        with anyio.fail_after(10):
            assert await anext(stream) == TextDelta(text="a")
            await stream.aclose()
            await fake.left.wait()
        await http.aclose()


async def test_cancelling_the_reader_ends_the_request_at_once() -> None:
    async with HttpFake(Reply(chunks=(chunk({"content": "a"}),), end="hang")) as fake:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                group.start_soon(answer_of, fake)
                await fake.wait_for_requests(1)
                group.cancel_scope.cancel()
            await fake.left.wait()
