"""What the tests of agents of other makers share: a real server with such an agent behind a profile, and models that do
what the prompt says."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from attrs import define, field
from known_agents import KnownAgent

from fakes.prompted import PromptedModels
from harness.process import PATIENCE_S, ServerProcess
from harness.processes import bearing

Event = dict[str, Any]


@define
class Play:
    """One store, and the servers that are started on it one after the other. `asked` are the approvals that anybody
    was asked for, `answer` is the option that is chosen; None leaves them open."""

    folder: Path
    models: PromptedModels
    agent: KnownAgent
    answer: str | None = "allow_once"
    asked: list[dict[str, Any]] = field(factory=list)
    server: ServerProcess = field(init=False)

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @contextmanager
    def serve(self, *, model: str | None = None) -> Iterator[ServerProcess]:
        with ServerProcess(self.folder, model=model, answer=self._answer) as server:
            self.server = server
            yield server

    def _answer(self, approval: dict[str, Any]) -> dict[str, Any] | None:
        self.asked.append(approval)
        return None if self.answer is None else {"optionId": self.answer}

    def session(self, profile: str | None = None, *, mode: str = "work", **more: Any) -> str:
        session_id = self.server.create(
            self.work, profile=profile or self.agent.name, mode=mode, **more
        )
        self.server.call(
            "event/subscribe",
            scope={"kind": "tree", "id": session_id},
            deltas=True,
            **{"from": "now"},
        )
        return session_id

    def turn(self, session_id: str, text: str, **more: Any) -> list[Event]:
        """One prompt to its end; the events that came of it."""
        before = len(self.server.events(session_id))
        self.server.prompt(session_id, text, **more)
        assert self.server.wait(session_id)["reason"] == "idle"
        return self.server.events(session_id)[before:]

    def until_said(self, text: str) -> None:
        """Returns once that is shown of an answer."""
        said = ""

        def holds(message: dict[str, Any]) -> bool:
            nonlocal said
            if message.get("method") == "event/delta":
                said += message["params"]["text"]
            return text in said

        self.server.until(holds)

    def left(self) -> list[psutil.Process]:
        """The processes of the agent, whoever started them."""
        return bearing(f"{MARK}={self.folder}")

    def leaves_nothing(self) -> None:
        for process in self.left():
            process.wait(PATIENCE_S)


MARK = "AGENT_OF_THE_TEST"


@contextmanager
def play(folder: Path, agent: KnownAgent, *others: KnownAgent) -> Iterator[Play]:
    (folder / "work").mkdir()
    with PromptedModels() as models:
        for each in (agent, *others):
            each.write_profile(
                folder / "home" / "config", models.url, folder / "home", {MARK: str(folder)}
            )
        made = Play(folder, models, agent)
        yield made
        made.leaves_nothing()


# --- what is in a log ---


def of(events: list[Event], kind: str) -> list[dict[str, Any]]:
    return [event["data"] for event in events if event["type"] == kind]


def end(events: list[Event]) -> dict[str, Any]:
    """The one end of the one turn."""
    (finished,) = of(events, "turn_finished")
    return finished


def blocks(events: list[Event], kind: str) -> str:
    """What an agent said (``text``), or thought (``thinking``)."""
    return "".join(
        block["text"]
        for message in of(events, "message")
        if message["author"]["kind"] == "agent"
        for block in message["content"]
        if block["type"] == kind
    )


def calls(events: list[Event]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each call with its one result, in order."""
    results = of(events, "tool_result")
    made: list[tuple[dict[str, Any], dict[str, Any]]] = []
    for call in of(events, "tool_call"):
        (result,) = [each for each in results if each["callId"] == call["callId"]]
        made.append((call, result))
    assert len(results) == len(made)
    return made


def shown(approval: dict[str, Any]) -> str:
    """All that a person is shown of what is asked."""
    return json.dumps([approval["title"], approval["subject"]])
