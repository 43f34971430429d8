"""Terminals of an ACP client, in which real processes run."""

import os
import signal
import subprocess
import threading
from concurrent.futures import Future
from typing import Any

from .process import PATIENCE_S

ABLE: dict[str, Any] = {
    "fs": {"readTextFile": False, "writeTextFile": False},
    "terminal": True,
}


class Refused(Exception):
    """An error that the client answers with."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class Terminal:
    """One command, on a pipe of its own, in a group of its own."""

    def __init__(self, request: dict[str, Any]) -> None:
        self._limit = request.get("outputByteLimit") or 1 << 20
        self._output = bytearray()
        self._cut = False
        self.exit: Future[dict[str, Any]] = Future()
        self.printed = threading.Event()
        variables = {each["name"]: each["value"] for each in request.get("env", [])}
        self.process = subprocess.Popen(
            [request["command"], *request.get("args", [])],
            cwd=request.get("cwd"),
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        while data := os.read(self.process.stdout.fileno(), 1 << 16):
            self._output += data
            self.printed.set()
            if len(self._output) > self._limit:
                self._cut = True
                del self._output[: len(self._output) - self._limit]
        self.process.stdout.close()
        code = self.process.wait()
        name = signal.Signals(-code).name if code < 0 else None
        self.exit.set_result({"exitCode": None if code < 0 else code, "signal": name})

    @property
    def output(self) -> dict[str, Any]:
        text = bytes(self._output).decode("utf-8", "ignore")
        return {"output": text, "truncated": self._cut}

    def kill(self, number: int = signal.SIGKILL) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)
        self._reader.join(PATIENCE_S)


class Terminals:
    """What a client answers to ``terminal/*``. `answers` replaces single answers. Use as a context manager, so
    that nothing of it is left."""

    def __init__(self, **answers: Any) -> None:
        self.requests: list[tuple[str, dict[str, Any]]] = []
        """All that was asked, in order."""
        self.made: dict[str, Terminal] = {}
        self._released: set[str] = set()
        self._instead = answers

    @property
    def answers(self) -> dict[str, Any]:
        names = ("create", "output", "wait_for_exit", "kill", "release")
        return {f"terminal/{name}": self._answering(name) for name in names}

    def _answering(self, name: str) -> Any:
        serve = self._instead.get(name, getattr(self, name))

        def answer(params: dict[str, Any]) -> Any:
            self.requests.append((name, params))
            return serve(params) if callable(serve) else serve

        return answer

    def asked(self, name: str) -> list[dict[str, Any]]:
        return [params for asked, params in self.requests if asked == name]

    @property
    def names(self) -> list[str]:
        """What was asked, each look at the output left out."""
        return [name for name, _ in self.requests if name != "output"]

    def create(self, params: dict[str, Any]) -> dict[str, Any]:
        terminal_id = f"term-{len(self.made) + 1}"
        self.made[terminal_id] = Terminal(params)
        return {"terminalId": terminal_id}

    def output(self, params: dict[str, Any]) -> dict[str, Any]:
        return self.made[params["terminalId"]].output

    def wait_for_exit(self, params: dict[str, Any]) -> Future[dict[str, Any]]:
        return self.made[params["terminalId"]].exit

    def kill(self, params: dict[str, Any]) -> dict[str, Any]:
        self.made[params["terminalId"]].kill()
        return {}

    def release(self, params: dict[str, Any]) -> dict[str, Any]:
        self._released.add(params["terminalId"])
        return self.kill(params)

    @property
    def open(self) -> set[str]:
        """Those that were made and not released."""
        return self.made.keys() - self._released

    def __enter__(self) -> "Terminals":
        return self

    def __exit__(self, *_: object) -> None:
        for terminal in self.made.values():
            terminal.kill()
