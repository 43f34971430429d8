"""What may be in a store after a crash, worked out from what was in it at that moment.

Reads the file itself, with SQLite and nothing of the product, so that no fault of ours can hide one.
"""

import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
from attrs import define, field, frozen

Event = dict[str, Any]

TOLD_APART = 40
"""Characters of a prompt by which it is known; of a long one the log keeps the rest elsewhere."""


class Broken(AssertionError):
    """A promise that was not kept."""


def held(condition: object, *what: object) -> None:
    """Raises `Broken` unless the condition holds."""
    if not condition:
        raise Broken(" ".join(map(str, what)))


@frozen(kw_only=True)
class Snapshot:
    """All that a store holds at one moment."""

    sessions: Mapping[str, list[Event]]
    drafts: Mapping[str, tuple[str, str, str]]
    """By turn: message id, answer, thought."""
    owned: Collection[str]
    """Sessions that somebody runs."""
    searchable: Collection[int]
    """Positions in the search index, as often as they are there."""
    deleted: Collection[str] = ()
    copied: Collection[str] = ()
    """Forks and imports: their runs were those of other sessions."""
    inbox: Mapping[str, Collection[str]] = field(factory=dict[str, Collection[str]])
    """By session: the ids of the deliveries that wait."""
    hidden: Collection[str] = ()
    """Sessions of which only a part is there, which nobody sees: a fork or an import under way."""

    @property
    def events(self) -> list[Event]:
        return sorted((e for log in self.sessions.values() for e in log), key=lambda e: e["pos"])


EMPTY = Snapshot(sessions={}, drafts={}, owned=(), searchable=())


def snapshot(store: Path, *, shared: bool = False) -> Snapshot:
    """What a store holds. Reading a copy of the files leaves those of a dead process as they are;
    `shared` reads in place, while another process has the store open."""
    if not store.exists():
        return EMPTY
    if shared:
        return _read(store)
    with tempfile.TemporaryDirectory() as folder:
        for tail in ("", "-wal"):
            source = store.with_name(store.name + tail)
            if source.exists():
                shutil.copyfile(source, Path(folder, source.name))
        return _read(Path(folder, store.name))


def _read(store: Path) -> Snapshot:
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        held(connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)], "integrity")
        tables = connection.execute("SELECT name FROM sqlite_master WHERE name = 'events'")
        if tables.fetchone() is None:
            return EMPTY
        connection.execute("BEGIN")
        logs: dict[str, list[Event]] = {}
        deleted: set[str] = set()
        heads = dict(connection.execute("SELECT session_id, imported_through FROM heads"))
        rows = connection.execute(
            "SELECT pos, session_id, seq, event_id, type, actor, turn_id, fence, data FROM events "
            "ORDER BY pos"
        )
        for pos, session, seq, event_id, kind, actor, turn, fence, data in rows:
            event = {
                "pos": pos, "sessionId": session, "seq": seq, "eventId": event_id, "type": kind,
                "actor": orjson.loads(actor), "turnId": turn, "fence": fence,
                "data": orjson.loads(data),
            }  # fmt: skip
            if kind == "session_deleted":
                deleted.add(session)
            else:
                logs.setdefault(session, []).append(event)
        drafts = connection.execute("SELECT turn_id, message_id, answer, thought FROM drafts")
        owners = connection.execute("SELECT session_id FROM owners WHERE fence IS NOT NULL")
        search = connection.execute("SELECT rowid FROM search")
        inbox: dict[str, list[str]] = {}
        for session, delivery in connection.execute("SELECT session_id, delivery_id FROM inbox"):
            inbox.setdefault(session, []).append(delivery)
        return Snapshot(
            sessions={session: log for session, log in logs.items() if session in heads},
            deleted=deleted,
            drafts={turn: (message, answer, thought) for turn, message, answer, thought in drafts},
            owned=[session for (session,) in owners],
            searchable=[pos for (pos,) in search],
            inbox=inbox,
            hidden=logs.keys() - heads.keys(),
            copied={
                session
                for session, through in heads.items()
                if through or logs[session][0]["data"].get("forkedFrom")
            },
        )


# --- one session, read -----------------------------------------------------------------------------


@define(kw_only=True)
class Turn:
    turn_id: str
    host: str
    state: str = "running"
    outcome: str | None = None
    finals: int = 0
    partials: list[Event] = field(factory=list[Event])
    calls: dict[str, Event] = field(factory=dict[str, Event])
    results: dict[str, Event] = field(factory=dict[str, Event])
    pending: dict[str, str] = field(factory=dict[str, str])
    """Approvals without an answer, and their calls."""
    questions: set[str] = field(factory=set[str])
    """Those that a program has asked, which is gone with its server."""
    stop_asked: bool = False

    @property
    def open_calls(self) -> list[Event]:
        return [c for call_id, c in self.calls.items() if call_id not in self.results]

    @property
    def only_waits(self) -> bool:
        """Whether none of its open calls can have begun, since an approval is in their way."""
        if self.stop_asked or not self.pending or not self.open_calls:
            return False
        if self.questions & self.pending.keys():
            return False
        message = list(self.calls.values())[-1]["data"]["messageId"]
        answer = [c["data"] for c in self.calls.values() if c["data"]["messageId"] == message]
        waiting = [c["data"]["callId"] in self.pending.values() for c in self.open_calls]
        return all(waiting) if all(c["effect"] == "read" for c in answer) else waiting[0]


@define(kw_only=True)
class Session:
    """What the events of one session say, checked as they are read."""

    session_id: str
    turns: dict[str, Turn] = field(factory=dict[str, Turn])
    triggers: dict[int, str] = field(factory=dict[int, str])
    """What persons said, by seq."""
    instructed: list[int] = field(factory=list[int])
    """What others than persons told the agent to do, by seq."""
    admitted: Counter[int] = field(factory=Counter[int])
    admitted_by: dict[int, str] = field(factory=dict[int, str])
    dropped: Counter[int] = field(factory=Counter[int])
    held: list[int] = field(factory=list[int])
    """What an agent that was stopped before it began will read when it is continued, by seq."""
    closed: bool = False

    @property
    def waiting(self) -> list[int]:
        return [s for s in self.triggers if s not in self.admitted and s not in self.dropped]

    def read(self, events: list[Event]) -> "Session":
        for number, event in enumerate(events, 1):
            held(event["seq"] == number, self.session_id, "has a hole before seq", event["seq"])
            self._take(event)
        return self

    def _take(self, event: Event) -> None:
        data: dict[str, Any] = event["data"]
        turn = self.turns.get(event["turnId"] or "")
        where = f"{self.session_id}#{event['seq']} {event['type']}:"
        if turn is not None and event["type"] != "cancel_requested":
            held(turn.outcome is None, where, "comes after its turn's end")
        match event["type"]:
            case "message" if data.get("delivered") or data["author"]["kind"] == "peer":
                self.instructed.append(event["seq"])
            case "message" if data["author"]["kind"] == "person":
                self.triggers[event["seq"]] = data["content"][0]["text"][:TOLD_APART]
            case "message":
                assert turn is not None
                turn.finals += data.get("final") is True
                if data.get("partial"):
                    turn.partials.append(event)
            case "directive" | "member_mentioned" | "schedule_fired":
                self.instructed.append(event["seq"])
            case "ack":
                self.admitted.update(data["admits"])
                self.admitted_by.update(dict.fromkeys(data["admits"], event["turnId"]))
            case "triggers_dropped":
                self.dropped.update(data["seqs"])
            case "turn_started":
                others = [t for t in self.turns.values() if t.outcome is None]
                held(not others, where, "begins beside", others)
                held(event["turnId"] not in self.turns, where, "begins twice")
                self.turns[event["turnId"]] = Turn(turn_id=event["turnId"], host=data["hostId"])
            case "turn_parked":
                held(turn is not None and turn.state == "running", where, "was not running")
                assert turn is not None
                turn.state = "parked"
            case "turn_resumed":
                held(turn is not None and turn.state == "parked", where, "was not parked")
                assert turn is not None
                turn.state, turn.host = "running", data["hostId"]
            case "turn_finished":
                held(turn is not None, where, "never began")
                assert turn is not None
                turn.outcome = data["outcome"]
                held(not turn.open_calls, where, "leaves calls open", turn.open_calls)
                held(not turn.pending, where, "leaves approvals open", turn.pending)
            case "tool_call":
                assert turn is not None
                held(data["callId"] not in turn.calls, where, "is there twice")
                turn.calls[data["callId"]] = event
            case "tool_result":
                assert turn is not None
                held(data["callId"] in turn.calls, where, "has no call")
                held(data["callId"] not in turn.results, where, "is there twice")
                turn.results[data["callId"]] = event
            case "approval_request":
                assert turn is not None
                approval = data["approval"]
                turn.pending[approval["approvalId"]] = approval["callId"]
                if approval["kind"] == "question":
                    turn.questions.add(approval["approvalId"])
            case "approval_decision":
                assert turn is not None
                held(data["approvalId"] in turn.pending, where, "was decided already")
                del turn.pending[data["approvalId"]]
            case "cancel_requested":
                if turn is not None:
                    turn.stop_asked = True
            case "agent_interrupted" if turn is None:
                # what it was to do is held until it is continued
                self.held = [s for s in self.instructed if s not in self.admitted]
            case "session_closed":
                self.closed = True
            case _:
                pass


def sessions_of(shot: Snapshot) -> dict[str, Session]:
    return {
        key: Session(session_id=key).read(log)
        for key, log in shot.sessions.items()
        if key not in shot.copied
    }


def said_in(log: list[Event]) -> list[str]:
    """What persons said in a session."""
    return [
        e["data"]["content"][0]["text"][:TOLD_APART]
        for e in log
        if e["type"] == "message" and e["data"]["author"]["kind"] == "person"
    ]


def waiting_approvals(shot: Snapshot, *, alive: Collection[str] = ()) -> set[str]:
    """The approvals that a crash must not touch: those of turns that only wait for them."""
    return {
        approval
        for session in sessions_of(shot).values()
        for turn in session.turns.values()
        if turn.outcome is None and (turn.only_waits or turn.host in alive)
        for approval in turn.pending
    }


# --- before and after ------------------------------------------------------------------------------


def check_end(end: Snapshot) -> dict[str, Session]:
    """What holds for every store in which nothing is under way any more."""
    held(not end.owned, "owned at the end:", end.owned)
    held(not end.drafts, "drafts are left:", end.drafts)
    held(not end.hidden, "halves of sessions are left:", end.hidden)
    found = sessions_of(end)
    for key, session in found.items():
        for turn in session.turns.values():
            held(turn.outcome is not None, key, turn.turn_id, "has no end")
            held(turn.finals <= 1, key, turn.turn_id, "has several last messages")
            held(len(turn.partials) <= 1, key, turn.turn_id, "has several partial messages")
            if turn.outcome == "completed":
                held(not turn.partials, key, turn.turn_id, "is completed and cut off")
        taken = session.admitted + session.dropped
        taken += Counter(s for s in session.held if s not in taken)
        there = Counter([*session.triggers, *session.instructed])
        held(taken == there, key, "took", taken, "of", there)
        fences = [e["fence"] for e in end.sessions[key] if e["type"] == "turn_started"]
        held(fences == sorted(set(fences)), key, "has fences", fences)
    return found


def check_after(before: Snapshot, end: Snapshot, *, alive: Collection[str] = ()) -> None:
    """What a recovery makes of what it found. `alive` are hosts that went on running."""
    was, now = sessions_of(before), check_end(end)
    for key, old in was.items():
        if key in end.deleted:
            continue
        log = before.sessions[key]
        held(end.sessions.get(key, [])[: len(log)] == log, key, "was rewritten")
        new = now[key]
        for turn in old.turns.values():
            if turn.outcome is None and turn.host not in alive:
                _check_turn(turn, new.turns[turn.turn_id], before.drafts.get(turn.turn_id))
        for seq in old.waiting:
            if not new.closed and seq not in new.dropped:
                by = new.turns[new.admitted_by[seq]]
                held(by.outcome == "completed", key, seq, "waited and then was", by.outcome)
        for turn_id in new.turns.keys() - old.turns.keys():
            answered = [seq for seq, by in new.admitted_by.items() if by == turn_id]
            again = [seq for seq in answered if seq in old.admitted]
            held(not again, key, "answers again", again)


def _check_turn(was: Turn, now: Turn, draft: tuple[str, str, str] | None) -> None:
    if was.state == "parked" or was.only_waits:
        held(now.outcome in ("completed", "cancelled"), now.turn_id, "waited, then", now.outcome)
        return
    ends = ("cancelled", "interrupted") if was.stop_asked else ("interrupted",)
    held(now.outcome in ends, now.turn_id, "was running, then", now.outcome)
    held(now.calls.keys() == was.calls.keys(), now.turn_id, "went on with calls")
    for call in was.open_calls:
        status = now.results[call["data"]["callId"]]["data"]["status"]
        held(status == now.outcome, call, "was open, then", status)
    said = [] if draft is None else [text for text in draft[1:] if text.strip()]
    if not said:
        held(not now.partials, now.turn_id, "has text from nowhere", now.partials)
        return
    assert draft is not None
    held(len(now.partials) == 1, now.turn_id, "lost its draft", draft)
    message = now.partials[0]["data"]
    held(message["messageId"] == draft[0], message, "is not", draft)
    held(sorted(b["text"] for b in message["content"]) == sorted(said), message, "is not", draft)


def check_effects(
    end: Snapshot, lines: list[str], tool: str = "run_command", *, deleted: Collection[str] = ()
) -> None:
    """That each call did its work once if its result says so, at most once otherwise, and never
    without a call in the log. `lines` are the ids of the calls that ran, as they themselves wrote;
    what `deleted` sessions did is known to them alone, and agents of other makers write nothing down."""
    ran = Counter(lines)
    outside = {
        e["sessionId"]
        for e in end.events
        if e["type"] == "turn_started" and e["data"]["model"].startswith("acp/")
    }
    results = {
        e["data"]["callId"]: e["data"]["status"]
        for e in end.events
        if e["type"] == "tool_result"
        and e["data"]["name"] == tool
        and e["sessionId"] not in outside
        and e["sessionId"] not in end.copied
    }
    held(set(ran.values()) <= {1}, "ran twice:", ran)
    unknown = ran.keys() - results.keys()
    held(deleted or not unknown, "ran without a record:", unknown)
    for call, status in results.items():
        allowed = {"ok": {1}, "interrupted": {0, 1}, "cancelled": {0, 1}}.get(status, {0})
        held(ran[call] in allowed, call, "is", status, "and ran", ran[call], "times")
