"""Whether events from a file could be the log of a session: each by its form, and all by their order.

The file is untrusted. What the log's own code would never write is refused here, since everything that
reads the log takes it for granted: that a result belongs to a call of the same session, that a turn ends
what it began, that an approval asks for its own session. Pure: events in, `Refused` or the event out.
"""

import re
from datetime import datetime
from typing import Any, Final, cast, get_args

from attrs import Factory, define, field, frozen

from callboard_rpc.common import Actor, Effort, Usage
from callboard_rpc.convert import StructureError, structure, unstructure
from callboard_rpc.events import (
    EVENT_TYPES,
    AgentSpawned,
    ApprovalDecision,
    ApprovalRequest,
    Message,
    SessionCreated,
    SessionForked,
    SessionUpdated,
    Summary,
    ToolCall,
    ToolResult,
    TurnFinished,
    TurnParked,
    TurnResumed,
    TurnStarted,
)

from .state import created_by
from .transfer import Refused, is_id
from .vetting_agents import AgentVetting
from .vetting_groups import GroupVetting
from .vetting_rooms import RoomVetting

_KEYS: Final = frozenset({"sessionId", "seq", "eventId", "type", "at", "actor", "turnId", "data"})
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})",
    re.ASCII,
)
_UPDATES: Final[dict[str, tuple[type, ...]]] = {
    "title": (str, type(None)),
    "pinned": (bool,),
    "metadata": (dict, type(None)),
    "burstBudget": (int, type(None)),
    "effort": (str, type(None)),
    "options": (dict,),
}
_LARGEST: Final = 2**63 - 1
_NAMED = 100
"""Characters of a type or a path that an error repeats."""


@frozen(kw_only=True)
class Vetted:
    """An event that is what it says. `data` and `actor` are JSON values, `value` is the data's class."""

    seq: int
    event_id: str
    type: str
    at: str
    actor: dict[str, Any]
    turn_id: str | None
    data: dict[str, Any]
    value: Any


@define
class _Turn:
    turn_id: str
    calls: set[str] = field(factory=set[str])
    """Those that have no result yet."""
    approvals: set[str] = field(factory=set[str])
    parked: bool = False


@define(kw_only=True)
class Vetting:
    """Follows the events of one file. Give it every one, in order."""

    session_id: str
    created: SessionCreated | None = None
    seq: int = 0
    turn: _Turn | None = None
    """The turn that is under way."""
    started: set[str] = field(factory=set[str])
    approvals: set[str] = field(factory=set[str])
    calls: set[str] = field(factory=set[str])
    own_ids: set[str] = field(factory=set[str])
    """The ids that this session gave: of its events, turns, messages, calls and approvals."""
    blobs: set[str] = field(factory=set[str])
    """Those that are whole, or known to be missing."""
    agent: AgentVetting = field(factory=AgentVetting)
    rooms: RoomVetting = field(factory=RoomVetting)
    _group: GroupVetting = field(
        default=Factory(lambda self: GroupVetting(session_id=self.session_id), takes_self=True)
    )
    _events: set[str] = field(factory=set[str])
    _turns: set[str] = field(factory=set[str])
    _inherited: bool = False

    def event(self, raw: dict[str, Any]) -> Vetted:
        """The next event. Raises `Refused`."""
        if raw.get("sessionId") != self.session_id:
            raise Refused("belongs to another session than the first line says")
        if unknown := raw.keys() - _KEYS:
            raise Refused(
                f"has the unknown field {min(unknown)[:_NAMED]!r}: it is of a newer version, or was changed"
            )
        self.seq += 1
        if raw.get("seq") != self.seq or type(raw["seq"]) is not int:
            raise Refused(
                f"must be the event with seq {self.seq}: events are missing, or out of order"
            )
        event = self._formed(raw)
        if event.event_id in self._events:
            raise Refused("repeats the id of an earlier event")
        self._events.add(event.event_id)
        self._follow(event)
        self._own(event)
        return event

    def _formed(self, raw: dict[str, Any]) -> Vetted:
        kind, at, turn_id = raw.get("type"), raw.get("at"), raw.get("turnId")
        cls = EVENT_TYPES.get(kind) if isinstance(kind, str) else None
        if cls is None or kind == "session_deleted":
            named = f" {kind[:_NAMED]!r}" if isinstance(kind, str) else ""
            raise Refused(f"is of a type{named} that this server does not know: update Callboard")
        if not is_id(raw.get("eventId")):
            raise Refused("has no event's id")
        if turn_id is not None and not is_id(turn_id):
            raise Refused("has a turnId that is none")
        if not _is_time(at):
            raise Refused("has no time of the form 2031-05-17T09:30:00.123Z in 'at'")
        try:
            actor = _exact(raw.get("actor"), Actor, "actor")[0]
            data, value = _exact(raw.get("data"), cls, "data")
        except RecursionError:
            raise Refused("is nested too deeply") from None
        return Vetted(
            seq=self.seq,
            event_id=raw["eventId"],
            type=cast("str", kind),
            at=cast("str", at),
            actor=actor,
            turn_id=turn_id,
            data=data,
            value=value,
        )

    # --- order ---

    def _follow(self, event: Vetted) -> None:
        created = created_by(event.value)
        if (created is not None) != (event.seq == 1):
            raise Refused(
                "must be the session's creation, as the first event, and only as the first"
            )
        if event.turn_id is not None and self._inherited:
            self._turns.add(event.turn_id)  # of the session that this one was forked from
        if created is not None:
            self._create(created, is_child=isinstance(event.value, AgentSpawned))
        match event.value:
            case SessionForked():
                if not self._inherited:
                    raise Refused("ends a fork that did not begin")
                self._inherited = False
            case SessionUpdated(changes=changes):
                _check_changes(changes)
                # whoever made the file sets nothing at the programs of whoever reads it
                event.data["changes"].pop("options", None)
            case TurnStarted() as started:
                self._start(event, started)
            case TurnParked() | TurnResumed():
                self._park(event)
            case TurnFinished():
                self._finish(event)
            case ToolCall() as call:
                self._call(event, call)
            case ToolResult() as result:
                self._result(result)
            case ApprovalRequest():
                self._ask(event)
            case ApprovalDecision() as decision:
                self._decide(decision)
            case _:
                # a message may have places of calls that are not there: a server that wrote no more
                # than 128 calls of one answer left those beyond out of the log, and not their places.
                # Nothing goes by such a place: context, too, asks for the call and its result
                pass
        turn_id = None if self.turn is None else self.turn.turn_id
        self.rooms.event(event.seq, event.value)
        self.agent.event(event.type, event.value, turn_id if turn_id == event.turn_id else None)
        assert self.created is not None
        self._group.event(event.value, is_root=self.created.parent_id is None)
        if event.turn_id is not None and event.turn_id not in self._turns:
            raise Refused("names a turn that did not begin")
        for blob_id in _blobs_of(event.value):
            if blob_id not in self.blobs:
                raise Refused("names a blob that is not in the file before it")

    def _create(self, created: SessionCreated, *, is_child: bool) -> None:
        if created.session_id != self.session_id:
            raise Refused("creates another session than the first line says")
        root = created.parent_id is None
        if (
            (is_child and root)
            or root != (created.root_id == self.session_id)
            or root != (created.depth == 0)
        ):
            raise Refused("does not agree with itself on whether the session has a parent")
        if not 0 <= created.depth <= 64:
            raise Refused("has an impossible depth")
        self.created = created
        self._inherited = created.forked_from is not None

    def _start(self, event: Vetted, started: TurnStarted) -> None:
        if self.turn is not None:
            raise Refused("begins a turn while another one has not ended")
        if started.turn_id in self.started or event.turn_id != started.turn_id:
            raise Refused("begins a turn that began before, or is not the event's own")
        if not is_id(started.turn_id):
            raise Refused("begins a turn whose id is none")
        self.turn = _Turn(started.turn_id)
        self.started.add(started.turn_id)
        self._turns.add(started.turn_id)

    def _under_way(self, turn_id: str | None) -> _Turn:
        if self.turn is None or self.turn.turn_id != turn_id:
            raise Refused("is about a turn that is not under way")
        return self.turn

    def _park(self, event: Vetted) -> None:
        turn = self._under_way(event.value.turn_id)
        parks = isinstance(event.value, TurnParked)
        if turn.parked == parks:
            raise Refused("parks a turn that is parked, or resumes one that is not")
        turn.parked = parks

    def _finish(self, event: Vetted) -> None:
        turn = self._under_way(event.value.turn_id)
        if turn.calls:
            raise Refused("ends a turn in which a tool call has no result")
        if turn.approvals:
            raise Refused("ends a turn in which an approval has no decision")
        self.turn = None

    def _call(self, event: Vetted, call: ToolCall) -> None:
        if not is_id(call.call_id) or call.call_id in self.calls:
            raise Refused("is a tool call whose id is none, or was used before")
        self.calls.add(call.call_id)
        if not self._inherited:
            self._under_way(event.turn_id).calls.add(call.call_id)

    def _result(self, result: ToolResult) -> None:
        if self._inherited:
            if result.call_id not in self.calls:
                raise Refused("is the result of a tool call that is not in the file")
            return
        if self.turn is None or result.call_id not in self.turn.calls:
            raise Refused(
                "is the result of a tool call that is not in the file, or has one already"
            )
        self.turn.calls.discard(result.call_id)

    def _ask(self, event: Vetted) -> None:
        approval = event.value.approval
        assert self.created is not None
        turn = self._under_way(event.turn_id)
        if (
            approval.session_id != self.session_id
            or approval.root_id != self.created.root_id
            or approval.turn_id != turn.turn_id
            or approval.call_id not in turn.calls
            or approval.state != "pending"
            or approval.resolution is not None
        ):
            raise Refused("asks for an approval of something else than an open call of its turn")
        if not is_id(approval.approval_id) or approval.approval_id in self.approvals:
            raise Refused("asks for an approval whose id is none, or was used before")
        if approval.expires_at is not None and not _is_time(approval.expires_at):
            raise Refused("asks for an approval that expires at no time")
        self.approvals.add(approval.approval_id)
        turn.approvals.add(approval.approval_id)

    def _decide(self, decision: ApprovalDecision) -> None:
        if self.turn is None or decision.approval_id not in self.turn.approvals:
            raise Refused("decides an approval that is not in the file, or was decided before")
        self.turn.approvals.discard(decision.approval_id)

    def _own(self, event: Vetted) -> None:
        """Notes the ids that a copy of the session must not share with it."""
        self.own_ids.add(event.event_id)
        if self._inherited:
            return
        match event.value:
            case TurnStarted(turn_id=turn_id):
                self.own_ids.add(turn_id)
            case Message(message_id=message_id):
                self.own_ids.add(message_id)
            case ToolCall(call_id=call_id, message_id=message_id):
                self.own_ids.update((call_id, message_id))
            case ApprovalRequest(approval=approval):
                self.own_ids.add(approval.approval_id)
            case _:
                pass


def _is_time(text: Any) -> bool:
    if not isinstance(text, str) or not _TIME.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _check_changes(changes: dict[str, Any]) -> None:
    for key, value in changes.items():
        if key not in _UPDATES:
            raise Refused(f"changes {key[:_NAMED]!r} of a session, which this server does not know")
        if type(value) not in _UPDATES[key]:
            raise Refused(f"changes {key} of a session to what it cannot be")
        if key == "effort" and value is not None and value not in get_args(Effort):
            raise Refused(f"changes {key} of a session to what it cannot be")


def _blobs_of(value: Any) -> tuple[str, ...]:
    match value:
        case ToolResult(blob=blob) if blob is not None:
            return (blob.blob_id,)
        case _:
            return ()


# --- form ---------------------------------------------------------------------------------------------


def _exact(raw: Any, cls: type[Any], where: str) -> tuple[dict[str, Any], Any]:
    """A value that is of its class and of nothing more, as JSON and as the class.

    Fields that this version does not know are refused, not kept: a later version would know them, and
    believe that they were checked.
    """
    if not isinstance(raw, dict):
        raise Refused(f"has no object in {where!r}")
    fields = cast("dict[str, Any]", raw)
    try:
        value = structure(fields, cls)
    except StructureError as fault:
        first = fault.errors[0]
        path = first["path"].replace("$", where, 1)[:_NAMED]
        raise Refused(f"is wrong at {path}: {first['message'][:200]}") from None
    known = unstructure(value)
    extra = _beyond(fields, known, where)
    if extra is not None:
        raise Refused(f"has the unknown field {extra[:_NAMED]!r}: it is of a newer version")
    _check_numbers(fields, where)
    if isinstance(value, Summary | Message | TurnFinished) and isinstance(value.usage, Usage):
        _check_usage(value.usage, where)
    return fields, value


def _beyond(raw: Any, known: Any, path: str) -> str | None:
    """Where `raw` has something that did not become part of the value."""
    match raw:
        case dict():
            fields = cast("dict[str, Any]", raw)
            others = cast("dict[str, Any]", known) if isinstance(known, dict) else {}
            for key, item in fields.items():
                if key not in others:
                    if item is None:
                        continue  # absent and null are one
                    return f"{path}.{key}"
                found = _beyond(item, others[key], f"{path}.{key}")
                if found is not None:
                    return found
        case list():
            items = cast("list[Any]", raw)
            others_ = list(cast("Any", known)) if isinstance(known, list | tuple) else []
            for index, item in enumerate(items):
                found = _beyond(item, others_[index], f"{path}[{index}]")
                if found is not None:
                    return found
        case _:
            pass
    return None


def _check_numbers(raw: Any, path: str) -> None:
    """No whole number is larger than the store can hold."""
    match raw:
        case bool():
            return
        case int():
            if not -_LARGEST <= raw <= _LARGEST:
                raise Refused(f"has a number at {path[:_NAMED]} that is too large")
        case dict():
            for key, item in cast("dict[str, Any]", raw).items():
                _check_numbers(item, f"{path}.{key}")
        case list():
            for index, item in enumerate(cast("list[Any]", raw)):
                _check_numbers(item, f"{path}[{index}]")
        case _:
            pass


def _check_usage(usage: Usage, where: str) -> None:
    counts = (
        usage.requests, usage.input_tokens, usage.output_tokens, usage.cache_read_tokens,
        usage.cache_write_tokens, usage.reasoning_tokens, usage.context_tokens, usage.cost,
    )  # fmt: skip
    # a sum of them must stay a number that the store, and JSON, can hold
    if any(count is not None and not 0 <= count <= 2**40 for count in counts):
        raise Refused(f"has an impossible number in {where}.usage")
