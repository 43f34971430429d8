"""``callboard usage``: what a session and those below it have used."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from callboard_client import Client
from callboard_client.terminal_text import clean_line
from callboard_rpc.convert import unstructure
from callboard_rpc.sessions import Session
from callboard_rpc.transfer import SessionUsageResult, UsageSum

from .exits import CommandError, Exit
from .naming import resolve
from .server import StoreOption, connect_existing
from .terminal import line, open_console, write_json_line
from .wording import plural

_UNKNOWN = "?"


async def usage(
    session: str | None = None,
    /,
    *,
    runs: Annotated[bool, Parameter(negative=())] = False,
    json: Annotated[bool, Parameter(negative=())] = False,
    store: StoreOption | None = None,
) -> int:
    """Show tokens and cost of a session: by model, in all, and of those below it.

    What a provider did not report is not counted as nothing: it is shown as `?`, or said below the sums.

    Parameters
    ----------
    session
        Its id, or the beginning of it; the newest session of this folder by default.
    runs
        Each run by itself, too.
    json
        All of it as one JSON object.
    """
    async with connect_existing(store, name="usage") as client:
        found = await _newest(client) if session is None else await resolve(client, session)
        result = await client.sessions.usage(found.session_id)
    if json:
        write_json_line(unstructure(result))
        return Exit.OK
    _show(found, result, runs=runs)
    return Exit.OK


async def _newest(client: Client) -> Session:
    async for session in client.sessions.list(cwd=Path.cwd()):
        return session
    raise CommandError(
        "there is no session of this folder",
        exit=Exit.USAGE,
        hint="`callboard sessions list` shows those of all folders.",
    )


def _show(session: Session, result: SessionUsageResult, *, runs: bool) -> None:
    console = open_console()
    console.print(line(session.session_id, (f"  {session.title or ''}", "dim")), soft_wrap=True)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("", no_wrap=True, overflow="ellipsis")
    for heading in ("runs", "requests", "tokens in", "cached", "out", "cost"):
        table.add_column(heading, justify="right", no_wrap=True)
    if runs:
        for run in result.runs:
            known = UsageSum(usage=run.usage, runs=1) if run.usage is not None else None
            _row(table, f"run {run.index + 1}  {run.model or ''}  {run.state}", known)
    for each in result.models:
        _row(table, each.model or "(model not known)", each.total)
    _row(table, "this session", result.total, style="bold")
    if len(result.sessions) > 1:
        _row(table, f"with {plural(len(result.sessions) - 1, 'session')} below it", result.tree)
    console.print(table)
    for unknown, known in (
        (result.tree.unknown_tokens, "tokens are"),
        (result.tree.unknown_cost, "cost is"),
    ):
        if unknown:
            said = f"Of {plural(unknown, 'run')} not all {known} known."
            console.print(line((said, "dim")))


def _row(table: Table, name: str, total: UsageSum | None, *, style: str = "") -> None:
    if total is None:
        table.add_row(Text(clean_line(name)), "1", *(_UNKNOWN for _ in range(5)), style=style)
        return
    used = total.usage
    costs = total.costs or ()
    cost = " + ".join(f"{each.amount:.4f} {clean_line(each.currency)}" for each in costs)
    if not cost and used.cost is not None:
        cost = f"{used.cost:.4f} {clean_line(used.currency or '')}".strip()
    table.add_row(
        Text(clean_line(name)),
        f"{total.runs:,}",
        f"{used.requests:,}",
        _count(used.input_tokens),
        _count(used.cache_read_tokens),
        _count(used.output_tokens),
        Text(cost or _UNKNOWN),
        style=style,
    )


def _count(tokens: int | None) -> str:
    return _UNKNOWN if tokens is None else f"{tokens:,}"
