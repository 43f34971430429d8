"""Which events of the log a reader wants, as SQL and as a test on a record."""

from typing import Any

from attrs import frozen

from .record import Record

CATALOG_TYPES = frozenset(
    {
        "session_created", "session_updated", "session_archived", "session_unarchived",
        "session_closed", "session_deleted", "session_forked", "session_rewound", "mode_changed",
        "model_changed", "agent_spawned", "agent_status_changed", "agent_closed", "turn_started",
        "turn_finished", "turn_parked", "approval_request", "approval_decision",
    }
)  # fmt: skip
APPROVAL_TYPES = frozenset({"approval_request", "approval_decision"})


@frozen(kw_only=True)
class Filter:
    """One session, one tree (a root and all below it), or everything; perhaps only some types."""

    session_id: str | None = None
    root_id: str | None = None
    types: frozenset[str] | None = None

    def admits(self, record: Record) -> bool:
        """Whether a record (of this process, so that its root is known) is wanted."""
        if self.session_id is not None and record.session_id != self.session_id:
            return False
        if self.root_id is not None and record.root_id != self.root_id:
            return False
        return self.types is None or record.type in self.types

    def where(self) -> tuple[str, list[Any]]:
        """The condition and its parameters, for a query on ``events``."""
        conditions: list[str] = []
        parameters: list[Any] = []
        if self.session_id is not None:
            conditions.append("session_id = ?")
            parameters.append(self.session_id)
        if self.root_id is not None:
            # the root itself, too: of one that was deleted there is no head, but a last event
            conditions.append(
                "session_id IN (SELECT session_id FROM heads WHERE root_id = ? UNION ALL SELECT ?)"
            )
            parameters += [self.root_id, self.root_id]
        if self.types is not None:
            conditions.append(f"type IN ({', '.join('?' * len(self.types))})")
            parameters += sorted(self.types)
        return (" AND ".join(conditions) or "1"), parameters
