"""What a turn, a tool call, a command and a stream take on top of the model, the file and the shell."""

import time
from collections.abc import Callable
from pathlib import Path

from figure import Figure, Topic, rounds
from peer import Peer
from stage import fake_model, floor, server

_CALLS = 16
_CHUNKS = 5_000
_TOGETHER = 50


def _ms(samples: list[float]) -> list[float]:
    return [1000 * s for s in samples]


def _one_word(peer: Peer, cwd: Path, count: int) -> list[float]:
    """Turns of one word, ten in a session, as sessions have a past."""
    samples: list[float] = []
    while len(samples) < count:
        session = peer.create(cwd)
        samples += [peer.turn(session, "say") for _ in range(min(10, count - len(samples)))]
    return samples


def _a_call(peer: Peer, cwd: Path, tool: str, count: int) -> list[float]:
    """What one call of `tool` takes, its model request included: a turn of many calls, less a turn
    of none."""
    samples: list[float] = []
    for _ in range(count):
        session = peer.create(cwd)
        plain = peer.turn(session, "say")
        samples.append((peer.turn(session, f"call {tool} {_CALLS}") - plain) / _CALLS)
    return samples


def _stream(peer: Peer, cwd: Path, count: int) -> list[float]:
    """From the prompt until every chunk, and then the message with all of it, has come."""
    samples: list[float] = []
    for _ in range(count):
        session = peer.create(cwd)
        began = time.perf_counter()
        pieces, said = 0, ""
        peer.prompt(session, f"chunks {_CHUNKS}")
        for event in peer.events():
            if event["sessionId"] != session:
                continue
            if event["type"] == "delta":
                pieces += event["count"]
                said += event["text"]
            elif event["type"] == "message" and event["data"].get("final", True):
                text = event["data"]["content"][0]["text"]
                if text.startswith("word "):
                    samples.append(time.perf_counter() - began)
                    if pieces != _CHUNKS or said != text or len(text) != 5 * _CHUNKS:
                        raise RuntimeError(f"{pieces} of {_CHUNKS} chunks came")
            elif event["type"] == "turn_finished":
                break
    return samples


def _together(peer: Peer, cwd: Path, count: int) -> list[float]:
    """Turns a second when all sessions prompt at once and all are waited for."""
    sessions = [peer.create(cwd) for _ in range(_TOGETHER)]
    samples: list[float] = []
    for _ in range(count):
        began = time.perf_counter()
        for session in sessions:
            peer.prompt(session, "say")
        left = set(sessions)
        for event in peer.events():
            if event["type"] == "turn_finished":
                left.discard(event["sessionId"])
                if not left:
                    break
        samples.append(_TOGETHER / (time.perf_counter() - began))
    return samples


def _both(
    port: int, run: Callable[[Peer, Path, int], list[float]], count: int
) -> tuple[list[float], list[float]]:
    """Callboard and the floor by turns, three times each, so that a busy machine is so for both."""
    ours: list[float] = []
    bare: list[float] = []
    part = max(1, count // 3)
    with server(port) as (peer, cwd), floor(port) as (low, low_cwd):
        for each in (peer, low):
            each.follow()
        _one_word(peer, cwd, 5)
        _one_word(low, low_cwd, 5)
        for _ in range(3):
            ours += run(peer, cwd, part)
            bare += run(low, low_cwd, part)
    return ours, bare


def measure(thorough: float) -> list[Figure]:
    with fake_model() as port:
        first: list[float] = []
        for _ in range(rounds(3, thorough)):
            with server(port) as (peer, cwd):
                peer.follow()
                first.append(peer.turn(peer.create(cwd), "say"))
        word, bare_word = _both(port, _one_word, rounds(90, thorough))
        read, bare_read = _both(
            port, lambda p, c, n: _a_call(p, c, "read_file", n), rounds(9, thorough)
        )
        command, bare_command = _both(
            port, lambda p, c, n: _a_call(p, c, "run_command", n), rounds(9, thorough)
        )
        stream, bare_stream = _both(port, _stream, rounds(9, thorough))
        together, bare_together = _both(port, _together, rounds(12, thorough))
    return [
        Figure(name="first turn after the start", unit="ms", ours=_ms(first)),
        Figure(
            name="turn of one word",
            unit="ms",
            ours=_ms(word),
            floor=_ms(bare_word),
            target=6,
            beyond_floor=True,
        ),
        Figure(
            name="read_file call, with its request",
            unit="ms",
            ours=_ms(read),
            floor=_ms(bare_read),
            target=3,
            beyond_floor=True,
        ),
        Figure(
            name="run_command call, with its request",
            unit="ms",
            ours=_ms(command),
            floor=_ms(bare_command),
            target=8,
            beyond_floor=True,
        ),
        Figure(
            name="5,000 streamed chunks, whole",
            unit="s",
            ours=stream,
            floor=bare_stream,
            target=0.4,
        ),
        Figure(
            name="50 sessions at once, turns",
            unit="/s",
            ours=together,
            floor=bare_together,
            target=150,
        ),
    ]


TOPIC = Topic(name="turns", about="turns, tool calls, streams", measure=measure)
