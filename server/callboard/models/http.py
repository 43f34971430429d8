"""The one door to providers: HTTP, server-sent events, time limits, and errors that say what to do.

Invariant: no other module imports httpx, and this one does so at the first request only, since the
import costs more than the rest of a cold start. No secret that was sent leaves in an error.
"""

import asyncio
import ssl
import sys
import time
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Coroutine,
    Generator,
    Mapping,
)
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import orjson
from attrs import evolve

from callboard.models import failures
from callboard.models.base import ModelError
from callboard.models.call import DEFAULT_TIMEOUTS, Call, Timeouts, is_loopback, named, origin
from callboard.models.sse import SseEvent, SseParser, SseTooLarge
from callboard_rpc.common import Failure, Json

if TYPE_CHECKING:
    import httpx

__all__ = ["DEFAULT_TIMEOUTS", "HttpClient", "Timeouts", "is_loopback", "origin"]

_ERROR_BODY_BYTES = 64 * 1024
_JSON_BODY_BYTES = 16 * 1024 * 1024
_ERROR_BODY_S = 10.0
_DRAIN_S = 0.1
_KEEPALIVE_S = 30.0
_BLANK = b" \t\r\n\xef\xbb\xbf"


def _every_event(_event: SseEvent) -> bool:
    return True


def _as_it_is(text: str) -> str:
    return text


def load() -> None:
    """Loads httpx, as a library and nothing more. A tenth of a second, the first time.

    Its command line is left out (rich and click: half of the import, some MB). And httpcore is told
    once that sniffio is not installed, which anyio does without by now: it tries to import it several
    times in each request, and each failed import goes to the disk, a third of what a request took.
    """
    if "sniffio" not in sys.modules and find_spec("sniffio") is None:
        sys.modules["sniffio"] = None  # pyright: ignore[reportArgumentType]
    if "httpx" in sys.modules:
        return
    sys.modules["httpx._main"] = None  # pyright: ignore[reportArgumentType]
    try:
        import httpx  # pyright: ignore[reportUnusedImport]  # noqa: F401
    finally:
        del sys.modules["httpx._main"]


class HttpClient:
    """Streams and fetches from providers, over connections that are kept and shared.

    `redact` takes known secrets out of a text; what was sent in headers is always taken out.
    All methods raise `ModelError` and nothing else, with `started` False: only an adapter knows
    whether output began. Proxies of the environment are used, except towards this machine.
    """

    def __init__(
        self,
        *,
        redact: Callable[[str], str] = _as_it_is,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._redact = redact
        self._monotonic = monotonic
        self._now = now
        self._clients: dict[bool, httpx.AsyncClient] = {}
        self._plain: httpx.AsyncHTTPTransport | None = None

    @asynccontextmanager
    async def stream_sse(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        body: Json,
        provider: str,
        timeouts: Timeouts,
        semantic: Callable[[SseEvent], bool] = _every_event,
    ) -> AsyncGenerator[AsyncIterator[SseEvent]]:
        """POST `body` as JSON and yield the events of the answer.

        `semantic` tells events that say something from a provider's pings (see `Timeouts`).
        Leaving the context ends the request; a normal end keeps the connection for the next one.
        """
        head = {"accept": "text/event-stream", "content-type": "application/json"}
        call = Call(provider=provider, url=url, headers={**head, **headers}, timeouts=timeouts)
        response = await self._open("POST", call, _encode(body))
        try:
            reader = _EventReader(self, call, response, semantic, self._monotonic)
            yield reader
            await reader.drain()
        finally:
            await response.aclose()

    async def get_json(
        self, url: str, *, headers: Mapping[str, str], provider: str, timeout_s: float
    ) -> Any:
        """GET `url` and parse the answer; the whole takes at most `timeout_s`."""
        limits = Timeouts(connect_s=timeout_s, first_byte_s=timeout_s, idle_s=timeout_s)
        head = {"accept": "application/json", **headers}
        call = Call(provider=provider, url=url, headers=head, timeouts=limits)
        with self.translated(call, "bootstrap", timeout_s):
            async with asyncio.timeout(timeout_s):
                response = await self._open("GET", call, None)
                try:
                    body = await _read(response, _JSON_BODY_BYTES)
                finally:
                    await response.aclose()
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError:
            raise call.error("answered with something that is not JSON") from None

    async def aclose(self) -> None:
        """Close all connections. A request afterwards opens new ones."""
        clients = list(self._clients.values())
        self._clients.clear()
        plain, self._plain = self._plain, None
        for client in clients:
            await client.aclose()
        if plain is not None:
            await plain.aclose()

    def clean(self, text: str, headers: Mapping[str, str]) -> str:
        """Provider text made fit for an error: bounded, on one line, without secrets."""
        return failures.clean(text, self._redact, headers)

    def stream_failure(
        self, provider: str, payload: object, headers: Mapping[str, str], *, url: str
    ) -> Failure:
        """The failure that an error object inside a stream (`payload`, parsed JSON) tells of. `url` is
        where it came from."""
        complaint = failures.read_complaint(payload) or failures.Complaint(message="")
        complaint = evolve(complaint, message=self.clean(complaint.message, headers))
        return failures.stream_failure(provider, complaint, who=named(provider, url))

    async def _open(self, method: str, call: Call, content: bytes | None) -> "httpx.Response":
        """Send and wait for the head of the response; anything but success is a `ModelError`."""
        for name, value in call.headers.items():
            if not value.isascii() or not value.isprintable():
                raise call.error(
                    f"needs a header {name} without line breaks or special characters; set it anew",
                    kind="authRequired" if failures.is_secret_header(name) else "modelUnavailable",
                )
        send = self._sender(call)
        import httpx

        limit = call.timeouts.first_byte_s
        with self.translated(call, "bootstrap", limit):
            async with asyncio.timeout(limit):
                request = httpx.Request(
                    method,
                    _parsed(call.url),
                    content=content,
                    headers={
                        "accept-encoding": "identity",
                        "user-agent": "callboard",
                        **call.headers,
                    },
                    extensions={"timeout": _httpx_timeouts(call.timeouts)},
                )
                if not request.url.host:
                    raise httpx.UnsupportedProtocol("no host")
                response = await send(request)
            # The head had a limit of its own. The body's is left to the transport, which looks for it
            # here: a scope of ours around each read would cost a third of reading a stream.
            request.extensions["timeout"]["read"] = call.timeouts.idle_s
        if response.status_code < 300:
            return response
        try:
            body = await self._error_body(response)
        finally:
            await response.aclose()
        raise ModelError(self._refusal(call, response, body))

    def _sender(
        self, call: Call
    ) -> "Callable[[httpx.Request], Coroutine[Any, Any, httpx.Response]]":
        """What sends a request and returns with the response's head.

        To a plain server on this machine that is a transport alone: what a client has beyond it
        (proxies, cookies, redirects) serves nothing there and takes as long as the request itself.
        """
        load()
        import httpx

        loopback = is_loopback(call.url)
        # No limit of connections: every running turn holds one for as long as its answer lasts.
        limits = httpx.Limits(
            max_connections=None, max_keepalive_connections=32, keepalive_expiry=_KEEPALIVE_S
        )
        if loopback and call.url.startswith("http:"):
            if self._plain is None:
                # Without TLS there is nothing to verify, and reading the certificates takes 20 ms.
                self._plain = httpx.AsyncHTTPTransport(verify=False, trust_env=False, limits=limits)
            return self._plain.handle_async_request
        client = self._clients.get(loopback)
        if client is None:
            try:
                client = httpx.AsyncClient(
                    limits=limits, trust_env=not loopback, follow_redirects=False
                )
            except (ImportError, ValueError, OSError, httpx.InvalidURL) as error:
                raise call.error(
                    "cannot be reached: the environment's proxy or certificate settings are of no use "
                    f"({self.clean(str(error), {})}); check HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE",
                    kind="modelUnavailable",
                ) from None
            self._clients[loopback] = client
        return partial(client.send, stream=True)

    async def _error_body(self, response: "httpx.Response") -> bytes:
        import httpx

        try:
            async with asyncio.timeout(_ERROR_BODY_S):
                return await _read(response, _ERROR_BODY_BYTES)
        except (httpx.HTTPError, httpx.StreamError, TimeoutError):
            return b""  # The status alone has to do.

    def _refusal(self, call: Call, response: "httpx.Response", body: bytes) -> Failure:
        complaint = None
        with suppress(orjson.JSONDecodeError):
            complaint = failures.read_complaint(orjson.loads(body))
        if complaint is None:
            text = failures.body_text(body) or response.reason_phrase
            complaint = failures.Complaint(message=text)
        complaint = evolve(complaint, message=self.clean(complaint.message, call.headers))
        return failures.http_failure(
            call.provider,
            response.status_code,
            complaint,
            who=named(call.provider, call.url),
            retry_after=failures.retry_after_ms(response.headers, self._now()),
        )

    @contextmanager
    def translated(self, call: Call, phase: str, limit_s: float) -> Generator[None]:
        """Turns what the transport raises into a `ModelError` that names the provider and the phase."""
        load()
        import httpx

        try:
            yield
        except (httpx.ConnectTimeout, httpx.PoolTimeout):
            limit = call.timeouts.connect_s
            raise call.error(
                f"cannot be reached: no connection within {limit:g} s (bootstrap)", retryable=True
            ) from None
        except (TimeoutError, httpx.TimeoutException):
            raise call.error(f"sent nothing for {limit_s:g} s ({phase})", retryable=True) from None
        except httpx.ConnectError as error:
            raise self._unreachable(call, error) from None
        except (httpx.UnsupportedProtocol, httpx.InvalidURL):
            raise call.error(
                "has no usable base URL; it must start with http:// or https://",
                kind="modelUnavailable",
            ) from None
        except SseTooLarge as error:
            raise call.error(f"sent a stream that cannot be read: {error}") from None
        except (httpx.HTTPError, httpx.StreamError) as error:
            why = self.clean(str(error) or type(error).__name__, call.headers)
            raise call.error(f"broke the connection ({phase}): {why}", retryable=True) from None

    def _unreachable(self, call: Call, error: Exception) -> ModelError:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, ssl.SSLCertVerificationError):
                return call.error(
                    f"shows a certificate that is not trusted ({cause.verify_message}); "
                    "set SSL_CERT_FILE if it is your own",
                    kind="modelUnavailable",
                )
            cause = cause.__cause__ or cause.__context__
        why = self.clean(str(error) or "no connection", call.headers)
        hint = "; is the server running?" if is_loopback(call.url) else ""
        return call.error(f"cannot be reached: {why}{hint}", retryable=True)


class _EventReader:
    """The events of one response. Checks the limits of `Timeouts` as bytes come, or fail to."""

    def __init__(
        self,
        http: HttpClient,
        call: Call,
        response: "httpx.Response",
        semantic: Callable[[SseEvent], bool],
        monotonic: Callable[[], float],
    ) -> None:
        self._http = http
        self._call = call
        self._semantic = semantic
        self._monotonic = monotonic
        encoded = response.headers.get("content-encoding", "identity").lower() != "identity"
        # Undecoded bytes are what we asked for, and cheaper; a server may disregard that.
        self._chunks = response.aiter_bytes() if encoded else response.aiter_raw()
        self._parser = SseParser()
        self._ready: deque[SseEvent] = deque()
        self._head = b""
        self._looks_right = False
        self._ended = False
        self._spoke = False
        self._since = monotonic()

    def __aiter__(self) -> "_EventReader":
        return self

    async def __anext__(self) -> SseEvent:
        while not self._ready:
            if self._ended:
                raise StopAsyncIteration
            await self._fill()
        return self._ready.popleft()

    async def drain(self) -> None:
        """Read the end of a body whose last event was seen, so that its connection can serve again."""
        import httpx

        if self._ended:
            return
        try:
            async with asyncio.timeout(_DRAIN_S):
                async for _ in self._chunks:
                    pass
        except (httpx.HTTPError, httpx.StreamError, TimeoutError):
            return  # Everything that matters had come.

    async def _fill(self) -> None:
        try:
            chunk = await anext(self._chunks, None)
            if chunk is None:
                self._ended = True
                self._reject_foreign_body()
                events = self._parser.close()
            else:
                if not self._looks_right:
                    chunk = self._sniff(chunk)
                events = self._parser.feed(chunk)
        except Exception:
            with self._http.translated(self._call, "transport-idle", self._call.timeouts.idle_s):
                raise
        self._watch(events)
        self._ready.extend(events)

    def _sniff(self, chunk: bytes) -> bytes:
        """Holds the start of the body back until it is known to be a stream of events."""
        self._head += chunk
        start = self._head.lstrip(_BLANK)
        if not start:
            return b""
        if start[:1] in (b"{", b"[", b"<"):
            if len(self._head) > _ERROR_BODY_BYTES:
                self._reject_foreign_body()
            return b""
        head, self._head, self._looks_right = self._head, b"", True
        return head

    def _reject_foreign_body(self) -> None:
        start = self._head.lstrip(_BLANK)
        if not start:
            return
        try:
            payload = orjson.loads(start)
        except orjson.JSONDecodeError:
            payload = None
        if failures.read_complaint(payload) is not None:
            raise ModelError(
                self._http.stream_failure(
                    self._call.provider, payload, self._call.headers, url=self._call.url
                )
            )
        what = "a web page" if start.startswith(b"<") else "JSON"
        raise self._call.error(
            f"answered with {what} and not with a stream of events; check the base URL",
            kind="modelUnavailable",
        )

    def _watch(self, events: list[SseEvent]) -> None:
        now = self._monotonic()
        if any(self._semantic(event) for event in events):
            self._spoke = True
            self._since = now
            return
        limits = self._call.timeouts
        limit = limits.semantic_idle_s if self._spoke else limits.first_semantic_s
        if now - self._since > limit and not self._ended:
            phase = "semantic-idle" if self._spoke else "first-semantic"
            raise self._call.error(
                f"kept the connection open but said nothing for {limit:g} s ({phase})",
                retryable=True,
            )


@lru_cache(maxsize=64)
def _parsed(url: str) -> "httpx.URL":
    import httpx

    return httpx.URL(url)


def _httpx_timeouts(timeouts: Timeouts) -> dict[str, float | None]:
    # The head has a limit of its own, and so has the body (see `_open`).
    connect = timeouts.connect_s
    return {"connect": connect, "read": None, "write": timeouts.idle_s, "pool": connect}


async def _read(response: "httpx.Response", limit: int) -> bytes:
    """At most `limit` bytes of the body, whole otherwise."""
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) >= limit:
            break
    return bytes(body[:limit])


def _encode(body: Json) -> bytes:
    try:
        return orjson.dumps(body)
    except TypeError:
        # A lone surrogate, which no provider takes: it becomes a question mark.
        import json

        return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
