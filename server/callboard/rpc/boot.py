"""The fast start: ``initialize`` is answered before the server is imported.

Only this, `framing`, `wire`, `handshake` and orjson are loaded when the first frame is read. If it is
a plainly valid ``initialize``, it is answered at once; anything else is handed on, unanswered, to the
full server, which answers by the table of PROTOCOL 1. What an answer is depends on the protocol that is
spoken (`Greet`); how it is waited for does not.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import orjson

from callboard_rpc.version import PROTOCOL_VERSION

from .framing import DEFAULT_FRAME_LIMIT, Frame, FrameReader, Framing, Item, encode_frame
from .handshake import Handshake, build_answer, choose_version, options_of
from .wire import Wire, WireClosed


class Boot(NamedTuple):
    """What the fast start leaves to the full server.

    `params` are those of the ``initialize`` that was answered, ``None`` when none was. `pending` are
    frames that nobody has looked at. `frames` goes on reading where it stopped. `ended`: the input
    has ended.
    """

    frames: FrameReader
    pending: list[Item]
    params: dict[str, Any] | None
    ended: bool


Greet = Callable[[bytes, Framing], "tuple[dict[str, Any], bytes] | None"]
"""``greet(body, framing)``: the params of an ``initialize`` and the whole answer to it, or nothing when the
message is not plainly a valid one."""


def start(
    wire: Wire,
    handshake: Handshake,
    *,
    framing: Framing | None = None,
    frame_limit: int = DEFAULT_FRAME_LIMIT,
) -> Boot:
    """Waits for the first frame of Callboard's own protocol and answers it if that is easy.

    Args:
        handshake: makes Callboard's part of the answer. If it raises, the full server calls it again
            and reports what it raises.
        framing: forced; ``None`` finds out by the first byte.
        frame_limit: bytes.
    """
    return begin(
        wire,
        lambda body, framing: _answer(body, framing, handshake),
        framing=framing,
        frame_limit=frame_limit,
    )


def begin(
    wire: Wire,
    greet: Greet,
    *,
    framing: Framing | None = None,
    frame_limit: int = DEFAULT_FRAME_LIMIT,
) -> Boot:
    """Waits for the first frame, and writes the answer that `greet` has for it. Whatever `greet` raises is
    met again by the full server, which says so."""
    frames = FrameReader(limit=frame_limit, framing=framing)
    items: list[Item] = []
    ended = False
    while not items and not ended:
        data = wire.read()
        ended = not data
        items = frames.finish() if ended else frames.feed(data)
    if not items or not isinstance(items[0], Frame) or frames.framing is None:
        return Boot(frames, items, None, ended)
    greeted = _greeted(greet, items[0].body, frames.framing)
    if greeted is None:
        return Boot(frames, items, None, ended)
    params, answer = greeted
    try:
        wire.write(encode_frame(frames.framing, answer))
    except WireClosed:
        ended = True
    return Boot(frames, items[1:], params, ended)


def _greeted(greet: Greet, body: bytes, framing: Framing) -> tuple[dict[str, Any], bytes] | None:
    try:
        return greet(body, framing)
    except Exception:  # whatever it is, the full server meets it again and says so
        return None


def _answer(
    body: bytes, framing: Framing, handshake: Handshake
) -> tuple[dict[str, Any], bytes] | None:
    message = orjson.loads(body)
    if not _is_plain(message):
        return None
    params: dict[str, Any] = message["params"]
    own: Any = options_of(params) or {}
    version = choose_version(own.get("protocolVersions", (PROTOCOL_VERSION,)))
    if version is None:
        return None
    result = build_answer(framing, version, handshake(params))
    return params, orjson.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})


Check = Callable[[Any], bool]


def _string(value: Any) -> bool:
    return type(value) is str


def _integer(value: Any) -> bool:
    return type(value) is int and -(2**63) <= value < 2**63


def _flag(value: Any) -> bool:
    return type(value) is bool


def _object(value: Any) -> bool:
    return type(value) is dict


def _strings(value: Any) -> bool:
    return type(value) is list and all(type(v) is str for v in cast("list[Any]", value))


def _peer(value: Any) -> bool:
    return _fits(value, {"name": _string}, {"version": _string})


def _flags(value: Any) -> bool:
    named = dict.fromkeys(("approvals", "deltas", "applyEdit", "readFile"), _flag)
    return type(value) is dict and all(
        check(cast("dict[str, Any]", value)[name])
        for name, check in named.items()
        if name in cast("dict[str, Any]", value)
    )


_OWN: dict[str, Check] = {"clientId": _string, "clientInfo": _peer, "config": _object}
_PARAMS: dict[str, Check] = {
    "processId": _integer,
    "clientInfo": _peer,
    "rootUri": _string,
    "initializationOptions": _object,
    "callboard": _object,
}


def _fits(value: Any, required: dict[str, Check], nullable: dict[str, Check]) -> bool:
    """Whether an object has the required members, and those that may be null are null or fit."""
    if type(value) is not dict:
        return False
    members = cast("dict[str, Any]", value)
    return all(
        name in members and check(members[name]) for name, check in required.items()
    ) and all(members.get(name) is None or check(members[name]) for name, check in nullable.items())


def _is_plain(message: Any) -> bool:
    if type(message) is not dict:
        return False
    fields = cast("dict[str, Any]", message)
    if (
        fields.get("jsonrpc") != "2.0"
        or fields.get("method") != "initialize"
        or type(fields.get("id")) not in (int, str)
        or not _fits(fields.get("params"), {}, _PARAMS)
    ):
        return False
    own = options_of(fields["params"])
    if own is None:
        return True
    return (
        _fits(own, {}, _OWN)
        and ("protocolVersions" not in own or _strings(own["protocolVersions"]))
        and ("capabilities" not in own or _flags(own["capabilities"]))
        and ("experimental" not in own or _flag(own["experimental"]))
    )
