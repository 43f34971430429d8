"""From the spawn of the process to the answer to ``initialize``, in both framings."""

import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson
from figure import Figure, Topic, rounds
from peer import HERE, start
from stage import environment

_BODY = orjson.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "processId": os.getpid(),
            "rootUri": None,
            "capabilities": {},
            "initializationOptions": {"callboard": {"protocolVersions": ["1.0"]}},
        },
    }
)
_FRAMES = {
    "ndjson": _BODY + b"\n",
    "LSP": b"Content-Length: %d\r\n\r\n%b" % (len(_BODY), _BODY),
}


def answered(argv: list[str], env: dict[str, str], frame: bytes) -> float:
    """Seconds from the spawn until the answer's first bytes."""
    with open(os.devnull, "wb") as nothing:  # noqa: PTH123
        began = time.perf_counter()
        process = start(argv, env, nothing)
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(frame)
        answer = os.read(process.stdout.fileno(), 1 << 16)
        took = time.perf_counter() - began
    process.stdin.close()
    process.wait(20)
    process.stdout.close()
    if b'"result"' not in answer:
        raise RuntimeError(f"initialize was answered with {answer[:300]!r}")
    return took


def measure(thorough: float) -> list[Figure]:
    figures: list[Figure] = []
    with TemporaryDirectory(prefix="callboard-bench-") as folder:
        env = environment(Path(folder), 9)
        for framing, target in (("ndjson", 0.25), ("LSP", 0.8)):
            frame = _FRAMES[framing]
            ours: list[float] = []
            bare: list[float] = []
            for _ in range(rounds(9, thorough)):
                ours.append(answered(["-m", "callboard", "serve"], env, frame))
                bare.append(answered([str(HERE / "floor.py"), "9"], env, frame))
            figures.append(
                Figure(
                    name=f"initialize from the spawn, {framing}",
                    unit="s",
                    ours=ours,
                    floor=bare,
                    target=target,
                )
            )
    return figures


TOPIC = Topic(name="start", about="cold start", measure=measure)
