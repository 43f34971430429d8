"""The event loop of a server process."""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeVar

from ..tools.offload import see_endings_through

T = TypeVar("T")

_ENDINGS_S = 3.0
"""How long the ends of processes may go on that were begun, once everything else is over."""

_SWITCH_S = 0.0002
"""How long a thread may keep the interpreter while another wants it. The writer's thread gives it up with
each statement, and holds the lock of the whole store while it waits to have it again: with the usual
5 ms, a busy loop makes all processes of the store wait for tenths of a second."""


def run(main: Coroutine[Any, Any, T]) -> T:
    """Runs `main` to its end, on uvloop where it installs: a turn crosses the loop some thirty times,
    and each crossing costs about half."""
    sys.setswitchinterval(_SWITCH_S)
    try:
        with _known_to_sniffio():
            return _runner()(main)
    finally:
        see_endings_through(_ENDINGS_S)


def _runner() -> Callable[[Coroutine[Any, Any, T]], T]:
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    return uvloop.run


@contextmanager
def _known_to_sniffio() -> Generator[None]:
    """Where sniffio is installed, as many packages bring it along, anyio asks it which loop runs, and
    without this it knows of one in tasks only. Callbacks start tasks, too."""
    sniffio = _sniffio()
    if sniffio is None:
        yield
        return
    here = sniffio.thread_local
    before, here.name = here.name, "asyncio"
    try:
        yield
    finally:
        here.name = before


def _sniffio() -> Any:
    try:
        return import_module("sniffio")
    except ImportError:
        return None
