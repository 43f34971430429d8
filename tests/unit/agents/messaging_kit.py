"""What the tests of messages between agents share: agents at work, whose runs a test can speak for."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import orjson
from agents_kit import Troupe
from attrs import define, field

from callboard.agents.asks import Ask
from callboard.agents.siblings import Sent
from callboard.agents.state import AgentState
from callboard.models.base import ModelEvent, ModelRequest, ToolMessage
from callboard.turns.reservation import Grant
from harness.puppets import Pause, Scene, calls, of, pauses

ON: Mapping[str, str] = {"CALLBOARD_FEATURES": "agents.messaging"}


@define
class AtWork:
    """An agent in the middle of a turn, until its pause is opened."""

    t: Troupe
    agent: AgentState
    pause: Pause
    grant: Grant
    tasks: set["asyncio.Task[Any]"] = field(factory=set["asyncio.Task[Any]"])

    @property
    def agent_id(self) -> str:
        return self.agent.agent_id

    async def asks(self, text: str = "may I?", *, expects_reply: bool = True) -> Ask:
        return await self.t.agents.messaging.ask(self.grant, text, expects_reply=expects_reply)

    async def asking(self, text: str = "may I?") -> "tuple[str, asyncio.Task[Ask]]":
        """The id of a question that is open, and who waits for its reply."""
        task = asyncio.get_running_loop().create_task(self.asks(text))
        self.tasks.add(task)
        asked = await until_event(self.t, self.agent_id, "agent_asked", lambda e: e.text == text)
        return asked.ask_id, task

    async def writes(self, to: str, text: str, *, expects_reply: bool = False) -> Sent:
        return await self.t.agents.messaging.send(self.grant, to, text, expects_reply=expects_reply)


async def at_work(t: Troupe, root: str, name: str, *scenes: Scene, **more: Any) -> AtWork:
    """A child that is paused in its first answer; `scenes` come after that."""
    pause = Pause()
    t.cast.parts[name] = [pauses(pause, "one moment"), *scenes]
    agent = await t.spawn(root, name, **more)
    await pause.came()
    live = t.host.dispatcher.live(agent.agent_id)
    assert live is not None
    return AtWork(t, agent, pause, live.grant)


async def until_event(
    t: Troupe, session_id: str, kind: str, wanted: Callable[[Any], bool] = lambda _: True
) -> Any:
    """The first event of a kind in a session that is wanted, once it is there."""
    async with asyncio.timeout(60):
        while True:
            position = t.host.log.head
            found = [e for e in of(await t.log(session_id), kind) if wanted(e)]
            if found:
                return found[0]
            await t.host.log.moved(position)


async def finished(t: Troupe, agent: AgentState) -> AgentState:
    """The agent once its turn has ended, whatever it asks meanwhile."""
    async with asyncio.timeout(60):
        while True:
            position = t.host.log.head
            now = t.agents.agent(agent.agent_id)
            if now.is_terminal:
                return now
            await t.host.log.moved(position)


def replies(text: str, then: Callable[[], None] = lambda: None) -> Scene:
    """Answers the question that the last result told of."""

    async def scene(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        ask_id = question_in(request)["ask_id"]
        then()
        async for event in calls(("reply", {"ask_id": ask_id, "text": text}))(request):
            yield event

    return scene


def question_in(request: ModelRequest) -> Any:
    last = next(m for m in reversed(request.messages) if isinstance(m, ToolMessage))
    told = orjson.loads(last.outputs[-1].text)
    return told["question"] if "question" in told else told["questions"][0]


def waiting_for(t: Troupe, session_id: str) -> list[tuple[str, str]]:
    """What lies in a session's inbox: kind and id, in order."""
    rows: Sequence[tuple[Any, ...]] = t.host.log.glance(
        "SELECT kind, delivery_id FROM inbox WHERE session_id = ? ORDER BY generation", session_id
    )
    return [(kind, delivery_id) for kind, delivery_id in rows]


def settled(records: Sequence[Any]) -> list[tuple[str, str]]:
    """Which questions have their end, and which."""
    return [(e.ask_id, e.outcome) for e in of(records, "agent_replied")]
