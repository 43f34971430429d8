"""A host in a process of its own whose agents claim the tasks of one board against those of others.

Its input is one line of JSON: what there is (`Wanted`, below); a second, empty line is the start, for all
at once. Its output is ``ready``, and then what came of it, as JSON.
"""

import asyncio
import random
import sys
from pathlib import Path
from typing import Any

import orjson

from callboard.agents.examining import Caller
from callboard.agents.examining import Wanted as Agent
from callboard.agents.service import Agents
from callboard.groups.membership import Participant
from callboard.groups.service import Groups
from callboard.host import Host
from callboard_rpc.common import Actor, SessionId
from callboard_rpc.errors import CallboardError
from harness.inside import CLIENT, PERSON, host_in


class Racer:
    """What one process does. `wanted`: ``root``, ``agents`` (those that claim here), ``tasks`` (for
    claims), ``given`` (for agents that are spawned with them), ``reader`` (an agent that is to go on)."""

    def __init__(self, host: Host, wanted: dict[str, Any]) -> None:
        groups, agents = host.services["groups"], host.services["agents"]
        assert isinstance(groups, Groups)
        assert isinstance(agents, Agents)
        self.groups, self.agents, self.wanted = groups, agents, wanted
        self.won: dict[str, list[str]] = {}
        self.lost: list[tuple[str, str]] = []
        """Tasks, and who had them when a claim of them was refused."""
        self.spawned: dict[str, str] = {}

    async def run(self) -> dict[str, Any]:
        await asyncio.gather(*map(self.claim_all, self.wanted["agents"]))
        for number, task_id in enumerate(self.wanted["given"]):
            await self.spawn(number, task_id)
        await asyncio.gather(self.call_on(), self.call_on())
        return {"won": self.won, "lost": self.lost, "spawned": self.spawned}

    async def claim_all(self, agent_id: str) -> None:
        """Every task, in an order of this agent's own."""
        mine = self.won.setdefault(agent_id, [])
        tasks = list(self.wanted["tasks"])
        random.Random(agent_id).shuffle(tasks)
        who = Participant(
            root_id=SessionId(self.wanted["root"]),
            agent_id=SessionId(agent_id),
            by=Actor(kind="agent", id=agent_id),
        )
        for task_id in tasks:
            try:
                task = await self.groups.claim(who, task_id)
            except CallboardError as error:
                if error.kind != "taskNotClaimable":
                    raise
                assert error.data is not None
                self.lost.append((task_id, error.data["assignee"]))
            else:
                assert task.assignee == agent_id, task
                mine.append(task_id)

    async def spawn(self, number: int, task_id: str) -> None:
        """An agent for a task that every process wants one for."""
        name = f"{self.wanted['agents'][0][-4:]}-{number}"
        caller = Caller(parent_id=self.wanted["root"], by=CLIENT)
        try:
            made = await self.agents.spawn(
                caller, Agent(name=name, message="work", task_id=task_id)
            )
        except CallboardError as error:
            if error.kind != "taskNotClaimable":
                raise
        else:
            self.spawned[task_id] = made.agent_id

    async def call_on(self) -> None:
        await self.agents.send(
            self.wanted["reader"], "go on", goes_on=True, author=PERSON, by=CLIENT
        )


async def main(folder: str, model: str) -> None:
    loop = asyncio.get_running_loop()
    environ = {"CALLBOARD_AGENTS_MAX_OPEN": "1000", "CALLBOARD_AGENTS_REPORTS": "wait"}
    async with host_in(Path(folder), model=model, environ=environ) as host:
        wanted = orjson.loads(await loop.run_in_executor(None, sys.stdin.readline))
        print("ready", flush=True)
        await loop.run_in_executor(None, sys.stdin.readline)
        print(orjson.dumps(await Racer(host, wanted).run()).decode(), flush=True)
        await loop.run_in_executor(None, sys.stdin.readline)  # until all have done what they do


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
