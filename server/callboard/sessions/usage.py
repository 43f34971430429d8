"""What sessions have used: by run, by model, of a session, and of a tree. Unknown is never zero.

A sum is of what is known; how many runs it leaves out is said beside it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs
import orjson
from attrs import define, field

from callboard_rpc.common import SessionId, TurnId, Usage
from callboard_rpc.convert import structure_lenient
from callboard_rpc.transfer import (
    Cost,
    ModelUsage,
    RunUsage,
    SessionUsage,
    SessionUsageResult,
    UsageSum,
)

from ..log.log import Log
from ..turns.usage import add
from .projection import SQL
from .reading import Reading

_SESSIONS = 500
"""Sessions of a tree that are named."""


@define
class _Part:
    """A row of the sums: one session, one model, one currency."""

    session_id: str
    model: str | None
    currency: str | None
    runs: int
    summaries: int
    usage: Usage
    unknown_tokens: int
    unknown_cost: int


@define
class _Sum:
    runs: int = 0
    summaries: int = 0
    unknown_tokens: int = 0
    unknown_cost: int = 0
    usage: Usage = field(factory=Usage)
    costs: dict[str, float] = field(factory=dict[str, float])

    def take(self, part: _Part) -> None:
        self.runs += part.runs
        self.summaries += part.summaries
        self.unknown_tokens += part.unknown_tokens
        self.unknown_cost += part.unknown_cost
        self.usage = add(self.usage, part.usage)
        if part.usage.cost is not None:
            currency = part.currency or "?"
            self.costs[currency] = self.costs.get(currency, 0.0) + part.usage.cost

    def told(self, usage: Usage | None = None) -> UsageSum:
        return UsageSum(
            usage=self.usage if usage is None else usage,
            runs=self.runs,
            summaries=self.summaries,
            unknown_tokens=self.unknown_tokens,
            unknown_cost=self.unknown_cost,
            costs=tuple(
                Cost(amount=amount, currency=currency)
                for currency, amount in sorted(self.costs.items())
            ),
        )


class UsageBook:
    """Queries over what was used; none of them waits for the writer."""

    def __init__(self, log: Log, reading: Reading) -> None:
        self._log = log
        self._reading = reading

    async def of(self, session_id: str, *, after: int = -1, limit: int = 100) -> SessionUsageResult:
        """A session and its tree; of its runs those behind index `after`. Raises sessionNotFound."""
        session = await self._reading.session(session_id)
        below = [row[0] for row in await self._log.query(SQL["descendants"], session_id)]
        ids = orjson.dumps([session_id, *below]).decode()
        parts = [_part(row) for row in await self._log.query(SQL["usage_parts"], ids)]
        known = [
            (row[0], row[1], row[2], _usage(row[3]) or Usage())
            for row in await self._log.query(SQL["used_by"], ids)
        ]
        by_session = _sums(parts, lambda part: part.session_id)
        own = [part for part in parts if part.session_id == session_id]
        models = _sums(own, lambda part: part.model)
        tree = _sums(parts, lambda _: "")
        whole = Usage()
        for *_, usage in known:
            whole = add(whole, usage)
        runs = await self._log.query(SQL["runs_page"], session_id, after, limit + 1)
        return SessionUsageResult(
            session_id=SessionId(session_id),
            total=by_session.get(session_id, _Sum()).told(session.usage or Usage()),
            models=tuple(
                ModelUsage(model=model, total=models[model].told())
                for model in sorted(models, key=lambda name: name or "")
            ),
            # the size of a request is that of a session, and no sum
            tree=tree.get("", _Sum()).told(attrs.evolve(whole, context_tokens=None)),
            sessions=tuple(
                SessionUsage(
                    session_id=SessionId(each),
                    parent_id=None if parent is None else SessionId(parent),
                    title=title,
                    total=by_session.get(each, _Sum()).told(usage),
                )
                for each, parent, title, usage in known[:_SESSIONS]
            ),
            more_sessions=max(0, len(known) - _SESSIONS),
            runs=tuple(_run(row) for row in runs[:limit]),
            next_cursor=str(runs[limit - 1][1]) if len(runs) > limit else None,
        )


def _sums(parts: Iterable[_Part], key: Callable[[_Part], str | None]) -> dict[str | None, _Sum]:
    sums: dict[str | None, _Sum] = {}
    for part in parts:
        sums.setdefault(key(part), _Sum()).take(part)
    return sums


def _usage(text: str | None) -> Usage | None:
    return None if text is None else structure_lenient(orjson.loads(text), Usage)


def _part(row: Sequence[Any]) -> _Part:
    session_id, model, currency, runs, summaries, requests, *tokens = row[:11]
    cost, unknown_tokens, unknown_cost, partial = row[11:]
    names = ("input", "output", "cache_read", "cache_write", "reasoning")
    return _Part(
        session_id=session_id,
        model=model,
        currency=currency,
        runs=runs,
        summaries=summaries,
        usage=Usage(
            requests=requests,
            **{f"{name}_tokens": count for name, count in zip(names, tokens, strict=True)},
            cost=cost,
            currency=currency,
            partial=bool(partial) or unknown_tokens > 0,
        ),
        unknown_tokens=unknown_tokens,
        unknown_cost=unknown_cost,
    )


def _run(row: Sequence[Any]) -> RunUsage:
    turn_id, index, state, model, started_at, usage = row
    return RunUsage(
        turn_id=TurnId(turn_id),
        index=index,
        state=state,
        model=model,
        started_at=started_at,
        usage=_usage(usage),
    )
