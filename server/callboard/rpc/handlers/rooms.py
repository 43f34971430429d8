"""``session/members*``: who takes part in a session."""

from callboard_rpc.rooms import MemberAddParams, MemberRemoveParams, MembersParams, RoomResult

from ...host import Host
from ...rooms.service import Rooms
from ..call import Call, Handler
from .client import actor_of


def rooms_of(host: Host) -> Rooms:
    service = host.services["rooms"]
    assert isinstance(service, Rooms)
    return service


async def room_result(host: Host, session_id: str) -> RoomResult:
    """What these methods answer."""
    room = await rooms_of(host).room(session_id)
    return RoomResult(room=room, cursor=host.log.cursor())


def handlers(host: Host) -> dict[str, Handler]:
    rooms = rooms_of(host)

    async def members(_: Call, params: MembersParams) -> RoomResult:
        return await room_result(host, params.session_id)

    async def add(call: Call, params: MemberAddParams) -> RoomResult:
        await rooms.add(params.session_id, params.name, host=params.host, by=actor_of(call))
        return await room_result(host, params.session_id)

    async def remove(call: Call, params: MemberRemoveParams) -> RoomResult:
        await rooms.remove(params.session_id, params.name, by=actor_of(call))
        return await room_result(host, params.session_id)

    return {
        "session/members": members,
        "session/memberAdd": add,
        "session/memberRemove": remove,
    }
