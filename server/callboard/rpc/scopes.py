"""A client's scope, as a filter of the log."""

from callboard_rpc.streams import Scope

from ..log.faults import no_session
from ..log.log import Log
from ..log.scope import APPROVAL_TYPES, CATALOG_TYPES, Filter
from .pages import invalid


async def filter_of(log: Log, scope: Scope, types: tuple[str, ...] | None) -> Filter:
    """Raises invalidParams for a scope that lacks its id, sessionNotFound for one that names nothing."""
    wanted = None if types is None else frozenset(types)
    match scope.kind:
        case "all":
            return Filter(types=wanted)
        case "catalog":
            return Filter(types=CATALOG_TYPES if wanted is None else CATALOG_TYPES & wanted)
        case "approvals":
            return Filter(types=APPROVAL_TYPES if wanted is None else APPROVAL_TYPES & wanted)
        case "session" | "tree":
            if scope.id is None:
                raise invalid("$.scope.id", f"is required for the scope {scope.kind!r}")
            rows = await log.query("SELECT root_id FROM heads WHERE session_id = ?", scope.id)
            if not rows:
                raise no_session(scope.id)
            if scope.kind == "session":
                return Filter(session_id=scope.id, types=wanted)
            return Filter(root_id=rows[0][0], types=wanted)
