"""What a person does to the tasks of a group, and says in it: the commands behind ``callboard group SESSION``."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated

from attrs import frozen
from cyclopts import Parameter, validators
from rich.console import Console

from callboard_client import Client
from callboard_rpc.common import SessionId, TaskId
from callboard_rpc.convert import unstructure
from callboard_rpc.groups import GroupMessage, TaskResult

from .board import owner_of, task_line
from .board_task import card
from .exits import CommandError, Exit
from .naming import TASKS, resolve_member, resolve_root, resolve_task
from .server import StoreOption, connect_existing
from .terminal import block as text_block
from .terminal import line, open_console, write_json_line
from .wording import local_time, plural

OfSession = Annotated[
    str,
    Parameter(
        help="The session, by its id or the beginning of it; any session of the tree will do."
    ),
]
Which = Annotated[str, Parameter(help="The task, by its id or the beginning of it.")]
_NOBODY = "nobody else is in the group, so nobody will read it"
Several = Annotated[tuple[str, ...], Parameter(negative=())]


@frozen(kw_only=True)
class _At:
    """A client, and the root in whose place a person acts."""

    client: Client
    root_id: SessionId

    async def task(self, given: str) -> TaskId:
        return await resolve_task(self.client, self.root_id, given)

    async def tell(self, done: TaskResult) -> int:
        found = await self.client.groups.get(self.root_id)
        shown = task_line(done.task, owner_of(found.group, done.task))
        open_console().print(shown, soft_wrap=True)
        return Exit.OK


@asynccontextmanager
async def _at(session: str, store: StoreOption | None) -> AsyncGenerator[_At]:
    async with connect_existing(store, name="group") as client:
        yield _At(client=client, root_id=(await resolve_root(client, session)).session_id)


async def create(
    session: OfSession,
    title: str,
    /,
    *,
    after: Several = (),
    path: Several = (),
    description: str = "",
    optional: Annotated[bool, Parameter(negative=())] = False,
    store: StoreOption | None = None,
) -> int:
    """Put a task on the board.

    Parameters
    ----------
    title
        What is to be done.
    after
        A task that must be completed before; may be given several times.
    path
        A file that it will change, to be warned of conflicts; may be given several times.
    description
        What whoever does it has to know.
    optional
        The work of the session is complete without it, too.
    """
    async with _at(session, store) as at:
        made = await at.client.groups.create(
            at.root_id,
            title,
            description=description,
            dependencies=[await at.task(each) for each in after],
            required=not optional,
            expected_paths=path,
        )
        return await at.tell(made)


async def show(
    session: OfSession,
    task: Which,
    /,
    *,
    json: Annotated[bool, Parameter(negative=())] = False,
    store: StoreOption | None = None,
) -> int:
    """Show all that is known of a task: what it is about, what it waits for, what came of it.

    Parameters
    ----------
    json
        The task as one JSON object.
    """
    async with _at(session, store) as at:
        tasks = [each async for each in at.client.groups.tasks(at.root_id, "all")]
        found = TASKS.pick(task, {str(each.task_id): each for each in tasks})
        group = (await at.client.groups.get(at.root_id)).group
    if json:
        write_json_line(unstructure(found))
        return Exit.OK
    console = open_console()
    for each in card(found, group, tasks):
        console.print(each, soft_wrap=True)
    return Exit.OK


async def claim(session: OfSession, task: Which, /, *, store: StoreOption | None = None) -> int:
    """Take a ready task in the place of the session."""
    async with _at(session, store) as at:
        return await at.tell(await at.client.groups.claim(at.root_id, await at.task(task)))


async def start(session: OfSession, task: Which, /, *, store: StoreOption | None = None) -> int:
    """Say that work on a task of the session has begun."""
    async with _at(session, store) as at:
        return await at.tell(await at.client.groups.start(at.root_id, await at.task(task)))


async def complete(
    session: OfSession,
    task: Which,
    summary: str,
    /,
    *,
    finding: Several = (),
    file: Several = (),
    store: StoreOption | None = None,
) -> int:
    """End a task of the session as done.

    Parameters
    ----------
    summary
        What was done, and what came of it.
    finding
        What others should know; may be given several times.
    file
        A file that was changed; may be given several times.
    """
    async with _at(session, store) as at:
        done = await at.client.groups.complete(
            at.root_id, await at.task(task), summary, findings=finding, touched_files=file
        )
        return await at.tell(done)


async def block(
    session: OfSession, task: Which, reason: str, /, *, store: StoreOption | None = None
) -> int:
    """Say what keeps a task of the session from being done.

    Parameters
    ----------
    reason
        What is in the way.
    """
    async with _at(session, store) as at:
        done = await at.client.groups.block(at.root_id, await at.task(task), reason)
        return await at.tell(done)


async def release(session: OfSession, task: Which, /, *, store: StoreOption | None = None) -> int:
    """Give back a task of the session: anybody can claim it."""
    async with _at(session, store) as at:
        return await at.tell(await at.client.groups.release(at.root_id, await at.task(task)))


async def cancel(
    session: OfSession,
    task: Which,
    /,
    *,
    reason: str | None = None,
    store: StoreOption | None = None,
) -> int:
    """End a task that need not be done, whosever it is.

    Parameters
    ----------
    reason
        Why.
    """
    async with _at(session, store) as at:
        done = await at.client.groups.cancel(at.root_id, await at.task(task), reason)
        return await at.tell(done)


async def assign(
    session: OfSession, task: Which, member: str, /, *, store: StoreOption | None = None
) -> int:
    """Give a task to a member of the group, whosever it was.

    Parameters
    ----------
    member
        An agent by its name, or the beginning of its id; `root` for the session itself.
    """
    async with _at(session, store) as at:
        task_id = await at.task(task)
        agent_id = await resolve_member(at.client, at.root_id, member)
        return await at.tell(await at.client.groups.reassign(at.root_id, task_id, agent_id))


# --- messages ---------------------------------------------------------------------------------------


async def say(
    session: OfSession, text: str, /, *, to: str | None = None, store: StoreOption | None = None
) -> int:
    """Tell members of the group something. They read it at their next step; it wakes nobody.

    Parameters
    ----------
    text
        What they should know, in 4,000 bytes at the most.
    to
        One member, by its name or the beginning of its id; without it, all.
    """
    if to is not None and to.strip().casefold() == "root":
        raise CommandError(
            "what a person says in a group is said in the place of the root",
            exit=Exit.USAGE,
            hint='`callboard run --session SESSION "…"` tells the root itself something.',
        )
    async with _at(session, store) as at:
        agent_id = None if to is None else await resolve_member(at.client, at.root_id, to)
        sent = await at.client.groups.send(
            at.root_id, text, to="group" if agent_id is None else "agent", agent_id=agent_id
        )
    count = len(sent.recipients)
    words = f"left for {plural(count, 'member')}" if count else _NOBODY
    open_console().print(line(words), soft_wrap=True)
    return Exit.OK


async def messages(
    session: OfSession,
    /,
    *,
    of: str | None = None,
    lines: Annotated[
        int, Parameter(name=["--lines", "-n"], validator=validators.Number(gte=1))
    ] = 20,
    json: Annotated[bool, Parameter(negative=())] = False,
    store: StoreOption | None = None,
) -> int:
    """Show what was written to the session in its group, the newest last. Looking marks nothing as read.

    Parameters
    ----------
    of
        Another member, by its name or the beginning of its id.
    lines
        How many of the last ones.
    json
        One JSON object a line.
    """
    found: list[GroupMessage] = []
    async with _at(session, store) as at:
        agent_id = None if of is None else await resolve_member(at.client, at.root_id, of)
        async for message in at.client.groups.messages(at.root_id, agent_id):
            found.append(message)
            if len(found) == lines:
                break
    console = open_console()
    for message in reversed(found):
        if json:
            write_json_line(unstructure(message))
        else:
            _print(console, message)
    if not found and not json:
        console.print(line(("Nothing was written yet.", "dim")))
    return Exit.OK


def _print(console: Console, message: GroupMessage) -> None:
    head = line(
        (message.sender_name, "bold magenta"),
        ("  to the group" if message.to == "group" else "", "dim"),
        (f"  {local_time(message.at)}", "dim"),
        ("" if message.seen else "  not read yet", "yellow"),
    )
    console.print(head, soft_wrap=True)
    console.print(text_block(message.text, indent="  "), soft_wrap=True)


COMMANDS = (create, show, claim, start, complete, block, release, cancel, assign, say, messages)
"""All of them, by their own names."""
