"""What clients do while a server is on its way to a fault: each scene may be cut off at any line."""

from collections.abc import Callable
from pathlib import Path

from crash_ledger import held, snapshot
from crash_stage import Stage, die

from callboard.log.importing import PIECE_BYTES
from harness.process import RpcError, ServerProcess

Play = Callable[[Stage, ServerProcess], None]


def until(server: ServerProcess, path: Path) -> None:
    """Lets time pass, with requests that have no effect, until a command has made a file."""
    while not path.exists():
        server.call("session/list")


def _ask(text: str) -> Play:
    """A scene of one prompt, named after its first word."""

    def play(stage: Stage, server: ServerProcess) -> None:
        stage.greet(server)
        session_id = stage.create(server)
        stage.prompt(server, session_id, text)
        server.wait(session_id)

    play.__name__ = text.partition(" ")[0]
    return play


talk = _ask("talk")
think = _ask("think")
run = _ask("run")
loud = _ask("loud")
read = _ask("read")
write = _ask("write")
fail = _ask("fail")
busy = _ask("busy")
hooked = _ask("hooked")
"""Hooks of the person's own say something at the begin of the turn, and keep it from its end once."""
bulky = _ask("bulky " + "word " * 900_000)
"""So large that its commit is followed by a checkpoint."""


def leave(stage: Stage, server: ServerProcess) -> None:
    """The editor goes away while all is quiet."""
    _ask("short")(stage, server)
    assert server.process.stdin is not None
    server.process.stdin.close()


def leave_asking(stage: Stage, server: ServerProcess) -> None:
    """The editor goes away while a call waits for its approval."""
    stage.greet(server)
    session_id = stage.create(server)
    stage.prompt(server, session_id, "ask")
    stage.approvals(server, session_id)
    stage.prompt(server, session_id, "behind it")
    assert server.process.stdin is not None
    server.process.stdin.close()


def leave_running(stage: Stage, server: ServerProcess) -> None:
    """The editor goes away while a command runs."""
    _begin_long(stage, server)
    assert server.process.stdin is not None
    server.process.stdin.close()


def _begin_long(stage: Stage, server: ServerProcess) -> str:
    stage.greet(server)
    session_id = stage.create(server)
    stage.prompt(server, session_id, "long")
    until(server, stage.cwd / "began")
    return session_id


def approve(stage: Stage, server: ServerProcess) -> None:
    stage.greet(server)
    session_id = stage.create(server)
    stage.prompt(server, session_id, "ask")
    stage.answer_all(server, session_id)


def approve_for_good(stage: Stage, server: ServerProcess) -> None:
    """The first answer is a rule, which settles what the second call asks."""
    stage.greet(server)
    session_id = stage.create(server)
    stage.prompt(server, session_id, "ask")
    asked = stage.approvals(server, session_id)
    server.call("approval/answer", approvalId=asked[0], optionId="allow_session")
    server.wait(session_id)


def expire(stage: Stage, server: ServerProcess) -> None:
    """Nobody answers in time."""
    stage.greet(server)
    session_id = stage.create(server)
    stage.prompt(server, session_id, "ask")
    server.wait(session_id)


def steer(stage: Stage, server: ServerProcess) -> None:
    session_id = _begin_long(stage, server)
    stage.prompt(server, session_id, "and another thing", delivery="steer")
    stage.let_go()
    server.wait(session_id)


def queue(stage: Stage, server: ServerProcess) -> None:
    session_id = _begin_long(stage, server)
    stage.prompt(server, session_id, "first in the queue")
    stage.prompt(server, session_id, "second in the queue")
    stage.let_go()
    server.wait(session_id)


def cancel(stage: Stage, server: ServerProcess) -> None:
    session_id = _begin_long(stage, server)
    stage.prompt(server, session_id, "after the cancelled one")
    server.call("session/cancel", sessionId=session_id)
    server.wait(session_id)


def cancel_asking(stage: Stage, server: ServerProcess) -> None:
    """Cancels a turn that waits for an approval; nobody is to be asked any more."""
    stage.greet(server)
    session_id = stage.create(server)
    stage.prompt(server, session_id, "ask")
    stage.approvals(server, session_id)
    server.call("session/cancel", sessionId=session_id)
    server.wait(session_id)


def cancel_queue(stage: Stage, server: ServerProcess) -> None:
    session_id = _begin_long(stage, server)
    stage.prompt(server, session_id, "never answered")
    server.call("session/cancel", sessionId=session_id, scope="queue")
    stage.let_go()
    server.wait(session_id)


def compact(stage: Stage, server: ServerProcess) -> None:
    stage.greet(server)
    session_id = stage.create(server)
    for text in ("one", "two"):
        stage.prompt(server, session_id, text)
        server.wait(session_id)
    asked = server.request("session/compact", sessionId=session_id)
    while not snapshot(stage.store, shared=True).owned:
        server.call("session/list")
    stage.prompt(server, session_id, "while it is made")
    _answered(server, asked)
    server.wait(session_id)


def _answered(server: ServerProcess, request_id: int) -> None:
    """Waits for an answer that may have come among others."""
    if not any(m.get("id") == request_id and "method" not in m for m in server.seen):
        server.result(request_id)


def fork(stage: Stage, server: ServerProcess) -> None:
    """A fork of a history that is long enough for several pieces."""
    session_id = _grown(stage, server)
    stage.creating += 1
    server.call("session/fork", sessionId=session_id)


def bring_in(stage: Stage, server: ServerProcess) -> None:
    """An exported session comes back under another id, in several pieces."""
    session_id = _grown(stage, server)
    text, more = "", {}
    while True:
        page = server.call("session/export", sessionId=session_id, **more)
        text += page["text"]
        if not page.get("nextCursor"):
            break
        more = {"cursor": page["nextCursor"]}
    stage.creating += 1
    server.call("session/import", content=text, newId=True)


def _grown(stage: Stage, server: ServerProcess) -> str:
    """A session with too much in it for one commit."""
    session_id = _begin_long(stage, server)
    for number in range(PIECE_BYTES // 50_000 + 2):
        stage.prompt(server, session_id, f"bulky {number} " + "x" * 50_000)
    stage.let_go()
    server.wait(session_id)
    return session_id


def rewind(stage: Stage, server: ServerProcess) -> None:
    stage.greet(server)
    session_id = stage.create(server)
    for text in ("one", "two"):
        stage.prompt(server, session_id, text)
        server.wait(session_id)
    turns = server.call("session/turns", sessionId=session_id)["data"]
    server.call("session/rewind", sessionId=session_id, beforeTurnId=turns[-1]["turnId"])


def edit_queue(stage: Stage, server: ServerProcess) -> None:
    """Prompts that wait are rewritten, and taken out."""
    session_id = _begin_long(stage, server)
    for text in ("to be rewritten", "to be taken out"):
        stage.prompt(server, session_id, text)
    first, second = (said.seq for said in stage.said[1:])
    server.call(
        "session/queueUpdate", sessionId=session_id, eventSeq=first,
        content=[{"type": "text", "text": "rewritten"}],
    )  # fmt: skip
    server.call("session/queueRemove", sessionId=session_id, eventSeq=second)
    stage.let_go()
    server.wait(session_id)


def close(stage: Stage, server: ServerProcess) -> None:
    session_id = _begin_long(stage, server)
    stage.prompt(server, session_id, "queued")
    server.call("session/close", sessionId=session_id)


def delete(stage: Stage, server: ServerProcess) -> None:
    session_id = _begin_long(stage, server)
    server.call("session/delete", sessionId=session_id)


def change(stage: Stage, server: ServerProcess) -> None:
    """Small changes, of the session and of the rules."""
    stage.greet(server)
    session_id = stage.create(server)
    server.call("session/update", sessionId=session_id, title="A title", mode="ask")
    server.call("session/archive", sessionId=session_id)
    server.call("session/unarchive", sessionId=session_id)
    rule = server.call(
        "approval/ruleAdd", scope="workspace", workspace=str(stage.cwd), tool="run_command",
        pattern="ls *", effect="allow",
    )  # fmt: skip
    server.call("approval/ruleRemove", ruleId=rule["rule"]["ruleId"])


def keyed(stage: Stage, server: ServerProcess) -> None:
    """Each request bears a key, so that it can be sent again whatever became of it."""
    stage.greet(server)
    session_id = stage.create(server, idempotencyKey="create")
    stage.prompt(server, session_id, "run", idempotencyKey="prompt")
    server.wait(session_id)


# --- scenes that begin with the death of another server --------------------------------------------


def _dies_asking(stage: Stage) -> str:
    with ServerProcess(stage.folder, model=stage.model, approvals=False) as first:
        session_id = stage.create(first)
        stage.prompt(first, session_id, "ask")
        stage.approvals(first, session_id)
        stage.prompt(first, session_id, "behind it")
        first.kill()
    return session_id


def resume(stage: Stage, server: ServerProcess) -> None:
    """A server that finds a turn which only waits, parks it, and resumes it by the answer."""
    session_id = stage.created[0]
    stage.greet(server)
    stage.answer_all(server, session_id)


def drop_parked(stage: Stage, server: ServerProcess) -> None:
    stage.greet(server)
    server.call("session/cancel", sessionId=stage.created[0])
    server.wait(stage.created[0])


def _dies_running(stage: Stage) -> None:
    with ServerProcess(stage.folder, model=stage.model, approvals=False) as first:
        session_id = stage.create(first)
        stage.prompt(first, session_id, "long")
        until(first, stage.cwd / "began")
        stage.prompt(first, session_id, "behind it")
        other = stage.create(first)
        stage.prompt(first, other, "hang")
        first.call("event/subscribe", scope={"kind": "session", "id": other},
                   **{"from": "start"}, deltas=True)  # fmt: skip
        first.until_event(lambda e: e["type"] == "ack")
        first.kill()


def recover(stage: Stage, server: ServerProcess) -> None:
    """A server that finds the runs of a dead one and dies over them itself."""
    stage.greet(server)
    for session_id in stage.created:
        server.wait(session_id)


def _dies_forking(stage: Stage) -> None:
    die(stage, "sessions.publish.committed", fork)


def tidy(stage: Stage, server: ServerProcess) -> None:
    """A server that finds half a fork."""
    stage.greet(server)
    server.call("session/list")


PRELUDES: dict[Play, Callable[[Stage], object]] = {
    resume: _dies_asking,
    drop_parked: _dies_asking,
    recover: _dies_running,
    tidy: _dies_forking,
}
"""What happens before the server that is to die is started."""


# --- scenes with a second server that lives on ------------------------------------------------------


def watched(stage: Stage, server: ServerProcess) -> None:
    """The server dies under the eyes of another one."""
    stage.greet(server)
    other = stage.other()
    session_id = stage.create(server)
    stage.prompt(server, session_id, "run")
    stage.prompt(other, session_id, "from the other side")
    server.wait(session_id)


def watched_asking(stage: Stage, server: ServerProcess) -> None:
    """The other server answers what this one asks."""
    stage.greet(server)
    other = stage.other()
    session_id = stage.create(server)
    stage.prompt(server, session_id, "ask")
    for approval in stage.approvals(other, session_id):
        try:
            other.call("approval/answer", approvalId=approval, optionId="allow_once")
        except RpcError as error:  # the server has died of the one before, and its turn with it
            held(error.kind == "alreadyResolved", error)
    server.wait(session_id)


def answering(stage: Stage, server: ServerProcess) -> None:
    """The server dies over its answer to what another one asks."""
    other = stage.other()
    session_id = stage.create(other)
    stage.prompt(other, session_id, "ask")
    stage.greet(server)
    stage.answer_all(server, session_id)


def steering(stage: Stage, server: ServerProcess) -> None:
    """The server dies over what it says to a turn of another one."""
    other = stage.other()
    session_id = stage.create(other)
    stage.prompt(other, session_id, "long")
    until(other, stage.cwd / "began")
    stage.greet(server)
    stage.prompt(server, session_id, "and another thing", delivery="steer")
    server.call("session/cancel", sessionId=session_id)


SHARED = frozenset({watched, watched_asking, answering, steering})
"""Another server is there when this one dies, and does what is to be done."""
