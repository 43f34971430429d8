"""Adding up usage. Unknown stays unknown; a sum with an unknown part says that it is partial."""

import attrs

from callboard_rpc.common import Usage

_TOKENS = (
    "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens",
)  # fmt: skip


def add(total: Usage, more: Usage) -> Usage:
    """The sum of two usages. `context_tokens` is the size of the last request, not a sum."""
    partial = total.partial or more.partial
    if not total.requests:
        return attrs.evolve(more, partial=partial)
    if not more.requests:
        return attrs.evolve(total, partial=partial)
    sums: dict[str, int | None] = {}
    for name in _TOKENS:
        a, b = getattr(total, name), getattr(more, name)
        sums[name] = b if a is None else a if b is None else a + b
        partial = partial or (
            name in ("input_tokens", "output_tokens") and (a is None) != (b is None)
        )
    one_currency = total.currency == more.currency or None in (total.currency, more.currency)
    cost = None
    if one_currency and (total.cost is not None or more.cost is not None):
        cost = (total.cost or 0.0) + (more.cost or 0.0)
    return attrs.evolve(
        more,
        requests=total.requests + more.requests,
        cost=cost,
        currency=(total.currency or more.currency) if one_currency else None,
        partial=partial or not one_currency or (total.cost is None) != (more.cost is None),
        context_tokens=more.context_tokens
        if more.context_tokens is not None
        else total.context_tokens,
        **sums,
    )


def spent_tokens(usage: Usage) -> int:
    """Tokens that count against a limit: what went in and what came out, as far as it is known."""
    return (usage.input_tokens or 0) + (usage.output_tokens or 0)
