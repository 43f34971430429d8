"""Who serves models: what the configuration says of each provider, read from its table.

A table::

    [providers.openrouter]
    api = "openai_chat"                # or openai_responses, anthropic
    base_url = "https://openrouter.ai/api/v1"
    key_env = "OPENROUTER_API_KEY"     # the default is the provider's name in capitals and _API_KEY
    headers = {X-Title = "Callboard"}
    models = [{name = "qwen/qwen3-coder", context_window = 262144, price = {input = 0.2, output = 0.8}}]

A table that cannot be used disables its provider, and says why; the others go on.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, TypeVar, cast, get_args
from urllib.parse import urlsplit

from attrs import evolve, field, frozen

from callboard.models.base import Price

Api: TypeAlias = Literal["openai_chat", "openai_responses", "anthropic"]
"""A wire format, and the adapter that speaks it."""


@frozen(kw_only=True)
class ModelEntry:
    """What the configuration tells of one model; unknown stays None.

    `thinking` is how the model takes an effort in the anthropic format: ``budget`` or ``adaptive``.
    """

    name: str
    context_window: int | None = None
    max_output_tokens: int | None = None
    supports_tools: bool | None = None
    supports_images: bool | None = None
    text_tool_calls: bool | None = None
    thinking: Literal["budget", "adaptive"] | None = None
    price: Price | None = None


@frozen(kw_only=True)
class Provider:
    """One provider. `problem` says why it cannot be used, in words that lead out of it.

    `needs_key`: asking it without a key is of no use. `default_model` is a name, or None where only
    the provider itself knows. `source` says in words where the provider comes from.
    """

    name: str
    api: Api = "openai_chat"
    base_url: str = ""
    key_env: str | None = None
    needs_key: bool = False
    headers: Mapping[str, str] = field(factory=dict[str, str], repr=False)
    models: tuple[ModelEntry, ...] = ()
    default_model: str | None = None
    text_tool_calls: bool = False
    source: str = "the configuration"
    problem: str | None = None

    def entry(self, name: str) -> ModelEntry | None:
        """What is configured for the model `name`."""
        return next((entry for entry in self.models if entry.name == name), None)


T = TypeVar("T")


class _Wrong(ValueError):
    pass


def configured(name: str, table: object, base: Provider | None = None) -> Provider:
    """The provider that `table` describes. What it leaves out is as in `base`, a built-in one."""
    base = base or Provider(name=name, key_env=default_key_env(name))
    base = evolve(base, source=f"[providers.{name}] of the configuration")
    try:
        return _read(base, table)
    except _Wrong as error:
        return evolve(base, problem=f"[providers.{name}] of the configuration: {error}")


def default_key_env(name: str) -> str:
    """The environment variable of a provider that names no other: ``OPENROUTER_API_KEY``."""
    plain = "".join(c if c.isalnum() and c.isascii() else "_" for c in name)
    return f"{plain.upper()}_API_KEY"


def url_problem(url: str) -> str | None:
    """Why `url` cannot be a base URL; None when it can. The text does not repeat the URL's secrets."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return "is not a URL"
    if any(c.isspace() or not c.isprintable() for c in url):
        return "holds blanks or control characters"
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        return "must start with http:// or https:// and name a host"
    if parts.username is not None or parts.password is not None:
        return "may not hold a user or a password; use key_env or headers"
    if parts.query or parts.fragment:
        return "may not have a query or a fragment"
    return None


def _read(base: Provider, table: object) -> Provider:
    known = ("api", "base_url", "key_env", "headers", "models")
    fields = _table(table, "", known)
    api = fields.get("api", base.api)
    if api not in get_args(Api):
        raise _Wrong(f"api must be one of {', '.join(get_args(Api))}")
    url = _optional(fields, "base_url", "", _text) or base.base_url
    if not url:
        raise _Wrong("needs a base_url")
    problem = url_problem(url)
    if problem is not None:
        raise _Wrong(f"base_url {problem}")
    key_env = _optional(fields, "key_env", "", _text)
    headers = _table(fields.get("headers", {}), "headers", None)
    models = fields.get("models", [])
    if not isinstance(models, list):
        raise _Wrong("models must be a list")
    entries = tuple(
        _entry(each, f"models[{number}]")
        for number, each in enumerate(cast("list[object]", models))
    )
    # The built-in default is a model of the built-in place, not of whatever the table points at.
    elsewhere = url.rstrip("/") != base.base_url.rstrip("/")
    default = None if elsewhere else base.default_model
    return evolve(
        base,
        api=cast(Api, api),
        base_url=url,
        key_env=key_env or base.key_env,
        needs_key=key_env is not None or (base.needs_key and not elsewhere),
        headers={name: _text(value, f"headers.{name}") for name, value in headers.items()},
        models=entries or base.models,
        default_model=entries[0].name if entries else default,
    )


def _entry(value: object, where: str) -> ModelEntry:
    if isinstance(value, str):
        value = {"name": value}
    known = (
        "name",
        "context_window",
        "max_output_tokens",
        "supports_tools",
        "supports_images",
        "text_tool_calls",
        "thinking",
        "price",
    )
    fields = _table(value, where, known)
    if "name" not in fields:
        raise _Wrong(f"{where} needs a name")
    thinking = fields.get("thinking")
    if thinking not in (None, "budget", "adaptive"):
        raise _Wrong(f"{where}.thinking must be budget or adaptive")
    return ModelEntry(
        name=_text(fields["name"], f"{where}.name"),
        context_window=_optional(fields, "context_window", where, _count),
        max_output_tokens=_optional(fields, "max_output_tokens", where, _count),
        supports_tools=_optional(fields, "supports_tools", where, _flag),
        supports_images=_optional(fields, "supports_images", where, _flag),
        text_tool_calls=_optional(fields, "text_tool_calls", where, _flag),
        thinking=thinking,
        price=_optional(fields, "price", where, _price),
    )


def _price(value: object, where: str) -> Price:
    rates = ("input", "output", "cache_read", "cache_write")
    fields = _table(value, where, (*rates, "currency"))
    known = {name: _optional(fields, name, where, _rate) for name in rates}
    return Price(currency=_optional(fields, "currency", where, _text) or "USD", **known)


def _table(value: object, where: str, known: tuple[str, ...] | None) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise _Wrong(f"{where or 'it'} must be a table")
    fields = dict(cast("Mapping[str, Any]", value))
    for name in fields:
        if known is not None and name not in known:
            prefix = f"{where}." if where else ""
            raise _Wrong(f"{prefix}{name} is not known; known are {', '.join(known)}")
    return fields


def _optional(
    fields: dict[str, Any], name: str, where: str, read: Callable[[object, str], T]
) -> T | None:
    path = f"{where}.{name}" if where else name
    return read(fields[name], path) if fields.get(name) is not None else None


def _text(value: object, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _Wrong(f"{where} must be a text that is not empty")
    return value.strip()


def _count(value: object, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise _Wrong(f"{where} must be a whole number above 0")
    return value


def _flag(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise _Wrong(f"{where} must be true or false")
    return value


def _rate(value: object, where: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or value < 0:
        raise _Wrong(f"{where} must be a number, 0 or more")
    return float(value)
