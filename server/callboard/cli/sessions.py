"""``callboard sessions``: list, show, search, fork, rewind, export, import, archive, delete."""

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter, validators
from rich.table import Table
from rich.text import Text

from callboard_client.terminal_text import clean, clean_line
from callboard_rpc.convert import unstructure
from callboard_rpc.sessions import Session
from callboard_rpc.streams import Scope

from .acquainting import acquaint
from .archiving import archive, unarchive
from .exits import CommandError, Exit
from .history import fork, rewind
from .importing import import_session
from .keys import TerminalKeyboard, person_is_there
from .naming import resolve
from .present import Presenter
from .server import StoreOption, connect_existing
from .terminal import line, open_console, write_json_line
from .wording import local_time, plural, usage

app = App(
    name="sessions",
    help="List, show, search, fork, rewind, export, import, archive and delete sessions.",
)
app.command(import_session, name="import")
app.command(fork)
app.command(rewind)
app.command(archive)
app.command(unarchive)

_STATUS_STYLES = {
    "idle": "dim",
    "running": "cyan",
    "waiting_approval": "yellow",
    "parked": "yellow",
    "closed": "dim",
}
Json = Annotated[bool, Parameter(negative=())]
ExportFormat = Literal["jsonl", "markdown"]
Count = Annotated[int, Parameter(validator=validators.Number(gte=1))]


@app.command(name="list")
async def list_sessions(
    *,
    cwd: Annotated[Path | None, Parameter(name=["--cwd", "-C"])] = None,
    archived: Annotated[bool, Parameter(negative=())] = False,
    query: str | None = None,
    limit: Count = 50,
    json: Json = False,
    store: StoreOption | None = None,
) -> int:
    """List sessions, newest first.

    Parameters
    ----------
    cwd
        Only those of this folder.
    archived
        Only those that were archived.
    query
        Only those whose title or folder has this text.
    limit
        How many at the most.
    json
        One JSON object a line.
    """
    found: list[Session] = []
    more = False
    async with connect_existing(store, name="sessions") as client:
        async for session in client.sessions.list(cwd=cwd, archived=archived or None, query=query):
            if len(found) == limit:
                more = True
                break
            found.append(session)
    if json:
        for session in found:
            write_json_line(unstructure(session))
        return Exit.OK
    console = open_console()
    if not found:
        if cwd is not None or query is not None or archived:
            console.print(line("No session fits; without options, all are listed."))
        else:
            console.print(line('There are no sessions here. Begin one: callboard run "…"'))
        return Exit.OK
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("session", "status", "last change"):
        table.add_column(heading, no_wrap=True)
    # Only columns that may wrap give way when the terminal is narrow; their texts are cut instead.
    table.add_column("title")
    table.add_column("folder")
    for session in found:
        table.add_row(
            Text(session.session_id),
            Text(session.status.replace("_", " "), _STATUS_STYLES.get(session.status, "")),
            Text(local_time(session.updated_at)),
            Text(clean_line(session.title or "", 60), no_wrap=True, overflow="ellipsis"),
            Text(clean_line(session.cwd), no_wrap=True, overflow="ellipsis"),
        )
    console.print(table)
    if more:
        console.print(line((f"… there are more: --limit {limit * 2}", "dim")))
    return Exit.OK


@app.command
async def show(session: str, /, *, json: Json = False, store: StoreOption | None = None) -> int:
    """Show a session: what it is, and all that was said and done in it.

    Parameters
    ----------
    session
        Its id, or the beginning of it.
    json
        The session and its turns as one JSON object. (Its events: `callboard sessions export`.)
    """
    async with connect_existing(store, name="sessions") as client:
        found = await resolve(client, session)
        if json:
            turns = [unstructure(turn) async for turn in client.sessions.turns(found.session_id)]
            write_json_line({"session": unstructure(found), "turns": turns})
            return Exit.OK
        console = open_console()
        _describe(found)
        presenter = Presenter(console=console, root=found.session_id, details=True)
        await acquaint(client, presenter, found.root_id)
        async for event in client.history.all(Scope(kind="session", id=found.session_id)):
            presenter.show(event)
        presenter.settle()
    return Exit.OK


def _describe(session: Session) -> None:
    console = open_console()
    facts = {
        "session": session.session_id,
        "title": session.title or "",
        "folder": session.cwd,
        "status": session.status.replace("_", " ") + (", archived" if session.archived else ""),
        "agent": f"{', '.join(session.members) or session.profile}, mode {session.mode}",
        "model": session.model or "",
        "created": local_time(session.created_at),
        "changed": local_time(session.updated_at),
        "waiting": ", ".join(
            plural(count, noun)
            for count, noun in (
                (session.queue_length, "prompt"),
                (session.pending_approvals, "approval"),
            )
            if count
        ),
        "spent": usage(session.usage),
    }
    for name, value in facts.items():
        if value:
            console.print(line((f"{name:>8}  ", "dim"), value), soft_wrap=True)
    for option in session.options:
        has = ", ".join(each.value for each in option.values)
        told = line((f"{'option':>8}  ", "dim"), f"{option.option_id}={option.value}")
        told.append_text(line((f"  of {has}", "dim")))
        console.print(told, soft_wrap=True)
    console.print()


@app.command
async def search(
    *words: str,
    session: Annotated[str | None, Parameter(name=["--session", "-s"])] = None,
    cwd: Annotated[Path | None, Parameter(name=["--cwd", "-C"])] = None,
    limit: Count = 20,
    json: Json = False,
    store: StoreOption | None = None,
) -> int:
    """Search what people said, agents answered and tools printed.

    Parameters
    ----------
    words
        Words that must all occur; `word*` finds what begins so.
    session
        Only in this session.
    cwd
        Only in sessions of this folder.
    limit
        How many at the most.
    json
        One JSON object a line.
    """
    query = " ".join(words)
    if not query.strip():
        raise CommandError("there is nothing to search for: give a word", exit=Exit.USAGE)
    console = open_console()
    count = 0
    more = False
    async with connect_existing(store, name="sessions") as client:
        within = None if session is None else (await resolve(client, session)).session_id
        async for hit in client.sessions.search(query, session_id=within, cwd=cwd):
            if count == limit:
                more = True
                break
            count += 1
            if json:
                write_json_line(unstructure(hit))
            else:
                title = clean_line(hit.title or "", 60)
                console.print(
                    line(hit.session_id, (f"  #{hit.seq}  {local_time(hit.at)}  {title}", "dim")),
                    soft_wrap=True,
                )
                console.print(line(f"    {hit.snippet}"), soft_wrap=True)
    if not count and not json:
        console.print(line("Nothing was found."))
    if more and not json:
        console.print(line((f"… there is more: --limit {limit * 2}", "dim")))
    return Exit.OK


@app.command
async def export(
    session: str,
    /,
    *,
    format: ExportFormat | None = None,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    store: StoreOption | None = None,
) -> int:
    """Write a session as JSON lines (every event) or as Markdown.

    Parameters
    ----------
    session
        Its id, or the beginning of it.
    format
        `jsonl` or `markdown`; by default what the name of the output says (`.md`, `.markdown`), else
        `jsonl`.
    output
        The file to write, which must not exist; stdout by default.
    """
    async with connect_existing(store, name="sessions") as client:
        found = await resolve(client, session)
        pieces = client.sessions.export(found.session_id, format or _format_of(output))
        if output is None:
            async for piece in pieces:
                # A terminal must not obey what a model wrote; a pipe gets the bytes as they are.
                sys.stdout.write(clean(piece) if sys.stdout.isatty() else piece)
            sys.stdout.flush()
            return Exit.OK
        try:
            file = output.open("x", encoding="utf-8", newline="")
        except FileExistsError:
            raise CommandError(f"{output} exists: choose another name", exit=Exit.USAGE) from None
        with file:
            async for piece in pieces:
                file.write(piece)
    return Exit.OK


def _format_of(output: Path | None) -> ExportFormat:
    """The format that a file's name asks for."""
    suffix = "" if output is None else output.suffix.lower()
    return "markdown" if suffix in (".md", ".markdown") else "jsonl"


@app.command
async def delete(
    sessions: Annotated[list[str], Parameter(negative=())],
    /,
    *,
    yes: Annotated[bool, Parameter(name=["--yes", "-y"], negative=())] = False,
    store: StoreOption | None = None,
) -> int:
    """Delete sessions, their children and all their events, for ever.

    Parameters
    ----------
    sessions
        Their ids, or the beginnings of them.
    yes
        Do not ask.
    """
    async with connect_existing(store, name="sessions") as client:
        found = [await resolve(client, given) for given in sessions]
        for session in found:
            await _confirm(session, yes=yes)
            await client.sessions.delete(session.session_id)
            open_console().print(line("deleted ", session.session_id), soft_wrap=True)
    return Exit.OK


async def _confirm(session: Session, *, yes: bool) -> None:
    if yes:
        return
    if not person_is_there():
        raise CommandError("nobody can be asked whether to delete it: add --yes", exit=Exit.USAGE)
    console = open_console()
    keyboard = TerminalKeyboard()
    with keyboard.single_keys():
        title = clean_line(session.title or "without a title", 60)
        console.print(
            line(f"Delete {session.session_id} ({title})? [y/N] "), end="", soft_wrap=True
        )
        key = await keyboard.key()
    console.print(line(key or ""))
    if key not in ("y", "Y"):
        raise CommandError(f"{session.session_id} was kept", exit=Exit.CANCELLED)
