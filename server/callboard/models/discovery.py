"""Finds model servers on this machine, by asking their usual ports; nobody else is ever asked.

A port is tried with a bare connection first, so that with nothing there the HTTP client is not even
imported. What answers must list models as such servers do: other programs use these ports too.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import anyio
from attrs import frozen

from callboard.models.base import ModelError
from callboard.models.builtin import LOCAL
from callboard.models.providers import Provider

if TYPE_CHECKING:
    from callboard.models.http import HttpClient

TIMEOUT_S = 0.5
"""A server on this machine answers in a few milliseconds, unless it is busy loading a model."""

_LIST_S = 5.0
_MAX_MODELS = 200
_MAX_NAME = 200
_NO_CHAT = re.compile(r"embed|rerank|whisper|\btts\b|\bclip\b|moderation", re.IGNORECASE)


@frozen(kw_only=True)
class Candidate:
    """A place to look at. `tags` is Ollama's own list, for versions without the common one."""

    provider: str
    title: str
    base_url: str
    tags: bool = False


@frozen(kw_only=True)
class LocalServer:
    """A server that answered. `models` are the names that can chat, its favourite first."""

    provider: str
    title: str
    base_url: str
    models: tuple[str, ...]


CANDIDATES = (
    Candidate(provider="ollama", title="Ollama", base_url=LOCAL["ollama"], tags=True),
    Candidate(provider="llamacpp", title="llama.cpp", base_url=LOCAL["llamacpp"]),
    Candidate(provider="lmstudio", title="LM Studio", base_url=LOCAL["lmstudio"]),
)


async def discover(
    http: "HttpClient",
    candidates: tuple[Candidate, ...] = CANDIDATES,
    timeout_s: float = TIMEOUT_S,
) -> tuple[LocalServer, ...]:
    """The servers among `candidates` that answer, in that order. Never raises.

    `timeout_s` is for each step by itself (to connect, to list), so that the time which the first
    import of the HTTP client takes is not held against a server.
    """
    found: dict[int, LocalServer] = {}

    async def look(number: int, candidate: Candidate) -> None:
        models = await _models_of(http, candidate, timeout_s)
        if models is not None:
            found[number] = LocalServer(
                provider=candidate.provider,
                title=candidate.title,
                base_url=candidate.base_url,
                models=models,
            )

    async with anyio.create_task_group() as group:
        for number, candidate in enumerate(candidates):
            group.start_soon(look, number, candidate)
    return tuple(found[number] for number in sorted(found))


async def first_model(http: "HttpClient", provider: Provider, key: str | None) -> str | None:
    """The first chat model that `provider` lists; None when it lists none or cannot be asked."""
    headers = dict(provider.headers)
    base_url = provider.base_url
    name, value = "authorization", f"Bearer {key}"
    if provider.api == "anthropic":
        from callboard.models.anthropic import API_VERSION

        base_url = base_url.rstrip("/").removesuffix("/v1") + "/v1"
        headers = {"anthropic-version": API_VERSION, **headers}
        name, value = "x-api-key", key or ""
    if key is not None and not any(each.lower() == name for each in headers):
        headers[name] = value
    names = await _listed(http, f"{base_url.rstrip('/')}/models", provider.name, headers, _LIST_S)
    return names[0] if names else None


async def _listed(
    http: "HttpClient", url: str, provider: str, headers: Mapping[str, str], timeout_s: float
) -> tuple[str, ...] | None:
    """The chat models that `url` lists, or None when it cannot be asked or answers something else."""
    try:
        answer: object = await http.get_json(
            url, headers=headers, provider=provider, timeout_s=timeout_s
        )
    except ModelError:
        return None
    # Ollama has a list of its own form beside the common one.
    common = _names(answer, "data", "id")
    return common if common is not None else _names(answer, "models", "name")


async def _models_of(
    http: "HttpClient", candidate: Candidate, timeout_s: float
) -> tuple[str, ...] | None:
    if not await _listens(candidate.base_url, timeout_s):
        return None
    root = candidate.base_url.removesuffix("/v1")
    urls = [f"{candidate.base_url}/models", *([f"{root}/api/tags"] if candidate.tags else [])]
    for url in urls:
        names = await _listed(http, url, candidate.provider, {}, timeout_s)
        if names is not None:
            return names
    return None


async def _listens(base_url: str, timeout_s: float) -> bool:
    parts = urlsplit(base_url)
    with anyio.move_on_after(timeout_s):
        try:
            stream = await anyio.connect_tcp(parts.hostname or "127.0.0.1", parts.port or 80)
        except OSError:
            return False
        await stream.aclose()
        return True
    return False


def _names(answer: object, items: str, key: str) -> tuple[str, ...] | None:
    """The names in an answer of the right form; None for any other. All of it is untrusted."""
    if not isinstance(answer, dict):
        return None
    listed: Any = cast("dict[str, Any]", answer).get(items)
    if not isinstance(listed, list):
        return None
    names: list[str] = []
    for item in cast("list[object]", listed)[:_MAX_MODELS]:
        if not isinstance(item, dict):
            return None
        name: Any = cast("dict[str, Any]", item).get(key)
        if not isinstance(name, str):
            return None
        if 0 < len(name) <= _MAX_NAME and name.isprintable() and not _NO_CHAT.search(name):
            names.append(name)
    return tuple(dict.fromkeys(names))
