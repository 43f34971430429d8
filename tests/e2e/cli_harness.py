"""The real command ``callboard`` in an environment of its own, for tests of the command line."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from attrs import frozen

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
SCENARIO = """
rules:
  - when: {last_user: write a file, step: 0}
    answer:
      - say: I will write it.
      - call: {tool: write_file, arguments: {path: made.txt, content: "made by a test\\n"}}
  - when: {last_user: write two files, step: 0}
    answer: [{call: {tool: write_file, arguments: {path: one.txt, content: "1"}}}]
  - when: {last_user: write two files, step: 1}
    answer: [{call: {tool: write_file, arguments: {path: two.txt, content: "2"}}}]
  - when: {last_user: two at once, step: 0}
    answer:
      - say: I look at both.
      - call: {tool: read_file, arguments: {path: one.txt}}
      - call: {tool: read_file, arguments: {path: two.txt}}
  - when: {last_tool: write_file}
    answer: [{say: "The tool said: {{last_tool}}"}]
  - when: {last_user: hostile}
    answer:
      - think: "\\e]0;thought\\a\\u202eolleh"
      - say: "\\e[2Jclean\\e]52;c;eA==\\a\\u202e text\\x9b31m end"
  - when: {last_user: hang}
    answer: [{say: "I begin"}, {hang: true}]
  - when: {last_user: break}
    answer: [{fail: {kind: modelError, message: "the model \\e[31mbroke here"}}]
  - when: {last_user: overloaded}
    answer: [{fail: {kind: modelError, message: "too much to do", retryable: true}}]
  - when: {last_user: only read this}
    answer: [{say: "I read it."}]
  - when: {last_user: long}
    answer: [{say: {text: "many words and more of them\\n", repeat: 4000}}]
default:
  - think: A thought.
  - say: "You said: {{last_user}}."
  - usage: {input_tokens: 1200, output_tokens: 34}
"""


@frozen
class Result:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[Any]:
        """stdout, each line of it as JSON."""
        return [json.loads(line) for line in self.out.splitlines()]


class Cli:
    """Runs commands in `workspace`, on a scripted model, with a home and a store below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "workspace"
        self.home = folder / "home"
        self.workspace.mkdir()
        self.home.mkdir()
        scenario = folder / "scenario.yaml"
        scenario.write_text(SCENARIO)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "CALLBOARD_STORE": str(folder / "store" / "callboard.db"),
            "CALLBOARD_MODEL": f"scripted/{scenario}",
        }
        self.command = [sys.executable, "-P", "-m", "callboard"]
        self._started: list[subprocess.Popen[str]] = []

    def start(self, *arguments: str, **changes: Any) -> "subprocess.Popen[str]":
        settings: dict[str, Any] = {
            "cwd": self.workspace,
            "env": self.environment,
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
            **changes,
        }
        process = subprocess.Popen([*self.command, *arguments], **settings)
        self._started.append(process)
        return process

    def close(self) -> None:
        """Ends what a failed test left running; servers end with their clients."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
                process.wait(timeout=20)

    def __call__(self, *arguments: str, stdin: str = "") -> Result:
        process = self.start(*arguments, stdin=subprocess.PIPE)
        out, err = process.communicate(stdin, timeout=60)
        return Result(process.returncode, out, err)

    def json(self, *arguments: str) -> list[Any]:
        result = self(*arguments, "--json")
        assert result.err == ""
        return result.lines

    def session(self, prompt: str = "hello", *arguments: str) -> str:
        """The id of a session in which one prompt was answered."""
        return self.json("run", prompt, *arguments)[0]["sessionId"]


def read_until(process: "subprocess.Popen[str]", part: str) -> str:
    """Reads stdout, byte by byte, until `part` has come."""
    assert process.stdout is not None
    seen = ""
    while part not in seen:
        byte = process.stdout.read(1)
        assert byte, f"{part!r} did not come: {seen!r}"
        seen += byte
    return seen


def interrupt(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGINT)


class Terminal:
    """A command on a pseudo-terminal."""

    def __init__(self, cli: Cli, *arguments: str, columns: int = 120) -> None:
        self.master, slave = pty.openpty()
        cli.environment["TERM"] = "xterm-256color"
        cli.environment["COLUMNS"] = str(columns)
        self.process = cli.start(
            *arguments, stdin=slave, stdout=slave, stderr=slave, text=False, start_new_session=True
        )
        os.close(slave)
        self.raw = b""

    def until(self, part: str, seconds: float = 30) -> str:
        """What was shown, without colours, once `part` is there."""
        deadline = time.monotonic() + seconds
        while part not in self.shown:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self.master], [], [], max(left, 0))
            assert ready, f"{part!r} was not shown: {self.shown}"
            assert self._read(), f"{part!r} was not shown: {self.shown}"
        return self.shown

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def finish(self) -> int:
        while self._read():
            pass
        os.close(self.master)
        return self.process.wait(timeout=20)

    def abandon(self) -> None:
        self.process.kill()
        self.finish()

    @property
    def shown(self) -> str:
        return ESCAPES.sub("", self.raw.decode(errors="replace")).replace("\r\n", "\n")

    def _read(self) -> bool:
        try:
            chunk = os.read(self.master, 65536)
        except OSError:  # Linux says so when the other side is closed
            return False
        self.raw += chunk
        return bool(chunk)
