"""What a request costs: the provider's own figure, else an estimate from the card's price.

Every adapter reports `input_tokens` as the whole prompt, cached parts included, and `output_tokens`
with reasoning included; a figure that did not come stays None, which is never zero.
"""

from attrs import evolve

from callboard.models.base import Price
from callboard_rpc.common import Usage

_PER = 1_000_000


def priced(usage: Usage, price: Price | None) -> Usage:
    """`usage` with its cost (coordination 14.2), unchanged when the provider gave one or no price is known.

    A part that is needed but unknown is left out of the sum, and makes the result partial; with no
    known part at all the cost stays None.
    """
    if usage.cost is not None or price is None:
        return usage
    read = usage.cache_read_tokens
    write = usage.cache_write_tokens
    fresh = None
    if usage.input_tokens is not None:
        fresh = max(0, usage.input_tokens - (read or 0) - (write or 0))
    parts = [(fresh, price.input), (usage.output_tokens, price.output)]
    # Nothing read or written is nothing to pay, whatever it would have cost.
    parts += [
        (tokens, rate)
        for tokens, rate in ((read, price.cache_read), (write, price.cache_write))
        if tokens
    ]
    known = [
        tokens * rate / _PER for tokens, rate in parts if tokens is not None and rate is not None
    ]
    # A cache that has a price of its own but no count: part of the prompt may have been cheaper.
    unsplit = read is None and price.cache_read is not None
    if not known:
        return evolve(usage, partial=True)
    return evolve(
        usage,
        cost=sum(known),
        currency=price.currency,
        partial=usage.partial or unsplit or len(known) < len(parts),
    )


def unreported() -> Usage:
    """The usage of a request whose provider said nothing about it."""
    return Usage(requests=1, partial=True)
