"""What a turn, a tool call, a command and a stream take on top of the model, the file and the shell."""

import os
import tempfile
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
) -> tuple[list[float], list[float], float]:
    """Callboard and the floor by turns, three times each, so that a busy machine is so for both; and
    the seconds that Callboard had on a core for each sample, which waiting does not inflate."""
    ours: list[float] = []
    bare: list[float] = []
    used = 0.0
    part = max(1, count // 3)
    with server(port) as (peer, cwd), floor(port) as (low, low_cwd):
        for each in (peer, low):
            each.follow()
        _one_word(peer, cwd, 10)
        _one_word(low, low_cwd, 10)
        for _ in range(3):
            before = peer.on_core()
            ours += run(peer, cwd, part)
            used += peer.on_core() - before
            bare += run(low, low_cwd, part)
    return ours, bare, used / len(ours)


def _first_turns(port: int, count: int) -> list[float]:
    """First turns of fresh servers, each a second after its start, as nobody types faster."""
    samples: list[float] = []
    for _ in range(count):
        with server(port) as (peer, cwd):
            peer.follow()
            session = peer.create(cwd)
            time.sleep(1)
            samples.append(peer.turn(session, "say"))
    return samples


def _syncs(count: int) -> list[float]:
    """What making one page durable takes on this disk; a turn waits for two, a tool call for two."""
    samples: list[float] = []
    with tempfile.NamedTemporaryFile(prefix="callboard-bench-", buffering=0) as file:
        for _ in range(count):
            file.write(bytes(4096))
            began = time.perf_counter()
            os.fsync(file.fileno())
            samples.append(time.perf_counter() - began)
            time.sleep(0.005)
    return samples


def measure(thorough: float) -> list[Figure]:
    with fake_model() as port:
        syncs = _syncs(rounds(60, thorough))
        first = _first_turns(port, rounds(3, thorough))
        word = _both(port, _one_word, rounds(90, thorough))
        read = _both(port, lambda p, c, n: _a_call(p, c, "read_file", n), rounds(9, thorough))
        command = _both(port, lambda p, c, n: _a_call(p, c, "run_command", n), rounds(9, thorough))
        stream = _both(port, _stream, rounds(9, thorough))
        together = _both(port, _together, rounds(12, thorough))

    def beyond(
        name: str, measured: tuple[list[float], list[float], float], target: float, calls: int = 1
    ) -> Figure:
        ours, bare, used = measured
        return Figure(
            name=name,
            unit="ms",
            ours=_ms(ours),
            floor=_ms(bare),
            target=target,
            beyond_floor=True,
            note=f"of it on a core: {1000 * used / calls:.1f} ms",
        )

    return [
        Figure(name="fsync of one page, for comparison", unit="ms", ours=_ms(syncs)),
        Figure(name="first turn of a server, a second old", unit="ms", ours=_ms(first)),
        beyond("turn of one word", word, 6),
        beyond("read_file call, with its request", read, 3, _CALLS + 1),
        beyond("run_command call, with its request", command, 8, _CALLS + 1),
        Figure(
            name="5,000 streamed chunks, whole",
            unit="s",
            ours=stream[0],
            floor=stream[1],
            target=0.4,
            note=f"of it on a core: {stream[2]:.2f} s",
        ),
        Figure(
            name="50 sessions at once, turns",
            unit="/s",
            ours=together[0],
            floor=together[1],
            target=150,
            note=f"on a core, each turn: {1000 * together[2] / _TOGETHER:.1f} ms",
        ),
    ]


TOPIC = Topic(name="turns", about="turns, tool calls, streams", measure=measure)
