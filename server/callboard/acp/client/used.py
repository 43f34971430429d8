"""What a prompt has used, as its agent tells it. Pure."""

from collections.abc import Mapping
from typing import Any, cast

import attrs

from callboard_rpc.common import Usage

from ..contract.updates import UsageUpdate


def used_of(
    answer: Mapping[str, Any], size: UsageUpdate | None, spent: float
) -> tuple[Usage, float]:
    """From the answer to a prompt and the last update that told; and what the agent's session has cost by now, where
    it had cost `spent` before."""
    told: Any = answer.get("usage")
    counts = cast("dict[str, Any]", told) if isinstance(told, dict) else {}
    usage = Usage(
        requests=1,
        input_tokens=_count(counts.get("inputTokens")),
        output_tokens=_count(counts.get("outputTokens")),
        cache_read_tokens=_count(counts.get("cachedReadTokens")),
        cache_write_tokens=_count(counts.get("cachedWriteTokens")),
        reasoning_tokens=_count(counts.get("thoughtTokens")),
        partial=not counts,
    )
    if size is None:
        return usage, spent
    usage = attrs.evolve(usage, context_tokens=_count(size.used))
    if size.cost is None or not 0 <= size.cost.amount < 1e9:
        return usage, spent
    cost = max(0.0, size.cost.amount - spent)
    return attrs.evolve(usage, cost=cost, currency=size.cost.currency[:16]), size.cost.amount


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 2**40 else None
