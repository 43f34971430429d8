"""Reading from the person at the terminal, in a way that can be cancelled."""

import os
import sys
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Literal, Protocol

import anyio


class Keyboard(Protocol):
    """Where answers come from. None means that nothing more will come."""

    def single_keys(self) -> AbstractContextManager[None]:
        """While it is entered, `key` needs no Enter. What was typed before is forgotten: nobody
        answers a question that was not shown yet."""
        ...

    def unechoed(self) -> AbstractContextManager[None]:
        """While it is entered, what is typed does not show."""
        ...

    def echoed(self) -> AbstractContextManager[None]:
        """While it is entered, what is typed shows: enter it before you ask for a `line`."""
        ...

    async def key(self) -> str | None: ...

    async def line(self) -> str | None: ...


class TerminalKeyboard:
    """The terminal behind stdin. Where the platform has no single keys, each needs Enter."""

    def single_keys(self) -> AbstractContextManager[None]:
        return _single_keys(sys.stdin.fileno()) if os.name == "posix" else nullcontext()

    def unechoed(self) -> AbstractContextManager[None]:
        if os.name != "posix" or not _is_in_front(sys.stdin.fileno()):
            return nullcontext()
        return _echo(sys.stdin.fileno(), "off")

    def echoed(self) -> AbstractContextManager[None]:
        return _echo(sys.stdin.fileno(), "on") if os.name == "posix" else nullcontext()

    async def key(self) -> str | None:
        if os.name != "posix":
            typed = await self.line()
            return typed[:1] if typed else typed
        descriptor = sys.stdin.fileno()
        await anyio.wait_readable(descriptor)
        typed = os.read(descriptor, 64).decode(errors="replace")
        return typed[:1] if typed and typed != "\x04" else None

    async def line(self) -> str | None:
        if os.name != "posix":
            typed = await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
        else:
            descriptor = sys.stdin.fileno()
            await anyio.wait_readable(descriptor)
            typed = os.read(descriptor, 64 * 1024).decode(errors="replace")
        return typed.rstrip("\r\n") if typed else None


@contextmanager
def _single_keys(descriptor: int) -> Generator[None]:
    """Keys arrive one by one and are not echoed; Ctrl-C remains a signal."""
    import termios
    import tty

    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor, termios.TCSAFLUSH)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@contextmanager
def _echo(descriptor: int, wanted: Literal["on", "off"]) -> Generator[None]:
    """Whether the terminal shows what is typed. Ctrl-C remains a signal."""
    import termios

    before = termios.tcgetattr(descriptor)
    after = termios.tcgetattr(descriptor)
    after[3] = after[3] | termios.ECHO if wanted == "on" else after[3] & ~termios.ECHO
    termios.tcsetattr(descriptor, termios.TCSADRAIN, after)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _is_in_front(descriptor: int) -> bool:
    """Whether the terminal is this process's to set: one in the background is stopped for trying."""
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:  # it is not the terminal that controls this process
        return True


def person_is_there() -> bool:
    """Whether somebody can be asked: stdin is a terminal."""
    return sys.stdin is not None and sys.stdin.isatty()  # pyright: ignore[reportUnnecessaryComparison]
