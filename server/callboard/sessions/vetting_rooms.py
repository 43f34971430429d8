"""Whether events from a file could be those of a room: pure."""

from typing import Any

from attrs import define, field

from callboard_rpc.events import (
    MemberAdded,
    MemberMentioned,
    MemberRemoved,
    RoomHostChanged,
    SessionUpdated,
    WakeSuppressed,
)

from .profiles import is_name
from .state import MAX_BUDGET, MAX_MEMBERS, Room, created_by, room_after, room_of
from .transfer import Refused

_SHOWN = 100


@define
class RoomVetting:
    """Follows who takes part in the session of one file. Give it every event, in order."""

    room: Room = field(factory=Room)
    is_child: bool = False

    def event(self, seq: int, event: Any) -> None:
        """Raises `Refused`."""
        created = created_by(event)
        if created is not None:
            self.room = room_of(created)
            self.is_child = created.parent_id is not None
            if self.is_child and self.room.members:
                raise Refused("creates a room of an agent's session, which can be none")
            folded = {name.casefold() for name in self.room.members}
            if len(folded) < len(self.room.members) or len(folded) > MAX_MEMBERS:
                raise Refused("creates a room with an agent twice, or with too many")
            for name in self.room.members:
                _check_name(name)
            self._check_host(self.room.host)
            _check_budget(self.room.burst_budget)
            return
        match event:
            case MemberAdded(name=name):
                _check_name(name)
                if self.is_child:
                    raise Refused("adds a member to an agent's session, which can have none")
                if self.room.named(name) is not None or len(self.room.members) >= MAX_MEMBERS:
                    raise Refused("adds a member that takes part already, or one too many")
            case MemberRemoved(name=name):
                if name not in self.room.members:
                    raise Refused("removes a member that takes no part")
            case RoomHostChanged(name=name):
                self._check_host(name)
            case SessionUpdated(changes={"burstBudget": budget}):
                _check_budget(budget)
            case MemberMentioned() | WakeSuppressed():
                if not 0 < event.message_seq < seq or event.burst < 0 or event.budget < 0:
                    raise Refused("is about a message that is not before it, or counts impossibly")
                _check_name(event.name)
            case _:
                return
        self.room = room_after(self.room, event)

    def _check_host(self, name: str | None) -> None:
        if name is not None and name not in self.room.members:
            raise Refused("has a host that takes no part")


def _check_name(name: str) -> None:
    if not is_name(name):
        raise Refused(f"names {name[:_SHOWN]!r} as an agent, which can be no agent's name")


def _check_budget(budget: int | None) -> None:
    if budget is not None and not 0 <= budget <= MAX_BUDGET:
        raise Refused("has a burst budget that cannot be")
