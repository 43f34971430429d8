"""Scenes that are played by a real server and recorded for the specs of the Neovim plugin: one for each thing that a
transcript has to show. Each is a function of an empty folder that writes its recording under its own name.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from recording import taken, write

from harness.process import PATIENCE_S, ServerProcess, scenario

SCRIPT = r"""
rules:
  - when: {last_user: {regex: "^write (\\S+)"}, step: 0}
    answer:
      - think: A file is wanted.
      - say: I will write it.
      - call: {tool: write_file, arguments: {path: "{{match.1}}", content: "one\ntwo\nthree\n"}}
  - when: {last_user: {regex: "^run (.+)$"}, step: 0}
    answer: [{call: {tool: run_command, arguments: {command: "{{match.1}}"}}}]
  - when: {last_user: {regex: "^read (\\S+)"}, step: 0}
    answer: [{call: {tool: read_file, arguments: {path: "{{match.1}}"}}}]
  - when: {last_user: {regex: "^plan"}, step: 0}
    answer:
      - call:
          tool: update_plan
          arguments: {entries: [{content: Look, status: completed}, {content: Mend, status: in_progress}, {content: Show}]}
  - when: {last_user: {regex: "^hang"}}
    answer: [{think: "I wonder."}, {say: "I begin, and then"}, {hang: true}]
  - when: {last_user: {regex: "^fail"}}
    answer: [{say: "I begin."}, {fail: {kind: modelError, message: "The model said: no.", retryable: false, http_status: 400}}]
  - when: {last_user: {regex: "^overload"}}
    answer:
      - fail: {kind: modelError, message: Overloaded, retryable: true, http_status: 529, times: 1}
      - say: The second time it worked.
      - usage: {input_tokens: 1200, output_tokens: 34, cost: 0.0125, currency: USD}
  - when: {last_user: {regex: "^hostile"}, step: 0}
    answer:
      - say: "# A title\r\nred: \e[31mred\e[0m bell: \a bidi: \u202eabc\u202c tab:\there `code` *stars* %#Error#%{1+1}"
      - call: {tool: run_command, arguments: {command: "printf 'a\\033[31mb\\rc\\n'; echo '\u202egpj.exe' # a\nnew line"}}
  - when: {last_tool: {name: write_file, status: error}}
    answer: Then not.
  - when: {last_tool: {contains: ""}}
    answer: [{say: "Done."}, {usage: {input_tokens: 900, output_tokens: 12}}]
  - when: {last_user: {regex: "(?s)ask beta$"}, system: "You are alpha."}
    answer: [{say: "What do you think, @beta?"}]
  - when: {system: "You are alpha."}
    answer: [{say: "I am alpha, @beta."}]
  - when: {system: "You are beta."}
    answer: [{say: "I am beta, @alpha."}]
default:
  - say: "You said: {{last_user}}"
"""

Scene = Callable[[Path], None]
SCENES: dict[str, Scene] = {}


class Stage:
    """A folder with a project, a store, and servers on it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.project = folder / "project"
        self.project.mkdir()
        (self.project / "notes.txt").write_text("A note.\n")
        self._model = scenario(folder, SCRIPT)
        self.server = self.start()

    def start(self, **more: Any) -> ServerProcess:
        self.server = ServerProcess(self.folder, model=self._model, **more)
        return self.server

    def ask(self, session_id: str, text: str, **more: Any) -> dict[str, Any]:
        """A prompt, and the end of all that it began."""
        self.server.prompt(session_id, text, **more)
        return self.server.wait(session_id)

    def asked(self, session_id: str) -> dict[str, Any]:
        """The approval that the session waits for."""
        return self.server.wait(session_id, "attention")["approvals"][0]

    def answer(self, session_id: str, option: str, **more: Any) -> None:
        approval = self.asked(session_id)
        self.server.call(
            "approval/answer", approvalId=approval["approvalId"], optionId=option, **more
        )

    def got(self, session_id: str) -> dict[str, Any]:
        return self.server.call("session/get", sessionId=session_id)

    def until(self, holds: Callable[[], bool]) -> None:
        ends = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < ends, f"{self.name} came to nothing"
            time.sleep(0.01)

    def record(self) -> None:
        events, said = taken(self.server)
        folders = {
            self._model: "scripted/scene",
            str(self.project): "/project",
            str(self.folder): "/tmp/recorded",
        }
        write(self.name, events, said, folders)


@contextmanager
def _stage(folder: Path, name: str) -> Iterator[Stage]:
    stage = Stage(folder, name)
    try:
        yield stage
        stage.record()
    finally:
        stage.server.__exit__()


def scene(played: Callable[[Stage], None]) -> Callable[[Stage], None]:
    name = played.__name__.replace("_", "-")

    def recorded(folder: Path) -> None:
        with _stage(folder, name) as stage:
            played(stage)

    SCENES[name] = recorded
    return played


def streamed(stage: Stage, session_id: str, text: str) -> None:
    """Waits until the draft of the running answer begins so."""
    stage.until(
        lambda: ((stage.got(session_id).get("draft") or {}).get("answer") or "").startswith(text)
    )


@scene
def approvals(stage: Stage) -> None:
    """Allowed once, rejected with words, allowed for the session."""
    session = stage.server.create(stage.project, title="Answers")
    stage.server.prompt(session, "write one.txt")
    stage.answer(session, "allow_once")
    stage.server.wait(session)
    stage.server.prompt(session, "write two.txt")
    stage.answer(session, "reject_once", feedback="There are enough files.")
    stage.server.wait(session)
    stage.server.prompt(session, "run echo hello")
    stage.answer(session, "allow_session")
    stage.server.wait(session)
    stage.ask(session, "run echo again")


@scene
def waiting(stage: Stage) -> None:
    """An approval that nobody has answered yet."""
    session = stage.server.create(stage.project)
    stage.ask(session, "hello")
    stage.server.prompt(session, "write one.txt")
    stage.asked(session)


@scene
def parked(stage: Stage) -> None:
    """The same after its server has gone: the turn is parked."""
    session = stage.server.create(stage.project)
    stage.server.prompt(session, "write one.txt")
    stage.asked(session)
    stage.server.close()
    stage.start()
    stage.until(lambda: stage.got(session)["session"]["status"] == "parked")


@scene
def resumed(stage: Stage) -> None:
    """A parked turn that an answer woke."""
    session = stage.server.create(stage.project)
    stage.server.prompt(session, "write one.txt")
    approval = stage.asked(session)
    stage.server.close()
    stage.start()
    stage.server.call("approval/answer", approvalId=approval["approvalId"], optionId="allow_once")
    stage.server.wait(session)


@scene
def cancelled(stage: Stage) -> None:
    """A turn that was stopped while its model spoke, and one while it waited for an approval."""
    session = stage.server.create(stage.project)
    stage.server.prompt(session, "hang")
    streamed(stage, session, "I begin")
    stage.server.call("session/cancel", sessionId=session, reason="enough")
    stage.server.wait(session)
    stage.server.prompt(session, "write one.txt")
    stage.asked(session)
    stage.server.call("session/cancel", sessionId=session)
    stage.server.wait(session)


@scene
def streaming(stage: Stage) -> None:
    """A turn whose answer is under way: the draft has it."""
    session = stage.server.create(stage.project)
    stage.server.prompt(session, "hang")
    streamed(stage, session, "I begin")


@scene
def failed(stage: Stage) -> None:
    session = stage.server.create(stage.project)
    stage.ask(session, "fail")
    stage.ask(session, "hello")


@scene
def retried(stage: Stage) -> None:
    session = stage.server.create(stage.project)
    stage.ask(session, "overload")


@scene
def queue(stage: Stage) -> None:
    """Prompts that wait, one of them changed, one taken back, one a steer."""
    session = stage.server.create(stage.project)
    stage.server.prompt(session, "write one.txt")
    stage.asked(session)
    for text in ("first", "second", "third"):
        stage.server.prompt(session, text, delivery="queue", clientMessageId=f"mine.{text}")
    steer = stage.server.prompt(session, "and mind the name", delivery="steer")
    assert steer["outcome"] == "steered"
    waiting = stage.server.call("session/queue", sessionId=session)["data"]
    by_text = {each["content"][0]["text"]: each["eventSeq"] for each in waiting}
    stage.server.call("session/queueRemove", sessionId=session, eventSeq=by_text["second"])
    stage.server.call(
        "session/queueUpdate",
        sessionId=session,
        eventSeq=by_text["third"],
        content=[{"type": "text", "text": "third, as it was meant"}],
    )


@scene
def steered(stage: Stage) -> None:
    """What was said during a turn: a steer, taken in at its next step, and a prompt, after its end."""
    session = stage.server.create(stage.project)
    stage.server.prompt(session, "write one.txt")
    stage.asked(session)
    stage.server.prompt(session, "and then this", delivery="queue")
    stage.server.prompt(session, "mind the name", delivery="steer")
    stage.answer(session, "allow_once")
    stage.server.wait(session)


@scene
def rewound(stage: Stage) -> None:
    session = stage.server.create(stage.project)
    for text in ("one", "plan", "three"):
        stage.ask(session, text)
    turns = stage.server.call("session/turns", sessionId=session)["data"]
    second = sorted(turns, key=lambda turn: turn["index"])[1]
    stage.server.call("session/rewind", sessionId=session, beforeTurnId=second["turnId"])
    stage.ask(session, "four")


@scene
def forked(stage: Stage) -> None:
    """A fork of a session that was rewound, and what was said in it."""
    session = stage.server.create(stage.project, title="The first")
    for text in ("one", "two"):
        stage.ask(session, text)
    turns = stage.server.call("session/turns", sessionId=session)["data"]
    last = max(turns, key=lambda turn: turn["index"])
    stage.server.call("session/rewind", sessionId=session, beforeTurnId=last["turnId"])
    stage.ask(session, "instead")
    fork = stage.server.call("session/fork", sessionId=session)["session"]["sessionId"]
    stage.ask(fork, "elsewhere")


@scene
def summarised(stage: Stage) -> None:
    session = stage.server.create(stage.project)
    for n in range(4):
        stage.ask(session, f"number {n} " + "word " * 200)
    stage.server.call("session/compact", sessionId=session)
    stage.ask(session, "after it")


@scene
def changed(stage: Stage) -> None:
    """Mode, model, title, plan; archived and brought back; closed."""
    session = stage.server.create(stage.project)
    stage.ask(session, "plan")
    stage.server.call("session/update", sessionId=session, title="Another title", mode="plan")
    stage.server.call("session/update", sessionId=session, model="scripted/demo")
    stage.server.call("session/update", sessionId=session, model=None, pinned=True)
    stage.ask(session, "hello")
    stage.server.call("session/archive", sessionId=session)
    stage.server.call("session/unarchive", sessionId=session)
    stage.server.call("session/close", sessionId=session)


@scene
def hostile(stage: Stage) -> None:
    """What a model, a command and a person may write."""
    session = stage.server.create(stage.project, title="A %#Error# title\nin \u202etwo\u202c lines")
    stage.server.prompt(session, "hostile \u2066prompt\u2069\nwith \x1b[31mlines\x1b[0m")
    stage.answer(session, "allow_once")
    stage.server.wait(session)


@scene
def large(stage: Stage) -> None:
    """Texts that the event holds only in part."""
    (stage.project / "large.txt").write_text("".join(f"line {n}\n" for n in range(9000)))
    session = stage.server.create(stage.project)
    stage.ask(session, "read large.txt")
    stage.server.prompt(session, "run seq 1 30000")
    stage.answer(session, "allow_once")
    stage.server.wait(session)


@scene
def context(stage: Stage) -> None:
    """A prompt with files, an image and a selection."""
    session = stage.server.create(stage.project)
    stage.server.call(
        "session/prompt",
        sessionId=session,
        content=[
            {"type": "text", "text": "Look at these."},
            {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="},
            {"type": "resource", "uri": "file:///project/x.lua#diagnostics", "text": "1:1 error x"},
        ],
        context=[
            {"uri": (stage.project / "notes.txt").as_uri()},
            {
                "uri": (stage.project / "notes.txt").as_uri(),
                "range": {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}},
            },
        ],
    )
    stage.server.wait(session)


@scene
def crashed(stage: Stage) -> None:
    """A server that was killed while its model spoke; the next one has ended the turn."""
    session = stage.server.create(stage.project)
    stage.server.prompt(session, "hang")
    streamed(stage, session, "I begin")
    stage.server.prompt(session, "still there?", delivery="queue")
    stage.server.kill()
    stage.server.__exit__()
    stage.start()
    stage.server.wait(session)


@scene
def room(stage: Stage) -> None:
    """Two agents in one session, until they have said enough to one another; a member comes and goes."""
    place = stage.folder / "home" / "config" / "agents"
    place.mkdir(parents=True)
    for name in ("alpha", "beta"):
        (place / f"{name}.md").write_text(f"---\nname: {name}\n---\nYou are {name}.\n")
    stage.server.__exit__()
    stage.start(callboard={"config": {"rooms": {"burst_budget": 4}}})
    session = stage.server.create(stage.project, members=["alpha"], title="A room")
    stage.server.call("session/memberAdd", sessionId=session, name="beta")
    stage.ask(session, "@alpha ask beta")
    stage.server.call("session/memberRemove", sessionId=session, name="alpha")
    stage.ask(session, "hello")


@scene
def mentioned(stage: Stage) -> None:
    """A room in which a member is to speak next, and another one's approval is waited for."""
    place = stage.folder / "home" / "config" / "agents"
    place.mkdir(parents=True)
    for name in ("alpha", "beta"):
        (place / f"{name}.md").write_text(f"---\nname: {name}\n---\nYou are {name}.\n")
    stage.server.__exit__()
    stage.start()
    session = stage.server.create(stage.project, members=["alpha", "beta"])
    stage.server.prompt(session, "write one.txt", to="beta")
    stage.asked(session)
    stage.server.prompt(session, "@alpha hello", delivery="queue")


@scene
def scheduled(stage: Stage) -> None:
    """A schedule fires in a session that rests, and in one that is busy."""
    session = stage.server.create(stage.project, mode="work")
    schedule = stage.server.call(
        "schedule/create",
        profile="default",
        name="nightly",
        trigger={"cron": "0 0 29 2 *"},
        prompt="look around",
        target={"sessionId": session},
    )["schedule"]
    stage.server.call("event/subscribe", scope={"kind": "session", "id": session})
    stage.server.call("schedule/runNow", scheduleId=schedule["scheduleId"])
    stage.server.told(lambda e: e["type"] == "turn_finished")
    stage.server.prompt(session, "write one.txt")
    stage.asked(session)
    stage.server.call("schedule/runNow", scheduleId=schedule["scheduleId"])


@scene
def peers(stage: Stage) -> None:
    """Two sessions that were linked, wrote, and parted."""
    stage.server.__exit__()
    stage.start(environ={"CALLBOARD_FEATURES": "peers"})
    one = stage.server.create(stage.project, title="one")
    two = stage.server.create(stage.project, title="two")
    token = stage.server.call("peer/invite", sessionId=one)["token"]
    stage.server.call("peer/accept", sessionId=two, token=token)
    stage.server.call("peer/send", sessionId=one, to=two, text="How far are you?")
    stage.server.call("event/subscribe", scope={"kind": "session", "id": two}, **{"from": "start"})
    stage.server.told(lambda e: e["type"] == "turn_finished")
    stage.server.call("peer/leave", sessionId=two, peerId=one)
