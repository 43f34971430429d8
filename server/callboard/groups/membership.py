"""Who acts in a group, and how the group and its members come to be: pieces of transactions (8.2)."""

from pathlib import PurePath

from attrs import frozen

from callboard_rpc.common import Actor, GroupId, SessionId
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import AgentGroupCreated, AgentGroupMemberJoined

from ..log.faults import no_session
from ..log.record import Record
from ..log.text import quoted
from ..log.transaction import Transaction
from ..sessions.projection import SQL as SESSION_SQL
from ..sessions.reading import refuse_unless_open
from ..turns.boundary import Query
from ..turns.reservation import Grant, assert_fence
from .projection import SQL

_MAX_NAME_CHARS = 64


@frozen(kw_only=True)
class Participant:
    """Who acts: an agent of a tree by its run (`grant`), or a person in the place of the root."""

    root_id: SessionId
    agent_id: SessionId
    by: Actor
    grant: Grant | None = None

    @property
    def is_root(self) -> bool:
        return self.agent_id == self.root_id


@frozen(kw_only=True)
class GroupRow:
    group_id: GroupId
    name: str
    created_at: str


def find_group(query: Query, root_id: str) -> GroupRow | None:
    """By `Transaction.all` or `Log.glance`."""
    rows = query(SQL["group"], root_id)
    if not rows:
        return None
    group_id, name, created_at = rows[0]
    return GroupRow(group_id=GroupId(group_id), name=name, created_at=created_at)


def root_of(query: Query, session_id: str) -> SessionId:
    """The root of the tree that a session is in. Raises sessionNotFound."""
    rows = query(SQL["root_of"], session_id)
    if not rows:
        raise no_session(session_id)
    return SessionId(rows[0][0])


def may_act(tx: Transaction, who: Participant) -> None:
    """First step of every change. Raises `StaleFence` for a run that has lost its session,
    sessionNotFound, sessionClosed, sessionArchived for a root whose group nobody changes any more."""
    if who.grant is not None:
        assert_fence(tx, who.grant)
    flags = tx.one(SESSION_SQL["flags"], who.root_id)
    if flags is None:
        raise no_session(who.root_id)
    refuse_unless_open(who.root_id, closed=bool(flags[0]), archived=bool(flags[1]))


def append(tx: Transaction, who: Participant, event: object) -> Record:
    """An event in the root's log. Of a turn it is only where that turn is the root's own."""
    grant = who.grant
    own = grant is not None and grant.session_id == who.root_id
    return tx.append(
        who.root_id,
        event,
        actor=who.by,
        turn_id=grant.turn_id if own and grant is not None else None,
        fence=grant.fence if own and grant is not None else 0,
    )


def the_group(tx: Transaction, who: Participant) -> GroupRow:
    """The tree's group, which is made at its first use; of those who use it first at once one makes it."""
    known = find_group(tx.all, who.root_id)
    if known is not None:
        return known
    cwd: str = tx.value("SELECT cwd FROM sessions WHERE session_id = ?", who.root_id) or ""
    group_id = GroupId(tx.new_id("grp"))
    append(tx, who, AgentGroupCreated(group_id=group_id, name=_name_of(cwd)))
    made = find_group(tx.all, who.root_id)
    assert made is not None
    return made


def _name_of(cwd: str) -> str:
    name = "".join(c if c.isprintable() else " " for c in PurePath(cwd).name).strip()
    return name[:_MAX_NAME_CHARS] or "group"


def join(tx: Transaction, who: Participant, group: GroupRow, agent_id: SessionId) -> None:
    """Makes an agent of the tree a member, once. The root is one without it (coordination 81)."""
    if agent_id != who.root_id and not is_member(tx.all, who.root_id, agent_id):
        append(tx, who, AgentGroupMemberJoined(group_id=group.group_id, agent_id=agent_id))


def is_member(query: Query, root_id: str, agent_id: str) -> bool:
    """Whether an agent has joined; the root, which always takes part, has not."""
    return bool(query(SQL["is_member"], root_id, agent_id))


def must_be_member(tx: Transaction, root_id: str, agent_id: str) -> None:
    """Whether something can be given or written to an agent. Raises notAMember, agentClosed."""
    if agent_id == root_id:
        return
    if not is_member(tx.all, root_id, agent_id):
        raise CallboardError(
            "notAMember",
            f"agent {quoted(agent_id)} is no member of this group; spawn it with a task, or let it claim one",
        )
    flags = tx.one(SESSION_SQL["flags"], agent_id)
    if flags is None or flags[0]:
        raise CallboardError("agentClosed", f"the agent {agent_id} is closed; choose another one")


def must_be_root(who: Participant, what: str) -> None:
    """Raises rootOnly."""
    if not who.is_root:
        raise CallboardError("rootOnly", f"only the root can {what}; write to it instead")
