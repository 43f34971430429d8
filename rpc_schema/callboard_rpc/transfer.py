"""``session/import`` and ``session/usage``: sessions from files, and what sessions have used."""

from .common import Cursor, Json, SessionId, TurnId, TurnState, Usage
from .frozen import frozen
from .sessions import Session


@frozen(kw_only=True)
class SessionImportParams:
    """Either `path`, a file on the server's machine (absolute), or `content`, its text, which must fit
    into a frame. It is what ``session/export`` wrote as ``jsonl``.

    With `new_id` the session, and all in it that has an id, gets another one, so that it can stand beside
    the one that it was exported from. `cwd` is the folder in which it is to work here, instead of the
    one that the file names. Cancelling the request takes the import back.
    """

    path: str | None = None
    content: str | None = None
    new_id: bool = False
    cwd: str | None = None
    work_done_token: str | int | None = None
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class SessionImportResult:
    """`events` came from the file. `added` events end what was under way when it was exported: open calls
    and their turn are interrupted, approvals cancelled. Prompts that waited still do, and are taken
    along by the next one."""

    session: Session
    cursor: Cursor
    exported_id: SessionId
    events: int
    added: int = 0


@frozen(kw_only=True)
class Cost:
    """What was spent in one currency, as far as it is known."""

    amount: float
    currency: str


@frozen(kw_only=True)
class UsageSum:
    """Usage over `runs` turns and `summaries` made outside of them or for them.

    Each of the `unknown_` numbers says for how many of them a figure is not, or not wholly, known: the
    sum then is less than what was used. A run that is under way has told nothing yet, and counts there. `costs` has a row for each currency; ``usage.cost`` is null when there are several.
    """

    usage: Usage
    runs: int = 0
    summaries: int = 0
    unknown_tokens: int = 0
    unknown_cost: int = 0
    costs: tuple[Cost, ...] = ()


@frozen(kw_only=True)
class ModelUsage:
    """What one model was used for; `model` is null where the log does not say which it was."""

    total: UsageSum
    model: str | None = None


@frozen(kw_only=True)
class RunUsage:
    """What one turn used. `usage` is null while nothing is known of it."""

    turn_id: TurnId
    index: int
    state: TurnState
    started_at: str
    model: str | None = None
    usage: Usage | None = None


@frozen(kw_only=True)
class SessionUsage:
    """A session of the tree, with what it used itself."""

    session_id: SessionId
    total: UsageSum
    parent_id: SessionId | None = None
    title: str | None = None


@frozen(kw_only=True)
class SessionUsageParams:
    """`cursor` and `limit` page through `runs`."""

    session_id: SessionId
    cursor: str | None = None
    limit: int | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class SessionUsageResult:
    """`total` is the session's own, the same as in ``session/get``; `models` divides it up. `tree` is it
    and all below it, each of which stands in `sessions` (the first 500, `more_sessions` are not named).
    Rewound turns count: they were paid for. What a fork inherits does not."""

    session_id: SessionId
    total: UsageSum
    models: tuple[ModelUsage, ...]
    tree: UsageSum
    sessions: tuple[SessionUsage, ...]
    runs: tuple[RunUsage, ...]
    more_sessions: int = 0
    next_cursor: str | None = None
