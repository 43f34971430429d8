"""Finding a session, an agent, a task, a rule or an approval by the beginning of its id."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from attrs import frozen

from callboard_client import Client, RemoteError
from callboard_rpc.agents import Agent
from callboard_rpc.common import SessionId, TaskId
from callboard_rpc.sessions import Session

from .exits import CommandError, Exit

T = TypeVar("T")

_RANDOM_LENGTH = 26
_SHORT = 8
_NAMED = 8
"""How many candidates an error lists."""


@frozen
class Kind:
    """What has ids that begin with `prefix`; `hint` says where to see those that there are."""

    prefix: str
    noun: str
    hint: str

    def wanted(self, given: str) -> str:
        """The beginning of an id that `given` names, with its prefix.

        Raises `CommandError` when it names nothing.
        """
        wanted = given.strip()
        if wanted in ("", self.prefix):
            raise CommandError(
                f"no {self.noun} was named: give its id, or the beginning of it",
                exit=Exit.USAGE,
                hint=self.hint,
            )
        return wanted if wanted.startswith(self.prefix) else self.prefix + wanted

    def is_whole(self, wanted: str) -> bool:
        """Whether `wanted` is as long as an id."""
        return len(wanted) >= len(self.prefix) + _RANDOM_LENGTH

    def pick(self, given: str, candidates: Mapping[str, T]) -> T:
        """The one of `candidates`, by their ids, whose id begins with `given`.

        Raises `CommandError` of three kinds: nothing was given, nothing fits, or several fit.
        """
        wanted = self.wanted(given).lower()
        found = [each for each in candidates if each.lower().startswith(wanted)]
        if not found:
            raise self.unknown(given)
        if len(found) > 1:
            raise self._ambiguous(given, found)
        return candidates[found[0]]

    def unknown(self, given: str) -> CommandError:
        return CommandError(
            f"no {self.noun} begins with {given!r}", exit=Exit.USAGE, hint=self.hint
        )

    def _ambiguous(self, given: str, found: Sequence[str]) -> CommandError:
        names = short_names([each.removeprefix(self.prefix) for each in found])
        listed = ", ".join(names[:_NAMED])
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        return CommandError(
            f"{len(found)} {self.noun}s begin with {given!r}: {listed}{more}",
            exit=Exit.USAGE,
            hint="Write more of the id.",
        )


SESSIONS = Kind("ses_", "session", "`callboard sessions list` shows the sessions there are.")
AGENTS = Kind(
    "ses_",
    "agent",
    "`callboard agents list SESSION` shows the agents of a session, with their ids.",
)
RULES = Kind("rule_", "rule", "`callboard rules list --all` shows the rules there are.")
APPROVALS = Kind(
    "apr_", "pending approval", "`callboard approvals list` shows those that wait for an answer."
)
SCHEDULES = Kind("sched_", "schedule", "`callboard schedule list` shows the schedules there are.")
TASKS = Kind("tsk_", "task", "`callboard group SESSION` shows the tasks there are.")


async def resolve(client: Client, given: str) -> Session:
    """The session whose id begins with `given`, with or without its ``ses_``.

    Raises `CommandError` as `Kind.pick` does.
    """
    wanted = SESSIONS.wanted(given)
    if SESSIONS.is_whole(wanted):
        try:
            return (await client.sessions.get(SessionId(wanted))).session
        except RemoteError as fault:
            if fault.kind not in ("sessionNotFound", "invalidParams"):
                raise
            raise SESSIONS.unknown(given) from None
    found: dict[str, Session] = {}
    for archived in (None, True):
        async for session in client.sessions.list(archived=archived):
            found[session.session_id] = session
    return SESSIONS.pick(given, found)


async def resolve_root(client: Client, given: str) -> Session:
    """The root of the tree that the session is in whose id begins with `given`. Raises as `resolve` does."""
    found = await resolve(client, given)
    if found.root_id == found.session_id:
        return found
    return (await client.sessions.get(found.root_id)).session


async def resolve_agent(client: Client, given: str, root: str | None) -> Agent:
    """The agent of this id; or, below the session `root`, the one with this name, or whose id begins so.
    A name means the agent that is open, where others of that name were closed.

    Raises `CommandError` as `Kind.pick` does.
    """
    wanted = AGENTS.wanted(given)
    if root is None and not AGENTS.is_whole(wanted):
        raise CommandError(
            f"{given!r} is no whole id of an agent; a name, or the beginning of an id, needs --root",
            exit=Exit.USAGE,
            hint=AGENTS.hint,
        )
    try:
        tree = SessionId(wanted) if root is None else (await resolve(client, root)).session_id
        agents = [agent async for agent in client.agents.list(tree)]
    except RemoteError as fault:
        if fault.kind not in ("sessionNotFound", "invalidParams"):
            raise
        raise AGENTS.unknown(given) from None
    named = [agent for agent in agents if agent.name.casefold() == given.strip().casefold()]
    named = [agent for agent in named if agent.status != "closed"] or named
    if len(named) > 1:
        raise CommandError(
            f"{len(named)} agents are called {given!r}: "
            f"{', '.join(agent.agent_id for agent in named[:_NAMED])}",
            exit=Exit.USAGE,
            hint="Give the id of the one that is meant.",
        )
    return named[0] if named else AGENTS.pick(given, {agent.agent_id: agent for agent in agents})


async def resolve_task(client: Client, root_id: SessionId, given: str) -> TaskId:
    """The id of the task of a session's group that begins with `given`, with or without its ``tsk_``.

    Raises `CommandError` as `Kind.pick` does; whether there is a task of a whole id is for the server to
    say.
    """
    wanted = TASKS.wanted(given)
    if TASKS.is_whole(wanted):
        return TaskId(wanted)
    tasks = client.groups.tasks(root_id, "all")
    return TASKS.pick(given, {str(task.task_id): task.task_id async for task in tasks})


async def resolve_member(client: Client, root_id: SessionId, given: str) -> SessionId:
    """One of a session's group: the root by that word, an agent by its name or the beginning of its id.

    Raises `CommandError` as `Kind.pick` does.
    """
    if given.strip().casefold() == "root":
        return root_id
    return (await resolve_agent(client, given, root_id)).agent_id


def short_names(bare: Sequence[str]) -> list[str]:
    """Beginnings of 8 characters of ids without their prefixes, longer where only that tells them
    apart."""
    length = _SHORT
    longest = max((len(each) for each in bare), default=0)
    while length < longest and len({each[:length] for each in bare}) < len(set(bare)):
        length += 1
    return [each[:length] for each in bare]
