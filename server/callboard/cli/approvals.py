"""``callboard approvals``: questions that wait, answered from any terminal."""

from typing import Annotated

import anyio
from cyclopts import App, Parameter
from rich.console import Console

from callboard_client import Client, RemoteError
from callboard_client.terminal_text import clean_line
from callboard_rpc.approvals import (
    Approval,
    ApprovalOption,
    CommandSubject,
    FileChangeSubject,
    FormSubject,
    ToolCallSubject,
)
from callboard_rpc.common import ApprovalId
from callboard_rpc.convert import unstructure
from callboard_rpc.server import ClientCapabilities

from . import cards
from .exits import CommandError, Exit
from .interrupts import Interrupts
from .naming import APPROVALS
from .resuming import see_through
from .server import StoreOption, connect_existing
from .terminal import line, open_console, write_json_line
from .wording import local_time, plural

app = App(name="approvals", help="List, show and answer the questions that wait for an answer.")

_SHORT = 160


@app.command(name="list")
async def list_approvals(
    *,
    json: Annotated[bool, Parameter(negative=())] = False,
    store: StoreOption | None = None,
) -> int:
    """List the approvals that wait for an answer, oldest first.

    Parameters
    ----------
    json
        One JSON object a line.
    """
    async with connect_existing(store, name="approvals") as client:
        pending = await _pending(client)
        titles = {} if json else await _titles(client, pending)
    if json:
        for approval in pending:
            write_json_line(unstructure(approval))
        return Exit.OK
    console = open_console()
    if not pending:
        console.print(line("Nothing waits for an answer."))
        return Exit.OK
    for approval in pending:
        _summarise(console, approval, titles.get(approval.session_id, ""))
    console.print(line(("The whole of one: callboard approvals show ID", "dim")), soft_wrap=True)
    console.print(line(("To answer: callboard approvals answer ID OPTION", "dim")), soft_wrap=True)
    return Exit.OK


def _summarise(console: Console, approval: Approval, title: str) -> None:
    named = f' "{clean_line(title, 60)}"' if title else ""
    asker = " › ".join(clean_line(step.name, 40) for step in approval.path[1:])
    head = line(
        (approval.approval_id, "bold"),
        f"  {approval.title}",
        (f"  {approval.risk} risk" if approval.kind == "permission" else "  question", "dim"),
    )
    console.print(head, soft_wrap=True)
    where = f"    {local_time(approval.created_at)}, {approval.session_id}{named}"
    console.print(line((where + (f", asked by {asker}" if asker else ""), "dim")), soft_wrap=True)
    console.print(line(f"    {_short(approval)}"), soft_wrap=True)
    for each in cards.options(approval):
        console.print(each, soft_wrap=True)


def _short(approval: Approval) -> str:
    """What it is about, on one line."""
    match approval.subject:
        case CommandSubject(command=command, cwd=cwd):
            return clean_line(f"$ {clean_line(command, _SHORT)}  in {cwd}")
        case FileChangeSubject(changes=changes):
            first = changes[0] if changes else None
            if first is None:
                return "no file"
            named = f"{first.operation} {first.path} +{first.added} -{first.removed}"
            more = f" and {plural(len(changes) - 1, 'more file')}" if len(changes) > 1 else ""
            return clean_line(named, _SHORT) + more
        case ToolCallSubject(name=name):
            return clean_line(name, _SHORT)
        case FormSubject(message=message):
            return clean_line(message, _SHORT)
        case _:  # of a newer server
            return clean_line(approval.tool, _SHORT)


@app.command
async def show(approval: str, /, *, store: StoreOption | None = None) -> int:
    """Show all that is needed to answer: the command or the diff, and the options.

    Parameters
    ----------
    approval
        Its id, or the beginning of it.
    """
    APPROVALS.wanted(approval)  # needs no server
    async with connect_existing(store, name="approvals") as client:
        found = await _resolve(client, approval)
    console = open_console()
    for each in (*cards.question(found), *cards.options(found)):
        console.print(each, soft_wrap=True)
    to_answer = f"To answer: callboard approvals answer {found.approval_id} OPTION"
    console.print(line((to_answer, "dim")), soft_wrap=True)
    return Exit.OK


@app.command
async def answer(
    approval: str,
    option: str,
    /,
    *,
    feedback: str | None = None,
    store: StoreOption | None = None,
) -> int:
    """Answer an approval, wherever it was asked; the first answer wins.

    When the program that had asked is gone, its turn goes on here: this command shows it, asks what it
    asks, and ends with it, with the exit codes of `callboard run`.

    Parameters
    ----------
    approval
        Its id, or the beginning of it.
    option
        The number of an option as it is listed, its id, or its kind, such as `allow_once`.
    feedback
        With an option that rejects: what the agent is told.
    """
    APPROVALS.wanted(approval)  # needs no server
    interrupts = Interrupts()
    code = Exit.CANCELLED
    async with anyio.create_task_group() as tasks:
        await tasks.start(interrupts.watch)
        interrupts.scope = tasks.cancel_scope
        capabilities = ClientCapabilities(approvals=True)
        async with connect_existing(store, name="approvals", capabilities=capabilities) as client:
            found = await _resolve(client, approval)
            chosen = _choose(found, option)
            if feedback is not None:
                _check_feedback(found, chosen)
            before = await client.sessions.get(found.session_id)
            decided = await client.approvals.answer(found.approval_id, chosen.option_id, feedback)
            _tell_outcome(found, decided)
            code = await see_through(client, found, before, interrupts)
        tasks.cancel_scope.cancel()
    return code


def _check_feedback(found: Approval, chosen: ApprovalOption) -> None:
    if chosen.kind.startswith("allow") and found.kind != "question":
        raise CommandError(
            f"--feedback goes with an option that rejects; {chosen.option_id} allows",
            exit=Exit.USAGE,
            hint="To tell the agent something more, prompt it: callboard run … --session "
            f"{found.session_id}",
        )


def _tell_outcome(found: Approval, decided: Approval) -> None:
    resolution = decided.resolution
    outcome = "answered" if resolution is None else resolution.outcome
    console = open_console()
    style = "green" if outcome == "allowed" else "yellow"
    console.print(line((outcome, style), f": {found.title}"), soft_wrap=True)
    if resolution is not None and resolution.rule_id is not None:
        console.print(cards.rule_line(resolution.rule_id), soft_wrap=True)


def _choose(approval: Approval, given: str) -> ApprovalOption:
    """The option that `given` names: by its number, its id, or its kind when only one is of it."""
    options = approval.options
    if given.isascii() and given.isdigit() and 1 <= int(given) <= len(options):
        return options[int(given) - 1]
    by_id = [option for option in options if option.option_id == given]
    found = by_id or [option for option in options if option.kind == given]
    if len(found) == 1:
        return found[0]
    offered = "; ".join(f"{n} {option.option_id}" for n, option in enumerate(options, 1))
    wrong = "names several options" if found else "names no option"
    raise CommandError(
        f"{given!r} {wrong} of approval {approval.approval_id}",
        exit=Exit.USAGE,
        hint=f"It offers: {offered}.",
    )


async def _resolve(client: Client, given: str) -> Approval:
    """The pending approval whose id begins with `given`; of one that has ended, how it did."""
    wanted = APPROVALS.wanted(given)
    if not APPROVALS.is_whole(wanted):
        return APPROVALS.pick(given, {each.approval_id: each for each in await _pending(client)})
    try:
        found = await client.approvals.get(ApprovalId(wanted))
    except RemoteError as fault:
        if fault.kind not in ("approvalNotFound", "invalidParams"):
            raise
        raise APPROVALS.unknown(given) from None
    if found.state == "pending":
        return found
    resolution = found.resolution
    how = found.state if resolution is None else resolution.outcome
    by = "" if resolution is None else f" by {resolution.by.name or resolution.by.id}"
    raise CommandError(f"approval {found.approval_id} was {how} already{by}")


async def _pending(client: Client) -> list[Approval]:
    return [each async for each in client.approvals.list(state="pending")]


async def _titles(client: Client, approvals: list[Approval]) -> dict[str, str]:
    found: dict[str, str] = {}
    for session_id in {each.session_id for each in approvals}:
        try:
            found[session_id] = (await client.sessions.get(session_id)).session.title or ""
        except RemoteError as fault:
            if fault.kind != "sessionNotFound":  # deleted meanwhile
                raise
    return found
