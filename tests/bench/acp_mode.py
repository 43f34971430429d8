"""What editors of the Agent Client Protocol wait for: the first answer, and what turns and updates take on top of
the same in Callboard's own protocol."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
from figure import Figure, Topic, rounds
from peer import Peer, start
from stage import environment, fake_model, server, workspace
from start_up import answered

_CALLS = 16
_CHUNKS = 5_000
_INITIALIZE: dict[str, Any] = {"protocolVersion": 1, "clientCapabilities": {}}
_FRAME = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _INITIALIZE})
_BARE = (
    "import sys\n"
    "sys.stdin.readline()\n"
    'sys.stdout.write(\'{"jsonrpc":"2.0","id":1,"result":{}}\\n\')\n'
    "sys.stdout.flush()\n"
    "sys.stdin.read()\n"
)
"""Python that answers one line, whatever it is."""


class Editor(Peer):
    """A client of the Agent Client Protocol that allows nothing, as nothing is asked."""

    def open(self) -> Any:
        return self.call("initialize", **_INITIALIZE)

    def create(self, cwd: Path) -> str:
        made = self.call("session/new", cwd=str(cwd), mcpServers=[])
        return made["sessionId"]

    def turn(self, session_id: str, text: str) -> float:
        return self.said(session_id, text)[0]

    def said(self, session_id: str, text: str) -> tuple[float, str]:
        """Seconds from the prompt to its answer, and the text that came with it."""
        began = time.perf_counter()
        prompt = [{"type": "text", "text": text}]
        request_id = self.send("session/prompt", {"sessionId": session_id, "prompt": prompt})
        pieces: list[str] = []
        while True:
            message = self.receive()
            if message.get("method") == "session/update":
                update = message["params"]["update"]
                if update["sessionUpdate"] == "agent_message_chunk":
                    pieces.append(update["content"]["text"])
            elif message.get("id") == request_id:
                took = time.perf_counter() - began
                if message.get("result", {}).get("stopReason") != "end_turn":
                    raise RuntimeError(f"the turn ended with {message}")
                return took, "".join(pieces)


@contextmanager
def _editor(port: int) -> Generator[tuple[Editor, Path]]:
    """``callboard serve --acp``, greeted, and the workspace to work in."""
    with TemporaryDirectory(prefix="callboard-bench-") as name:
        folder = Path(name)
        with (folder / "stderr.txt").open("wb") as stderr:
            arguments = ["-m", "callboard", "serve", "--acp"]
            peer = Editor(start(arguments, environment(folder, port), stderr), acknowledge=False)
            try:
                peer.open()
                yield peer, workspace(folder)
            except Exception as fault:
                fault.add_note((folder / "stderr.txt").read_text(errors="replace")[-2_000:])
                raise
            finally:
                peer.close()


def _words(peer: Peer, cwd: Path, count: int) -> list[float]:
    """Turns of one word, ten in a session, in ms."""
    samples: list[float] = []
    while len(samples) < count:
        session = peer.create(cwd)
        samples += [1000 * peer.turn(session, "say") for _ in range(min(10, count - len(samples)))]
    return samples


def _calls(peer: Peer, cwd: Path, count: int) -> list[float]:
    """What one read_file call takes with its request, in ms: a turn of many, less a turn of none."""
    samples: list[float] = []
    for _ in range(count):
        session = peer.create(cwd)
        plain = peer.turn(session, "say")
        samples.append(1000 * (peer.turn(session, f"call read_file {_CALLS}") - plain) / _CALLS)
    return samples


def _streams(peer: Peer, cwd: Path, count: int) -> list[float]:
    """From the prompt until all of a long stream has come and the turn has ended, in s."""
    samples: list[float] = []
    for _ in range(count):
        session = peer.create(cwd)
        if isinstance(peer, Editor):
            took, text = peer.said(session, f"chunks {_CHUNKS}")
            if len(text) != len("word ") * _CHUNKS:
                raise RuntimeError(f"{len(text)} characters came")
        else:
            took = peer.turn(session, f"chunks {_CHUNKS}")
        samples.append(took)
    return samples


def _beside(port: int, thorough: float) -> list[Figure]:
    """Both modes by turns, three times each, so that a busy machine is so for both."""
    kinds = (
        (_words, rounds(60, thorough)),
        (_calls, rounds(9, thorough)),
        (_streams, rounds(9, thorough)),
    )
    ours: list[list[float]] = [[], [], []]
    native: list[list[float]] = [[], [], []]
    used = [0.0, 0.0, 0.0]
    native_used = [0.0, 0.0, 0.0]
    with _editor(port) as (editor, cwd), server(port) as (peer, native_cwd):
        peer.follow()
        _words(editor, cwd, 10)
        _words(peer, native_cwd, 10)
        for number, (run, count) in enumerate(kinds):
            for _ in range(3):
                before = editor.on_core()
                ours[number] += run(editor, cwd, max(1, count // 3))
                used[number] += editor.on_core() - before
                before = peer.on_core()
                native[number] += run(peer, native_cwd, max(1, count // 3))
                native_used[number] += peer.on_core() - before

    def figure(number: int, name: str, unit: Any, target: float, parts: int = 1) -> Figure:
        each = 1000 / len(ours[number]) / parts
        return Figure(
            name=f"{name}, beside native",
            unit=unit,
            ours=ours[number],
            floor=native[number],
            target=target,
            beyond_floor=True,
            note=f"of it on a core: {each * used[number]:.1f} ms, native {each * native_used[number]:.1f} ms",
        )

    return [
        figure(0, "turn of one word in ACP", "ms", 3),
        figure(1, "read_file call in ACP", "ms", 2, _CALLS + 1),
        figure(2, f"{_CHUNKS:,} streamed chunks in ACP", "s", 0.2),
    ]


def _first_answers(count: int) -> Figure:
    ours: list[float] = []
    bare: list[float] = []
    with TemporaryDirectory(prefix="callboard-bench-") as folder:
        env = environment(Path(folder), 9)
        for _ in range(count):
            ours.append(answered(["-m", "callboard", "serve", "--acp"], env, _FRAME + b"\n"))
            bare.append(answered(["-c", _BARE], env, _FRAME + b"\n"))
    return Figure(
        name="initialize from the spawn, ACP", unit="s", ours=ours, floor=bare, target=0.25
    )


def measure(thorough: float) -> list[Figure]:
    first = _first_answers(rounds(9, thorough))
    with fake_model() as port:
        return [first, *_beside(port, thorough)]


TOPIC = Topic(name="acp", about="the Agent Client Protocol", measure=measure)
