"""What is known of a model by its name: its windows, what it takes, what it costs."""

from callboard.models.base import ModelCard
from callboard.models.providers import ModelEntry, Provider

_KNOWN: tuple[ModelEntry, ...] = (
    ModelEntry(
        name="claude-opus-4-5",
        context_window=200_000,
        max_output_tokens=64_000,
        supports_images=True,
        thinking="budget",
    ),
    ModelEntry(
        name="claude-sonnet-4-5",
        context_window=200_000,
        max_output_tokens=64_000,
        supports_images=True,
        thinking="budget",
    ),
    ModelEntry(
        name="claude-haiku-4-5",
        context_window=200_000,
        max_output_tokens=64_000,
        supports_images=True,
        thinking="budget",
    ),
    ModelEntry(
        name="claude-sonnet-5",
        context_window=1_000_000,
        max_output_tokens=128_000,
        supports_images=True,
        thinking="adaptive",
    ),
    ModelEntry(
        name="claude-opus-5",
        context_window=1_000_000,
        max_output_tokens=128_000,
        supports_images=True,
        thinking="adaptive",
    ),
    ModelEntry(
        name="gpt-5.4", context_window=1_050_000, max_output_tokens=128_000, supports_images=True
    ),
    ModelEntry(
        name="gpt-5", context_window=400_000, max_output_tokens=128_000, supports_images=True
    ),
    ModelEntry(
        name="gpt-4.1", context_window=1_047_576, max_output_tokens=32_768, supports_images=True
    ),
)
"""A few names that are met often, so that their windows need not be configured."""


def card_of(provider: Provider, name: str) -> ModelCard:
    """What is known of the model `name`: as configured, else as built in, else unknown."""
    entry = provider.entry(name) or _known(name) or ModelEntry(name=name)
    calls = entry.text_tool_calls
    return ModelCard(
        model_id=f"{provider.name}/{name}",
        provider=provider.name,
        name=name,
        context_window=entry.context_window,
        max_output_tokens=entry.max_output_tokens,
        supports_tools=entry.supports_tools is not False,
        supports_images=bool(entry.supports_images),
        text_tool_calls=provider.text_tool_calls if calls is None else calls,
        price=entry.price,
        extra={"thinking": entry.thinking} if entry.thinking is not None else {},
    )


def _known(name: str) -> ModelEntry | None:
    """The built-in entry of `name`, dated versions of it included."""
    for entry in _KNOWN:
        rest = name.removeprefix(entry.name)
        if name.startswith(entry.name) and (not rest or _is_version(rest)):
            return entry
    return None


def _is_version(rest: str) -> bool:
    digits = rest.removeprefix("-").replace("-", "")
    return rest == "-latest" or (rest.startswith("-") and len(digits) >= 8 and digits.isdigit())
