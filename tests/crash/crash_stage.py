"""A store, a workspace, a scripted model, and server processes that die at a chosen point."""

import queue
import signal
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from attrs import define, field

from callboard.acp.client.feature import feature as external_agents
from callboard.host import Environment, Host, open_host
from callboard_rpc.common import Actor
from harness.process import Gone, ServerProcess, scenario

MODEL = """
chunk: 5
rules:
  - when: {system: {contains: "You write the summary"}}
    answer: [{wait_ms: 150}, {say: "A summary."}]
  - when: {last_user: {regex: "^talk"}}
    answer: [{say: {text: "There is much to say of it. ", repeat: 3, chunk: 5, delay_ms: 6}}]
  - when: {last_user: {regex: "^think"}}
    answer: [{think: "Let me see."}, {wait_ms: 30}, {say: {text: "So it is. ", repeat: 2, chunk: 5, delay_ms: 6}}]
  - when: {last_user: {regex: "^(run|ask)"}, step: 0}
    answer:
      - say: I run it.
      - call: {tool: run_command, arguments: {command: "echo $CALLBOARD_CALL >> ran.txt"}}
      - call: {tool: run_command, arguments: {command: "echo $CALLBOARD_CALL >> ran.txt"}}
  - when: {last_user: {regex: "^long"}, step: 0}
    answer:
      - call:
          tool: run_command
          arguments:
            command: "echo $CALLBOARD_CALL >> ran.txt; touch began; while [ ! -e go ]; do sleep 0.01; done"
      - call: {tool: run_command, arguments: {command: "echo $CALLBOARD_CALL >> ran.txt"}}
  - when: {last_user: {regex: "^loud"}, step: 0}
    answer:
      - call: {tool: run_command, arguments: {command: "echo $CALLBOARD_CALL >> ran.txt; seq 1 20000"}}
  - when: {last_user: {regex: "^read"}, step: 0}
    answer:
      - call: {tool: list_files, arguments: {path: .}}
      - call: {tool: read_file, arguments: {path: seed.txt}}
      - call: {tool: search_files, arguments: {pattern: seed}}
  - when: {last_user: {regex: "^write"}, step: 0}
    answer:
      - call: {tool: write_file, arguments: {path: new.txt, content: "all of it"}}
      - call: {tool: edit_file, arguments: {path: seed.txt, edits: [{old_text: seed, new_text: plant}]}}
  - when: {last_user: {regex: "^delegate"}, step: 0}
    answer:
      - call: {tool: spawn_agent, arguments: {name: one, message: run}}
      - call: {tool: spawn_agent, arguments: {name: two, message: talk}}
  - when: {last_user: {regex: "^delegate"}, step: 1}
    answer: [{call: {tool: wait_agents, arguments: {agent_ids: [one]}}}]
  - when: {last_user: {regex: "^hand over"}, step: 0}
    answer: [{call: {tool: spawn_agent, arguments: {name: one, message: run, wait: true}}}]
  - when: {last_user: {regex: "^wonder"}, step: 0}
    answer: [{call: {tool: message, arguments: {to: parent, text: "Left or right?"}}}]
  - when: {last_user: {regex: "^whisper"}, step: 0}
    answer: [{call: {tool: message, arguments: {to: two, text: "Psst."}}}]
  - when: {last_user: {regex: '^assign (\\S+) (\\S+)'}, step: 0}
    answer:
      - call:
          tool: spawn_agent
          arguments: {name: one, message: "labour {{match.1}} {{match.2}}", task_id: "{{match.1}}"}
  - when: {last_user: {regex: '^labour (\\S+)'}, step: 0}
    answer: [{call: {tool: group_task, arguments: {op: complete, task_id: "{{match.1}}", summary: Done.}}}]
  - when: {last_user: {regex: '^labour \\S+ (\\S+)'}, step: 1}
    answer: [{call: {tool: group_task, arguments: {op: claim, task_id: "{{match.1}}"}}}]
  - when: {last_user: {regex: '(?s)<member name="default">.{0,99}</member>$'}}
    answer: [{say: "I say no, @default."}]
  - when: {last_user: {regex: '(?s)<member name="two">.{0,99}</member>$'}}
    answer: [{say: "And I say yes, @two."}]
  - when: {last_user: {regex: "^gather"}}
    answer: [{say: "What do you say, @two?"}]
  - when: {last_user: {regex: "^finish"}, step: 0}
    answer: [{call: {tool: complete, arguments: {implementation_done: true, summary: All.}}}]
  - when: {last_user: {regex: "^bulky"}}
    answer: [{say: Noted.}]
  - when: {last_user: {regex: "^hang"}}
    answer: [{say: "I begin"}, {hang: true}]
  - when: {last_user: {regex: "^fail"}}
    answer: [{fail: {kind: modelError, message: No., retryable: false}}]
  - when: {last_user: {regex: "^busy"}}
    answer: [{fail: {kind: modelError, message: Later., retryable: true, times: 1}}, {say: Now.}]
default:
  - say: "Answered {{last_user}}."
"""

CONFIG = """
features = ["agents.interrupts", "agents.messaging", "peers"]
{approvals}
[agents]
cancel_grace_s = 1
max_running = {running}
[approvals.policy]
execute = "{execute}"
write = "allow"
[draft]
interval_ms = 10
[tools]
output_bytes = 2000
"""

HOOKS = """
[[hooks.session_start]]
command = "echo '{\\"context\\": \\"the build is red\\"}'"
[[hooks.stop]]
command = "test -e stopped || { touch stopped; echo One thing more. >&2; exit 2; }"
"""

_LAST_S = 30.0
"""How long the point may take to come when the scene is over."""

CLIENT = Actor(kind="client", id="matrix")


@define(kw_only=True)
class Said:
    """A prompt that a client sent; `seq` once it was acknowledged."""

    session_id: str
    text: str
    params: dict[str, Any]
    seq: int | None = None


@define
class Stage:
    """One case's world, and what its clients know."""

    folder: Path
    execute: str = "allow"
    expire_s: float | None = None
    hooks: bool = False
    running: int = 4
    """Agents of one parent that run at once."""
    said: list[Said] = field(factory=list[Said])
    created: list[str] = field(factory=list[str])
    creating: int = 0
    """Sessions that were asked for; each is there at most once."""
    agents: list[str] = field(factory=list[str])
    """Agents that a client was told of."""
    queued: list[str] = field(factory=list[str])
    """Messages to agents that a client was told of."""
    told_tasks: defaultdict[str, list[str]] = field(factory=lambda: defaultdict(list))
    """How tasks of a group stood when a client was told, one after the other."""
    told_messages: list[str] = field(factory=list[str])
    """Messages in a group that a client was told of."""
    told_members: list[list[str]] = field(factory=list[list[str]])
    """Who took part in a room when a client was told, one after the other."""
    told_schedules: dict[str, str] = field(factory=dict[str, str])
    """Schedules that a client was told of, and what they say then."""
    told_fires: list[str] = field(factory=list[str])
    told_peers: defaultdict[str, list[Any]] = field(factory=lambda: defaultdict(list))
    """What clients know of links, by what they did: invited, accepting, accepted, sent, left."""
    others: list[ServerProcess] = field(factory=list[ServerProcess])
    seen_approvals: set[str] = field(factory=set[str])

    def __attrs_post_init__(self) -> None:
        self.cwd.mkdir()
        (self.cwd / "seed.txt").write_text("seed\n")
        self.user_dir.mkdir(parents=True)
        lines = ("[approvals]", 'unattended = "expire"', f"expire_s = {self.expire_s}")
        expire = "" if self.expire_s is None else "\n".join(lines)
        config = CONFIG.format(execute=self.execute, approvals=expire, running=self.running)
        config += HOOKS if self.hooks else ""
        (self.user_dir / "config.toml").write_text(config)
        self.model = scenario(self.folder, MODEL)

    model: str = field(init=False)

    @property
    def cwd(self) -> Path:
        return self.folder / "work"

    @property
    def user_dir(self) -> Path:
        return self.folder / "home" / "config"

    @property
    def store(self) -> Path:
        return self.folder / "store.db"

    @property
    def ran(self) -> list[str]:
        path = self.cwd / "ran.txt"
        return path.read_text().split() if path.exists() else []

    def let_go(self) -> None:
        """What a long command waits for."""
        (self.cwd / "go").touch()

    # --- processes ---

    def victim(self, fault: str) -> ServerProcess:
        """A server that will die at `fault`; it may do so before its first answer."""
        return ServerProcess(
            self.folder, model=self.model, environ={"CALLBOARD_FAULT": fault}, initialize=False
        )

    def other(self, client_id: str = "other") -> ServerProcess:
        """A server without a fault, which is ended with the case."""
        server = ServerProcess(self.folder, model=self.model, client_id=client_id)
        self.others.append(server)
        return server

    def greet(self, server: ServerProcess) -> None:
        server.call(
            "initialize",
            processId=None,
            callboard={
                "protocolVersions": ["1.0"],
                "clientId": "tests",
                "clientInfo": {"name": "tests"},
                "capabilities": {"approvals": False},
            },
        )

    @staticmethod
    def host_id(server: ServerProcess) -> str:
        return server.hello["capabilities"]["experimental"]["callboard"]["hostId"]

    def end_others(self) -> None:
        for server in self.others:
            with suppress(Gone, BrokenPipeError):
                server.close()
        self.others.clear()

    # --- what clients do ---

    def create(self, server: ServerProcess, **params: Any) -> str:
        self.creating += 1
        session_id = server.create(self.cwd, **params)
        self.created.append(session_id)
        return session_id

    def prompt(self, server: ServerProcess, session_id: str, text: str, **params: Any) -> None:
        said = Said(session_id=session_id, text=text, params=params)
        self.said.append(said)
        said.seq = server.prompt(session_id, text, **params)["eventSeq"]

    def spawn(
        self, server: ServerProcess, parent: str, name: str, message: str, **params: Any
    ) -> str:
        made = server.call("agent/spawn", parentId=parent, name=name, message=message, **params)
        self.agents.append(made["agent"]["agentId"])
        return self.agents[-1]

    def send(self, server: ServerProcess, method: str, agent_id: str, text: str) -> None:
        self.queued.append(server.call(method, agentId=agent_id, text=text)["messageId"])

    def approvals(self, server: ServerProcess, session_id: str) -> list[str]:
        """Waits until something is asked; the ids of what is."""
        waited = server.wait(session_id, "attention")
        asked = [a["approvalId"] for a in waited.get("approvals", ())]
        self.seen_approvals |= set(asked)
        return asked

    def answer_all(self, server: ServerProcess, session_id: str) -> None:
        """Allows what is asked, until nothing is any more."""
        while asked := self.approvals(server, session_id):
            for approval in asked:
                server.call("approval/answer", approvalId=approval, optionId="allow_once")

    # --- the way back ---

    @asynccontextmanager
    async def restarted(self) -> AsyncGenerator[Host]:
        """A new host on the store, in the test's own process."""
        environment = Environment(
            environ={
                "HOME": str(self.folder / "home"),
                "PATH": "/usr/bin:/bin",
                "CALLBOARD_MODEL": self.model,
            },
            user_dir=self.user_dir,
            store=self.store,
        )
        features = (external_agents(environment.environ),)
        async with open_host(environment, features=features) as host:
            yield host


def die(stage: Stage, fault: str, play: Callable[[Stage, ServerProcess], None]) -> None:
    """Plays a scene on a server until the server is dead, and makes sure of what it died of."""
    victim = stage.victim(fault)
    name = fault.partition(":")[0]
    try:
        play(stage, victim)
        while True:  # it may be in the middle of anything, and the point yet to come
            victim.receive(_LAST_S)
    except (Gone, BrokenPipeError):
        pass
    except queue.Empty:
        raise AssertionError(f"{name} was not passed: {victim.stderr()}") from None
    finally:
        if victim.process.poll() is None:
            with suppress(Exception):
                victim.process.wait(5)
            if victim.process.poll() is None:
                victim.kill()
        victim.__exit__()
    said = victim.stderr()
    assert victim.process.returncode == -signal.SIGKILL, f"{name} was not passed: {said}"
    assert f"killed at {name}\n" in said, said
