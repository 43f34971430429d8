"""``peer/*`` over the wire: what a person does to link sessions, and what is refused."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.checked import CheckedServer
from harness.process import RpcError, scenario, types

SCENE = """
default:
  - say: "Heard."
"""
ON = {"CALLBOARD_FEATURES": "peers"}
Start = Callable[..., CheckedServer]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts servers on a store of the test's own, with links switched on."""
    model = scenario(tmp_path, SCENE)
    (tmp_path / "work").mkdir()
    servers: list[CheckedServer] = []

    def start(**more: Any) -> CheckedServer:
        given = {"approvals": False, "environ": ON, **more}
        servers.append(CheckedServer(tmp_path, model=model, **given))
        return servers[-1]

    yield start
    for server in servers:
        server.__exit__()


def _linked(server: CheckedServer) -> tuple[str, str]:
    work = server.folder / "work"
    one, two = server.create(work, title="one"), server.create(work, title="two")
    token = server.call("peer/invite", sessionId=one)["token"]
    server.call("peer/accept", sessionId=two, token=token)
    return one, two


def _store(folder: Path, *arguments: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "callboard", "store", *arguments],
        env={
            **os.environ,
            "HOME": str(folder / "home"),
            "CALLBOARD_STORE": str(folder / "store.db"),
            "CALLBOARD_CONFIG_DIR": str(folder / "home" / "config"),
        },
        check=True,
        capture_output=True,
    )


def _refused(server: CheckedServer, method: str, **params: Any) -> RpcError:
    with pytest.raises(RpcError) as caught:
        server.call(method, **params)
    return caught.value


def test_peers_two_sessions_are_linked_write_to_each_other_and_part(start: Start) -> None:
    server = start()
    one, two = _linked(server)
    (peer,) = server.call("peer/list", sessionId=one)["peers"]
    assert (peer["sessionId"], peer["title"], peer["oneWay"]) == (two, "two", False)
    sent = server.call("peer/send", sessionId=one, to=two, text="hello")
    assert (sent["repeated"], sent["left"]) == (False, 49)
    again = server.call("peer/send", sessionId=one, to=two, text="hello")
    assert (again["repeated"], again["messageId"], again["left"]) == (True, sent["messageId"], 49)
    server.call("event/subscribe", scope={"kind": "session", "id": two}, **{"from": "start"})
    server.told(lambda e: e["type"] == "turn_finished")  # it was idle and never ran (46)
    events = server.events(two)
    (message,) = [
        e for e in events if e["type"] == "message" and "peer" in str(e["data"]["author"])
    ]
    assert message["data"]["messageId"] == sent["messageId"]
    assert message["data"]["author"] == {"kind": "peer", "name": "one", "id": one}
    assert message["actor"]["kind"] == "peer"
    assert "<external-context" in message["data"]["content"][0]["text"]
    (turn,) = server.call("session/turns", sessionId=two)["data"]
    assert (turn["trigger"]["kind"], turn["state"]) == ("peer", "completed")
    left = server.call("peer/leave", sessionId=two, peerId=one)
    assert (left["left"], left["dropped"]) == (True, 0)
    assert server.call("peer/list", sessionId=one)["peers"] == []
    assert server.call("peer/leave", sessionId=one, peerId=two)["left"] is False
    assert types(server.events(one)) == [
        "session_created", "peer_linked", "peer_message_sent", "peer_unlinked",
    ]  # fmt: skip


def test_peers_each_refusal_names_the_thing_and_the_way_out(start: Start) -> None:
    server = start()
    one, two = _linked(server)
    stranger = server.create(server.folder / "work")
    for to in ("two", stranger, "ses_none", ""):
        error = _refused(server, "peer/send", sessionId=one, to=to, text="x")
        assert error.kind == "peerNotLinked"
        assert "peer/list" in error.error["message"]
    assert _refused(server, "peer/send", sessionId=one, to=one, text="x").kind == "peerNotLinked"
    blank = _refused(server, "peer/send", sessionId=one, to=two, text=" ")
    assert blank.error["data"]["errors"][0]["path"] == "$.text"
    long = _refused(server, "peer/send", sessionId=one, to=two, text="é" * 16_001)
    assert long.kind == "messageTooLong"
    assert (long.error["data"]["bytes"], long.error["data"]["limit"]) == (32_002, 16_000)
    token = server.call("peer/invite", sessionId=one)["token"]
    assert _refused(server, "peer/accept", sessionId=one, token=token).kind == "tokenInvalid"
    made_up = _refused(server, "peer/accept", sessionId=two, token="no such token")
    assert made_up.kind == "tokenInvalid"
    assert "no such token" not in made_up.error["message"]
    for method, params in (
        ("peer/invite", {}),
        ("peer/accept", {"token": token}),
        ("peer/send", {"to": two, "text": "x"}),
        ("peer/list", {}),
        ("peer/leave", {"peerId": two}),
    ):
        assert _refused(server, method, sessionId="ses_none", **params).kind == "sessionNotFound"
    child = server.call("agent/spawn", parentId=one, name="child", message="work")["agent"]
    for method, params in (
        ("peer/invite", {}),
        ("peer/list", {}),
        ("peer/accept", {"token": token}),
    ):
        error = _refused(server, method, sessionId=child["agentId"], **params)
        assert error.kind == "rootOnly"
    server.call("session/close", sessionId=two)
    assert _refused(server, "peer/invite", sessionId=two).kind == "sessionClosed"
    assert _refused(server, "peer/send", sessionId=one, to=two, text="x").kind == "peerNotLinked"


def test_peers_switched_off_every_method_says_so_and_nothing_is_touched(start: Start) -> None:
    server = start()
    one, two = _linked(server)
    work = server.folder / "work"
    own = server.hello["capabilities"]["experimental"]["callboard"]
    assert own["features"]["peers"] is True
    with server:
        pass
    off = start(environ={})
    own = off.hello["capabilities"]["experimental"]["callboard"]
    assert own["features"]["peers"] is False
    for method, params in (
        ("peer/invite", {}),
        ("peer/accept", {"token": "x"}),
        ("peer/send", {"to": two, "text": "x"}),
        ("peer/list", {}),
        ("peer/leave", {"peerId": two}),
    ):
        error = _refused(off, method, sessionId=one, **params)
        assert error.kind == "featureDisabled"
        assert "CALLBOARD_FEATURES=peers" in error.error["message"]
    off.create(work)
    with off:
        pass
    on = start()
    assert len(on.call("peer/list", sessionId=one)["peers"]) == 1


def test_peers_52_a_send_that_is_retried_with_its_key_after_a_restart_is_one_message(
    start: Start,
) -> None:
    server = start(client_id="c")
    one, two = _linked(server)
    params = {"sessionId": one, "to": two, "text": "once", "idempotencyKey": "k"}
    first = server.call("peer/send", **params)
    server.kill()
    again = start(client_id="c").call("peer/send", **params)
    assert (again["messageId"], again["repeated"]) == (first["messageId"], False)


def test_peers_a_restored_store_has_links_and_tokens_as_they_were_when_it_was_backed_up(
    start: Start, tmp_path: Path
) -> None:
    server = start()
    one, two = _linked(server)
    before = server.call("peer/invite", sessionId=one)["token"]
    _store(tmp_path, "backup", str(tmp_path / "b.db"))
    three = server.create(tmp_path / "work")
    since = server.call("peer/invite", sessionId=two)["token"]
    server.call("peer/accept", sessionId=three, token=before)
    server.call("peer/leave", sessionId=one, peerId=two)
    with server:
        pass
    _store(tmp_path, "restore", str(tmp_path / "b.db"))
    again = start()
    (peer,) = again.call("peer/list", sessionId=one)["peers"]
    assert (peer["sessionId"], peer["oneWay"]) == (two, False)
    assert types(again.events(one)).count("peer_unlinked") == 0
    other = again.create(tmp_path / "work")
    refused = _refused(again, "peer/accept", sessionId=other, token=since)
    assert refused.kind == "tokenInvalid"
    again.call("peer/accept", sessionId=other, token=before)  # nobody in this store has used it
    assert _refused(again, "peer/accept", sessionId=two, token=before).kind == "tokenInvalid"
    assert again.call("peer/send", sessionId=one, to=two, text="hello")["repeated"] is False
    again.wait(two)


@pytest.mark.parametrize("way", ["get", "subscribe", "tree", "prompt", "list", "fork"])
def test_peers_46_however_a_session_is_opened_its_messages_wake_it(start: Start, way: str) -> None:
    """The session is made and linked by a server that goes, and the sender's server does not open it."""
    first = start()
    one, two = _linked(first)
    if way == "fork":
        first.prompt(two, "hello")
        first.wait(two)
    with first:
        pass
    sender, opener = start(), start()
    if way == "fork":  # a fork is opened by being made, too: it is linked anew
        made = opener.call("session/fork", sessionId=two)
        two = made["session"]["sessionId"]
        token = sender.call("peer/invite", sessionId=one)["token"]
        opener.call("peer/accept", sessionId=two, token=token)
    sender.call("peer/send", sessionId=one, to=two, text="wake up")
    match way:
        case "get":
            opener.call("session/get", sessionId=two)
        case "subscribe":
            scope = {"kind": "session", "id": two}
            opener.call("event/subscribe", scope=scope, **{"from": "now"})
        case "tree":
            scope = {"kind": "tree", "id": two}
            opener.call("event/subscribe", scope=scope, **{"from": "now"})
        case "list":
            opener.call("peer/list", sessionId=two)
        case "prompt":
            opener.prompt(two, "hello")
        case _:
            pass
    scope = {"kind": "session", "id": two}
    sender.call("event/subscribe", scope={"kind": "all"}, **{"from": "start"})
    message = sender.told(
        lambda e: e["sessionId"] == two and e["type"] == "message" and e["actor"]["kind"] == "peer"
    )
    assert "wake up" in message["data"]["content"][0]["text"]
    sender.told(
        lambda e: (
            e["sessionId"] == two and e["type"] == "turn_finished" and e["seq"] > message["seq"]
        )
    )
