"""What may be sent, to whom, and how much of it (interrupts-and-peers 43, 51, 52)."""

import asyncio
from pathlib import Path

import pytest
from peers_kit import Clock, links, pair, refused

from callboard.peers.capsule import MAX_CHARS
from callboard.peers.frame import said_in
from callboard.peers.sending import Sent
from callboard_rpc.events import PeerMessageSent
from harness.inside import CLIENT

pytestmark = pytest.mark.anyio

FEW = {"CALLBOARD_PEERS_HOURLY": "5", "CALLBOARD_PEERS_UNDELIVERED": "3"}


async def test_peers_a_message_is_a_row_and_an_event_of_its_sender(tmp_path: Path) -> None:
    async with pair(tmp_path, leaves=True) as p:
        sent = await p.send("one", "two", "  hello\n")
        assert (sent.repeated, sent.left) == (False, 49)
        assert await p.events("one", "peer_message_sent") == [
            PeerMessageSent(message_id=sent.message_id, to=p.ids["two"], text="hello")  # type: ignore[arg-type]
        ]
        assert p.waiting("two") == 1
        # nothing of it is in the recipient's log until it is taken in
        assert [r.type for r in await p.log("two")] == ["session_created", "peer_linked"]


async def test_peers_43_a_session_is_written_to_by_its_id_alone(tmp_path: Path) -> None:
    async with pair(tmp_path, leaves=True) as p:
        await p.session("three")
        side = p.side("one")
        short = p.ids["two"][:-1]
        errors = [
            await refused(p.peers.send(side, to, "hello"))
            for to in ("two", short, "", "ses_none", p.ids["three"], "x" * 9_000, "\ud800\x00")
        ]
        assert {each.kind for each in errors} == {"peerNotLinked"}
        assert all("peer/list shows" in each.message for each in errors)
        assert all(len(each.message) < 500 for each in errors)
        # whether there is such a session is not told
        assert errors[3].message.replace("ses_none", "X") == errors[4].message.replace(
            p.ids["three"], "X"
        )
        own = await refused(p.send("one", "one"))
        assert own.kind == "peerNotLinked"
        assert "is this session itself" in own.message
        assert p.rows("peer_sent") == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "invalidParams"),
        (" \n\t ", "invalidParams"),
        ("x" * (MAX_CHARS + 1), "messageTooLong"),
        ("🎈" * (MAX_CHARS + 1), "messageTooLong"),
    ],
)
async def test_peers_a_message_has_1_to_16000_characters(
    tmp_path: Path, text: str, kind: str
) -> None:
    async with pair(tmp_path, leaves=True) as p:
        assert (await refused(p.send("one", "two", text))).kind == kind
        assert p.rows("peer_sent") == []
        assert p.rows("peer_inbox") == []


async def test_peers_16000_characters_of_any_kind_arrive_whole(tmp_path: Path) -> None:
    async with pair(tmp_path, leaves=True) as p:
        texts = ["x", "🎈" * MAX_CHARS, "&" * MAX_CHARS, f" {'y' * MAX_CHARS} "]
        for text in texts:
            await p.send("one", "two", text)
        await p.say("two")
        await p.idle("two")
        heard = p.models["two"].heard()
        assert "🎈" * MAX_CHARS in heard
        assert "&amp;" * MAX_CHARS in heard
        assert "y" * MAX_CHARS in heard
        assert p.waiting("two") == 0


async def test_peers_52_the_same_within_ten_minutes_is_the_first_one_and_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(stands_at="2031-05-17T09:30:00.000Z")
    monkeypatch.setattr("callboard.host.utc_now", clock)
    async with pair(tmp_path, leaves=True, environ=FEW) as p:
        await p.session("three")
        await p.link("one", "three")
        first = await p.send("one", "two")
        for ahead_s in (0, 1, 599, 600):
            clock.ahead_s = ahead_s
            again = await p.send("one", "two", " hello ")
            assert again == Sent(message_id=first.message_id, repeated=True, left=first.left)
        assert p.waiting("two") == 1
        assert not (await p.send("one", "three")).repeated  # to somebody else
        assert not (await p.send("two", "one")).repeated  # of somebody else
        assert not (await p.send("one", "two", "another")).repeated
        clock.ahead_s = 601
        later = await p.send("one", "two")
        assert (later.repeated, later.left) == (False, 1)
        assert p.waiting("two") == 3


async def test_peers_52_a_repetition_is_known_as_such_when_all_limits_are_reached(
    tmp_path: Path,
) -> None:
    async with pair(tmp_path, leaves=True, environ=FEW) as p:
        first = await p.send("one", "two", "0")
        for n in range(1, 3):
            await p.send("one", "two", str(n))
        again = await p.send("one", "two", "0")
        assert (again.message_id, again.repeated) == (first.message_id, True)
        # also of what was read meanwhile
        await p.say("two")
        await p.idle("two")
        assert (await p.send("one", "two", "0")).message_id == first.message_id
        assert p.waiting("two") == 0


async def test_peers_only_so_many_are_sent_within_an_hour_also_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(stands_at="2031-05-17T09:30:00.000Z")
    monkeypatch.setattr("callboard.host.utc_now", clock)
    few = {**FEW, "CALLBOARD_PEERS_UNDELIVERED": "1000"}
    async with pair(tmp_path, leaves=True, environ=few) as p:
        ids = p.ids
        for n in range(5):
            clock.ahead_s = n
            assert (await p.send("one", "two", str(n))).left == 4 - n
    async with links(tmp_path, leaves=True, environ=few) as p:
        p.ids.update(ids)
        clock.ahead_s = 10
        error = await refused(p.send("one", "two", "one too many"))
        assert error.kind == "peerLimit"
        assert error.retry_after_ms == 3_590_000
        assert "2031-05-17T10:30:00.000Z" in error.message
        clock.ahead_s = 3_599.999
        assert (await refused(p.send("one", "two", "one too many"))).kind == "peerLimit"
        await p.send("two", "one")  # each sender has its own hour
        clock.ahead_s = 3_600
        assert (await p.send("one", "two", "one more")).left == 0
        assert (await refused(p.send("one", "two", "one too many"))).kind == "peerLimit"
        clock.ahead_s = 8_000
        assert (await p.send("one", "two", "much later")).left == 4


async def test_peers_a_clock_that_was_far_ahead_for_a_while_silences_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(stands_at="2031-05-17T09:30:00.000Z", ahead_s=365 * 86_400)
    monkeypatch.setattr("callboard.host.utc_now", clock)
    few = {**FEW, "CALLBOARD_PEERS_UNDELIVERED": "1000"}
    async with pair(tmp_path, leaves=True, environ=few) as p:
        for n in range(5):
            await p.send("one", "two", str(n))
        clock.ahead_s -= 1
        assert (await p.send("one", "two", "4")).repeated
        assert (await refused(p.send("one", "two", "one more"))).kind == "peerLimit"
        clock.ahead_s = 0
        sent = await p.send("one", "two", "4")
        assert (sent.repeated, sent.left) == (False, 4)


async def test_peers_51_of_two_who_send_at_once_with_room_for_one_one_is_refused(
    tmp_path: Path,
) -> None:
    async with pair(tmp_path, leaves=True, environ=FEW) as p:
        for name in ("three", "four"):
            await p.session(name)
            await p.link(name, "two")
        await p.send("one", "two", "first")
        await p.send("one", "two", "second")
        told = await asyncio.gather(
            p.send("three", "two"), p.send("four", "two"), return_exceptions=True
        )
        assert sorted(type(each).__name__ for each in told) == ["CallboardError", "Sent"]
        assert p.waiting("two") == 3
        # whoever was refused has spent nothing
        assert sum(row[1] != p.ids["one"] for row in p.rows("peer_sent")) == 1
        await p.say("two")
        await p.idle("two")
        await p.send("one", "two", "third")


async def test_peers_51_the_same_text_sent_twice_at_once_is_one_message(tmp_path: Path) -> None:
    async with pair(tmp_path, leaves=True) as p:
        told = await asyncio.gather(*(p.send("one", "two") for _ in range(8)))
        assert len({each.message_id for each in told}) == 1
        assert sum(not each.repeated for each in told) == 1
        assert p.waiting("two") == 1


async def test_peers_nothing_is_sent_by_or_to_a_session_that_is_archived_or_closed(
    tmp_path: Path,
) -> None:
    async with pair(tmp_path, leaves=True) as p:
        await p.host.sessions.set_archived(p.ids["two"], archived=True, by=CLIENT)
        error = await refused(p.send("one", "two"))
        assert error.kind == "sessionArchived"
        assert p.ids["two"] in error.message
        error = await refused(p.send("two", "one"))
        assert error.kind == "sessionArchived"
        # what has waited meanwhile is not lost
        await p.host.sessions.set_archived(p.ids["two"], archived=False, by=CLIENT)
        await p.send("one", "two")
        await p.host.sessions.close(p.ids["one"], by=CLIENT)
        assert (await refused(p.send("one", "two"))).kind == "sessionClosed"


async def test_peers_a_secret_reaches_neither_the_inbox_nor_a_log(tmp_path: Path) -> None:
    secret = "sk-very-secret-key-of-somebody-0123456789"
    async with pair(tmp_path, leaves=True, environ={"OPENAI_API_KEY": secret}) as p:
        await p.send("one", "two", f"it is {secret}")
        await p.say("two")
        await p.idle("two")
        assert "it is " in p.models["two"].heard()
        assert secret not in p.models["two"].heard()
    for path in filter(Path.is_file, tmp_path.rglob("*.db*")):
        assert secret.encode() not in path.read_bytes(), path


async def test_peers_a_long_message_that_grows_as_its_secret_leaves_it_arrives(
    tmp_path: Path,
) -> None:
    secret = "k3y-Of-0thers"
    async with pair(tmp_path, leaves=True, environ={"OPENAI_API_KEY": secret}) as p:
        await p.send("one", "two", f"{secret} {'x' * (MAX_CHARS - len(secret) - 1)}")
        await p.say("two")
        await p.idle("two")
        (message,) = await p.received("two")
        body = said_in(message.content[0].text)
        assert body.startswith("[redacted:")
        assert len(body) == MAX_CHARS
        assert await p.events("two", "peer_message_dropped") == []
