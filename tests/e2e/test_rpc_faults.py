"""Bad input and faults at the face of a real server: a named error, one end, and a server that goes on."""

import json
import sqlite3
import stat
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.checked import CheckedServer, events_of
from harness.process import ANEW, Gone, RpcError, ServerProcess, scenario, types

MIB = 1024 * 1024

SCENARIO = """
rules:
  - when: {last_user: {regex: "(?s)^begin.{1572864}the very end$"}}
    answer: [{say: all of it}]
  - when: {last_user: flood, step: 0}
    answer:
      - call: {tool: run_command, arguments: {command: "head -c 1073741824 /dev/zero | tr '\\\\0' y"}}
  - when: {last_user: sleep, step: 0}
    answer: [{call: {tool: run_command, arguments: {command: "sleep 600 & sleep 600"}}}]
  - when: {last_user: odd bytes, step: 0}
    answer:
      - call: {tool: run_command, arguments: {command: "printf 'a\\\\377\\\\000b\\\\342\\\\200\\\\256c\\\\355\\\\240\\\\200d'"}}
  - when: {last_user: write it, step: 0}
    answer: [{call: {tool: write_file, arguments: {path: note.txt, content: "hello"}}}]
  - when: {last_user: hang}
    answer: [{say: I begin}, {hang: true}]
  - when: {last_user: fail}
    answer: [{say: I begin}, {fail: {kind: modelError, message: no more}}]
default:
  - say: "You said {{last_user}}."
"""
ALLOW = {"approvals": {"policy": {"run_command": "allow"}}}


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def start(tmp_path):
    """Starts servers on one store; what runs at the end of the test is closed."""
    running: list[ServerProcess] = []

    def begin(kind: type[ServerProcess] = CheckedServer, **more: Any) -> Any:
        more.setdefault("model", scenario(tmp_path, SCENARIO))
        more.setdefault("callboard", {"config": ALLOW})
        more.setdefault("program", ANEW)
        server = kind(tmp_path, **more)
        running.append(server)
        return server

    yield begin
    for server in running:
        server.__exit__()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A server for tests that leave nothing behind that others could see."""
    folder = tmp_path_factory.mktemp("faults")
    (folder / "work").mkdir()
    model = scenario(folder, SCENARIO)
    with CheckedServer(folder, model=model, callboard={"config": ALLOW}) as server:
        yield server


@pytest.fixture
def session(shared):
    return shared.create(shared.folder / "work")


def prompt(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}]


def refused(server: ServerProcess, method: str, **params: Any) -> dict[str, Any]:
    with pytest.raises(RpcError) as raised:
        server.call(method, **params)
    return raised.value.error


def kind(server: ServerProcess, method: str, **params: Any) -> str:
    return refused(server, method, **params)["data"]["kind"]


def event(server: ServerProcess, session: str, type: str) -> dict[str, Any]:
    return next(e for e in server.events(session) if e["type"] == type)


# --- prompts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [[], prompt(""), prompt(" \n\t"), prompt("") * 3])
def test_an_empty_prompt_is_refused_and_leaves_nothing(shared, session, content):
    error = refused(shared, "session/prompt", sessionId=session, content=content)
    assert error["data"]["errors"][0]["path"] == "$.content"
    assert types(shared.events(session)) == ["session_created"]


def test_a_prompt_of_ten_mebibytes_is_refused_by_its_size(shared, session):
    error = refused(shared, "session/prompt", sessionId=session, content=prompt("x" * (10 * MIB)))
    assert error["data"]["kind"] == "messageTooLarge"
    assert error["data"]["limit"] == 8 * MIB and "file" in error["message"]
    many = prompt("x" * MIB) * 9
    assert kind(shared, "session/prompt", sessionId=session, content=many) == "messageTooLarge"
    assert types(shared.events(session)) == ["session_created"]


def test_a_prompt_of_three_mebibytes_reaches_the_model_whole(shared, session):
    text = "begin" + "å" * (MIB + MIB // 2) + "the very end"
    shared.prompt(session, text)
    answer = shared.wait(session)["finalText"]
    assert answer[:20] == "all of it"
    said = event(shared, session, "message")["data"]
    assert len(said["content"][0]["text"]) < 64 * 1024 and "_blobs" in said
    exported, cursor = "", {}
    while cursor is not None:
        piece = shared.call("session/export", sessionId=session, **cursor)
        exported += piece["text"]
        cursor = {"cursor": piece["nextCursor"]} if piece.get("nextCursor") else None
    messages = [json.loads(line)["data"] for line in exported.splitlines() if '"message"' in line]
    assert bool(messages[0]["content"][0]["text"] == text)


HOSTILE = {
    "a lone surrogate": ("a\ud800b", "a\ufffdb"),
    "half a pair at the end": ("a\ud83d", "a\ufffd"),
    "a whole pair": ("a\ud83d\ude00b", "a\U0001f600b"),
    "a NUL": ("a\u0000b", "a\ufffdb"),
    "bidi controls": ("a\u202e\u2066b\u2069", "a\u202e\u2066b\u2069"),
    "other controls": ("a\u001b[31m\u0007b", "a\u001b[31m\u0007b"),
    "what is no character": ("a\uffffb\ufeff", "a\uffffb\ufeff"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_interrupts_72_hostile_text_is_stored_and_sent_as_valid_text(shared, session, what):
    sent, kept = HOSTILE[what]
    shared.prompt(session, sent, clientMessageId=sent)
    assert shared.wait(session)["finalText"] == f"You said {kept}."
    assert event(shared, session, "message")["data"]["content"][0]["text"] == kept
    shared.call(
        "session/update", sessionId=session, title=sent, metadata={sent: [sent, {"x": sent}]}
    )
    found = shared.call("session/get", sessionId=session)["session"]
    assert found["title"] == kept
    again = shared.prompt(session, sent, clientMessageId=sent)
    assert again["eventSeq"] == 2, "the same message, however odd its id"
    assert set(json.dumps(found["metadata"])) <= set(json.dumps({kept: [kept, {"x": kept}]}))
    listed = shared.call("session/list", query=kept)["data"]
    assert session in [s["sessionId"] for s in listed]
    assert shared.call("session/search", query="\ud800 \u0000 said", sessionId=session)


def test_interrupts_72_a_tool_may_print_any_bytes(shared, session):
    shared.prompt(session, "odd bytes")
    shared.wait(session)
    text = event(shared, session, "tool_result")["data"]["text"]
    assert "a\ufffd" in text and "b\u202ec" in text and "\u0000" not in text


def test_an_image_or_a_resource_that_is_none_is_named(shared, session):
    image = [{"type": "image", "data": "not base64!", "mimeType": "image/png"}]
    error = refused(shared, "session/prompt", sessionId=session, content=image)
    assert error["data"]["errors"][0]["path"] == "$.content[0].data"
    video = [{"type": "video", "data": "x"}]
    error = refused(shared, "session/prompt", sessionId=session, content=video)
    assert error["data"]["errors"][0]["path"].startswith("$.content[0]")


def test_context_is_taken_from_files_of_the_workspace_only(shared, session):
    work = shared.folder / "work"
    (work / "a.py").write_text("one\ntwo 😀 x\r\nthree\n")
    (shared.folder / "outside").write_text("secret")
    (work / "link").symlink_to(shared.folder / "outside")
    here = lambda line, character: {"line": line, "character": character}  # noqa: E731
    item = {"uri": f"file://{work}/a.py", "range": {"start": here(1, 4), "end": here(1, 6)}}
    shared.call(
        "session/prompt", sessionId=session, content=prompt("look"), context=[item, {"uri": "a.py"}]
    )
    shared.wait(session)
    blocks = event(shared, session, "message")["data"]["content"]
    assert [b["text"] for b in blocks[1:]] == ["😀", "one\ntwo 😀 x\r\nthree\n"]
    for uri, expected in (
        (f"file://{work}/link", "pathDenied"),
        (f"file://{work}/../outside", "pathDenied"),
        ("file:///etc/passwd", "pathDenied"),
        (f"file://{work}/missing", "pathNotFound"),
        (f"file://{work}", "pathNotFound"),
        ("https://example.org/a", "invalidParams"),
        ("a\u0000b", "pathNotFound"),
    ):
        params = {"sessionId": session, "content": prompt("look"), "context": [{"uri": uri}]}
        assert kind(shared, "session/prompt", **params) in (expected, "pathDenied"), uri
    item["range"]["start"]["line"] = -1
    params = {"sessionId": session, "content": prompt("look"), "context": [item]}
    error = refused(shared, "session/prompt", **params)
    assert error["data"]["errors"][0]["path"] == "$.context[0].range.start"


# --- a tool that prints for ever --------------------------------------------------------------------------


@pytest.mark.parametrize("reads", [True, False])
def test_interrupts_71_a_flood_of_output_takes_bounded_memory(start, work, reads):
    """1 GiB through a tool, watched by a client that reads, and by one that does not."""
    server = start(
        Deaf, callboard={"config": ALLOW, "capabilities": {"approvals": False, "deltas": True}}
    )
    session = server.create(work)
    server.call("event/subscribe", scope={"kind": "all"})
    process = psutil.Process(server.process.pid)
    before = process.memory_info().rss
    peak = before
    server.request("session/prompt", sessionId=session, content=prompt("flood"))
    if not reads:
        server.listening.clear()
    watch = CheckedServer(server.folder, model="scripted/demo", client_id="watch")
    with watch:
        waiting = watch.request("session/wait", sessionId=session, until="turnEnd")
        while not any(m.get("id") == waiting for m in watch.seen):
            peak = max(peak, process.memory_info().rss)
            try:
                watch.receive(0.05)
            except Exception:  # nothing yet: look again
                continue
        result = event(watch, session, "tool_result")["data"]
    server.listening.set()
    assert result["status"] == "ok" and result["truncated"] and len(result["text"]) < 80 * 1024
    assert f"output of {1024 * MIB} bytes was cut" in result["text"]
    assert peak - before < 200 * MIB, f"{(peak - before) // MIB} MiB"
    assert server.call("server/ping")


class Leaving(ServerProcess):
    """A client that reads one more frame and never again, once it is `leaving`."""

    leaving = False

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._inbox.put(json.loads(line))
            if self.leaving:
                return


class Deaf(ServerProcess):
    """A client that can stop reading."""

    def __init__(self, *args: Any, **more: Any) -> None:
        self.listening = threading.Event()
        self.listening.set()
        super().__init__(*args, **more)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if b'"event/delta"' not in line[:80]:
                self._inbox.put(json.loads(line))
            self.listening.wait()
        self._inbox.put(None)


# --- keys -------------------------------------------------------------------------------------------------


def test_the_same_key_and_params_get_the_first_answer_also_after_a_kill(start, work):
    server = start()
    made = server.call("session/create", cwd=str(work), title="one", idempotencyKey="k")
    assert server.call("session/create", title="one", cwd=str(work), idempotencyKey="k") == made
    other = refused(server, "session/create", cwd=str(work), title="two", idempotencyKey="k")
    assert other["data"]["kind"] == "idempotencyConflict" and "fresh key" in other["message"]
    session = made["session"]["sessionId"]
    said = server.prompt(session, "hello", idempotencyKey="k")
    server.wait(session)
    server.kill()
    server = start()
    assert server.call("session/create", cwd=str(work), title="one", idempotencyKey="k") == made
    assert server.prompt(session, "hello", idempotencyKey="k") == said
    assert (
        kind(server, "session/create", cwd=str(work), idempotencyKey="k") == "idempotencyConflict"
    )
    assert len(server.call("session/list")["data"]) == 1
    assert types(server.events(session)).count("turn_started") == 1
    stranger = start(client_id="stranger")
    fresh = stranger.call("session/create", cwd=str(work), title="one", idempotencyKey="k")
    assert fresh["session"]["sessionId"] != session, "a client's keys are its own"


def test_the_same_key_at_once_is_done_once(start, work):
    server = start()
    ids = [
        server.request("session/create", cwd=str(work), idempotencyKey="same") for _ in range(50)
    ]
    others = [
        server.request("session/create", cwd=str(work), title="x", idempotencyKey="same")
        for _ in range(3)
    ]
    assert len({server.result(id)["session"]["sessionId"] for id in ids}) == 1
    for id in others:
        with pytest.raises(RpcError, match="another session/create"):
            server.result(id)
    assert len(server.call("session/list")["data"]) == 1


def test_a_keyed_request_that_fails_can_be_made_again(start, work):
    server = start()
    folder = work / "later"
    assert kind(server, "session/create", cwd=str(folder), idempotencyKey="k") == "pathNotFound"
    folder.mkdir()
    assert server.call("session/create", cwd=str(folder), idempotencyKey="k")["session"]


def test_a_keyed_request_that_is_cancelled_is_done_once_all_the_same(start, work):
    """The reply may be lost, the work may not be done twice; and events flow on."""
    server = start()
    session = server.create(work)
    subscription = server.call("event/subscribe", scope={"kind": "session", "id": session})
    for n in range(20):
        id = server.request(
            "session/prompt", sessionId=session, content=prompt(f"p{n}"), idempotencyKey=f"k{n}"
        )
        server.notify("$/cancelRequest", id=id)
        try:
            server.result(id)
        except RpcError as error:
            assert error.kind == "requestCancelled"
        server.prompt(session, f"p{n}", idempotencyKey=f"k{n}")
    server.wait(session)
    messages = [
        e["data"]["content"][0]["text"]
        for e in server.events(session)
        if e["type"] == "message" and e["data"]["author"]["kind"] == "person"
    ]
    assert messages == [f"p{n}" for n in range(20)]
    end = server.events(session)[-1]["pos"]
    while not any(
        e["pos"] == end for m in server.seen for e in events_of(m, subscription["subscriptionId"])
    ):
        server.receive()


def test_a_client_message_id_is_one_message_also_after_a_kill(start, work):
    server = start()
    session = server.create(work)
    first = server.prompt(session, "hello", clientMessageId="m")
    ids = [
        server.request(
            "session/prompt", sessionId=session, content=prompt("hello"), clientMessageId="m"
        )
        for _ in range(10)
    ]
    assert {server.result(id)["eventSeq"] for id in ids} == {first["eventSeq"]}
    server.wait(session)
    server.kill()
    server = start()
    again = server.prompt(session, "hello", clientMessageId="m")
    assert (again["eventSeq"], again["turnId"]) == (first["eventSeq"], first["turnId"])
    assert types(server.events(session)).count("turn_started") == 1
    other = server.create(work)
    assert server.prompt(other, "hello", clientMessageId="m")["outcome"] == "started"


# --- queues, waits ------------------------------------------------------------------------------------------


def test_a_full_queue_refuses_and_keeps_what_it_has(start, work):
    server = start(environ={"CALLBOARD_LIMITS_QUEUE": "3"})
    session = server.create(work)
    server.prompt(session, "hang")
    for n in range(3):
        assert server.prompt(session, f"later {n}")["outcome"] == "queued"
    error = refused(server, "session/prompt", sessionId=session, content=prompt("too many"))
    assert error["data"]["kind"] == "queueFull" and error["data"]["retryable"]
    assert error["data"]["retryAfterMs"] > 0 and "session/cancel" in error["message"]
    found = server.call("session/get", sessionId=session)["session"]
    assert found["queueLength"] == 3
    server.call("session/cancel", sessionId=session)
    assert "later 2" in server.wait(session)["finalText"]
    assert server.prompt(session, "again")["outcome"] == "started"


def test_a_wait_ends_by_what_it_waits_for(shared, session):
    assert shared.wait(session, "idle")["reason"] == "idle"
    assert shared.wait(session, "turnEnd")["reason"] == "turnEnd"
    assert shared.wait(session, "attention")["reason"] == "idle"
    assert shared.wait(session, "idle", timeoutMs=0)["reason"] == "idle", "it holds already"
    turn = shared.prompt(session, "hang")["turnId"]
    queued = shared.prompt(session, "write it")
    assert queued["outcome"] == "queued"
    for until in ("idle", "turnEnd", "attention"):
        for timeout in (0, 1, 30):
            late = shared.wait(session, until, timeoutMs=timeout)
            assert late["reason"] == "timeout" and late["turn"]["turnId"] == turn
    ends = shared.request("session/wait", sessionId=session, until="turnEnd", turnId=turn)
    needs = shared.request("session/wait", sessionId=session, until="attention")
    idle = shared.request("session/wait", sessionId=session, until="idle")
    gone = shared.request("session/wait", sessionId=session, until="idle")
    shared.notify("$/cancelRequest", id=gone)
    with pytest.raises(RpcError) as cancelled:
        shared.result(gone)
    assert cancelled.value.kind == "requestCancelled"
    shared.call("session/cancel", sessionId=session, turnId=turn)
    ended = shared.result(ends)
    assert ended["reason"] == "turnEnd" and ended["turn"]["state"] == "cancelled"
    attention = shared.result(needs)
    assert attention["reason"] == "attention" and len(attention["approvals"]) == 1
    assert shared.call("session/get", sessionId=session)["session"]["status"] == "waiting_approval"
    shared.call("session/cancel", sessionId=session)
    assert shared.result(idle)["reason"] == "idle"
    elsewhere = shared.create(shared.folder / "work")
    assert kind(shared, "session/wait", sessionId=elsewhere, turnId=turn) == "turnNotFound"


def test_a_wait_for_a_session_that_is_closed_or_deleted_ends(shared):
    closed, deleted = (shared.create(shared.folder / "work") for _ in range(2))
    for session in (closed, deleted):
        shared.prompt(session, "hang")
    waits = [shared.request("session/wait", sessionId=s, until="idle") for s in (closed, deleted)]
    shared.call("session/close", sessionId=closed)
    shared.call("session/delete", sessionId=deleted)
    assert shared.result(waits[0])["reason"] in ("closed", "idle")
    try:
        assert shared.result(waits[1])["reason"] == "idle"
    except RpcError as error:
        assert error.kind == "sessionNotFound"


def test_a_session_ends_while_prompts_come(start, work):
    """Closing and deleting against a stream of prompts: every prompt is answered by its kind."""
    server = start()
    for method in ("session/close", "session/delete"):
        session = server.create(work)
        early = [
            server.request("session/prompt", sessionId=session, content=prompt("sleep"))
            for _ in range(5)
        ]
        end = server.request(method, sessionId=session)
        late = [
            server.request("session/prompt", sessionId=session, content=prompt("hello"))
            for _ in range(20)
        ]
        server.result(end)
        outcomes = set()
        for id in (*early, *late):
            try:
                outcomes.add(server.result(id)["outcome"])
            except RpcError as error:
                outcomes.add(error.kind)
        assert outcomes <= {"started", "queued", "sessionClosed", "sessionNotFound"}, outcomes
        if method == "session/close":
            kinds = types(server.events(session))
            assert kinds[-1] == "session_closed"
            assert kinds.count("turn_started") == kinds.count("turn_finished")
    assert server.call("server/diagnostics")["leases"] == []
    children = psutil.Process(server.process.pid).children(recursive=True)
    assert [c for c in children if c.name() == "sleep"] == []


# --- the end of the process ----------------------------------------------------------------------------------


def test_interrupts_73_the_end_of_the_input_in_mid_turn_is_clean_and_quick(start, work):
    server = start()
    asleep, talking = server.create(work), server.create(work)
    server.prompt(asleep, "sleep")
    server.prompt(talking, "hang")
    server.call("event/subscribe", scope={"kind": "session", "id": asleep}, **{"from": "start"})
    server.find_event(lambda e: e["type"] == "tool_call" and e["sessionId"] == asleep)
    process = psutil.Process(server.process.pid)
    children: list[psutil.Process] = []
    while sum(c.name() == "sleep" for c in children) < 2:
        children = process.children(recursive=True)
    began = time.monotonic()
    assert server.close() == 0
    assert time.monotonic() - began < 2.0
    assert [c for c in children if c.is_running() and c.status() != "zombie"] == []
    server = start()
    for session in (asleep, talking):
        events = server.events(session)
        end = events[-1]
        assert end["type"] == "turn_finished" and end["data"]["outcome"] == "interrupted"
        calls, results = (types(events).count(t) for t in ("tool_call", "tool_result"))
        assert calls == results
        assert server.call("session/get", sessionId=session)["session"]["status"] == "idle"
    partial = [e for e in server.events(talking) if e["type"] == "message"][-1]["data"]
    assert partial["partial"] and partial["content"][0]["text"] == "I begin"
    assert [h["alive"] for h in server.call("server/diagnostics")["hosts"]] == [True]


def test_a_client_that_dies_with_requests_open_takes_nothing_with_it(start, work):
    server = start(Leaving)
    session = server.create(work)
    server.leaving = True
    server.request("session/prompt", sessionId=session, content=prompt("hello"))
    for _ in range(30):
        server.request("session/wait", sessionId=session, until="turnEnd")
    server._reader.join()
    server.process.stdout.close()
    server.process.stdin.close()
    assert server.process.wait(5) == 0
    server = start()
    server.wait(session)
    assert types(server.events(session)).count("turn_finished") == 1


# --- stores --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 4])
def test_servers_that_start_at_once_on_a_fresh_store_share_it(start, work, count):
    servers: list[Any] = [start(initialize=False, client_id=f"c{n}") for n in range(count)]
    options = {"protocolVersions": ["1.0"], "config": ALLOW}
    ids = [
        s.request("initialize", callboard={**options, "clientId": f"c{n}"})
        for n, s in enumerate(servers)
    ]
    hellos = [
        s.result(i)["capabilities"]["experimental"]["callboard"]
        for s, i in zip(servers, ids, strict=True)
    ]
    assert len({h["storeId"] for h in hellos}) == 1 and len({h["hostId"] for h in hellos}) == count
    sessions = [s.create(work) for s in servers]
    for server, session in zip(servers, sessions, strict=True):
        server.prompt(session, "hello")
    for server, session in zip(servers, sessions, strict=True):
        assert server.wait(session)["finalText"] == "You said hello."
    for server in servers:
        assert {s["sessionId"] for s in server.call("session/list")["data"]} == set(sessions)
    folder = servers[0].folder
    for path in (folder / "store.db", folder / "store.db-wal"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def start_on(folder: Path, store: Path | str) -> CheckedServer:
    return CheckedServer(
        folder,
        model="scripted/demo",
        initialize=False,
        environ={"CALLBOARD_STORE": str(store)},
        program=ANEW,
    )


def refusal_of(server: CheckedServer) -> dict[str, Any]:
    return refused(server, "initialize", callboard={"protocolVersions": ["1.0"]})


def ends_cleanly(server: CheckedServer) -> None:
    """Everything else is refused by its kind, and the process goes when it is told to."""
    assert kind(server, "session/list") == "notInitialized"
    server.notify("exit")
    assert server.process.wait(5) == 1
    assert "Traceback" not in server.stderr()


def test_a_store_that_is_damaged_is_named_left_alone_and_copied(tmp_path):
    store = tmp_path / "store.db"
    with start_on(tmp_path, store) as server:
        server.call("initialize", processId=None, callboard={"protocolVersions": ["1.0"]})
    store.write_bytes(b"this is no database, but somebody's only copy\n" * 100)
    before = store.read_bytes()
    with start_on(tmp_path, store) as server:
        error = refusal_of(server)
        assert error["data"]["kind"] == "storeCorrupt" and str(store) in error["message"]
        assert store.read_bytes() == before
        assert Path(error["data"]["copy"]).read_bytes() == before
        assert refusal_of(server)["data"]["kind"] == "storeCorrupt", "and so for one who asks again"
        ends_cleanly(server)


def test_a_store_of_a_newer_version_is_refused_with_both_versions(tmp_path):
    with CheckedServer(tmp_path, model="scripted/demo"):
        pass
    with sqlite3.connect(tmp_path / "store.db") as store:
        store.execute("PRAGMA user_version = 999")
    store.close()
    with start_on(tmp_path, tmp_path / "store.db") as server:
        error = refusal_of(server)
        assert error["data"]["kind"] == "storeVersion" and error["data"]["found"] == 999
        assert error["data"]["supported"] < 999
        ends_cleanly(server)


def test_a_store_where_nothing_can_be_is_named(tmp_path):
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "file" / "store.db", "/proc/nowhere/store.db"):
        with start_on(tmp_path, place) as server:
            error = refusal_of(server)
            assert error["data"]["kind"] in ("storeIo", "storeReadOnly", "storeUnsupported"), error
            assert str(place) in error["message"]
            ends_cleanly(server)


def test_a_store_in_a_place_that_cannot_be_written_is_named(tmp_path):
    with start_on(tmp_path, "/sys/callboard/store.db") as server:
        error = refusal_of(server)
        assert error["data"]["kind"] == "storeReadOnly" and "permissions" in error["message"]
        ends_cleanly(server)


def test_a_store_is_made_with_its_folders(tmp_path):
    place = tmp_path / "a" / "b" / "store.db"
    with start_on(tmp_path, place) as server:
        server.call("initialize", callboard={"protocolVersions": ["1.0"]})
        assert server.call("server/info")["storePath"] == str(place)
        assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700


def test_the_end_of_the_input_ends_a_server_without_a_store(tmp_path):
    (tmp_path / "file").write_text("x")
    server = start_on(tmp_path, tmp_path / "file" / "store.db")
    refusal_of(server)
    began = time.monotonic()
    assert server.close() == 0
    assert time.monotonic() - began < 2.0
    with pytest.raises(Gone):
        server.receive()


def test_the_configuration_of_the_client_can_name_the_store_and_the_limits(tmp_path):
    place = tmp_path / "own" / "store.db"
    config = {"store": {"path": str(place)}, "limits": {"window": 7}}
    with CheckedServer(
        tmp_path,
        model="scripted/demo",
        environ={"CALLBOARD_STORE": ""},
        callboard={"config": config},
    ) as server:
        assert server.call("server/info")["storePath"] == str(place)
        hello = server.hello["capabilities"]["experimental"]["callboard"]
        assert hello["limits"]["window"] == 7


def test_a_larger_frame_is_skipped_by_the_configured_limit(tmp_path):
    with CheckedServer(
        tmp_path, model="scripted/demo", environ={"CALLBOARD_LIMITS_FRAME_BYTES": "100000"}
    ) as server:
        error = refused(server, "server/ping", echo="x" * 100_001)
        assert error["data"]["kind"] == "messageTooLarge" and error["data"]["limit"] == 100_000
        assert server.call("server/ping", echo="y")["echo"] == "y"
