"""One request to a provider: where it goes, how long it may take, and how its failure is told."""

import ipaddress
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from attrs import frozen

from callboard.models.base import ModelError
from callboard_rpc.common import Failure


@frozen(kw_only=True)
class Timeouts:
    """Limits of one streamed request, in seconds; their names are the phases of execution 5.

    `connect_s`: the connection. `first_byte_s` (bootstrap): the response's head, long because a
    local server reads the whole prompt first. `idle_s` (transport-idle): between bytes.
    `first_semantic_s`, `semantic_idle_s`: until the first, and between, events that say something;
    a server that sends nothing but keep-alives runs into these.
    """

    connect_s: float = 15.0
    first_byte_s: float = 300.0
    idle_s: float = 180.0
    first_semantic_s: float = 600.0
    semantic_idle_s: float = 300.0


DEFAULT_TIMEOUTS = Timeouts()

_OWN_HOSTS = {"openai": "api.openai.com", "anthropic": "api.anthropic.com"}
"""Where a provider is unless it is told to be elsewhere; of these nobody needs to read the address."""


@frozen(kw_only=True)
class Call:
    """One request, as far as errors need to know it."""

    provider: str
    url: str
    headers: Mapping[str, str]
    timeouts: Timeouts

    def error(self, said: str, *, kind: str = "modelError", retryable: bool = False) -> ModelError:
        message = f"{self.provider} at {origin(self.url)} {said}"
        return ModelError(
            Failure(kind=kind, message=message, retryable=retryable, provider=self.provider)
        )


def named(provider: str, url: str) -> str:
    """`provider` for an error, and where it is when that is not the provider's own address: then the
    address is as likely to be what is wrong."""
    own = _OWN_HOSTS.get(provider)
    try:
        host = (urlsplit(url).hostname or "").lower()
    except ValueError:
        host = ""
    if own is not None and (host == own or host.endswith(f".{own}")):
        return provider
    return f"{provider} at {origin(url)}"


@lru_cache(maxsize=64)
def is_loopback(url: str) -> bool:
    """Whether `url` leads to this machine, where proxies have no business."""
    try:
        host = (urlsplit(url).hostname or "").rstrip(".").lower()
    except ValueError:
        return False
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def origin(url: str) -> str:
    """Scheme, host and port of `url`: what may be shown of it (paths and users may hold secrets)."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
        host = parts.hostname or ""
    except ValueError:
        return "an address that is not a URL"
    if not parts.scheme or not host:
        return "an address that is not a URL"
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}"
