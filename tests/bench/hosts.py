"""Several servers on one store: how soon they hear of each other, and what they take from each other."""

import json
import random
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from figure import Figure, Topic, rounds
from peer import HERE, Peer, start
from stage import fake_model, floor, server

_CALM_S = 11.0
"""Longer than it takes a server to find that nothing happens."""
_WATCHED_S = 10.0
_FLAT_OUT_S = 3.0
_PROCESSES = 8
_HOSTS = 5


def _until(peer: Peer, wanted: Callable[[dict[str, Any]], bool]) -> float:
    """When the event that is wanted came."""
    for event in peer.events():
        if wanted(event):
            return time.perf_counter()
    raise AssertionError


def _heard(one: Peer, two: Peer, session: str, number: int) -> float:
    """Milliseconds from the request for a change at `one` until `two` has the event of it."""
    title = f"title {number}"
    began = time.perf_counter()
    one.send("session/update", {"sessionId": session, "title": title})
    at = _until(two, lambda e: e["data"].get("changes", {}).get("title") == title)
    return 1000 * (at - began)


def _events(port: int, thorough: float) -> list[Figure]:
    """At the other server's client, and at the client that asked, by turns."""
    chance = random.Random(1)
    there: list[float] = []
    here: list[float] = []
    calm: list[float] = []
    with TemporaryDirectory(prefix="callboard-bench-") as name:
        folder = Path(name)
        with server(port, folder) as (one, cwd), server(port, folder) as (two, _):
            session = one.create(cwd)
            for peer in (one, two):
                peer.follow()
            for number in range(rounds(100, thorough)):
                time.sleep(chance.uniform(0.02, 0.12))  # at any moment of whatever has a rhythm
                there.append(_heard(one, two, session, 2 * number))
                here.append(_heard(one, one, session, 2 * number + 1))
            for number in range(rounds(3, thorough)):
                time.sleep(_CALM_S)
                calm.append(_heard(one, two, session, -1 - number))
    worst = statistics.quantiles(there, n=100)[-1]
    return [
        Figure(
            name="an event of another process", unit="ms", ours=there, floor=here, target=100,
            note="from the request to the event, at the other's client; the floor: at one's own",
        ),
        Figure(
            name="the same, of a hundred the slowest", unit="ms", ours=[worst],
            floor=[statistics.quantiles(here, n=100)[-1]], target=100,
        ),
        Figure(name="the same, after 11 s of nothing", unit="ms", ours=calm, target=100),
    ]  # fmt: skip


def _taken_over(port: int, thorough: float) -> list[Figure]:
    """From SIGKILL until the survivor's client has the end of the dead one's turn."""
    samples: list[float] = []
    deaths: list[float] = []
    for _ in range(rounds(5, thorough)):
        with TemporaryDirectory(prefix="callboard-bench-") as name:
            folder = Path(name)
            with server(port, folder) as (two, cwd), server(port, folder) as (one, _):
                two.follow()
                session = one.create(cwd)
                one.prompt(session, "hang")
                _until(two, lambda e: e["type"] == "ack")
                began = time.perf_counter()
                one.process.kill()
                one.process.wait()
                deaths.append(time.perf_counter() - began)
                samples.append(_until(two, lambda e: e["type"] == "turn_finished") - began)
    return [
        Figure(
            name="a killed server's turn taken over", unit="s", ours=samples, floor=deaths, target=1
        )
    ]


class _Committer:
    def __init__(self, path: Path, tasks: int) -> None:
        self.process = start([str(HERE / "committing.py"), str(path), str(tasks)])
        assert self.process.stdout is not None and self.process.stdin is not None
        if self.process.stdout.readline() != b"ready\n":
            raise RuntimeError("a committer did not start")

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")

    def end(self) -> dict[str, float]:
        assert self.process.stdout is not None
        told = json.loads(self.process.stdout.readline())
        if self.process.wait(20) != 0:
            raise RuntimeError("a committer failed")
        return told


def _flat_out(processes: int, tasks: int) -> list[dict[str, float]]:
    with TemporaryDirectory(prefix="callboard-bench-") as name:
        committers = [_Committer(Path(name) / "store.db", tasks) for _ in range(processes)]
        try:
            for each in committers:
                each.go()
            time.sleep(_FLAT_OUT_S)
            for each in committers:
                each.go()
            return [each.end() for each in committers]
        finally:
            for each in committers:
                each.process.kill()
                each.process.wait()


def _commits(thorough: float) -> list[Figure]:
    """Fifty sessions in each process, as in one; then one session in each, which is what starves."""
    one: list[float] = []
    all_: list[float] = []
    slowest: list[float] = []
    share: list[float] = []
    for _ in range(rounds(3, thorough)):
        one.append(_flat_out(1, 50)[0]["rate"])
        all_.append(sum(told["rate"] for told in _flat_out(_PROCESSES, 50)))
        singles = _flat_out(_PROCESSES, 1)
        slowest.append(max(told["slowest_ms"] for told in singles))
        rates = [told["rate"] for told in singles]
        share.append(100 * min(rates) * _PROCESSES / sum(rates))
    return [
        Figure(
            name="8 processes, durable events together", unit="/s", ours=all_, floor=one,
            target=statistics.median(one) / 3, note="the floor: one process alone",
        ),
        Figure(name="8 processes flat out, slowest commit", unit="ms", ours=slowest, target=250),
        Figure(name="what the slowest of them gets of its share", unit="%", ours=share),
    ]  # fmt: skip


def _idle(port: int) -> list[Figure]:
    """Percent of one core that all hosts use together, each with a subscriber, when nothing happens."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="callboard-bench-")))
        peers = [stack.enter_context(server(port, folder))[0] for _ in range(_HOSTS)]
        for peer in peers:
            peer.follow()
        bare, _ = stack.enter_context(floor(port))
        time.sleep(_CALM_S)
        watched = [*peers, bare]
        before = [peer.on_core() for peer in watched]
        began = time.perf_counter()
        time.sleep(_WATCHED_S)
        took = time.perf_counter() - began
        used = [100 * (p.on_core() - b) / took for p, b in zip(watched, before, strict=True)]
    return [
        Figure(
            name="5 idle hosts with a subscriber each, together", unit="%",
            ours=[sum(used[:-1])], target=0.5,
            note=f"as many that only wait for input: {_HOSTS * used[-1]:.2f} %",
        )
    ]  # fmt: skip


def measure(thorough: float) -> list[Figure]:
    with fake_model() as port:
        return [
            *_events(port, thorough),
            *_taken_over(port, thorough),
            *_commits(thorough),
            *_idle(port),
        ]


TOPIC = Topic(name="hosts", about="several processes on one store", measure=measure)
