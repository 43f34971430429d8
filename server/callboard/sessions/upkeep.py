"""What the care of a store has to know of its hosts and of their runs. Looks only."""

from ..log import sqlfile
from ..log.examining import Finding
from ..log.looking import Rows
from .identity import life

SQL = sqlfile.load("callboard.sessions", "upkeep.sql")

_SHOWN = 5


def users(rows: Rows) -> list[str]:
    """The hosts of a store whose processes live on this machine."""
    return [
        f"{host} (process {pid})"
        for host, pid, told in rows(SQL["hosts"])
        if life(pid, told) == "alive"
    ]


def examine_runs(rows: Rows) -> list[Finding]:
    """Whether each turn that runs has an owner, and each open call and approval a turn."""

    def wrong(statement: str, what: str) -> list[Finding]:
        names = [name for (name,) in rows(SQL[statement])]
        if not names:
            return []
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        message = f"{what}: {', '.join(names[:_SHOWN])}{more}"
        return [Finding(part="runs", message=message)]

    lost = [
        session_id
        for session_id, _, pid, told in rows(SQL["owners"])
        if pid is None or life(pid, told) == "gone"
    ]
    notes = [
        Finding(
            part="runs",
            severity="note",
            message=f"{len(lost)} turns wait to be ended or parked by the next server, since theirs "
            "is gone",
        )
    ]
    return [
        *wrong("turns_that_nobody_runs", "turns that nobody runs and nobody would end"),
        *wrong("open_calls_that_nobody_runs", "tool calls without a result, in no turn that runs"),
        *wrong("approvals_of_ended_turns", "pending approvals of turns that have ended"),
        *wrong("owners_of_nothing", "owners of sessions that do not exist"),
        *wrong("fences_behind", "sessions whose next fence is not above all earlier ones"),
        *(notes if lost else []),
    ]
