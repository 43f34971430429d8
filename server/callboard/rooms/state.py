"""How many messages of agents have followed one another in a room, told from its events alone
(session-messaging 9)."""

from typing import Any

from callboard_rpc.events import Directive, Message


def burst_after(burst: int, event: Any, *, in_turn: bool) -> int:
    """The burst after an event of a session that is a room by then.

    What an agent says at the end of its turn counts, whoever woke it. A person's message ends the burst, and so
    does an instruction that begins a turn; one that a turn is given on its way (`in_turn`: a hook's, a
    message of the group) is no new beginning, or two agents could go on for ever. All else changes nothing.
    """
    match event:
        case Message(author=author) if author.kind == "person":
            return 0
        case Message(author=author, final=True) if author.kind == "agent":
            return burst + 1
        case Directive() if not in_turn:
            return 0
        case _:
            return burst
