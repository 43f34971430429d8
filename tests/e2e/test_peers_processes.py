"""Links between sessions of several real servers on one store (interrupts-and-peers 38, 41, 42, 44-46, 49-51)."""

import sqlite3
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from harness.process import Gone, RpcError, ServerProcess, scenario

SCENE = """
rules:
  - when: {last_user: {contains: "hang about"}}
    answer: [{say: "Working"}, {hang: true}]
default:
  - say: "Heard."
"""
ON = {"CALLBOARD_FEATURES": "peers"}
MANY = {**ON, "CALLBOARD_PEERS_HOURLY": "5000", "CALLBOARD_PEERS_UNDELIVERED": "5000"}
BREAKING = (str(Path(__file__).with_name("breaking_poller.py")), "serve")
_ENDED = ("completed", "failed", "cancelled", "interrupted", "timed_out")


@contextmanager
def _servers(folder: Path, count: int, **more: Any) -> Generator[Sequence[ServerProcess]]:
    model = scenario(folder, SCENE)
    (folder / "work").mkdir(exist_ok=True)
    given: dict[str, Any] = {"environ": ON, **more}
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                ServerProcess(folder, model=model, approvals=False, client_id=f"c{n}", **given)
            )
            for n in range(count)
        ]


def _together(
    servers: Sequence[ServerProcess], ask: Callable[[ServerProcess, int], int]
) -> list[Any]:
    """Asks all of them before any answer is read; results, or kinds of errors."""
    asked = [(server, ask(server, n)) for n, server in enumerate(servers)]
    told: list[Any] = []
    for server, request_id in asked:
        try:
            told.append(server.result(request_id))
        except RpcError as error:
            told.append(error.kind)
    return told


def _link(one: ServerProcess, first: str, two: ServerProcess, second: str) -> None:
    token = one.call("peer/invite", sessionId=first)["token"]
    two.call("peer/accept", sessionId=second, token=token)


def _send(server: ServerProcess, one: str, two: str, text: str) -> str:
    return server.call("peer/send", sessionId=one, to=two, text=text)["messageId"]


def _answers(server: ServerProcess, request_ids: Iterable[int]) -> dict[int, Any]:
    """Results, in whatever order they come."""
    left, told = set(request_ids), dict[int, Any]()
    while left:
        answer = server.until(lambda m: m.get("id") in left and "method" not in m)
        left.discard(answer["id"])
        told[answer["id"]] = answer["result"]
    return told


def _send_many(server: ServerProcess, one: str, two: str, count: int) -> list[str]:
    """``message 0`` and so on, some of them at a time; their ids in that order."""
    ids: dict[int, str] = {}
    for begin in range(0, count, 50):
        asked = {
            server.request("peer/send", sessionId=one, to=two, text=f"message {n}"): n
            for n in range(begin, min(begin + 50, count))
        }
        for request_id, told in _answers(server, asked).items():
            ids[asked[request_id]] = told["messageId"]
    return [ids[n] for n in range(count)]


def _follow(server: ServerProcess, *types: str) -> None:
    """Hears of events in every session, without opening any."""
    more = {"types": list(types)} if types else {}
    server.call("event/subscribe", scope={"kind": "all"}, **{"from": "start", **more})


def _received(server: ServerProcess, session_id: str) -> list[dict[str, Any]]:
    return [
        e for e in server.events(session_id)
        if e["type"] == "message" and e["actor"]["kind"] == "peer"
    ]  # fmt: skip


def _rows(folder: Path, sql: str, *params: Any) -> list[Any]:
    connection = sqlite3.connect(folder / "store.db", timeout=60)
    try:
        with connection:
            return connection.execute(sql, params).fetchall()
    finally:
        connection.close()


def test_peers_38_of_twenty_processes_that_accept_one_token_one_does(tmp_path: Path) -> None:
    with _servers(tmp_path, 20) as servers:
        work = tmp_path / "work"
        inviter = servers[0].create(work)
        guests = [server.create(work) for server in servers]
        token = servers[0].call("peer/invite", sessionId=inviter)["token"]
        told = _together(
            servers, lambda s, n: s.request("peer/accept", sessionId=guests[n], token=token)
        )
        won = [n for n, each in enumerate(told) if not isinstance(each, str)]
        assert len(won) == 1
        assert {each for each in told if isinstance(each, str)} == {"tokenInvalid"}
        (peer,) = servers[-1].call("peer/list", sessionId=inviter)["peers"]
        assert peer["sessionId"] == guests[won[0]]
        assert peer["oneWay"] is False
        assert len(_rows(tmp_path, "SELECT * FROM peer_links")) == 2


@pytest.mark.parametrize("point", ["deciding", "committed", "told"])
def test_peers_41_who_dies_as_it_accepts_has_made_both_consents_or_none(
    tmp_path: Path, point: str
) -> None:
    dying = {**ON, "CALLBOARD_FAULT": f"peers.accept.{point}"}
    with _servers(tmp_path, 1) as (one,), _servers(tmp_path, 1, environ=dying) as (two,):
        work = tmp_path / "work"
        first, second = one.create(work), two.create(work)
        token = one.call("peer/invite", sessionId=first)["token"]
        accept = {"sessionId": second, "token": token, "idempotencyKey": "once"}
        with pytest.raises(Gone):
            two.call("peer/accept", **accept)
        links = {(first, second), (second, first)}
        rows = _rows(tmp_path, "SELECT session_id, peer_id FROM peer_links")
        used = _rows(tmp_path, "SELECT accepted_by FROM peer_tokens")
        if point == "deciding":
            assert (rows, used) == ([], [(None,)])
        else:
            assert (set(rows), used) == (links, [(second,)])
        # whoever asks again by its key is told what it would have been told
        with _servers(tmp_path, 1) as (three,):
            assert three.call("peer/accept", **accept)["peer"]["sessionId"] == first
        assert set(_rows(tmp_path, "SELECT session_id, peer_id FROM peer_links")) == links
        for session_id in (first, second):
            told = [e["type"] for e in one.events(session_id)]
            assert told.count("peer_linked") == 1


@pytest.mark.parametrize("count", [2, 8])
def test_peers_42_who_leaves_is_left_in_every_process(tmp_path: Path, count: int) -> None:
    with _servers(tmp_path, count, environ={**ON, "CALLBOARD_PEERS_POLL_MS": "250"}) as servers:
        one, *others = servers
        work = tmp_path / "work"
        hub = one.create(work)
        ends = [server.create(work) for server in others]
        for server, end in zip(others, ends, strict=True):
            _link(one, hub, server, end)
        # the hub is busy, so what they write waits
        one.prompt(hub, "hang about")
        one.call("event/subscribe", scope={"kind": "session", "id": hub}, **{"from": "start"})
        one.told(lambda e: e["type"] == "ack")
        for n, (server, end) in enumerate(zip(others, ends, strict=True)):
            _send(server, end, hub, f"unread {n}")
        for end in ends:
            left = one.call("peer/leave", sessionId=hub, peerId=end)
            assert (left["left"], left["dropped"]) == (True, 1)
        told = _together(
            others, lambda s, n: s.request("peer/send", sessionId=ends[n], to=hub, text="more")
        )
        assert set(told) == {"peerNotLinked"}
        one.call("session/cancel", sessionId=hub)
        one.wait(hub)
        one.prompt(hub, "go on")
        one.wait(hub)
        assert "unread" not in str([e for e in one.events(hub) if e["type"] == "message"])
        assert _rows(tmp_path, "SELECT * FROM peer_inbox") == []


@pytest.mark.parametrize("count", [2, 8])
def test_peers_45_of_processes_that_all_have_it_open_each_message_is_delivered_by_one(
    tmp_path: Path, count: int
) -> None:
    with _servers(tmp_path, count + 1, environ=MANY) as (maker, *openers):
        sender = openers[0]
        work = tmp_path / "work"
        one, two = sender.create(work), maker.create(work)
        _link(sender, one, maker, two)
        maker.close()  # nobody has it open now
        ids = _send_many(sender, one, two, 1_000)
        assert len(_rows(tmp_path, "SELECT * FROM peer_inbox")) == 1_000
        _follow(sender, "turn_finished")
        _together(openers, lambda s, n: s.request("session/get", sessionId=two))
        sender.told(lambda e: e["sessionId"] == two)
        sender.wait(two)
        received = _received(sender, two)
        assert sorted(e["data"]["messageId"] for e in received) == sorted(ids)
        assert _rows(tmp_path, "SELECT * FROM peer_inbox") == []
        admitted = [
            seq for e in sender.events(two) if e["type"] == "ack" for seq in e["data"]["admits"]
        ]
        assert sorted(admitted) == [e["seq"] for e in received]
        assert len(sender.call("session/turns", sessionId=two)["data"]) == 1


@pytest.mark.parametrize("count", [2, 8])
def test_peers_45_while_they_are_sent_too(tmp_path: Path, count: int) -> None:
    """Every process sends to a session that every process has open."""
    with _servers(tmp_path, count, environ=MANY) as servers:
        work = tmp_path / "work"
        two = servers[0].create(work)
        ones = [server.create(work) for server in servers]
        for server, one in zip(servers, ones, strict=True):
            _link(servers[0], two, server, one)
            server.call("session/get", sessionId=two)
        asked = {
            (n, server.request("peer/send", sessionId=one, to=two, text=f"{m}")): server
            for m in range(30)
            for n, (server, one) in enumerate(zip(servers, ones, strict=True))
        }
        sent = [
            told["messageId"]
            for n, server in enumerate(servers)
            for told in _answers(server, [i for number, i in asked if number == n]).values()
        ]
        last = servers[0]
        _follow(last)
        seen: set[str] = set()

        def arrived(event: dict[str, Any]) -> bool:
            if event["sessionId"] == two and event["type"] == "message":
                seen.add(event["data"]["messageId"])
            return seen >= set(sent)

        last.told(arrived)
        last.wait(two)
        received = [e["data"]["messageId"] for e in _received(last, two)]
        assert sorted(received) == sorted(sent)
        for one in ones:
            own = [e["data"]["messageId"] for e in _received(last, two) if e["actor"]["id"] == one]
            queued = [
                e["data"]["messageId"] for e in last.events(one) if e["type"] == "peer_message_sent"
            ]
            assert own == queued


def test_peers_46_a_session_that_was_opened_and_never_ran_is_woken_within_two_polls(
    tmp_path: Path,
) -> None:
    with _servers(tmp_path, 2) as (one, two):
        work = tmp_path / "work"
        first, second = one.create(work), two.create(work)
        _link(one, first, two, second)
        _send(one, first, second, "wake up")
        _follow(one)
        started = one.told(lambda e: e["sessionId"] == second and e["type"] == "turn_started")
        (sent,) = [e for e in one.events(first) if e["type"] == "peer_message_sent"]
        assert started["data"]["trigger"]["kind"] == "peer"
        (owner,) = {e["data"]["hostId"] for e in two.events(second) if e["type"] == "turn_started"}
        assert owner == two.call("server/info")["hostId"]
        took = datetime.fromisoformat(started["at"]) - datetime.fromisoformat(sent["at"])
        assert took.total_seconds() < 2 * 2.0


def test_peers_46_the_first_message_of_a_new_link_is_heard_of_without_a_poll(
    tmp_path: Path,
) -> None:
    never = {**ON, "CALLBOARD_PEERS_POLL_MS": "3600000"}
    with _servers(tmp_path, 2, environ=never) as (one, two):
        work = tmp_path / "work"
        first, second = one.create(work), two.create(work)
        _link(one, first, two, second)
        _send(one, first, second, "hello")
        _follow(two)
        two.told(lambda e: e["sessionId"] == second and e["type"] == "turn_finished")
        assert "hello" in str(_received(two, second))


@pytest.mark.parametrize("count", [2, 8])
def test_peers_49_a_session_that_works_long_delays_no_other_of_its_process(
    tmp_path: Path, count: int
) -> None:
    with _servers(tmp_path, count) as servers:
        one, *others = servers
        work = tmp_path / "work"
        first = one.create(work)
        busy = [server.create(work) for server in others]
        free = [server.create(work) for server in others]
        for server, long, short in zip(others, busy, free, strict=True):
            _link(one, first, server, long)
            _link(one, first, server, short)
        _follow(one)
        for long in busy:
            _send(one, first, long, "hang about")
        for long in busy:
            one.told(lambda e, s=long: e["sessionId"] == s and e["type"] == "ack")
        for short in free:
            _send(one, first, short, "be quick")
        for short in free:
            one.told(lambda e, s=short: e["sessionId"] == s and e["type"] == "turn_finished")
        for long in busy:
            assert "turn_finished" not in {e["type"] for e in one.events(long)}
            one.call("session/cancel", sessionId=long)


def test_peers_50_a_poller_survives_ticks_that_fail(tmp_path: Path) -> None:
    environ = {**ON, "CALLBOARD_PEERS_POLL_MS": "250"}
    with _servers(tmp_path, 2, environ=environ) as (one, two):
        work = tmp_path / "work"
        first, second = one.create(work), two.create(work)
        _link(one, first, two, second)
        _rows(tmp_path, "ALTER TABLE peer_links RENAME TO peer_links_away")
        while "linked sessions" not in two.stderr():
            two.call("server/ping")
        _rows(tmp_path, "ALTER TABLE peer_links_away RENAME TO peer_links")
        _send(one, first, second, "still there?")
        _follow(one)
        one.told(lambda e: e["sessionId"] == second and e["type"] == "turn_finished")
        assert two.process.poll() is None


def test_peers_50_a_poller_that_is_dead_is_begun_anew(tmp_path: Path) -> None:
    with _servers(tmp_path, 1) as (one,), _servers(tmp_path, 1, program=BREAKING) as (two,):
        work = tmp_path / "work"
        first, second = one.create(work), two.create(work)
        _link(one, first, two, second)
        _send(one, first, second, "still there?")
        _follow(one)
        one.told(lambda e: e["sessionId"] == second and e["type"] == "turn_finished")
        assert "poller 1 died\n" in two.stderr()
        assert "poller 2 died\n" in two.stderr()


@pytest.mark.parametrize("count", [2, 8])
@pytest.mark.parametrize("bound", ["undelivered", "hourly"])
def test_peers_51_of_processes_that_send_at_once_with_room_for_one_one_does(
    tmp_path: Path, count: int, bound: str
) -> None:
    environ = {**ON, f"CALLBOARD_PEERS_{bound.upper()}": "3"}
    with _servers(tmp_path, count, environ=environ) as servers:
        work = tmp_path / "work"
        two = servers[0].create(work)
        ones = [server.create(work) for server in servers]
        for server, one in zip(servers, ones, strict=True):
            _link(servers[0], two, server, one)
        servers[0].prompt(two, "hang about")  # so that nothing is read meanwhile
        _follow(servers[0])
        servers[0].told(lambda e: e["sessionId"] == two and e["type"] == "ack")
        if bound == "hourly":  # one sender, whom every process serves
            ones = ones[:1] * count
        for n in range(2):
            _send(servers[0], ones[0], two, f"before {n}")
        told = _together(
            servers, lambda s, n: s.request("peer/send", sessionId=ones[n], to=two, text=f"{n}")
        )
        assert sum(not isinstance(each, str) for each in told) == 1
        assert {each for each in told if isinstance(each, str)} == {"peerLimit"}
        assert len(_rows(tmp_path, "SELECT * FROM peer_inbox")) == 3
        assert len(_rows(tmp_path, "SELECT * FROM peer_sent")) == 3
        servers[0].call("session/cancel", sessionId=two)


def test_peers_44_a_server_that_dies_with_messages_on_the_way_loses_none(tmp_path: Path) -> None:
    with _servers(tmp_path, 2, environ=MANY) as (one, two):
        work = tmp_path / "work"
        first, second = one.create(work), two.create(work)
        _link(one, first, two, second)
        _send_many(one, first, second, 50)
        two.kill()
        _send_many(one, first, second, 200)
        with _servers(tmp_path, 1, environ=MANY) as (three,):
            three.call("session/get", sessionId=second)
            texts = {f"message {n}" for n in range(200)}

            def arrived(event: dict[str, Any]) -> bool:
                if event["sessionId"] == second and event["type"] == "message":
                    # Below a line that says who writes; what the agent itself says has none.
                    texts.difference_update(event["data"]["content"][0]["text"].split("\n")[1:])
                return not texts

            _follow(three)
            three.told(arrived)
            three.wait(second)
            received = [e["data"]["messageId"] for e in _received(three, second)]
            assert len(received) == len(set(received)) == 200
            turns = [e["data"] for e in three.events(second) if e["type"] == "turn_finished"]
            assert {each["outcome"] for each in turns} <= set(_ENDED)
            assert turns[-1]["outcome"] == "completed"
