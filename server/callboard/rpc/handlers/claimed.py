"""What a keyed request must never do twice, and its answer when only the log still knows of it."""

from callboard_rpc.common import TurnId
from callboard_rpc.sessions import PromptOutcome, SessionPromptResult, SessionResult

from ...host import Host
from ...log.record import Record
from ...turns.projection import SQL as TURN_SQL
from ..idempotency import Claimed


def claimed_methods(host: Host) -> dict[str, Claimed]:
    """By method."""

    async def created(session_id: str, _: int) -> SessionResult:
        return SessionResult(
            session=await host.reading.session(session_id), cursor=host.log.cursor()
        )

    async def prompted(session_id: str, seq: int) -> SessionPromptResult:
        await host.reading.session(session_id)
        ((delivery, turn_id),) = await host.log.query(TURN_SQL["trigger"], session_id, seq)
        outcome: PromptOutcome = "queued" if turn_id is None else "started"
        return SessionPromptResult(
            event_seq=seq,
            outcome="steered" if delivery == "steer" else outcome,
            turn_id=None if turn_id is None else TurnId(turn_id),
            cursor=host.log.cursor(),
        )

    return {
        "session/create": Claimed(
            is_done=lambda record: record.type == "session_created", answer=created
        ),
        "session/prompt": Claimed(is_done=_is_prompt, answer=prompted),
    }


def _is_prompt(record: Record) -> bool:
    return record.type == "message" and record.turn_id is None
