"""What a turn and a stream take over the Agent Client Protocol, beside Callboard's own protocol on the same host."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from figure import Figure, Topic, rounds
from peer import Peer, start
from stage import environment, fake_model, server, workspace

_CHUNKS = 5_000


@contextmanager
def _agent(port: int) -> Generator[tuple[Peer, Path]]:
    """``callboard serve --acp``, greeted, and the workspace to work in."""
    with TemporaryDirectory(prefix="callboard-bench-") as name:
        folder = Path(name)
        with (folder / "stderr.txt").open("wb") as stderr:
            argv = ["-m", "callboard", "serve", "--acp"]
            peer = Peer(start(argv, environment(folder, port), stderr), acknowledge=False)
            try:
                peer.call("initialize", protocolVersion=1, clientCapabilities={})
                yield peer, workspace(folder)
            finally:
                peer.close()


def _begin(agent: Peer, cwd: Path) -> str:
    return agent.call("session/new", cwd=str(cwd), mcpServers=[])["sessionId"]


def _turn(agent: Peer, session: str, text: str) -> tuple[float, str]:
    """Seconds from the prompt to its answer, and what was said by then."""
    began = time.perf_counter()
    prompt = [{"type": "text", "text": text}]
    request_id = agent.send("session/prompt", {"sessionId": session, "prompt": prompt})
    said: list[str] = []
    while True:
        message = agent.receive()
        if message.get("id") == request_id and "method" not in message:
            if message.get("result", {}).get("stopReason") != "end_turn":
                raise RuntimeError(message)
            return time.perf_counter() - began, "".join(said)
        update = message.get("params", {}).get("update", {})
        if update.get("sessionUpdate") == "agent_message_chunk":
            said.append(update["content"]["text"])


def _native_stream(peer: Peer, cwd: Path) -> float:
    session = peer.create(cwd)
    return peer.turn(session, f"chunks {_CHUNKS}")


def _stream(agent: Peer, cwd: Path) -> float:
    took, said = _turn(agent, _begin(agent, cwd), f"chunks {_CHUNKS}")
    if len(said) != 5 * _CHUNKS:
        raise RuntimeError(f"{len(said)} of {5 * _CHUNKS} characters came")
    return took


def measure(thorough: float) -> list[Figure]:
    words: list[float] = []
    native_words: list[float] = []
    streams: list[float] = []
    native_streams: list[float] = []
    with fake_model() as port, server(port) as (peer, cwd), _agent(port) as (agent, agent_cwd):
        peer.follow()
        native, own = peer.create(cwd), _begin(agent, agent_cwd)
        for _ in range(10):  # the first turns load what later ones have
            peer.turn(native, "say")
            _turn(agent, own, "say")
        for _ in range(rounds(60, thorough)):  # by turns, so that a busy machine is so for both
            native_words.append(1000 * peer.turn(native, "say"))
            words.append(1000 * _turn(agent, own, "say")[0])
        for _ in range(rounds(6, thorough)):
            native_streams.append(1e6 / _CHUNKS * _native_stream(peer, cwd) / 1000)
            streams.append(1e6 / _CHUNKS * _stream(agent, agent_cwd) / 1000)
    return [
        Figure(
            name="a turn of one word over ACP, beside our own protocol",
            unit="ms",
            ours=words,
            floor=native_words,
            target=2.0,
            beyond_floor=True,
        ),
        Figure(
            name="a chunk that streams over ACP, beside our own protocol",
            unit="ms",
            ours=streams,
            floor=native_streams,
            target=0.05,
            beyond_floor=True,
        ),
    ]


TOPIC = Topic(name="editors", about="editors of the Agent Client Protocol", measure=measure)
