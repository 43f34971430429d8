"""What a child asks, and who is asked: over the wire, for a root, its child and that one's child."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from callboard.log.transaction import Transaction
from callboard_rpc.common import SessionId
from callboard_rpc.events import SessionCreated
from harness.inside import CLIENT, host_in, new_session
from harness.process import ServerProcess, scenario

SCENARIO = """
rules:
  - {when: {last_tool: {contains: ""}}, answer: [{say: done}]}
default:
  - call: {tool: run_command, arguments: {command: "touch ran"}}
"""


@frozen(kw_only=True)
class Family:
    """Sessions of one store. `stranger` is a root by itself."""

    root: str
    child: str
    grandchild: str
    stranger: str

    def of(self, name: str) -> str:
        return getattr(self, name)


def _family(folder: Path, work: Path) -> Family:
    """Made by the log's own events, as a parent's host makes them."""

    async def made() -> Family:
        async with host_in(folder) as host:
            root = await new_session(host, work)

            def below(tx: Transaction, parent: str, depth: int) -> str:
                session_id = tx.new_id("ses")
                tx.begin_session(session_id, root)
                created = SessionCreated(
                    session_id=SessionId(session_id),
                    root_id=SessionId(root),
                    parent_id=SessionId(parent),
                    depth=depth,
                    cwd=str(work),
                    profile="default",
                    mode="work",
                )
                tx.append(session_id, created, actor=CLIENT)
                return session_id

            child = await host.log.transact(lambda tx: below(tx, root, 1))
            grandchild = await host.log.transact(lambda tx: below(tx, child, 2))
            stranger = await new_session(host, work)
            return Family(root=root, child=child, grandchild=grandchild, stranger=stranger)

    return asyncio.run(made())


@pytest.fixture
def family(tmp_path: Path) -> Family:
    (tmp_path / "work").mkdir()
    return _family(tmp_path, tmp_path / "work")


def _subscribe(server: ServerProcess, kind: str, session_id: str | None) -> str:
    scope = {"kind": kind, **({} if session_id is None else {"id": session_id})}
    return server.call("event/subscribe", scope=scope, **{"from": "now"})["subscriptionId"]


def _asked(server: ServerProcess, number: int = 0) -> tuple[int, dict[str, Any]]:
    """A question that the client is asked, the first or a later one: its request id, and the approval."""
    while len(asked := [m for m in server.seen if m.get("method") == "approval/request"]) <= number:
        server.receive()
    return asked[number]["id"], asked[number]["params"]["approval"]


def _answer(server: ServerProcess, request_id: int) -> None:
    server.send({"jsonrpc": "2.0", "id": request_id, "result": {"optionId": "allow_once"}})


SCOPES: list[tuple[str, str | None, str, bool]] = [
    # kind, the session that it names, who asks, whether the client is asked
    ("all", None, "child", True),
    ("catalog", None, "child", True),
    ("approvals", None, "child", True),
    ("tree", "root", "child", True),
    ("tree", "stranger", "child", False),
    ("session", "root", "child", True),
    ("session", "root", "grandchild", True),
    ("session", "child", "child", True),
    ("session", "grandchild", "child", False),
    ("session", "stranger", "child", False),
    ("session", "child", "root", False),
]


@pytest.mark.parametrize(("kind", "named", "asking", "offered"), SCOPES)
def test_design_5_interrupts_56_a_child_s_question_reaches_the_clients_of_its_root(
    tmp_path: Path, family: Family, kind: str, named: str | None, asking: str, offered: bool
) -> None:
    session_id = family.of(asking)
    with ServerProcess(tmp_path, model=scenario(tmp_path, SCENARIO)) as server:
        _subscribe(server, kind, None if named is None else family.of(named))
        server.prompt(session_id, "go")
        waited = server.wait(session_id, "attention")
        (listed,) = server.call("approval/list", state="pending", sessionId=family.root)["data"]
        assert waited["approvals"] == [listed]
        if not offered:
            # what is asked later is asked of this client in its order: nothing came before it
            _subscribe(server, "session", family.stranger)
            server.prompt(family.stranger, "go")
            assert _asked(server)[1]["sessionId"] == family.stranger
            return
        request_id, approval = _asked(server)
        assert approval == listed
        assert (approval["sessionId"], approval["rootId"]) == (session_id, family.root)
        _answer(server, request_id)
        assert server.wait(session_id)["turn"]["state"] == "completed"
        assert (tmp_path / "work" / "ran").exists()


@pytest.mark.parametrize("kind", ["session", "tree"])
def test_interrupts_59_a_question_that_waits_is_offered_to_who_follows_the_root_later(
    tmp_path: Path, family: Family, kind: str
) -> None:
    with ServerProcess(tmp_path, model=scenario(tmp_path, SCENARIO)) as server:
        server.prompt(family.child, "go")
        (approval,) = server.wait(family.child, "attention")["approvals"]
        _subscribe(server, kind, family.root)
        assert _asked(server)[1] == approval


@pytest.mark.parametrize(
    ("asking", "steps"),
    [
        ("root", ["root"]),
        ("child", ["root", "child"]),
        ("grandchild", ["root", "child", "grandchild"]),
    ],
)
def test_interrupts_56_the_path_names_every_agent_from_the_root_down_to_the_one_that_asks(
    tmp_path: Path, family: Family, asking: str, steps: list[str]
) -> None:
    with ServerProcess(tmp_path, model=scenario(tmp_path, SCENARIO)) as server:
        server.prompt(family.of(asking), "go")
        (approval,) = server.wait(family.of(asking), "attention")["approvals"]
        assert approval["path"] == [
            {"sessionId": family.of(step), "name": "default"} for step in steps
        ]


def test_interrupts_56_who_follows_a_root_alone_gets_the_root_s_events_alone(
    tmp_path: Path, family: Family
) -> None:
    """Being asked for a child is no subscription to it: neither events nor text of it come."""
    with ServerProcess(tmp_path, model=scenario(tmp_path, SCENARIO)) as server:
        subscription = _subscribe(server, "session", family.root)
        server.prompt(family.child, "go")
        request_id, _ = _asked(server)
        _answer(server, request_id)
        server.wait(family.child)
        server.prompt(family.root, "go")
        request_id, _ = _asked(server, 1)
        _answer(server, request_id)
        server.until_event(lambda e: e["type"] == "turn_finished")
        frames = [m for m in server.seen if m.get("method") in ("event/batch", "event/delta")]
        assert {frame["params"]["subscriptionId"] for frame in frames} == {subscription}
        events = [e for frame in frames for e in frame["params"].get("events", ())]
        deltas = [frame["params"] for frame in frames if frame["method"] == "event/delta"]
        assert {each["sessionId"] for each in (*events, *deltas)} == {family.root}
        assert "done" in "".join(delta["text"] for delta in deltas)
