"""Links between sessions of two server processes: how soon a message to an idle session has its model asked, and what
it takes to take in a thousand of them.

The model is served by this process, which so knows when it is asked; nobody follows the recipient.
"""

import queue
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import orjson
from figure import Figure, Topic, rounds
from peer import Peer, start
from stage import environment, workspace

_MANY = 1_000
_CALM_S = 11.0
"""Longer than it takes a server to find that nothing happens."""
_FEATURES = {
    "CALLBOARD_FEATURES": "peers",
    "CALLBOARD_PEERS_HOURLY": "1000000",
    "CALLBOARD_PEERS_UNDELIVERED": "1000000",
}
_ANSWER = b"".join(
    b"data: " + orjson.dumps({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "bench", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}) + b"\n\n"
    for delta, finish in (({"role": "assistant", "content": "Yes."}, None), ({}, "stop"))
) + b"data: [DONE]\n\n"  # fmt: skip


@contextmanager
def _model() -> Generator[tuple[int, "queue.Queue[tuple[float, bytes]]"]]:
    """Its port, and when it was asked for what."""
    asked: queue.Queue[tuple[float, bytes]] = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            at = time.perf_counter()
            asked.put((at, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("content-length", str(len(_ANSWER)))
            self.end_headers()
            self.wfile.write(_ANSWER)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as served:
        served.daemon_threads = True
        thread = Thread(target=served.serve_forever, daemon=True)
        thread.start()
        yield served.server_port, asked
        served.shutdown()
        thread.join()


@contextmanager
def _server(port: int, folder: Path) -> Generator[Peer]:
    with (folder / "stderr.txt").open("ab") as stderr:
        env = {**environment(folder, port), **_FEATURES}
        peer = Peer(start(["-m", "callboard", "serve"], env, stderr), acknowledge=True)
        try:
            peer.open()
            yield peer
        finally:
            peer.close()


@contextmanager
def _linked(port: int) -> Generator[tuple[Peer, Peer, str, str]]:
    """Two servers, and a session of each; the second one's is idle and has never run."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="callboard-bench-")))
        one, two = (stack.enter_context(_server(port, folder)) for _ in range(2))
        cwd = workspace(folder)
        first, second = one.create(cwd), two.create(cwd)
        token = one.call("peer/invite", sessionId=first)["token"]
        two.call("peer/accept", sessionId=second, token=token)
        yield one, two, first, second


def _rests(peer: Peer, session_id: str) -> None:
    peer.call("session/wait", sessionId=session_id, until="idle")


def _latencies(count: int, calm: int) -> tuple[list[float], list[float], list[float]]:
    """Milliseconds from the request to send until the recipient's model is asked: by turns with a prompt to it
    in its own process; and when nothing has happened for a while."""
    sent: list[float] = []
    prompted: list[float] = []
    rare: list[float] = []
    with _model() as (port, asked), _linked(port) as (one, two, first, second):

        def until_asked(text: str, began: float) -> float:
            at, body = asked.get(timeout=60)
            if text.encode() not in body:
                raise RuntimeError("the model was asked for something else")
            _rests(two, second)
            return 1000 * (at - began)

        def send(text: str) -> float:
            began = time.perf_counter()
            one.call("peer/send", sessionId=first, to=second, text=text)
            return until_asked(text, began)

        def prompt(text: str) -> float:
            began = time.perf_counter()
            two.prompt(second, text)
            return until_asked(text, began)

        for number in range(count):
            sent.append(send(f"message {number}"))
            prompted.append(prompt(f"prompt {number}"))
        for number in range(calm):
            time.sleep(_CALM_S)
            rare.append(send(f"rare message {number}"))
    return sent, prompted, rare


def _taken_in(count: int) -> tuple[list[float], list[float]]:
    """Seconds from a prompt until the end of the turn that takes in a thousand messages besides; and of one
    without any."""
    with_them: list[float] = []
    without: list[float] = []
    for _ in range(count):
        with _model() as (port, asked), ExitStack() as stack:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="callboard-bench-")))
            one = stack.enter_context(_server(port, folder))
            cwd = workspace(folder)
            with _server(port, folder) as two:  # it goes, so that nobody has the session open
                first, second = one.create(cwd), two.create(cwd)
                token = one.call("peer/invite", sessionId=first)["token"]
                two.call("peer/accept", sessionId=second, token=token)
            for number in range(_MANY):
                one.call("peer/send", sessionId=first, to=second, text=f"message {number}")
            without.append(_turn(one, one.create(cwd)))
            asked.get(timeout=60)
            with_them.append(_turn(one, second))
            _, body = asked.get(timeout=60)
            if body.count(b"sibling-session") != _MANY:
                raise RuntimeError("messages are missing")
            if len(one.call("session/turns", sessionId=second)["data"]) != 1:
                raise RuntimeError("it took several turns")
    return with_them, without


def _turn(peer: Peer, session_id: str) -> float:
    began = time.perf_counter()
    content = [{"type": "text", "text": "say"}]
    peer.call("session/prompt", sessionId=session_id, content=content)
    peer.call("session/wait", sessionId=session_id, until="idle")
    return time.perf_counter() - began


def measure(thorough: float) -> list[Figure]:
    sent, prompted, rare = _latencies(rounds(60, thorough), rounds(3, thorough))
    many, none = _taken_in(rounds(3, thorough))
    return [
        Figure(
            name="a message to an idle session elsewhere",
            unit="ms",
            ours=sent,
            floor=prompted,
            target=300,
            note="from the request to send until its model is asked; the floor: a prompt in its own process",
        ),
        Figure(name="the same, after 11 s of nothing", unit="ms", ours=rare, target=300),
        Figure(
            name="1,000 waiting messages, in one turn",
            unit="s",
            ours=many,
            floor=none,
            target=2,
            note="from a prompt to the end of its turn; the floor: without any",
        ),
    ]


TOPIC = Topic(name="peers", about="links between sessions", measure=measure)
