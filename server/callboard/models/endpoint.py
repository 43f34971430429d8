"""What the adapters that speak HTTP have in common: where to ask, with which key, and how a stream fails."""

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

import orjson
from attrs import field, frozen

from callboard.models.base import Image, ModelCard, ModelError
from callboard.models.call import named
from callboard.models.http import DEFAULT_TIMEOUTS, HttpClient, Timeouts
from callboard.models.sse import SseEvent
from callboard_rpc.common import Failure, Json

_PARAMETER_STATUS = frozenset({400, 404, 422, 500, 501})


@frozen(kw_only=True)
class Endpoint:
    """One model at one base URL. `api_key` is asked at each request, and nowhere kept."""

    card: ModelCard
    http: HttpClient
    base_url: str
    api_key: Callable[[], str | None]
    headers: Mapping[str, str] = field(factory=dict[str, str])
    timeouts: Timeouts = DEFAULT_TIMEOUTS

    def url(self, path: str) -> str:
        """`path` below the base URL, which may be the whole address already."""
        base = self.base_url.rstrip("/")
        return base if base.endswith(path) else base + path

    def sent_headers(self) -> dict[str, str]:
        """The configured headers, and the key as a bearer token where they hold no other."""
        headers = dict(self.headers)
        key = self.api_key()
        if key and not any(name.lower() == "authorization" for name in headers):
            headers["authorization"] = f"Bearer {key}"
        return headers

    def payload(self, event: SseEvent, headers: Mapping[str, str]) -> Json:
        """The JSON object that `event` carries. Raises `ModelError` when it carries none."""
        try:
            payload: Any = orjson.loads(event.data)
        except orjson.JSONDecodeError:
            payload = None
        if not isinstance(payload, dict):
            said = self.http.clean(event.data[:200], headers)
            raise self.error(f"sent a stream of something other than JSON objects: {said}")
        return cast("Json", payload)

    def cut_off(self, *, empty: bool) -> ModelError:
        """The stream ended before the answer did. An empty answer is never asked for again (execution 5)."""
        if empty:
            return self.error("gave an empty response")
        return self.error("ended the stream before the answer was complete", retryable=True)

    def stream_error(self, payload: Json, headers: Mapping[str, str]) -> ModelError:
        """An error object that came in place of a part of the answer."""
        return ModelError(
            self.http.stream_failure(self.card.provider, payload, headers, url=self.base_url)
        )

    def error(self, said: str, *, retryable: bool = False) -> ModelError:
        provider = self.card.provider
        return ModelError(
            Failure(
                kind="modelError",
                message=f"{named(provider, self.base_url)} {said}",
                retryable=retryable,
                provider=provider,
            )
        )


class Refusals:
    """Optional parts of a request that a server turned out not to take; remembered for its lifetime.

    Servers that call themselves compatible differ in what they accept, and say so only in the text of
    an error. `parts` gives each part the words by which such an error is known.
    """

    def __init__(self, parts: Mapping[str, re.Pattern[str]]) -> None:
        self._parts = parts
        self._refused: set[str] = set()

    def __contains__(self, part: str) -> bool:
        return part in self._refused

    def learn(self, error: ModelError, used: frozenset[str]) -> bool:
        """Whether `error` refuses one of the parts that were `used`, so that asking without it may help."""
        failure = error.failure
        if error.started or failure.http_status not in _PARAMETER_STATUS:
            return False
        for part, words in self._parts.items():
            if part in used and part not in self._refused and words.search(failure.message):
                self._refused.add(part)
                return True
        return False


def data_url(image: Image) -> str:
    return f"data:{image.mime_type};base64,{image.data}"


def object_of(value: object) -> Json:
    """`value` if it is a JSON object, else an empty one: providers send null where an object belongs."""
    return cast("Json", value) if isinstance(value, dict) else {}


def objects_of(value: object) -> list[Json]:
    """The JSON objects in `value` if it is a list."""
    if not isinstance(value, list):
        return []
    return [cast("Json", each) for each in cast("list[object]", value) if isinstance(each, dict)]


def count_of(value: object) -> int | None:
    """A count of tokens, or None for whatever else came."""
    whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return cast("int", value) if whole else None


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""
