"""Stands in for the library of this name, which many packages bring along: with it, anyio asks here
which event loop runs, and is told of none outside of a task."""

import asyncio
import threading
from contextvars import ContextVar


class AsyncLibraryNotFoundError(RuntimeError):
    """Nothing asynchronous runs here."""


class _Local(threading.local):
    name: str | None = None


thread_local = _Local()
current_async_library_cvar: ContextVar[str | None] = ContextVar("library", default=None)


def current_async_library() -> str:
    """The name of the library whose task runs. Raises `AsyncLibraryNotFoundError` outside of one."""
    name = thread_local.name or current_async_library_cvar.get()
    if name is not None:
        return name
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    if task is None:
        raise AsyncLibraryNotFoundError("no task runs")
    return "asyncio"
