"""Real clients of the Agent Client Protocol, each led by a test, with every frame recorded and judged."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil
from acp_tools import ACPX, SDK, node

from harness.acp_order import Order
from harness.acp_schema import Checker
from harness.process import PATIENCE_S
from harness.processes import bearing

HERE = Path(__file__).parent / "clients"
SDKS = ("python", "typescript")
SCENARIO = """\
rules:
  - name: write
    when: {last_user: write, step: 0}
    answer:
      - think: A file it is.
      - say: I write it.
      - call: {tool: write_file, arguments: {path: hello.txt, content: "Hello.\\n"}}
  - name: written
    when: {last_tool: {name: write_file, status: ok}}
    answer: It is written.
  - name: refused
    when: {last_tool: {name: write_file, status: error}}
    answer: Then not.
  - name: run
    when: {last_user: run, step: 0}
    answer:
      - call: {tool: run_command, arguments: {command: "echo out; echo x >> ran; exit 3"}}
  - name: ran
    when: {last_tool: {name: run_command}}
    answer: It ran.
  - name: stay
    when: {last_user: stay, step: 0}
    answer:
      - call: {tool: run_command, arguments: {command: "echo $$ > pid; exec sleep 600"}}
  - name: hang
    when: {last_user: wait}
    answer:
      - say: Waiting.
      - hang: true
default: Hello from the script.
"""


class Place:
    """Where one test's clients and agents live: a home, a workspace, a store, a script, the frames."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cwd = folder / "workspace"
        self.frames = folder / "frames"
        for each in (self.cwd, self.frames, folder / "home"):
            each.mkdir()
        (folder / "scenario.yaml").write_text(SCENARIO)

    @property
    def environ(self) -> dict[str, str]:
        """Next to nothing of the machine's."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder / "home"),
            "CALLBOARD_CONFIG_DIR": str(self.folder / "home" / "config"),
            "CALLBOARD_STORE": str(self.folder / "store.db"),
            "CALLBOARD_MODEL": f"scripted/{self.folder / 'scenario.yaml'}",
            "NO_COLOR": "1",
        }

    @property
    def command(self) -> list[str]:
        """Of an agent, recorded."""
        recorded = [sys.executable, "-S", str(HERE / "recorded.py"), str(self.frames)]
        return [*recorded, sys.executable, "-m", "callboard", "serve", "--acp"]

    def judge(self) -> list[str]:
        """Holds all frames against the protocol, each process by itself; what they were, in order. Every request
        has an answer."""
        kinds: list[str] = []
        for path in sorted(self.frames.iterdir()):
            checker, order = Checker(), Order()
            for line in path.read_bytes().splitlines(keepends=True):
                frame: Any = json.loads(line[2:])
                if line.startswith(b">"):
                    kinds.append(checker.check(frame, "client"))
                    order.client(frame)
                else:
                    checker.check_line(line[2:], "agent")
                    order.agent(frame)
                    if "method" in frame:
                        kinds.append(frame["method"])
            assert not checker.open_requests("client")
        assert kinds
        return kinds

    def left(self) -> list[psutil.Process]:
        """Processes of this place that live."""
        return bearing(f"CALLBOARD_STORE={self.folder / 'store.db'}")


class SdkClient:
    """One of the SDKs' clients. Use as a context manager; what the agent sends is kept in `heard`."""

    def __init__(self, place: Place, sdk: str) -> None:
        self._place = place
        self._process = subprocess.Popen(
            _program(sdk),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=place.environ,
            cwd=place.cwd,
        )
        self._id = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self.heard: list[dict[str, Any]] = []

    def start(self, what: str, **given: Any) -> int:
        """Gives an order; its number."""
        assert self._process.stdin is not None
        self._id += 1
        order = {"id": self._id, "do": what, **given}
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()
        return self._id

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the client ended"
        message = json.loads(line)
        if "id" in message:
            self._answers[message["id"]] = message
        else:
            self.heard.append(message)
        return message

    def answer(self, number: int) -> dict[str, Any]:
        """``{"result"}`` or ``{"error"}`` of an order."""
        while number not in self._answers:
            self._read()
        return self._answers.pop(number)

    def result(self, number: int) -> Any:
        answer = self.answer(number)
        assert "result" in answer, answer
        return answer["result"]

    def do(self, what: str, **given: Any) -> Any:
        """Gives an order and waits; its result."""
        return self.result(self.start(what, **given))

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Reads on until the agent sends something that is wanted."""
        while True:
            message = self._read()
            if wanted(message):
                return message

    def connect(self, **capabilities: Any) -> dict[str, Any]:
        """A fresh agent, initialized by a client that declares `capabilities` besides the usual ones."""
        return self.do("connect", command=self._place.command, capabilities=capabilities)

    def leave(self) -> None:
        """Ends the agent as an editor that closes does."""
        assert self.do("leave") == {"code": 0}

    def updates(self, kind: str) -> list[dict[str, Any]]:
        """Those that came, of a kind."""
        told = [message["update"] for message in self.heard if "update" in message]
        return [update for update in told if update["sessionUpdate"] == kind]

    def text(self, kind: str = "agent_message_chunk") -> str:
        return "".join(update["content"]["text"] for update in self.updates(kind))

    def __enter__(self) -> "SdkClient":
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(PATIENCE_S)
        finally:
            self._process.kill()
            self._process.stdout.close()


def _program(sdk: str) -> list[str]:
    if sdk == "python":
        return [sys.executable, str(HERE / "python_client.py")]
    main = json.loads((SDK / "package.json").read_text())["main"]
    return [str(node()), str(HERE / "typescript_client.mjs"), str(SDK / main)]


class Acpx:
    """The command-line client."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._agent = " ".join(place.command)

    def run(
        self, *words: str, options: tuple[str, ...] = (), environ: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """One command in a process of its own; `options` stand before it."""
        return subprocess.run(
            self.line(*words, options=options),
            env={**self._place.environ, **(environ or {})},
            cwd=self._place.cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def line(self, *words: str, options: tuple[str, ...] = ()) -> list[str]:
        return [str(node()), str(ACPX), "--agent", self._agent, *options, *words]

    def start(self, *words: str, options: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        """The same, without waiting."""
        return subprocess.Popen(
            self.line(*words, options=options),
            env=self._place.environ,
            cwd=self._place.cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
