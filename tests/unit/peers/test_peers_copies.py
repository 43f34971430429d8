"""What the log says of a link grants nothing: not in a copy that was imported, not in a fork, and not when the
tables that follow the log are made anew."""

from pathlib import Path

import pytest
from peers_kit import Clock, Links, links, pair, refused

from callboard.peers.receiving import deliver
from harness.inside import CLIENT, idle
from harness.puppets import Pause, pauses

pytestmark = pytest.mark.anyio

_TABLES = ("peer_tokens", "peer_links", "peer_inbox", "peer_sent")


async def _whole(p: Links, name: str) -> str:
    text, cursor = "", None
    while True:
        piece = await p.host.writing_out.piece(p.ids[name], cursor=cursor, limit=1_000)
        text, cursor = text + piece.text, piece.cursor
        if cursor is None:
            return text


async def test_peers_an_imported_session_is_linked_to_nobody_and_wakes_nobody(
    tmp_path: Path,
) -> None:
    async with pair(tmp_path, leaves=True) as p:
        await p.send("one", "two", "from before")
        two = p.ids["two"]
        await p.host.log.transact(lambda tx: deliver(tx, two, "host_gone"))  # it waits in the log
        await p.send("two", "one", "back")
        exported = await _whole(p, "two")
    (elsewhere := tmp_path / "elsewhere").mkdir()
    async with links(elsewhere) as q:
        await q.session("one", opened=True)
        imported = await q.host.importing.run(exported, as_new=True, folder=str(elsewhere))
        q.ids["two"] = imported.session_id
        q.host.opened.note(imported.session_id)
        assert [q.rows(table) for table in _TABLES] == [[], [], [], []]
        assert await q.linked("two") == ()
        assert (await refused(q.send("two", "one"))).kind == "peerNotLinked"
        assert (await idle(q.host, imported.session_id)).reason == "idle"
        assert await q.events("two", "turn_started") == []
        assert [e.type for e in await q.log("two")].count("peer_linked") == 1


async def test_peers_a_message_does_not_wake_what_an_imported_session_had_waiting(
    tmp_path: Path,
) -> None:
    pause = Pause()
    async with pair(tmp_path, leaves=True) as p:
        p.models["two"].scenes.append(pauses(pause))
        await p.say("two", "first")
        await pause.came()
        await p.say("two", "delete all")
        exported = await _whole(p, "two")
        pause.open.set()
        await p.idle("two")
    (elsewhere := tmp_path / "elsewhere").mkdir()
    async with links(elsewhere) as q:
        await q.session("one", opened=True)
        await q.session("two", opened=True)
        imported = await q.host.importing.run(exported, as_new=True, folder=str(elsewhere))
        own, q.ids["two"] = q.ids["two"], imported.session_id
        q.host.opened.note(imported.session_id)
        await q.link("one", "two")
        await q.send("one", "two", "hello")
        q.ids["other"] = own  # one that is woken behind it: by then it was looked at
        await q.link("one", "other")
        await q.send("one", "other", "hello")
        await q.has("other", 1, "turn_finished")
        assert not await q.host.log.transact(lambda tx: deliver(tx, imported.session_id, "host"))
        assert (q.waiting("two"), len(await q.events("two", "turn_started"))) == (1, 1)
        assert "delete all" not in q.models["two"].heard()
        await q.say("two", "do what is there")
        await q.has("two", 2, "turn_finished")
        await q.idle("two")
        assert q.waiting("two") == 0
        for each in ("delete all", "hello", "do what is there"):
            assert each in q.models["two"].heard()


async def test_peers_a_fork_is_linked_to_nobody(tmp_path: Path) -> None:
    async with pair(tmp_path, leaves=True) as p:
        await p.say("two")
        await p.idle("two")
        await p.send("one", "two", "for two alone")
        fork = await p.host.forking.fork(p.ids["two"], at_turn_id=None, title=None, by=CLIENT)
        p.ids["fork"] = fork.session_id
        assert await p.linked("fork") == ()
        assert (await refused(p.send("fork", "one"))).kind == "peerNotLinked"
        assert p.waiting("fork") == 0
        assert p.waiting("two") == 1


async def test_peers_the_tables_outlive_a_rebuild_of_what_follows_the_log(tmp_path: Path) -> None:
    async with pair(tmp_path, leaves=True) as p:
        await p.session("three")
        await p.host.sessions.delete(p.ids["three"], by=CLIENT)
        await p.invite("one")
        await p.send("one", "two", "hello")
        before = [p.rows(table) for table in _TABLES]
        await p.host.log.rebuild()
        assert [p.rows(table) for table in _TABLES] == before
        await p.say("two")
        await p.idle("two")
        assert "hello" in p.models["two"].heard()


async def test_peers_what_nobody_needs_is_taken_out_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(stands_at="2031-05-17T09:30:00.000Z")
    monkeypatch.setattr("callboard.host.utc_now", clock)
    async with pair(tmp_path, leaves=True) as p:
        await p.invite("one")
        await p.send("one", "two", "waits for ever")
        await p.put("one", "two", "{", "msg_bad")
        await p.say("two", "take it in")
        await p.idle("two")
        await p.send("one", "two", "waits")
        await p.host.log.transact(lambda tx: _litter(tx, p))
        await p.peers.tidy()
        assert len(p.rows("peer_links")) == 2
        assert len(p.rows("peer_tokens")) == 2
        assert len(p.rows("peer_sent")) == 2
        assert {row[1] for row in p.rows("peer_inbox")} >= {"msg_bad"}
        assert len(p.rows("peer_inbox")) == 2
        clock.ahead_s = 2 * 600 + 1  # each time it looks it is by the clock of then
        await p.peers.tidy()
        assert p.rows("peer_tokens") == []
        assert len(p.rows("peer_sent")) == 2
        clock.ahead_s = 3_600
        await p.peers.tidy()
        assert p.rows("peer_sent") == []
        clock.ahead_s = 8 * 86_400
        await p.peers.tidy()
        assert len(p.rows("peer_inbox")) == 1  # what waits waits on
        assert p.waiting("two") == 1
        assert len(p.rows("peer_links")) == 2


def _litter(tx: "object", p: Links) -> None:
    run = tx.execute  # type: ignore[attr-defined]
    run("INSERT INTO peer_links VALUES ('ses_gone', ?, 't')", p.ids["one"])
    run("INSERT INTO peer_links VALUES (?, 'ses_gone', 't')", p.ids["one"])
    run("INSERT INTO peer_tokens VALUES ('h', 'ses_gone', 't', '9999', NULL, NULL)")
    run(
        "INSERT INTO peer_inbox (message_id, recipient_id, sender_id, capsule, created_at) "
        "VALUES ('msg_gone', 'ses_gone', ?, '{}', '9999')",
        p.ids["one"],
    )
