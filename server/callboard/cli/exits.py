"""What exit codes mean, and errors that are meant for the person at the terminal."""

from enum import IntEnum


class Exit(IntEnum):
    """The exit codes of every command.

    ``DENIED``: the turn ended, but something was refused because nobody could be asked; or it waits
    for an approval. ``PIPE``: whoever read the output went away.
    """

    OK = 0
    FAILED = 1
    USAGE = 2
    DENIED = 3
    TIMED_OUT = 124
    CANCELLED = 130
    PIPE = 141


class CommandError(Exception):
    """Ends a command with a message and an exit code; `hint` says what to do, on lines of its own."""

    def __init__(self, message: str, *, exit: Exit = Exit.FAILED, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.exit = exit
        self.hint = hint
