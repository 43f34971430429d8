"""Going back to before a turn: the log keeps everything, and one event says what counts no longer.

Only an idle session can be rewound: the change is made under a preparation reservation, so that no turn
runs meanwhile, and prompts that come in between are answered afterwards, in the context of before.
What the turns did to files is not undone, and the result names those files.
"""

from attrs import frozen

from callboard_rpc.common import Actor, RuleId, TurnId
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import SessionRewound

from ..approvals import service as approvals
from ..log.log import Log
from ..log.record import SELECT, Record
from ..log.text import quoted
from ..log.transaction import Transaction
from ..turns.projection import SQL as TURN_SQL
from ..turns.reservation import Grant, Reservations
from .dispatch import Dispatcher
from .projection import SQL
from .reading import refuse_unless_open
from .rewound import Gone

_NAMED_PATHS = 500


@frozen(kw_only=True)
class _Cut:
    """What goes: turns, the prompts that they had taken in from before, and what they did."""

    before_seq: int
    turns: int
    prompts: tuple[int, ...]
    paths: tuple[str, ...]
    commands: int
    rules: tuple[str, ...]


@frozen
class Rewinding:
    """Rewinds the sessions of one store, also those that other processes have run."""

    log: Log
    reservations: Reservations
    dispatcher: Dispatcher

    async def rewind(self, session_id: str, before_turn_id: str, *, by: Actor) -> Record:
        """The record of the ``session_rewound`` event; from it on the session is as before that turn.

        Raises sessionNotFound, sessionClosed, sessionArchived, turnNotFound, and turnInProgress while a
        turn runs or is parked, prompts wait for one, or somebody else changes the history.
        """
        prepared = await self.reservations.prepare(
            session_id, _must_rest, freed=self.dispatcher.look_at
        )
        async with prepared as reservation:
            through = reservation.begun
            cut = await self._cut(session_id, before_turn_id, through)

            def write(tx: Transaction) -> Record:
                rules = approvals.revoke(tx, cut.rules)
                record = tx.append(
                    session_id,
                    SessionRewound(
                        before_turn_id=TurnId(before_turn_id),
                        before_seq=cut.before_seq,
                        through_seq=through,
                        turns=cut.turns,
                        prompts=cut.prompts,
                        changed_paths=cut.paths[:_NAMED_PATHS],
                        more_paths=max(0, len(cut.paths) - _NAMED_PATHS),
                        commands=cut.commands,
                        rules=tuple(RuleId(each) for each in rules),
                    ),
                    actor=by,
                    fence=reservation.grant.fence,
                )
                tx.decided(session_id=session_id, seq=record.seq)
                return record

            return await reservation.conclude(write)

    async def _cut(self, session_id: str, turn_id: str, through: int) -> _Cut:
        """Reads what goes. Nobody else changes the session meanwhile, and no lock is held."""
        log = self.log
        gone = Gone.of(
            Record.of(row).value
            for row in await log.query(
                f"{SELECT} WHERE session_id = ? AND type = 'session_rewound'", session_id
            )
        )
        rows = await log.query(SQL["first_of_turn"], session_id, turn_id)
        first: int | None = rows[0][0]
        if first is None:
            raise CallboardError(
                "turnNotFound", f"session {session_id} never had a turn {quoted(turn_id)}"
            )
        if first in gone:
            raise CallboardError(
                "turnNotFound",
                f"turn {turn_id} of session {session_id} was rewound already; a fork at that turn "
                "(session/fork) goes on from there",
            )
        span = (session_id, first, through)
        turns = {
            turn for seq, turn in await log.query(SQL["turns_within"], *span) if seq not in gone
        }
        prompts = await log.query(SQL["prompts_from_before"], *span)
        paths = await log.query(SQL["changed_within"], *span)
        commands = await log.query(SQL["commands_within"], *span)
        rules = await log.query(SQL["rules_within"], *span)
        return _Cut(
            before_seq=first,
            turns=len(turns),
            prompts=tuple(seq for (seq,) in prompts if seq not in gone),
            paths=tuple(dict.fromkeys(path for seq, path in paths if seq not in gone)),
            commands=sum(1 for (seq,) in commands if seq not in gone),
            rules=tuple(rule for (rule,) in rules),
        )


def _must_rest(tx: Transaction, grant: Grant) -> int:
    """The session's last seq, at which nothing of it is under way."""
    session_id = grant.session_id
    closed, archived = tx.one(SQL["flags"], session_id) or (False, False)
    refuse_unless_open(session_id, closed=bool(closed), archived=bool(archived))
    waiting = len(tx.all(TURN_SQL["pending_triggers"], session_id))
    if waiting:
        raise CallboardError(
            "turnInProgress",
            f"session {session_id} has {waiting} prompts waiting, which are about to be answered; wait "
            "for that, or drop them (session/cancel with scope 'queue')",
            data={"turnId": None},
        )
    return tx.value(TURN_SQL["last_seq"], session_id)
