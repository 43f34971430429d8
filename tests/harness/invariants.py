"""What holds of every log, whatever happened to whoever wrote it (ARCHITECTURE, Invariants)."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from callboard.log.sqlite import sqlite3

from .agent_invariants import Broken, check_agent, hold, is_agent
from .inside import host_in

__all__ = ["Broken", "check_file", "check_projections", "check_session", "hold"]


def check_session(
    session_id: str, events: list[dict[str, Any]], *, tried: Iterable[str] = ()
) -> None:
    """One session's whole log, as the wire has it, when nothing of it runs any more. `tried` are the kinds of
    deliveries that wait in its inbox though they have begun a turn: it was interrupted before it took them in,
    and they wait for somebody to continue the agent."""

    def of(*kinds: str) -> Iterable[dict[str, Any]]:
        return (e for e in events if e["type"] in kinds)

    def once(name: str, begun: Iterable[str], ended: Iterable[str]) -> None:
        first, last = Counter(begun), Counter(ended)
        hold(set(first.values()) <= {1}, session_id, name, "begun twice:", first)
        hold(
            first == last, session_id, name, "open:", first - last, "too often ended:", last - first
        )

    seqs = [e["seq"] for e in events]
    hold(seqs == list(range(1, len(seqs) + 1)), session_id, "seqs have holes:", seqs)
    begins = ("session_created", "agent_spawned")
    hold(events and events[0]["type"] in begins, session_id, "begins with", events[:1])
    if is_agent(events):
        check_agent(session_id, events)
    once(
        "turns",
        (e["data"]["turnId"] for e in of("turn_started")),
        (e["data"]["turnId"] for e in of("turn_finished")),
    )
    once(
        "calls",
        (e["data"]["callId"] for e in of("tool_call")),
        (e["data"]["callId"] for e in of("tool_result")),
    )
    called = {e["data"]["callId"] for e in of("tool_call")}
    for event in of("message"):
        places = {b["callId"] for b in event["data"]["content"] if b["type"] == "tool_use"}
        hold(places <= called, session_id, "places of calls that are not there:", places - called)
    once(
        "approvals",
        (e["data"]["approval"]["approvalId"] for e in of("approval_request")),
        (e["data"]["approvalId"] for e in of("approval_decision")),
    )
    triggers = [e["seq"] for e in events if _is_trigger(e)]
    taken = [seq for e in of("ack") for seq in e["data"]["admits"]]
    taken += [seq for e in of("triggers_dropped") for seq in e["data"]["seqs"]]
    held = _held(events, set(triggers) - set(taken))
    hold(
        Counter(triggers) == Counter(taken) + Counter(held),
        session_id, "triggers", triggers, "taken as", taken, "held", held,
    )  # fmt: skip
    _check_starts(session_id, events, set(tried))
    running: str | None = None
    for event in events:
        turn = event.get("turnId")
        match event["type"]:
            case "turn_started":
                hold(running is None, session_id, "two turns at once:", running, turn)
                running = turn
            case "turn_finished":
                hold(running == turn, session_id, "another turn ended:", running, turn)
                running = None
            case _:
                hold(turn in (None, running), session_id, "an event of no running turn:", event)


def _held(events: list[dict[str, Any]], waiting: set[int]) -> list[int]:
    """What waits in an agent that was stopped before it began, until somebody continues it."""
    stops = [e["seq"] for e in events if e["type"] == "agent_interrupted" and not e.get("turnId")]
    return [seq for seq in waiting if stops and seq < stops[-1]]


def _is_trigger(event: dict[str, Any]) -> bool:
    """Whether an event is something that a turn has to take in: said to the agent, and not by it."""
    if event["type"] == "message":
        data = event["data"]
        return data["author"]["kind"] != "agent" or data.get("delivered") is not None
    return event["type"] == "directive"


def _check_starts(session_id: str, events: list[dict[str, Any]], tried: set[str]) -> None:
    """What began each turn, and what it went on with, is in the log (session-messaging 18: one append
    path, no other start)."""
    at = {e["seq"]: e for e in events}
    admitted: dict[str | None, set[int]] = {}
    for event in events:
        if event["type"] == "ack":
            admitted.setdefault(event["turnId"], set()).update(event["data"]["admits"])
    for event in events:
        turn, where = event.get("turnId"), (session_id, event)
        if event["type"] == "turn_resumed":
            answers = (e for e in events[: event["seq"]] if e["type"] == "approval_decision")
            hold(any(e["turnId"] == turn for e in answers), *where, "resumed without an answer")
        if event["type"] != "turn_started":
            continue
        kind, seqs = event["data"]["trigger"]["kind"], event["data"]["trigger"].get("seqs", ())
        hold(all(seq < event["seq"] for seq in seqs), *where, "begun by what came after it")
        hold(all(_is_trigger(at[seq]) for seq in seqs), *where, "begun by what is no trigger")
        hold(admitted.get(turn, set()) >= set(seqs), *where, "does not take in what began it")
        if seqs:
            first = "directive" if kind == "directive" else "message"
            hold(at[min(seqs)]["type"] == first, *where, "begun by a", at[min(seqs)]["type"])
            continue
        # a delivery is in the log from a boundary on: of this turn, or of one after it if this one ended
        # before its first; or it was set aside there, or waits for one
        later = events[event["seq"] :]
        parts = [e["data"].get("delivered") for e in later if e["type"] == "message"]
        for each in later:
            if each["type"] == "deliveries_dropped":
                parts += each["data"]["deliveries"]
        kinds = {part["kind"] for part in parts if part is not None}
        hold(kind in kinds | tried, *where, "begun by nothing that is in the log")


def check_file(path: Path) -> None:
    """A store that nobody has open, and in which nothing runs: the file, and what is not in the log."""
    connection = sqlite3.connect(path)
    try:
        hold(connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)], "integrity")
        for what, sql in (
            ("an owner is left", "SELECT * FROM owners WHERE fence IS NOT NULL"),
            ("a host is left", "SELECT * FROM hosts"),
            ("a draft is left", "SELECT * FROM drafts"),
            ("an open call is left", "SELECT * FROM open_calls"),
            ("a trigger waits", "SELECT t.* FROM triggers t JOIN heads h USING (session_id) "
             "WHERE state = 'pending' AND t.seq > h.held_through"),
            ("an approval waits", "SELECT * FROM approvals WHERE state = 'pending'"),
            ("an event without a head", "SELECT * FROM events e WHERE e.type <> 'session_deleted' "
             "AND NOT EXISTS (SELECT 1 FROM heads h WHERE h.session_id = e.session_id)"),
            ("a head that is not the last seq", "SELECT * FROM heads h WHERE seq <> "
             "(SELECT max(seq) FROM events e WHERE e.session_id = h.session_id)"),
            ("a blob that nobody needs", "SELECT blob_id FROM blobs WHERE blob_id NOT IN "
             "(SELECT blob_id FROM blob_refs)"),
            ("a turn that began under a lower fence than one before it",
             "SELECT a.session_id, a.seq, a.fence, b.seq, b.fence FROM events a JOIN events b "
             "ON a.session_id = b.session_id AND a.seq < b.seq AND a.fence >= b.fence "
             "WHERE a.type = 'turn_started' AND b.type = 'turn_started'"),
        ):  # fmt: skip
            rows = connection.execute(sql).fetchmany(3)
            hold(not rows, what, rows)
    finally:
        connection.close()


async def check_projections(folder: Path) -> None:
    """The read models of the store in `folder` are those that its log makes anew."""
    async with host_in(folder) as host:
        log = host.log
        tables = [t for p in log._writing.projections for t in p.tables]

        async def rows() -> dict[str, list[Any]]:
            return {t: sorted(await log.query(f"SELECT * FROM {t}"), key=repr) for t in tables}

        kept = await rows()
        await log.rebuild()
        for table, anew in (await rows()).items():
            lost = [row for row in anew if row not in kept[table]][:3]
            wrong = [row for row in kept[table] if row not in anew][:3]
            hold(anew == kept[table], table, "kept", wrong, "but the log says", lost)
