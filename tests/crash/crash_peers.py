"""Scenes between linked sessions, and what must hold of links after a crash: both consents or none, and every
message once."""

import asyncio
import hashlib
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from attrs import frozen
from crash_ledger import Event, Snapshot, held
from crash_scenes import Play, until
from crash_stage import CLIENT, Stage, die

from callboard.host import Host
from callboard.peers.consent import Side
from callboard.peers.service import Peers
from callboard_rpc.errors import CallboardError
from harness.process import ServerProcess

# --- what clients do ----------------------------------------------------------------------------


def _invite(stage: Stage, server: ServerProcess, one: str) -> str:
    token = server.call("peer/invite", sessionId=one)["token"]
    stage.told_peers["invited"].append((one, token))
    return token


def _linked(stage: Stage, server: ServerProcess) -> tuple[str, str]:
    stage.greet(server)
    one, two = stage.create(server, mode="work"), stage.create(server, mode="work")
    token = _invite(stage, server, one)
    stage.told_peers["accepting"].append((two, token))
    server.call("peer/accept", sessionId=two, token=token)
    stage.told_peers["accepted"].append((one, two))
    return one, two


def _send(stage: Stage, server: ServerProcess, one: str, two: str, text: str) -> None:
    told = server.call("peer/send", sessionId=one, to=two, text=text)
    stage.told_peers["sent"].append((told["messageId"], two))


def befriend(stage: Stage, server: ServerProcess) -> None:
    """One session invites another one, which accepts."""
    _linked(stage, server)


def write(stage: Stage, server: ServerProcess) -> None:
    """A message wakes an idle session, whose agent runs a command; and another one."""
    one, two = _linked(stage, server)
    server.call("event/subscribe", scope={"kind": "session", "id": two})
    for number in range(2):
        since = len(server.seen)
        _send(stage, server, one, two, f"message {number}")
        server.told(lambda e: e["type"] == "turn_finished", since=since)


def write_to_one_at_work(stage: Stage, server: ServerProcess) -> None:
    """Messages wait for the boundary of a session that runs a command."""
    one, two = _linked(stage, server)
    stage.prompt(server, two, "long")
    until(server, stage.cwd / "began")
    for number in range(3):
        _send(stage, server, one, two, f"message {number}")
    stage.let_go()
    server.wait(two)


def part(stage: Stage, server: ServerProcess) -> None:
    """One leaves the other, with a message on its way in each direction."""
    one, two = _linked(stage, server)
    stage.prompt(server, one, "long")
    stage.prompt(server, two, "long")
    until(server, stage.cwd / "began")
    _send(stage, server, one, two, "unread")
    _send(stage, server, two, one, "unread, too")
    server.call("peer/leave", sessionId=two, peerId=one)
    stage.told_peers["left"].append((one, two))
    stage.let_go()
    server.wait(one)
    server.wait(two)


# --- scenes that begin with the death of another server -----------------------------------------


def _dies_before_it_wakes(stage: Stage) -> None:
    die(stage, "peers.deliver.committed", write)


def take_over(stage: Stage, server: ServerProcess) -> None:
    """What a dead server has delivered, and had not begun, is begun by the next one."""
    stage.greet(server)
    server.wait(stage.created[1])


def _litters(stage: Stage) -> None:
    with ServerProcess(stage.folder, model=stage.model, approvals=False) as first:
        stage.create(first)
    with closing(sqlite3.connect(stage.store)) as connection, connection:
        connection.execute(
            "INSERT INTO peer_tokens VALUES ('digest', 'ses_gone', '2001', '2001', NULL, NULL)"
        )


def clean_up(stage: Stage, server: ServerProcess) -> None:
    """A server that takes out what nobody needs, as it begins to poll."""
    stage.greet(server)
    server.call("session/get", sessionId=stage.created[0])


PRELUDES: dict[Play, Callable[[Stage], object]] = {
    take_over: _dies_before_it_wakes,
    clean_up: _litters,
}


# --- the way on ---------------------------------------------------------------------------------


async def come_in(stage: Stage, host: Host) -> None:
    """Somebody opens all sessions again, and whoever has not heard that the invitation was accepted tries it once
    more. Waits until nothing is on its way."""
    peers = host.services["peers"]
    assert isinstance(peers, Peers)
    for session_id, token in stage.told_peers["accepting"]:
        linked = await peers.linked(session_id)
        left = bool(await host.log.query("SELECT 1 FROM events WHERE type = 'peer_unlinked'"))
        try:
            await peers.accept(Side(session_id=session_id, by=CLIENT), token)
            held(not linked and not left, "accepted twice:", linked)
        except CallboardError as error:
            held(linked or left, "cannot be accepted any more:", error.message)
    for (session_id,) in await host.log.query("SELECT session_id FROM sessions"):
        host.opened.note(session_id)
    async with asyncio.timeout(30):
        while True:
            position = host.log.head
            if not await host.log.query("SELECT 1 FROM peer_inbox"):
                return
            await host.log.moved(position)


# --- what must hold -----------------------------------------------------------------------------


@frozen(kw_only=True)
class _Tables:
    """Read with nothing of the product, from a copy of the files."""

    links: frozenset[tuple[str, str]]
    tokens: dict[str, str | None]
    waiting: tuple[tuple[str, str], ...]
    """Recipients and messages."""
    sent: frozenset[str]


def _tables(store: Path) -> _Tables:
    with tempfile.TemporaryDirectory() as folder:
        for tail in ("", "-wal"):
            source = store.with_name(store.name + tail)
            if source.exists():
                shutil.copyfile(source, Path(folder, source.name))
        with closing(sqlite3.connect(Path(folder, store.name))) as connection:
            return _Tables(
                links=frozenset(connection.execute("SELECT session_id, peer_id FROM peer_links")),
                tokens=dict(connection.execute("SELECT token_hash, accepted_by FROM peer_tokens")),
                waiting=tuple(
                    connection.execute(
                        "SELECT recipient_id, message_id FROM peer_inbox ORDER BY arrival"
                    )
                ),
                sent=frozenset(
                    m for (m,) in connection.execute("SELECT message_id FROM peer_sent")
                ),
            )


def check_peers(stage: Stage, shot: Snapshot) -> None:
    """Links are whole, and what a client was told of them is so; each message is in one place."""
    if not stage.told_peers:
        return
    tables = _tables(stage.store)
    _check_links(stage, shot, tables)
    _check_tokens(stage, shot, tables)
    _check_messages(stage, shot, tables)


def check_all_in(stage: Stage, end: Snapshot) -> None:
    """Nothing is on its way any more, and whatever was not dropped was taken in."""
    if not stage.told_peers:
        return
    held(_tables(stage.store).waiting == (), "still on their way")
    admitted = {
        (key, seq)
        for key, log in end.sessions.items()
        for e in log
        if e["type"] == "ack"
        for seq in e["data"]["admits"]
    }
    for key, log in end.sessions.items():
        for event in _received(log):
            held((key, event["seq"]) in admitted, key, "has not taken in", event)


def _check_links(stage: Stage, shot: Snapshot, tables: _Tables) -> None:
    for one, two in tables.links:
        held((two, one) in tables.links, "a consent of one side alone:", one, two)
    for key, log in shot.sessions.items():
        told = Counter[str]()
        for event in log:
            if event["type"] == "peer_linked":
                told[event["data"]["peerId"]] += 1
            elif event["type"] == "peer_unlinked":
                told[event["data"]["peerId"]] -= 1
        held(set(told.values()) <= {0, 1}, key, "was linked twice:", told)
        there = {two for one, two in tables.links if one == key}
        held({k for k, n in told.items() if n} == there, key, "tells", told, "and has", there)
    left = set(stage.told_peers["left"])
    for one, two in stage.told_peers["accepted"]:
        kinds = Counter(
            e["type"] for key in (one, two) for e in shot.sessions[key] if "peer_" in e["type"]
        )
        held(kinds["peer_linked"] == 2, "they were linked:", kinds)
        held((one, two) not in left or kinds["peer_unlinked"] == 2, "they have parted:", kinds)
        held(kinds["peer_unlinked"] in (0, 2), "one alone has left:", kinds)


def _check_tokens(stage: Stage, shot: Snapshot, tables: _Tables) -> None:
    linked = any(e["type"] == "peer_linked" for e in shot.events)
    for _, token in stage.told_peers["invited"]:
        digest = hashlib.sha256(token.encode()).hexdigest()
        held(digest in tables.tokens, "an invitation is gone")
        used = tables.tokens[digest] is not None
        held(used == linked, "the invitation is used:", used, "and they were linked:", linked)


def _check_messages(stage: Stage, shot: Snapshot, tables: _Tables) -> None:
    sent: dict[str, tuple[str, str]] = {
        e["data"]["messageId"]: (e["sessionId"], e["data"]["to"])
        for e in shot.events
        if e["type"] == "peer_message_sent"
    }
    held(frozenset(sent) == tables.sent, "told", set(sent), "and counted", tables.sent)
    for message_id, to in stage.told_peers["sent"]:
        held(sent.get(message_id, ("", ""))[1] == to, "a message is gone:", message_id)
    places = Counter(message_id for _, message_id in tables.waiting)
    for log in shot.sessions.values():
        places.update(e["data"]["messageId"] for e in _received(log))
        for event in log:
            if event["type"] == "peer_unlinked":
                places.update(event["data"]["dropped"])
    held(places == Counter(sent.keys()), "each is in one place:", places, "of", sent)
    for key, log in shot.sessions.items():
        read: list[str] = [e["data"]["messageId"] for e in _received(log)]
        queued = [m for m, (_, to) in sent.items() if to == key and m in read]
        held(read == queued, key, "has read", read, "of", queued)


def _received(log: list[Event]) -> list[dict[str, Any]]:
    return [e for e in log if e["type"] == "message" and e["data"]["author"]["kind"] == "peer"]
