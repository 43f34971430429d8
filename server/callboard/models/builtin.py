"""The providers that need no configuration, and what the environment says of them."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from attrs import evolve

from callboard.models.providers import Provider, configured, url_problem

SCRIPTED = "scripted"
OPENAI_MODEL = "gpt-5.4"
ANTHROPIC_MODEL = "claude-sonnet-5"
"""What is used of a provider when no model is named; `OPENAI_MODEL` and `ANTHROPIC_MODEL` change it."""

LOCAL = {
    "ollama": "http://127.0.0.1:11434/v1",
    "llamacpp": "http://127.0.0.1:8080/v1",
    "lmstudio": "http://127.0.0.1:1234/v1",
}
"""Servers on this machine and where they usually are."""

_WELL_KNOWN = (
    Provider(
        name="openai",
        api="openai_responses",
        base_url="https://api.openai.com/v1",
        key_env="OPENAI_API_KEY",
        needs_key=True,
        default_model=OPENAI_MODEL,
        source="built in",
    ),
    Provider(
        name="anthropic",
        api="anthropic",
        base_url="https://api.anthropic.com",
        key_env="ANTHROPIC_API_KEY",
        needs_key=True,
        default_model=ANTHROPIC_MODEL,
        source="built in",
    ),
)


def all_providers(tables: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Provider]:
    """Every provider by name: the built-in ones, and those of the configuration's `tables`.

    `environ` has the last word on the addresses and models of OpenAI and Anthropic (PROTOCOL 7).
    """
    plain = {provider.name: provider for provider in _WELL_KNOWN}
    for name, url in LOCAL.items():
        plain[name] = Provider(
            name=name, base_url=url, text_tool_calls=True, source="its usual port"
        )
    for name, table in tables.items():
        plain[name] = _named(configured(name, table, plain.get(name)))
    return {name: _overlaid(provider, tables, environ) for name, provider in plain.items()}


def _named(provider: Provider) -> Provider:
    if provider.name != SCRIPTED and provider.name.strip() and "/" not in provider.name:
        return provider
    problem = f"[providers.{provider.name}]: the name is taken, empty or holds a slash"
    return evolve(provider, problem=problem)


def _overlaid(
    provider: Provider, tables: Mapping[str, Any], environ: Mapping[str, str]
) -> Provider:
    if provider.name not in ("openai", "anthropic"):
        return provider
    prefix = provider.name.upper()
    url = environ.get(f"{prefix}_BASE_URL", "").strip() or provider.base_url
    model = environ.get(f"{prefix}_MODEL", "").strip()
    if url.rstrip("/") != provider.base_url.rstrip("/"):
        problem = url_problem(url)
        if problem is not None:
            return evolve(provider, problem=f"the variable {prefix}_BASE_URL {problem}")
        # The built-in model is one of the built-in place; a configured one was meant for any.
        default = provider.models[0].name if provider.models else None
        provider = evolve(provider, base_url=url, needs_key=False, default_model=default)
    if (
        provider.api == "openai_responses"
        and not _is_openai(url)
        and not _says_api(provider, tables)
    ):
        # Compatible servers all speak Chat Completions, and only some of them Responses.
        provider = evolve(provider, api="openai_chat")
    return evolve(provider, default_model=model) if model else provider


def _says_api(provider: Provider, tables: Mapping[str, Any]) -> bool:
    table = tables.get(provider.name)
    return isinstance(table, Mapping) and "api" in table


def _is_openai(base_url: str) -> bool:
    host = (urlsplit(base_url).hostname or "").lower()
    return host == "api.openai.com" or host.endswith(".api.openai.com")
