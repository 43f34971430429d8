"""Fork, rewind and the queue in real processes: from everywhere, once, and over kill -9."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from callboard.turns.reservation import SYSTEM
from callboard_rpc.common import MessageId, TextContent
from callboard_rpc.events import Author, Message
from harness.checked import CheckedServer
from harness.inside import host_in, idle, new_session, say
from harness.process import Gone, RpcError, ServerProcess, scenario, types

SCENE = """
rules:
  - when: {system: {contains: "You write the summary"}}
    answer: [{wait_ms: 1500}, {say: "A summary."}]
  - when: {last_tool: {name: run_command}}
    answer: [{say: "Ran it."}]
  - when: {last_user: {regex: "^run$"}}
    answer: [{call: {tool: run_command, arguments: {command: "echo x >> ran.txt"}}}]
  - when: {last_user: {regex: "^hang$"}}
    answer: [{say: "Working"}, {hang: true}]
default: [{say: "You said: {{last_user}}."}]
"""
SAY = [{"type": "text", "text": "changed"}]


@pytest.fixture
def model(tmp_path: Path) -> str:
    return scenario(tmp_path, SCENE)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def pair(tmp_path: Path, model: str) -> Iterator[tuple[CheckedServer, CheckedServer]]:
    """Two servers on one store, each with a client of its own; every frame is checked."""
    with (
        CheckedServer(tmp_path, model=model, client_id="one") as one,
        CheckedServer(tmp_path, model=model, client_id="two") as two,
    ):
        yield one, two


def said(server: ServerProcess, work: Path, *texts: str) -> tuple[str, list[str]]:
    """A session in which so much was said, and its turns."""
    session_id = server.create(work, mode="work")
    for text in texts:
        server.prompt(session_id, text)
        server.wait(session_id)
    return session_id, turns(server, session_id)


def turns(server: ServerProcess, session_id: str) -> list[str]:
    page = server.call("session/turns", sessionId=session_id)
    return [turn["turnId"] for turn in page["data"]]


def queue(server: ServerProcess, session_id: str) -> list[dict[str, Any]]:
    return server.call("session/queue", sessionId=session_id)["data"]


def refused(server: ServerProcess, method: str, **params: Any) -> dict[str, Any]:
    with pytest.raises(RpcError) as error:
        server.call(method, **params)
    return error.value.error["data"]


def sessions(server: ServerProcess) -> list[str]:
    return [session["sessionId"] for session in server.call("session/list")["data"]]


def hanging(server: ServerProcess, other: ServerProcess, session_id: str) -> str:
    """A turn that runs, as the other process sees it."""
    server.prompt(session_id, "hang")
    scope = {"kind": "session", "id": session_id}
    other.call("event/subscribe", scope=scope, **{"from": "start"})
    started = other.until_event(lambda e: e["type"] == "ack" and e["turnId"] not in known(other))
    return started["turnId"]


def known(server: ServerProcess) -> set[str]:
    """Turns whose end was seen already."""
    return {
        e["turnId"]
        for m in server.seen
        if m.get("method") == "event/batch"
        for e in m["params"]["events"]
        if e["type"] == "turn_finished"
    }


def test_a_session_is_rewound_from_another_process_and_goes_on_in_its_own(
    pair: tuple[CheckedServer, CheckedServer], work: Path
) -> None:
    one, two = pair
    session_id, (_, second) = said(one, work, "first", "second")
    result = two.call("session/rewind", sessionId=session_id, beforeTurnId=second)
    assert (result["turns"], result["filesRestored"], result["changedPaths"]) == (1, False, [])
    assert result["session"]["lastOutcome"] == "completed"
    assert len(turns(one, session_id)) == 1
    waited = one.wait(session_id)
    assert waited["finalText"] == "You said: first."
    one.prompt(session_id, "third")
    assert one.wait(session_id)["finalText"] == "You said: third."
    events = two.events(session_id)
    assert [e["seq"] for e in events] == list(range(1, len(events) + 1))
    assert types(events).count("turn_finished") == 3  # all is still there
    assert types(events).count("session_rewound") == 1


def test_execution_29_a_running_a_parked_and_a_prepared_session_keep_their_history(
    pair: tuple[CheckedServer, CheckedServer], work: Path
) -> None:
    one, two = pair
    session_id, (first,) = said(one, work, "first")
    one.prompt(session_id, "run")
    waited = two.wait(session_id, "attention")
    (approval,) = waited["approvals"]
    for method, more in (("session/rewind", {"beforeTurnId": first}), ("session/compact", {})):
        error = refused(two, method, sessionId=session_id, **more)
        assert error["kind"] == "turnInProgress"
        assert error["turnId"] == approval["turnId"]
    one.kill()  # now it is parked: nobody runs it, and its question is still open
    scope = {"kind": "session", "id": session_id}
    two.call("event/subscribe", scope=scope, **{"from": "start"})
    two.until_event(lambda e: e["type"] == "turn_parked")
    for method, more in (("session/rewind", {"beforeTurnId": first}), ("session/compact", {})):
        error = refused(two, method, sessionId=session_id, **more)
        assert (error["kind"], error["turnId"]) == ("turnInProgress", approval["turnId"])
    fork = two.call("session/fork", sessionId=session_id)["session"]
    assert fork["forkedFrom"]["turnId"] == first
    two.call("approval/answer", approvalId=approval["approvalId"], optionId="allow_once")
    assert two.wait(session_id)["finalText"] == "Ran it."
    assert (work / "ran.txt").read_text() == "x\n"
    result = two.call("session/rewind", sessionId=session_id, beforeTurnId=first)
    assert (result["turns"], result["commands"]) == (2, 1)


def test_execution_29_a_summary_holds_the_session_and_what_was_said_stays_readable(
    pair: tuple[CheckedServer, CheckedServer], work: Path
) -> None:
    one, two = pair
    session_id, (first, *_) = said(one, work, "first", "second")
    compacting = one.request("session/compact", sessionId=session_id)
    while two.call("session/get", sessionId=session_id)["session"].get("owner") is None:
        pass
    assert refused(two, "session/compact", sessionId=session_id)["kind"] == "turnInProgress"
    error = refused(two, "session/rewind", sessionId=session_id, beforeTurnId=first)
    assert error["kind"] == "turnInProgress"
    assert two.wait(session_id)["finalText"] == "You said: second."
    assert two.call("session/get", sessionId=session_id)["session"]["status"] == "idle"
    assert one.result(compacting)["compacted"]
    assert "turn_started" not in types(two.events(session_id))[-1:]


@pytest.mark.parametrize("how", ["close", "delete"])
def test_who_puts_a_session_away_takes_it_from_whoever_summarises_it(
    pair: tuple[CheckedServer, CheckedServer], work: Path, how: str
) -> None:
    one, two = pair
    session_id, _ = said(one, work, "first", "second")
    compacting = one.request("session/compact", sessionId=session_id)
    while two.call("session/get", sessionId=session_id)["session"].get("owner") is None:
        pass
    two.call(f"session/{how}", sessionId=session_id)
    with pytest.raises(RpcError) as error:
        one.result(compacting)
    assert error.value.kind in ("leaseLost", "sessionNotFound")
    if how == "close":
        assert types(two.events(session_id))[-1] == "session_closed"
    assert "summary" not in str(one.call("event/list", scope={"kind": "all"}, types=["summary"]))


def test_a_session_that_runs_elsewhere_is_forked_at_what_has_ended(
    pair: tuple[CheckedServer, CheckedServer], work: Path
) -> None:
    one, two = pair
    session_id, (first,) = said(one, work, "first")
    running = hanging(one, two, session_id)
    error = refused(two, "session/fork", sessionId=session_id, atTurnId=running)
    assert (error["kind"], error["turnId"]) == ("turnInProgress", running)
    made = two.call("session/fork", sessionId=session_id, title="Another way")["session"]
    assert made["title"] == "Another way"
    assert made["forkedFrom"]["turnId"] == first
    two.prompt(made["sessionId"], "next")
    assert one.wait(made["sessionId"])["finalText"] == "You said: next."
    one.call("session/cancel", sessionId=session_id)


def test_what_waits_is_listed_changed_and_removed_from_another_process(
    pair: tuple[CheckedServer, CheckedServer], work: Path
) -> None:
    one, two = pair
    session_id, _ = said(one, work)
    running = hanging(one, two, session_id)
    kept = one.prompt(session_id, "kept", clientMessageId="c1")["eventSeq"]
    gone = one.prompt(session_id, "gone")["eventSeq"]
    listed = queue(two, session_id)
    assert [(q["eventSeq"], q["content"][0]["text"]) for q in listed] == [
        (kept, "kept"),
        (gone, "gone"),
    ]
    assert listed[0]["clientMessageId"] == "c1"
    assert listed[0]["author"]["kind"] == "person"
    two.call("session/queueUpdate", sessionId=session_id, eventSeq=kept, content=SAY)
    two.call("session/queueRemove", sessionId=session_id, eventSeq=gone)
    assert [q["content"] for q in queue(one, session_id)] == [SAY]
    two.call("session/cancel", sessionId=session_id, turnId=running)
    assert two.wait(session_id)["finalText"] == "You said: changed."
    for method, more in (("session/queueUpdate", {"content": SAY}), ("session/queueRemove", {})):
        error = refused(two, method, sessionId=session_id, eventSeq=kept, **more)
        assert (error["kind"], error["turnId"]) == ("promptTaken", turns(one, session_id)[-1])
        error = refused(two, method, sessionId=session_id, eventSeq=gone, **more)
        assert error["kind"] == "promptNotFound"
    hits = one.call("session/search", query="changed", sessionId=session_id)["data"]
    assert "prompt_updated" in {hit["type"] for hit in hits}


def test_what_a_hook_would_refuse_is_no_change_of_a_waiting_prompt_either(
    tmp_path: Path, model: str, work: Path
) -> None:
    config = tmp_path / "home" / "config"
    config.mkdir(parents=True)
    hook = "grep -q password && { echo keep your secrets >&2; exit 2; }; exit 0"
    (config / "config.toml").write_text(
        f"[[hooks.user_prompt_submit]]\ncommand = '{hook}'\n", "utf-8"
    )
    with CheckedServer(tmp_path, model=model) as server:
        session_id = server.create(work)
        server.prompt(session_id, "hang")
        seq = server.prompt(session_id, "next")["eventSeq"]
        secret = [{"type": "text", "text": "the password is x"}]
        error = refused(
            server, "session/queueUpdate", sessionId=session_id, eventSeq=seq, content=secret
        )
        assert error["kind"] == "hookBlocked"
        assert [q["content"][0]["text"] for q in queue(server, session_id)] == ["next"]
        server.call("session/queueUpdate", sessionId=session_id, eventSeq=seq, content=SAY)
        assert [q["content"] for q in queue(server, session_id)] == [SAY]
        server.call("session/cancel", sessionId=session_id, scope="tree")


# --- kill -9 --------------------------------------------------------------------------------------


async def _written(folder: Path, work: Path, *texts: str) -> tuple[str, list[str]]:
    """A session in which so much was said, beside any server, and its turns."""
    async with host_in(folder) as host:
        session_id = await new_session(host, work)
        for text in texts:
            await say(host, session_id, text)
            await idle(host, session_id)
        page, _ = await host.reading.turns(session_id)
        return session_id, [turn.turn_id for turn in page]


async def _long(folder: Path, work: Path, events: int) -> str:
    """A session whose history takes several commits to copy, written beside any server."""
    async with host_in(folder) as host:
        session = await host.sessions.create(
            cwd=str(work), profile="default", mode="work", by=SYSTEM
        )
        session_id = session.session_id
        author = Author(kind="person", name="tester")
        await host.sessions.prompt(session_id, [TextContent(text="hi")], author=author, by=SYSTEM)
        waited = await host.waiting.wait(session_id, until="idle", turn_id=None, timeout_s=30)
        assert waited.turn is not None
        turn_id = waited.turn.turn_id

        def write(tx: Any) -> None:
            for number in range(events):
                tx.append(
                    session_id,
                    Message(
                        message_id=MessageId(f"msg_{number}"),
                        author=Author(kind="agent", name="default"),
                        content=(TextContent(text=f"answer {number}"),),
                    ),
                    actor=SYSTEM,
                    turn_id=turn_id,
                )

        await host.log.transact(write)
        return session_id


def killed(server: ServerProcess, method: str, **params: Any) -> None:
    """Asks for something that the server does not live to answer."""
    request = server.request(method, **params, idempotencyKey="once")
    with pytest.raises(Gone):
        server.result(request)


@pytest.mark.parametrize(
    ("point", "done"),
    [
        ("turns.prepare.committed", False),
        ("turns.write.deciding", False),
        ("turns.write.committed", True),
        ("turns.write.told", True),
    ],
)
def test_execution_51_killed_in_a_rewind_it_was_done_or_not_and_the_session_is_free(
    tmp_path: Path, model: str, work: Path, point: str, done: bool
) -> None:
    session_id, (_, second) = asyncio.run(_written(tmp_path, work, "first", "second"))
    with ServerProcess(
        tmp_path, model=model, client_id="c", environ={"CALLBOARD_FAULT": point}
    ) as dying:
        killed(dying, "session/rewind", sessionId=session_id, beforeTurnId=second)
    with ServerProcess(tmp_path, model=model, client_id="c") as server:
        rewound = types(server.events(session_id)).count("session_rewound")
        assert rewound == int(done)
        assert server.call("session/get", sessionId=session_id)["session"].get("owner") is None
        # the same request once more: done once, whatever was done before
        again = server.call(
            "session/rewind", sessionId=session_id, beforeTurnId=second, idempotencyKey="once"
        )
        assert again["turns"] == 1
        assert types(server.events(session_id)).count("session_rewound") == 1
        assert len(turns(server, session_id)) == 1
        server.prompt(session_id, "third")
        assert server.wait(session_id)["finalText"] == "You said: third."


@pytest.mark.parametrize(
    ("number", "point"), [(1, "committed"), (3, "committed"), (4, "deciding"), (4, "committed")]
)
def test_execution_51_killed_in_a_fork_there_is_a_whole_one_or_none(
    tmp_path: Path, model: str, work: Path, point: str, number: int
) -> None:
    session_id = asyncio.run(_long(tmp_path, work, 800))
    fault = f"sessions.publish.{point}:{number}"
    with ServerProcess(
        tmp_path, model=model, client_id="c", environ={"CALLBOARD_FAULT": fault}
    ) as dying:
        killed(dying, "session/fork", sessionId=session_id)
    whole = number == 4 and point != "deciding"
    with ServerProcess(tmp_path, model=model, client_id="c") as server:
        assert len(sessions(server)) == (2 if whole else 1)
        made = server.call("session/fork", sessionId=session_id, idempotencyKey="once")
        made_id = made["session"]["sessionId"]
        assert set(sessions(server)) == {session_id, made_id}
        events = server.events(made_id)
        assert [e["seq"] for e in events] == list(range(1, len(events) + 1))
        assert types(events)[0] == "session_created"
        assert types(events)[-1] == "session_forked"
        inherited = [e for e in server.events(session_id) if e["type"] in ("message", "ack")]
        assert [e["type"] for e in events[1:-1]] == [e["type"] for e in inherited]
        # of a half one nothing is left but word of its end
        everything = server.call("event/list", scope={"kind": "all"}, types=["session_deleted"])
        halves = {e["sessionId"] for e in everything["data"]}
        assert len(halves) == (0 if whole else 1)
        assert made_id not in halves
        server.prompt(made_id, "next")
        assert server.wait(made_id)["finalText"] == "You said: next."


def test_a_half_fork_of_a_killed_process_is_taken_back_by_another_one(
    tmp_path: Path, model: str, work: Path
) -> None:
    session_id = asyncio.run(_long(tmp_path, work, 800))
    with ServerProcess(tmp_path, model=model, client_id="two") as two:
        two.call("event/subscribe", scope={"kind": "all"}, **{"from": "now"})
        with ServerProcess(
            tmp_path, model=model, environ={"CALLBOARD_FAULT": "sessions.publish.committed:2"}
        ) as dying:
            killed(dying, "session/fork", sessionId=session_id)
        half = two.until_event(lambda e: e["type"] == "session_created")["sessionId"]
        assert half not in sessions(two)
        assert refused(two, "session/get", sessionId=half)["kind"] == "sessionNotFound"
        assert refused(two, "session/prompt", sessionId=half, content=SAY)["kind"] == (
            "sessionNotFound"
        )
        two.told(lambda e: e["type"] == "session_deleted" and e["sessionId"] == half)
        assert sessions(two) == [session_id]


def test_execution_29_a_prompt_behind_a_compaction_that_its_client_takes_back_is_answered(
    tmp_path: Path, work: Path
) -> None:
    scene = """
rules:
  - when: {system: {contains: "You write the summary"}}
    answer: [{hang: true}]
default: [{say: "You said: {{last_user}}."}]
"""
    with ServerProcess(tmp_path, model=scenario(tmp_path, scene)) as server:
        session_id, _ = said(server, work, "one", "two")
        asked = server.request("session/compact", sessionId=session_id)
        while server.call("session/get", sessionId=session_id)["session"].get("owner") is None:
            pass  # that a session is being summarised leaves no event to wait for
        assert server.prompt(session_id, "three")["outcome"] == "queued"
        server.notify("$/cancelRequest", id=asked)
        with pytest.raises(RpcError) as error:
            server.result(asked)
        assert error.value.kind == "requestCancelled"
        assert server.wait(session_id)["finalText"] == "You said: three."
        assert "summary" not in types(server.events(session_id))
