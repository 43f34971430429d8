"""Rooms over the wire, with real servers: who is addressed answers, whichever server it is asked through, and what
one agent says to another is lost by no crash."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from harness.checked import CheckedServer
from harness.process import RpcError, ServerProcess, scenario

NAMES = ("alpha", "beta", "gamma")
SCENE = """
rules:
  - when: {last_user: {regex: "(?s)hang$"}}
    answer: [{say: "I begin."}, {hang: true}]
  - when: {last_user: {regex: "(?s)write it$"}, step: 0, system: "You are beta."}
    answer: [{call: {tool: write_file, arguments: {path: made.txt, content: "x"}}}]
  - when: {last_user: {regex: "(?s)ask beta$"}, system: "You are alpha."}
    answer: [{say: "What do you think, @beta?"}]
  - when: {last_user: {regex: "(?s)argue"}, system: "You are alpha."}
    answer: [{say: "We argue, @beta."}]
  - when: {last_user: {regex: "(?s)argue"}, system: "You are beta."}
    answer: [{say: "We argue, @alpha."}]
  - when: {system: "You are alpha."}
    answer: [{say: "I am alpha."}]
  - when: {system: "You are beta."}
    answer: [{say: "I am beta."}]
  - when: {system: "You are gamma."}
    answer: [{say: "I am gamma."}]
default: [{say: "Done."}]
"""
CONFIG = """
[rooms]
burst_budget = 4
[rooms.rosters.pair]
members = ["alpha", "nobody", "beta"]
host = "beta"
"""
Start = Callable[..., CheckedServer]


def agents(home: Path) -> None:
    """The agents of the person."""
    place = home / "config" / "agents"
    place.mkdir(parents=True)
    (home / "config" / "config.toml").write_text(CONFIG)
    for name in NAMES:
        (place / f"{name}.md").write_text(f"---\nname: {name}\n---\nYou are {name}.\n")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts servers on one store."""
    model = scenario(tmp_path, SCENE)
    agents(tmp_path / "home")
    servers: list[CheckedServer] = []

    def start(**more: Any) -> CheckedServer:
        servers.append(CheckedServer(tmp_path, model=model, **{"approvals": False, **more}))
        return servers[-1]

    yield start
    for server in servers:
        server.__exit__()


def of(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["type"] == kind]


def turns(server: ServerProcess, session: str) -> list[str]:
    return [e["data"]["profile"] for e in of(server.events(session), "turn_started")]


def told(server: ServerProcess, session: str, text: str, **more: Any) -> list[str]:
    before = len(turns(server, session))
    server.prompt(session, text, **more)
    server.wait(session)
    return turns(server, session)[before:]


def refused(server: ServerProcess, method: str, **params: Any) -> RpcError:
    with pytest.raises(RpcError) as error:
        server.call(method, **params)
    return error.value


def test_rooms_override_mention_host_and_first_over_the_wire(start: Start, work: Path) -> None:
    server = start()
    room = server.create(work, mode="work", members=["alpha", "beta", "gamma"], host="gamma")
    assert server.call("session/get", sessionId=room)["session"]["profile"] == "gamma"
    assert told(server, room, "@beta hello", to="alpha") == ["alpha"]
    assert told(server, room, "hello, (@Beta).") == ["beta"]
    assert told(server, room, "hello") == ["gamma"]
    assert told(server, room, "mail me@beta.org") == ["gamma"]
    posted = server.prompt(room, "@stranger hello")
    assert posted["warning"].startswith("@stranger takes no part in this session, so gamma answers")
    server.wait(room)
    assert "warning" not in server.prompt(room, "hello")
    server.wait(room)
    error = refused(
        server,
        "session/prompt",
        sessionId=room,
        to="stranger",
        content=[{"type": "text", "text": "x"}],
    )
    assert error.kind == "notAMember" and "alpha, beta, gamma" in str(error)
    first = server.create(work, members=["beta", "alpha"])
    assert told(server, first, "hello") == ["beta"]
    alone = server.create(work)
    error = refused(
        server,
        "session/prompt",
        sessionId=alone,
        to="beta",
        content=[{"type": "text", "text": "x"}],
    )
    assert error.kind == "notAMember"


def test_rooms_an_unknown_roster_and_what_else_is_no_room_makes_no_session(
    start: Start, work: Path
) -> None:
    server = start()
    error = refused(server, "session/create", cwd=str(work), roster="nope")
    assert error.kind == "invalidParams" and "there are: pair" in str(error)
    for kind, params in (
        ("profileNotFound", {"members": ["alpha", "nobody"]}),
        ("invalidParams", {"members": ["alpha", "alpha"]}),
        ("invalidParams", {"members": ["alpha"], "host": "beta"}),
        ("invalidParams", {"members": ["alpha"], "burstBudget": 1001}),
        ("invalidParams", {"members": ["alpha"], "roster": "pair"}),
    ):
        assert refused(server, "session/create", cwd=str(work), **params).kind == kind
    assert server.call("session/list")["data"] == []
    room = server.create(work, roster="pair")
    shown = server.call("session/members", sessionId=room)["room"]
    assert [m["name"] for m in shown["members"]] == ["alpha", "beta"]
    assert shown["host"] == "beta" and shown["burst"]["budget"] == 4


def test_rooms_two_that_argue_stop_at_the_budget_clients_hear_of_it_and_a_person_begins_anew(
    start: Start, work: Path
) -> None:
    server = start()
    room = server.create(work, members=["alpha", "beta"])
    server.call("event/subscribe", scope={"kind": "session", "id": room}, **{"from": "now"})
    assert told(server, room, "argue") == ["alpha", "beta"] * 2
    heard = server.told(lambda e: e["type"] == "wake_suppressed")
    assert (heard["data"]["burst"], heard["data"]["budget"], heard["data"]["name"]) == (
        4,
        4,
        "alpha",
    )
    assert server.call("session/members", sessionId=room)["room"]["burst"] == {
        "used": 4, "budget": 4, "exhausted": True,
    }  # fmt: skip
    server.call("session/update", sessionId=room, burstBudget=1)
    assert told(server, room, "argue") == ["alpha"]
    assert refused(server, "session/update", sessionId=room, burstBudget=-1).kind == "invalidParams"
    server.call("session/update", sessionId=room, burstBudget=None)
    assert told(server, room, "argue") == ["alpha", "beta"] * 2
    assert len(of(server.events(room), "wake_suppressed")) == 3


def test_rooms_a_room_is_one_room_through_every_server(start: Start, work: Path) -> None:
    one, two = start(), start()
    room = one.create(work, members=["alpha"])
    two.call("session/memberAdd", sessionId=room, name="beta", host=True)
    assert told(one, room, "hello") == ["beta"]
    assert told(two, room, "argue, @alpha") == ["alpha", "beta"] * 2
    one.call("session/memberRemove", sessionId=room, name="beta")
    assert told(two, room, "argue") == ["alpha"]
    for server in (one, two):
        room_there = server.call("session/members", sessionId=room)["room"]
        assert [m["name"] for m in room_there["members"]] == ["alpha"]


def test_rooms_prompts_wait_behind_a_run_each_for_its_own_agent_and_queue_shows_them(
    start: Start, work: Path
) -> None:
    one, two = start(), start()
    room = one.create(work, members=["alpha", "beta"])
    running = one.prompt(room, "hang")
    seqs = [two.prompt(room, f"@beta {n}")["eventSeq"] for n in range(10)]
    seqs += [one.prompt(room, f"{n}")["eventSeq"] for n in range(10)]
    assert [q["eventSeq"] for q in two.call("session/queue", sessionId=room)["data"]] == seqs
    two.call("session/cancel", sessionId=room, turnId=running["turnId"])
    one.wait(room)
    events = one.events(room)
    whose = {e["turnId"]: e["data"]["profile"] for e in of(events, "turn_started")}
    taken = {seq: whose[e["turnId"]] for e in of(events, "ack") for seq in e["data"]["admits"]}
    assert [taken[seq] for seq in seqs] == ["beta"] * 10 + ["alpha"] * 10
    # two hosts share them: each has one turn for its own, or takes along what is the other's
    assert len(whose) <= 5


def test_rooms_a_parked_turn_of_a_member_goes_on_as_that_member_after_a_kill(
    start: Start, work: Path
) -> None:
    server = start()
    room = server.create(work, mode="work", members=["alpha", "beta"])
    server.prompt(room, "@beta write it")
    (approval,) = server.wait(room, "attention")["approvals"]
    assert [step["name"] for step in approval["path"]] == ["beta"]
    server.kill()
    after = start()
    after.call("approval/answer", approvalId=approval["approvalId"], optionId="allow_once")
    after.wait(room)
    events = after.events(room)
    (said,) = [e for e in of(events, "message") if e["data"].get("final")]
    assert said["data"]["author"]["name"] == "beta"
    assert (work / "made.txt").read_text() == "x"
    assert turns(after, room) == ["beta"]


def test_rooms_what_was_cut_off_by_a_kill_is_the_member_s(start: Start, work: Path) -> None:
    server = start()
    room = server.create(work, members=["alpha", "beta"])
    server.call(
        "event/subscribe", scope={"kind": "session", "id": room}, deltas=True, **{"from": "now"}
    )
    server.prompt(room, "@beta hang")
    server.until(lambda m: m.get("method") == "event/delta")
    with closing(sqlite3.connect(f"file:{work.parent / 'store.db'}?mode=ro", uri=True)) as store:
        while not store.execute("SELECT count(*) FROM drafts").fetchone()[0]:
            pass  # the server tells of more than what is saved
    server.kill()
    after = start()
    after.wait(room)
    (cut,) = [e for e in of(after.events(room), "message") if e["data"].get("partial")]
    assert cut["data"]["author"]["name"] == "beta"
    assert told(after, room, "hello") == ["alpha"]


def test_rooms_an_imported_room_wakes_nobody_and_grants_nothing(
    tmp_path: Path, start: Start, work: Path
) -> None:
    server = start()
    room = server.create(work, members=["alpha", "beta"], host="beta", burstBudget=2)
    told(server, room, "@alpha argue")
    text = server.call("session/export", sessionId=room)["text"]
    copy = server.call("session/import", content=text, newId=True)["session"]["sessionId"]
    server.wait(copy)
    assert turns(server, copy) == turns(server, room)
    assert [e["type"] for e in server.events(copy)] == [e["type"] for e in server.events(room)]
    mine, its = (server.call("session/members", sessionId=s)["room"] for s in (room, copy))
    assert mine == its
    markdown = server.call("session/export", sessionId=room, format="markdown")["text"]
    assert "## alpha\n" in markdown and "## beta\n" in markdown
    assert "> alpha was not woken by beta: agents have said 2 messages in a row." in markdown


def test_rooms_a_turn_of_the_host_compacts_forks_and_rewinds_like_any_other(
    start: Start, work: Path
) -> None:
    server = start()
    room = server.create(work, members=["alpha", "beta"])
    told(server, room, "ask beta")
    assert turns(server, room) == ["alpha", "beta"]
    fork = server.call("session/fork", sessionId=room)["session"]
    assert fork["members"] == ["alpha", "beta"]
    assert told(server, fork["sessionId"], "@beta hello") == ["beta"]
    (_, second) = server.call("session/turns", sessionId=room)["data"]
    server.call("session/rewind", sessionId=room, beforeTurnId=second["turnId"])
    server.wait(room)
    assert server.call("session/members", sessionId=room)["room"]["burst"]["used"] == 1
    assert len(turns(server, room)) == 2, "what was woken before is not woken again"
    assert told(server, room, "@beta hello") == ["beta"]
