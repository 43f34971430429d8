"""Who may write to whom: invitations, their end, and leaving (interrupts-and-peers 38-42, 55)."""

import asyncio
from pathlib import Path

import pytest
from peers_kit import Clock, Links, links, pair, refused

from callboard.peers.consent import MAX_INVITATIONS, MAX_LINKS, digest_of
from callboard_rpc.events import PeerLinked, PeerUnlinked
from callboard_rpc.peers import Peer
from harness.inside import CLIENT

pytestmark = pytest.mark.anyio


async def _two(found: Links) -> Links:
    await found.session("one")
    await found.session("two")
    return found


async def test_peers_a_link_is_both_consents_and_is_told_in_both_logs(tmp_path: Path) -> None:
    async with links(tmp_path, leaves=True) as p:
        await _two(p)
        invitation = await p.invite("one")
        assert p.rows("peer_links") == []
        peer = await p.accept("two", f" {invitation.token}\n")  # as it is copied
        assert (peer.session_id, peer.title, peer.one_way) == (p.ids["one"], "one", False)
        for me, other in (("one", "two"), ("two", "one")):
            (seen,) = await p.linked(me)
            assert (seen.session_id, seen.title) == (p.ids[other], other)
            (event,) = await p.events(me, "peer_linked")
            assert event == PeerLinked(peer_id=p.ids[other])  # type: ignore[arg-type]
        assert len(p.rows("peer_links")) == 2


async def test_peers_38_of_many_who_accept_one_token_one_succeeds(tmp_path: Path) -> None:
    async with links(tmp_path, leaves=True) as p:
        await p.session("one")
        for n in range(20):
            await p.session(f"guest {n}")
        token = (await p.invite("one")).token
        told = await asyncio.gather(
            *(p.accept(f"guest {n}", token) for n in range(20)), return_exceptions=True
        )
        assert sum(isinstance(each, Peer) for each in told) == 1
        errors = [each for each in told if not isinstance(each, Peer)]
        assert {e.kind for e in errors} == {"tokenInvalid"}  # type: ignore[union-attr]
        assert len(p.rows("peer_links")) == 2
        assert len(await p.events("one", "peer_linked")) == 1


@pytest.mark.parametrize(
    ("age_s", "accepted"), [(599.0, True), (600.0, True), (600.001, False), (86_400.0, False)]
)
async def test_peers_39_an_invitation_ends_after_ten_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, age_s: float, *, accepted: bool
) -> None:
    clock = Clock(stands_at="2031-05-17T09:30:00.123Z")
    monkeypatch.setattr("callboard.host.utc_now", clock)
    async with links(tmp_path, leaves=True) as p:
        await _two(p)
        invitation = await p.invite("one")
        assert invitation.expires_at == "2031-05-17T09:40:00.123Z"
        clock.ahead_s = age_s
        if accepted:
            await p.accept("two", invitation.token)
            assert len(p.rows("peer_links")) == 2
        else:
            assert (await refused(p.accept("two", invitation.token))).kind == "tokenInvalid"
            assert p.rows("peer_links") == []


async def test_peers_40_ones_own_token_is_refused_and_still_usable(tmp_path: Path) -> None:
    async with links(tmp_path, leaves=True) as p:
        await _two(p)
        token = (await p.invite("one")).token
        own = await refused(p.accept("one", token))
        assert own.kind == "tokenInvalid"
        assert "has made that invitation itself" in own.message
        assert p.rows("peer_links") == []
        await p.accept("two", token)
        assert len(p.rows("peer_links")) == 2
        # once it is used it is like any other that is
        assert (await refused(p.accept("one", token))).message == (
            await refused(p.accept("two", token))
        ).message


async def test_peers_tokens_that_are_made_up_used_or_too_old_are_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr("callboard.host.utc_now", clock)
    async with links(tmp_path, leaves=True) as p:
        await _two(p)
        await p.session("three")
        used, old = (await p.invite("one")).token, (await p.invite("one")).token
        await p.accept("two", used)
        clock.ahead_s = 601
        told = [
            await refused(p.accept("three", token))
            for token in (used, old, "made-up", "", "\x00\ud800", "x" * 100_000, used.upper())
        ]
        assert {(each.kind, each.message, str(each.data)) for each in told} == {
            ("tokenInvalid", told[0].message, "{}")
        }


async def test_peers_a_token_is_stored_hashed_and_stands_in_no_log(tmp_path: Path) -> None:
    async with links(tmp_path, leaves=True) as p:
        await _two(p)
        token = (await p.invite("one")).token
        assert [row[0] for row in p.rows("peer_tokens")] == [digest_of(token)]
        await p.accept("two", token)
        error = await refused(p.accept("two", token))
        assert token not in error.message
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert token.encode() not in path.read_bytes(), path


async def test_peers_the_session_that_has_invited_must_be_there_still(tmp_path: Path) -> None:
    async with links(tmp_path, leaves=True) as p:
        await _two(p)
        token = (await p.invite("one")).token
        await p.host.sessions.set_archived(p.ids["one"], archived=True, by=CLIENT)
        assert (await refused(p.accept("two", token))).kind == "tokenInvalid"
        await p.host.sessions.set_archived(p.ids["one"], archived=False, by=CLIENT)
        await p.accept("two", token)  # it was not used up
        token = (await p.invite("one")).token
        await p.host.sessions.close(p.ids["one"], by=CLIENT)
        assert (await refused(p.accept("two", token))).kind == "tokenInvalid"


async def test_peers_39_an_invitation_outlives_no_clock_that_is_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(stands_at="2031-05-17T09:30:00.000Z", ahead_s=86_400)
    monkeypatch.setattr("callboard.host.utc_now", clock)
    async with links(tmp_path) as p:
        await p.session("one")
        await p.session("two")
        tokens = [(await p.invite("one")).token for _ in range(10)]
        clock.ahead_s -= 600
        await p.accept("two", tokens[0])
        clock.ahead_s = 0
        for name in ("two", "one"):
            error = await refused(p.accept(name, tokens[1]))
            assert (error.kind, "not valid" in error.message) == ("tokenInvalid", True)
        await p.accept("two", (await p.invite("one")).token)  # and keeps none from being made


async def test_peers_a_session_invites_only_so_often_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr("callboard.host.utc_now", clock)
    async with links(tmp_path, leaves=True) as p:
        await _two(p)
        tokens = [(await p.invite("one")).token for _ in range(MAX_INVITATIONS)]
        assert len(set(tokens)) == MAX_INVITATIONS
        assert (await refused(p.invite("one"))).kind == "peerLimit"
        await p.invite("two")  # each has its own
        await p.accept("two", tokens[0])
        await p.invite("one")
        assert (await refused(p.invite("one"))).kind == "peerLimit"
        clock.ahead_s = 601
        await p.invite("one")


async def test_peers_a_session_has_only_so_many_links(tmp_path: Path) -> None:
    async with links(tmp_path, leaves=True) as p:
        await _two(p)
        await p.host.log.transact(
            lambda tx: [
                tx.execute("INSERT INTO peer_links VALUES (?, ?, ?)", p.ids["one"], f"s{n}", "t")
                for n in range(MAX_LINKS)
            ]
        )
        token = (await p.invite("two")).token
        assert (await refused(p.accept("one", token))).kind == "peerLimit"
        token = (await p.invite("one")).token
        assert (await refused(p.accept("two", token))).kind == "peerLimit"
        assert len(p.rows("peer_links")) == MAX_LINKS
        await p.leave("one", "one")  # a link that there is not frees nothing
        await p.peers.leave(p.side("one"), "s0")
        await p.accept("two", token)  # the refused attempt has not used it up


async def test_peers_linking_twice_is_told_once(tmp_path: Path) -> None:
    async with pair(tmp_path, leaves=True) as p:
        await p.link("two", "one")
        assert len(p.rows("peer_links")) == 2
        assert len(await p.events("one", "peer_linked")) == 1
        assert len(await p.events("two", "peer_linked")) == 1


@pytest.mark.parametrize("leaver", ["one", "two"])
async def test_peers_42_either_side_leaves_for_both_with_what_was_on_its_way(
    tmp_path: Path, leaver: str
) -> None:
    async with pair(tmp_path, leaves=True) as p:
        first = await p.send("one", "two", "to two")
        second = await p.send("one", "two", "again to two")
        back = await p.send("two", "one", "to one")
        other = "two" if leaver == "one" else "one"
        left = await p.leave(leaver, other)
        assert (left.left, left.dropped) == (True, 3)
        assert p.rows("peer_links") == []
        assert p.rows("peer_inbox") == []
        by = p.ids[leaver]
        assert await p.events("one", "peer_unlinked") == [
            PeerUnlinked(peer_id=p.ids["two"], by=by, dropped=(back.message_id,))  # type: ignore[arg-type]
        ]
        assert await p.events("two", "peer_unlinked") == [
            PeerUnlinked(peer_id=p.ids["one"], by=by, dropped=(first.message_id, second.message_id))  # type: ignore[arg-type]
        ]
        assert (await refused(p.send("one", "two"))).kind == "peerNotLinked"
        assert (await refused(p.send("two", "one"))).kind == "peerNotLinked"
        # a second time, by either, is left already
        assert not (await p.leave(leaver, other)).left
        assert not (await p.leave(other, leaver)).left
        assert len(await p.events("one", "peer_unlinked")) == 1
        await p.say("two")
        await p.idle("two")
        assert "to two" not in p.models["two"].heard()


async def test_peers_42_what_was_dropped_may_be_said_again(tmp_path: Path) -> None:
    async with pair(tmp_path, leaves=True) as p:
        first = await p.send("one", "two", "hello")
        await p.leave("two", "one")
        await p.link("one", "two")
        again = await p.send("one", "two", "hello")
        assert not again.repeated
        assert again.message_id != first.message_id
        assert again.left == first.left - 1  # it was sent, all the same


async def test_peers_42_what_has_begun_no_turn_yet_is_dropped_too(tmp_path: Path) -> None:
    async with pair(tmp_path, leaves=True) as p:
        sent = await p.send("one", "two", "unread")
        two = p.ids["two"]
        # as a host does that dies before it can begin the turn
        from callboard.peers.receiving import deliver

        assert await p.host.log.transact(lambda tx: deliver(tx, two, "host_gone"))
        left = await p.leave("one", "two")
        assert left.dropped == 1
        (event,) = await p.events("two", "peer_unlinked")
        assert event.dropped == (sent.message_id,)
        await p.say("two")
        await p.idle("two")
        assert "unread" not in p.models["two"].heard()


async def test_peers_55_a_deleted_session_is_out_of_all_tables(tmp_path: Path) -> None:
    async with pair(tmp_path, leaves=True) as p:
        await p.session("three")
        await p.link("two", "three")
        await p.invite("two")
        await p.send("one", "two", "for two")
        await p.send("three", "two", "for two")
        await p.send("two", "one", "of two")
        await p.host.sessions.delete(p.ids["two"], by=CLIENT)
        assert p.rows("peer_links") == []
        assert all(row[1] != p.ids["two"] for row in p.rows("peer_tokens"))
        assert p.waiting("two") == 0
        assert (await refused(p.send("one", "two"))).kind == "peerNotLinked"
        assert await p.linked("one") == ()
        # what it had sent is not read any more, and says so
        await p.say("one")
        await p.idle("one")
        (dropped,) = await p.events("one", "peer_message_dropped")
        assert dropped.reason == "unlinked"
        assert p.rows("peer_inbox") == []
        assert "of two" not in p.models["one"].heard()


async def test_peers_a_closed_session_has_left_its_links(tmp_path: Path) -> None:
    async with pair(tmp_path, leaves=True) as p:
        await p.send("one", "two", "unread")
        await p.host.sessions.close(p.ids["two"], by=CLIENT)
        assert p.rows("peer_links") == []
        assert p.rows("peer_inbox") == []
        (event,) = await p.events("one", "peer_unlinked")
        assert event.by == p.ids["two"]
        assert (await refused(p.invite("two"))).kind == "sessionClosed"
        assert (await refused(p.send("one", "two"))).kind == "peerNotLinked"


async def test_peers_a_consent_of_one_side_alone_is_shown_as_such(tmp_path: Path) -> None:
    async with pair(tmp_path, leaves=True) as p:
        await p.host.log.transact(
            lambda tx: tx.execute("DELETE FROM peer_links WHERE session_id = ?", p.ids["one"])
        )
        assert [each.one_way for each in await p.linked("one")] == [True]
        assert [each.one_way for each in await p.linked("two")] == [True]
        assert (await refused(p.send("one", "two"))).kind == "peerNotLinked"
        await p.send("two", "one")
        await p.link("one", "two")  # which mends it
        assert [each.one_way for each in await p.linked("one")] == [False]
        await p.host.log.transact(
            lambda tx: tx.execute("DELETE FROM peer_links WHERE session_id = ?", p.ids["one"])
        )
        assert (await p.leave("one", "two")).left
        assert p.rows("peer_links") == []


async def test_peers_the_list_tells_what_was_not_read(tmp_path: Path) -> None:
    async with pair(tmp_path, leaves=True) as p:
        await p.send("one", "two", "first")
        await p.send("one", "two", "second")
        await p.host.sessions.update(
            p.ids["two"], by=CLIENT, title="renamed", pinned=False, metadata=None, mode="work", model=None
        )  # fmt: skip
        (seen,) = await p.linked("one")
        assert (seen.title, seen.waiting) == ("renamed", 2)
        (seen,) = await p.linked("two")
        assert seen.waiting == 0


async def test_peers_an_archived_or_unknown_session_is_refused(tmp_path: Path) -> None:
    async with links(tmp_path, leaves=True) as p:
        await _two(p)
        await p.host.sessions.set_archived(p.ids["one"], archived=True, by=CLIENT)
        token = (await p.invite("two")).token
        assert (await refused(p.invite("one"))).kind == "sessionArchived"
        assert (await refused(p.accept("one", token))).kind == "sessionArchived"
        p.ids["none"] = "ses_none"
        for work in (
            p.invite("none"),
            p.accept("none", token),
            p.linked("none"),
            p.leave("none", "two"),
        ):
            assert (await refused(work)).kind == "sessionNotFound"
        await p.host.sessions.set_archived(p.ids["one"], archived=False, by=CLIENT)
        await p.accept("one", token)
