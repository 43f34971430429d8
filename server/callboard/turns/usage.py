"""Adding up usage. Unknown stays unknown; a sum with an unknown part says that it is partial."""

import attrs
import orjson

from callboard_rpc.common import Usage
from callboard_rpc.convert import structure_lenient

from ..log.transaction import Transaction
from .projection import SQL

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


def reported(tx: Transaction, session_id: str, turn_id: str) -> Usage:
    """What a turn's messages say that it used, for an end that is written by somebody else than who ran
    it. Partial: an answer of calls alone has no message, and the last one may have been under way."""
    total = Usage()
    for (text,) in tx.all(SQL["usages_of_turn"], session_id, turn_id):
        total = add(total, structure_lenient(orjson.loads(text), Usage))
    return attrs.evolve(total, partial=True)


def spent_tokens(usage: Usage) -> int:
    """Tokens that count against a limit: what went in and what came out, as far as it is known."""
    return (usage.input_tokens or 0) + (usage.output_tokens or 0)
