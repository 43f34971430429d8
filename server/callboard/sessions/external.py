"""Which session of an agent that is a program of its own goes with one of ours, and how far it was told.

Only what this store's own turns have written counts: a log that was imported could name any session of the
person's agents, whose words would then be told to whoever made the file.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from attrs import frozen

from callboard_rpc.events import ExternalSession, SessionRewound

from ..log.record import Record
from ..log.transaction import Projection, Transaction
from .projection import SQL

_Query: TypeAlias = Callable[..., Sequence[tuple[Any, ...]]]


@frozen(kw_only=True)
class Known:
    """The agent's session, and the seq through which it was told what was said in ours."""

    agent_session_id: str
    through: int


def known_session(query: _Query, session_id: str, profile: str) -> Known | None:
    """What is known of an agent's session, by `Transaction.all` or `Log.glance`."""
    rows = query(SQL["external_session"], session_id, profile)
    return Known(agent_session_id=rows[0][0], through=rows[0][1]) if rows else None


def _told(tx: Transaction, record: Record) -> None:
    told: ExternalSession = record.value
    if record.fence:
        tx.execute(
            SQL["set_external_session"],
            record.session_id,
            told.profile,
            told.agent_session_id,
            told.through,
        )


def _rewound(tx: Transaction, record: Record) -> None:
    """An agent that was told of what is gone would go by it: it begins anew with what is left."""
    rewound: SessionRewound = record.value
    tx.execute(SQL["rewind_external"], record.session_id, rewound.before_seq)


def _forget(tx: Transaction, session_id: str) -> None:
    tx.execute(SQL["forget_external"], session_id)


PROJECTION = Projection(
    name="external sessions",
    tables=("external_sessions",),
    apply={"external_session": _told, "session_rewound": _rewound},
    forget=_forget,
)
