"""What a server takes while it does nothing: memory after the start and per session, and time."""

import time

import psutil
from figure import Figure, Topic
from peer import Peer
from stage import fake_model, floor, server

_IDLE = 100
_WATCHED_S = 5.0
_CALM_S = 10.0
"""When nothing has happened for so long, a server looks less often for other processes' commits."""


def _resident(peer: Peer) -> float:
    return psutil.Process(peer.process.pid).memory_info().rss / 1e6


def _settled(peer: Peer) -> float:
    """Resident MB once what the start does in the background is over: no time was used for a while."""
    deadline = time.monotonic() + 10
    while _busy(peer, 0.5) > 5 and time.monotonic() < deadline:
        pass
    return _resident(peer)


def _busy(peer: Peer, seconds: float) -> float:
    """Percent of a core that the child used, all its threads together, by the scheduler's count."""
    used, began = peer.on_core(), time.perf_counter()
    time.sleep(seconds)
    return 100 * (peer.on_core() - used) / (time.perf_counter() - began)


def measure(thorough: float) -> list[Figure]:
    del thorough  # how long one looks is part of what is measured
    with fake_model() as port:
        with floor(port) as (low, _):
            bare = _resident(low)
            bare_idle = _busy(low, 1.0)
        with server(port) as (peer, cwd):
            peer.call("server/ping")
            start = _settled(peer)
            alone = _busy(peer, _WATCHED_S)
            peer.follow()
            warm = peer.create(cwd)
            for _ in range(10):
                peer.turn(warm, "say")
            before = _settled(peer)
            for _ in range(_IDLE):
                peer.turn(peer.create(cwd), "say")
            after = _settled(peer)
            time.sleep(_CALM_S)
            watched = _busy(peer, _WATCHED_S)
    return [
        Figure(name="resident after the start", unit="MB", ours=[start], floor=[bare], target=90),
        Figure(name="resident after the first turns", unit="MB", ours=[before]),
        Figure(
            name="a further idle session", unit="MB", ours=[(after - before) / _IDLE], target=0.3
        ),
        Figure(
            name="time when idle, nobody subscribed",
            unit="%",
            ours=[alone],
            floor=[bare_idle],
            target=0.05,
        ),
        Figure(
            name="time when idle, one subscription",
            unit="%",
            ours=[watched],
            floor=[bare_idle],
            target=0.5,
        ),
    ]


TOPIC = Topic(name="idle", about="memory and time when idle", measure=measure)
