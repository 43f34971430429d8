"""The one door to providers: what comes through, what an error says, and what it must not say."""

import gzip
import re
import subprocess
import sys
from datetime import UTC, datetime
from itertools import count
from typing import Any

import anyio
import pytest

from callboard.models.base import ModelError
from callboard.models.call import named
from callboard.models.http import HttpClient, Timeouts, is_loopback, origin
from callboard.models.sse import SseEvent
from callboard_rpc.common import Failure
from fakes.http_fake import EVENT_STREAM, HttpFake, Reply, json_reply, ways_to_split

pytestmark = pytest.mark.anyio

KEY = "sk-test-abcdefghijklmnop"
NOW = datetime(2020, 1, 1, 12, 0, 0, tzinfo=UTC)
STREAM = "event: a\ndata: Grüße\n\n: ping\n\ndata: two\n\ndata: [DONE]\n\n".encode()
EVENTS = [
    SseEvent(event="a", data="Grüße"),
    SseEvent(event=None, data="two"),
    SseEvent(event=None, data="[DONE]"),
]


async def read(http: HttpClient, url: str, **rest: Any) -> list[SseEvent]:
    given: dict[str, Any] = {
        "headers": {"authorization": f"Bearer {KEY}"},
        "body": {"model": "m"},
        "provider": "fake",
        "timeouts": Timeouts(),
        **rest,
    }
    async with http.stream_sse(url, **given) as events:
        return [event async for event in events]


async def failure_of(*replies: Reply, http: HttpClient | None = None, **rest: Any) -> Failure:
    http = http or HttpClient(now=lambda: NOW)
    async with HttpFake(*replies) as fake:
        with pytest.raises(ModelError) as caught:
            await read(http, f"{fake.url}/v1/x", **rest)
        await http.aclose()
    assert not caught.value.started
    assert caught.value.failure.provider == "fake"
    return caught.value.failure


@pytest.mark.parametrize("way", ways_to_split(STREAM))
async def test_events_come_whole_however_the_bytes_are_split(way: str) -> None:
    http = HttpClient()
    async with HttpFake(Reply(chunks=ways_to_split(STREAM)[way])) as fake:
        assert await read(http, fake.url) == EVENTS
        await http.aclose()


async def test_the_request_is_json_with_the_given_headers() -> None:
    http = HttpClient()
    async with HttpFake(Reply(chunks=(STREAM,))) as fake:
        await read(http, f"{fake.url}/v1/things", body={"text": "ü", "lone": "\ud800"})
        await http.aclose()
    (request,) = fake.requests
    assert (request.method, request.path) == ("POST", "/v1/things")
    assert request.json == {"text": "ü", "lone": "?"}
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["accept"] == "text/event-stream"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["accept-encoding"] == "identity"


async def test_one_connection_serves_request_after_request() -> None:
    http = HttpClient()
    async with HttpFake(Reply(chunks=(STREAM,))) as fake:
        for _ in range(3):
            async with http.stream_sse(
                fake.url, headers={}, body={}, provider="fake", timeouts=Timeouts()
            ) as events:
                async for event in events:
                    if event.data == "[DONE]":
                        break
        await http.aclose()
    assert [request.connection for request in fake.requests] == [1, 1, 1]


async def test_many_streams_run_at_once_over_one_client() -> None:
    http = HttpClient()
    seen: list[int] = []
    async with HttpFake(Reply(chunks=(STREAM,), pause_after=1)) as fake:

        async def one() -> None:
            seen.append(len(await read(http, fake.url)))

        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                for _ in range(40):
                    group.start_soon(one)
                await fake.wait_for_requests(40)
                fake.resume.set()
        await http.aclose()
    assert seen == [3] * 40


async def test_a_compressed_stream_is_read_too() -> None:
    headers = {**EVENT_STREAM, "content-encoding": "gzip"}
    http = HttpClient()
    async with HttpFake(Reply(headers=headers, chunks=(gzip.compress(STREAM),))) as fake:
        assert await read(http, fake.url) == EVENTS
        await http.aclose()


async def test_leaving_the_context_early_ends_the_request() -> None:
    http = HttpClient()
    async with HttpFake(Reply(chunks=(STREAM,), end="hang")) as fake:
        with anyio.fail_after(10):
            async with http.stream_sse(
                fake.url, headers={}, body={}, provider="fake", timeouts=Timeouts()
            ) as events:
                await anext(aiter(events))
            await fake.left.wait()
        await http.aclose()


@pytest.mark.parametrize("end", ["hang", "silent"])
async def test_a_cancel_ends_the_request_at_once(end: Any) -> None:
    http = HttpClient()
    async with HttpFake(Reply(end=end)) as fake:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                group.start_soon(read, http, fake.url)
                await fake.wait_for_requests(1)
                group.cancel_scope.cancel()
            await fake.left.wait()
        await http.aclose()


# --- failures -------------------------------------------------------------------------------


def error(message: str, **rest: object) -> dict[str, Any]:
    return {"error": {"message": message, **rest}}


@pytest.mark.parametrize(
    ("status", "payload", "kind", "retryable"),
    [
        (400, error("bad parameter"), "modelError", False),
        (401, error("no"), "authRequired", False),
        (403, error("no"), "authRequired", False),
        (402, error("Insufficient credits"), "modelError", False),
        (404, error("The model `x` does not exist", code="model_not_found"), "modelUnavailable", False),
        (404, {"error": "model 'x' not found, try pulling it first"}, "modelUnavailable", False),
        (400, error("x is not a valid model ID"), "modelUnavailable", False),
        (408, error("slow"), "modelError", True),
        (429, error("slow down"), "modelError", True),
        (429, error("spent", code="insufficient_quota"), "modelError", False),
        (500, error("oops"), "modelError", True),
        (502, error("oops"), "modelError", True),
        (503, error("oops"), "modelError", True),
        (504, error("oops"), "modelError", True),
        (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "modelError", True),
        (501, error("not here"), "modelError", False),
        (400, error("too big", code="context_length_exceeded"), "contextWindowExceeded", False),
        (400, error("This model's maximum context length is 8192 tokens."), "contextWindowExceeded", False),
        (400, {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"}}, "contextWindowExceeded", False),
        (400, error("the request exceeds the available context size", type="exceed_context_size_error"), "contextWindowExceeded", False),
        (302, {}, "modelUnavailable", False),
    ],
)  # fmt: skip
async def test_a_status_becomes_a_failure_of_its_kind(
    status: int, payload: dict[str, Any], kind: str, retryable: bool
) -> None:
    failure = await failure_of(json_reply(payload, status=status))
    assert (failure.kind, failure.retryable, failure.http_status) == (kind, retryable, status)
    assert told(failure).startswith(f"fake at ADDRESS answered {status}: ")


@pytest.mark.parametrize(
    "payload",
    [
        {"error": {"message": "the reason"}},
        {"error": "the reason"},
        {"message": "the reason"},
        {"detail": "the reason"},
        {"detail": [{"loc": ["body", "x"], "msg": "the reason", "type": "missing"}]},
        {"errors": [{"message": "the reason"}]},
        [{"error": {"code": 400, "message": "the reason", "status": "INVALID_ARGUMENT"}}],
        {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": '{"error":{"message":"the reason"}}', "provider_name": "X"}}},
        {"error": {"message": "Provider returned error", "metadata": {"raw": "the reason"}}},
        "the reason",
    ],
)  # fmt: skip
async def test_the_providers_own_words_are_found_in_every_common_shape(payload: object) -> None:
    failure = await failure_of(json_reply(payload, status=400))
    assert "the reason" in failure.message


def told(failure: Failure) -> str:
    """Its message; the address, whose port was chosen by the system, under one name."""
    return re.sub(r"http://127\.0\.0\.1:\d+", "ADDRESS", failure.message)


@pytest.mark.parametrize(
    ("provider", "url", "name"),
    [
        ("openai", "https://api.openai.com/v1", "openai"),
        ("openai", "https://eu.api.openai.com/v1", "openai"),
        ("anthropic", "https://api.anthropic.com", "anthropic"),
        ("openai", "https://me:secret@llm.example/v1?key=secret", "openai at https://llm.example"),
        ("openai", "https://api.openai.com.example/v1", "openai at https://api.openai.com.example"),
        ("anthropic", "https://api.openai.com", "anthropic at https://api.openai.com"),
        ("mine", "http://[::1", "mine at an address that is not a URL"),
    ],
)
def test_an_error_names_the_address_unless_it_is_the_providers_own(
    provider: str, url: str, name: str
) -> None:
    assert named(provider, url) == name


async def test_an_error_page_is_told_without_its_markup() -> None:
    page = b"<html><style>p{}</style><h1>502 Bad\nGateway</h1><p>nginx</p></html>"
    failure = await failure_of(
        Reply(status=502, headers={"content-type": "text/html"}, chunks=(page,))
    )
    assert told(failure) == "fake at ADDRESS answered 502: 502 Bad Gateway nginx"


async def test_an_error_without_a_body_still_says_something() -> None:
    assert told(await failure_of(Reply(status=503))) == "fake at ADDRESS answered 503: Scripted"


async def test_an_error_body_that_breaks_off_leaves_the_status() -> None:
    failure = await failure_of(Reply(status=503, chunks=(b'{"error',), end="close"))
    assert (failure.http_status, failure.retryable) == (503, True)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "7"}, 7_000),
        ({"retry-after": "1.5"}, 1_500),
        ({"retry-after": "Wed, 01 Jan 2020 12:00:30 GMT"}, 30_000),
        ({"retry-after": "Wed, 01 Jan 2020 11:00:00 GMT"}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after-ms": "250", "retry-after": "1"}, 250),
        ({}, None),
    ],
)
async def test_retry_after_is_read_as_seconds_and_as_a_date(
    headers: dict[str, str], expected: int | None
) -> None:
    failure = await failure_of(json_reply(error("busy"), status=429, headers=headers))
    assert failure.retry_after_ms == expected


async def test_no_secret_that_was_sent_leaves_in_an_error() -> None:
    said = f"key {KEY} and other-secret-1 for hunter22 and sk-live-****wxyz are wrong"
    http = HttpClient(redact=lambda text: text.replace("hunter22", "[known]"))
    failure = await failure_of(
        json_reply(error(said), status=401),
        http=http,
        headers={"authorization": f"Bearer {KEY}", "x-api-key": "other-secret-1"},
    )
    for secret in (KEY, "other-secret-1", "hunter22", "wxyz"):
        assert secret not in failure.message
    assert "[known]" in failure.message


async def test_provider_text_is_bounded_and_on_one_line() -> None:
    failure = await failure_of(json_reply(error("a\r\n\u202eb\x00" + "x" * 50_000), status=400))
    assert len(failure.message) < 600
    assert told(failure).startswith("fake at ADDRESS answered 400: a b xxx")


async def test_nobody_listening_is_told_and_may_be_tried_again() -> None:
    async with HttpFake() as fake:
        url = fake.url
    http = HttpClient()
    with pytest.raises(ModelError) as caught:
        await read(http, f"{url}/v1")
    await http.aclose()
    failure = caught.value.failure
    assert (failure.kind, failure.retryable) == ("modelError", True)
    assert url in failure.message
    assert "is the server running?" in failure.message


@pytest.mark.parametrize(
    "url", ["", "ftp://x/y", "localhost:1", "http://", "http://a:b", "http://[::1"]
)
async def test_a_base_url_that_is_none_is_told(url: str) -> None:
    http = HttpClient()
    with pytest.raises(ModelError) as caught:
        await read(http, url)
    await http.aclose()
    assert (caught.value.failure.kind, caught.value.failure.retryable) == (
        "modelUnavailable",
        False,
    )


@pytest.mark.parametrize("key", ["with\nbreak", "ключ"])
async def test_a_key_that_no_header_can_carry_is_told_without_showing_it(key: str) -> None:
    http = HttpClient()
    with pytest.raises(ModelError) as caught:
        await read(http, "http://127.0.0.1:9", headers={"authorization": f"Bearer {key}"})
    await http.aclose()
    assert caught.value.failure.kind == "authRequired"
    assert key not in caught.value.failure.message


@pytest.mark.parametrize(
    ("reply", "timeouts", "phase"),
    [
        (Reply(end="silent"), Timeouts(first_byte_s=0.05), "bootstrap"),
        (Reply(chunks=(b"data: 1\n\n",), end="hang"), Timeouts(idle_s=0.05), "transport-idle"),
        (Reply(end="hang"), Timeouts(idle_s=0.05), "transport-idle"),
    ],
)
async def test_execution_5_a_time_limit_names_its_phase(
    reply: Reply, timeouts: Timeouts, phase: str
) -> None:
    failure = await failure_of(reply, timeouts=timeouts)
    assert (failure.kind, failure.retryable) == ("modelError", True)
    assert f"({phase})" in failure.message


# More than one read of a socket can bring, so that some read brings nothing else.
KEEP_ALIVES = b":" + b" " * 400_000 + b"\n\n"


@pytest.mark.parametrize(
    ("chunks", "phase"),
    [
        ((KEEP_ALIVES,), "first-semantic"),
        ((b"data: 1\n\n", KEEP_ALIVES), "semantic-idle"),
        ((b"data: 1\n\n", b"event: ping\ndata: {}\n\n", KEEP_ALIVES), "semantic-idle"),
    ],
)
async def test_execution_5_keep_alives_do_not_hide_silence(
    chunks: tuple[bytes, ...], phase: str
) -> None:
    clock = count(step=10)
    failure = await failure_of(
        Reply(chunks=chunks, end="hang"),
        http=HttpClient(monotonic=lambda: float(next(clock))),
        timeouts=Timeouts(first_semantic_s=5, semantic_idle_s=5),
        semantic=lambda event: event.event != "ping",
    )
    assert f"({phase})" in failure.message
    assert failure.retryable


@pytest.mark.parametrize("reply", [Reply(chunks=(b"data: 1\n\n",), end="close"), Reply(end="slam")])
async def test_a_broken_connection_is_told(reply: Reply) -> None:
    failure = await failure_of(reply)
    assert (failure.kind, failure.retryable) == ("modelError", True)
    assert "broke the connection" in failure.message


async def test_a_web_page_in_place_of_a_stream_points_to_the_base_url() -> None:
    page = Reply(headers={"content-type": "text/html"}, chunks=(b"\n<!doctype html><p>", b"Hi"))
    failure = await failure_of(page)
    assert failure.kind == "modelUnavailable"
    assert "check the base URL" in failure.message


async def test_an_error_object_with_status_200_is_still_an_error() -> None:
    failure = await failure_of(json_reply(error("over capacity", code=503)))
    assert (failure.kind, failure.retryable, failure.http_status) == ("modelError", True, 503)
    assert "over capacity" in failure.message


async def test_a_stream_event_without_end_is_refused() -> None:
    endless = Reply(chunks=(b"data: ", *[b"y" * 1_000_000] * 40))
    assert "larger than" in (await failure_of(endless)).message


# --- lists ----------------------------------------------------------------------------------


async def test_get_json_gives_what_came() -> None:
    http = HttpClient()
    async with HttpFake(json_reply({"data": [{"id": "m"}]})) as fake:
        got = await http.get_json(
            f"{fake.url}/v1/models", headers={"a": "b"}, provider="fake", timeout_s=5
        )
        await http.aclose()
    assert got == {"data": [{"id": "m"}]}
    assert (fake.requests[0].method, fake.requests[0].headers["a"]) == ("GET", "b")


@pytest.mark.parametrize(
    ("reply", "words", "limit_s"),
    [
        (Reply(chunks=(b"<html>",)), "not JSON", 30),
        (json_reply(error("no"), status=401), "answered 401", 30),
        (Reply(end="silent"), "0.05 s", 0.05),
        (Reply(end="hang"), "0.05 s", 0.05),
    ],
)
async def test_get_json_fails_as_a_model_error(reply: Reply, words: str, limit_s: float) -> None:
    http = HttpClient()
    async with HttpFake(reply) as fake:
        with pytest.raises(ModelError, match=words):
            await http.get_json(fake.url, headers={}, provider="fake", timeout_s=limit_s)
        await http.aclose()


# --- where requests go ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:1/v1",
        "http://127.0.0.9",
        "http://[::1]:8/",
        "http://0.0.0.0",
        "http://a.localhost.",
    ],
)
def test_loopback_is_recognised(url: str) -> None:
    assert is_loopback(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example.com",
        "http://10.0.0.1",
        "http://localhost.example.com",
        "http://[::1",
        "",
    ],
)
def test_other_machines_are_not_loopback(url: str) -> None:
    assert not is_loopback(url)


def test_an_origin_shows_neither_user_nor_path() -> None:
    assert (
        origin("https://user:secret@host.example:8443/path?key=secret")
        == "https://host.example:8443"
    )


async def test_proxies_of_the_environment_are_passed_by_on_loopback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    http = HttpClient()
    async with (
        HttpFake(Reply(chunks=(STREAM,))) as proxy,
        HttpFake(Reply(chunks=(STREAM,))) as fake,
    ):
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("ALL_PROXY", proxy.url)
        monkeypatch.setenv("NO_PROXY", "")
        assert await read(http, fake.url) == EVENTS
        assert proxy.requests == []
        assert await read(http, "http://models.example/v1") == EVENTS
        assert proxy.requests[0].path == "http://models.example/v1"
        await http.aclose()


async def test_a_proxy_that_is_of_no_use_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "nonsense://proxy")
    http = HttpClient()
    with pytest.raises(ModelError, match="ALL_PROXY") as caught:
        await read(http, "http://models.example/v1")
    assert caught.value.failure.kind == "modelUnavailable"


def test_importing_the_adapters_does_not_import_httpx() -> None:
    code = "import sys, callboard.models.openai_chat, callboard.models.openai_responses; print('httpx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
