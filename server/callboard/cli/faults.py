"""Turns whatever went wrong into lines for a person, and an exit code. No traceback gets out."""

import os
import secrets
import sys
import traceback
from pathlib import Path
from typing import cast

from callboard_client import ClientError, RemoteError
from callboard_client.terminal_text import clean_line
from callboard_rpc.errors import CallboardError

from .exits import CommandError, Exit

_BAD_INPUT = frozenset(
    {
        "invalidParams",
        "sessionNotFound",
        "sessionClosed",
        "sessionArchived",
        "profileNotFound",
        "modelUnavailable",
        "pathNotFound",
        "pathDenied",
        "messageTooLarge",
        "approvalNotFound",
        "ruleNotFound",
        "turnNotFound",
        "rootOnly",
        "optionInvalid",
        "importRefused",
        "sessionExists",
        "agentNotFound",
        "agentClosed",
        "nameInUse",
        "depthExceeded",
        "limitReached",
        "askNotFound",
        "askSettled",
        "featureDisabled",
        "taskNotFound",
        "taskNotClaimable",
        "taskNotReady",
        "notOwner",
        "transitionNotAllowed",
        "invalidGraph",
        "notAMember",
        "messageTooLong",
        "peerNotLinked",
        "peerLimit",
        "tokenInvalid",
        "scheduleInvalid",
        "scheduleNotFound",
    }
)
_HINTS = {
    "modelUnavailable": "`callboard doctor` tells which models were found, and what to set.",
    "authRequired": "`callboard login` stores a key; `callboard doctor` tells which were found, and where.",
    "storeVersion": "Update Callboard, or choose another store with --store.",
    "storeReadOnly": "--store chooses another store.",
    "storeFull": "Make room on the disk; everything that was committed is still there.",
    "sessionArchived": "`callboard sessions unarchive SESSION` brings it back.",
    "agentNotFound": "`callboard agents list SESSION` shows the agents of a session.",
    "peerNotLinked": "`callboard peer list SESSION` shows the sessions that it is linked to.",
    "tokenInvalid": "`callboard peer invite SESSION` makes a new one.",
    "taskNotFound": "`callboard group SESSION` shows the tasks there are.",
    "notAMember": "`callboard members SESSION` shows who takes part, `callboard group SESSION` who shares the board.",
    "importRefused": "`callboard sessions export SESSION -o FILE.jsonl` writes what can be imported.",
}


def root_cause(fault: BaseException) -> BaseException:
    """The first real fault inside of the groups that task groups make."""
    while isinstance(fault, BaseExceptionGroup):
        fault = cast("BaseExceptionGroup[BaseException]", fault).exceptions[0]
    return fault


def report(fault: BaseException) -> Exit:
    """Says on stderr what went wrong, in a line or two."""
    match root_cause(fault):
        case CommandError() as error:
            _say(error.message, error.hint)
            return error.exit
        case RemoteError() as error:
            reference = f" (reference {error.correlation_id})" if error.kind == "internal" else ""
            _say(error.message + reference, _HINTS.get(error.kind))
            return Exit.USAGE if error.kind in _BAD_INPUT else Exit.FAILED
        case CallboardError() as error:  # of a command that needs no server
            _say(error.message, None)
            return Exit.USAGE if error.kind in _BAD_INPUT else Exit.FAILED
        case ClientError() as error:
            _say(str(error), "`callboard doctor` looks for what is missing.")
            return Exit.FAILED
        case KeyboardInterrupt():
            return Exit.CANCELLED
        case BrokenPipeError():
            _silence_stdout()
            return Exit.PIPE
        case OSError() as error:
            named = f"{error.filename}: " if error.filename else ""
            _say(f"{named}{error.strerror or error}", None)
            return Exit.FAILED
        case other:
            _report_unexpected(other)
            return Exit.FAILED


def _say(message: str, hint: str | None) -> None:
    sys.stderr.write(f"callboard: {clean_line(message)}\n")
    for each in (hint or "").splitlines():
        sys.stderr.write(f"           {clean_line(each)}\n")


def _report_unexpected(fault: BaseException) -> None:
    reference = f"cli_{secrets.token_hex(4)}"
    kept = _keep_traceback(fault, reference)
    where = f"; the details are in {kept}" if kept else ""
    _say(
        f"something went wrong inside ({type(fault).__name__}, reference {reference}){where}", None
    )


def _keep_traceback(fault: BaseException, reference: str) -> Path | None:
    """Appends the traceback to a private file. None when there is no place for one."""
    from platformdirs import user_log_path

    path = user_log_path("callboard", appauthor=False) / "cli.log"
    text = f"{reference}\n{''.join(traceback.format_exception(fault))}\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError:
        return None
    return path


def _silence_stdout() -> None:
    """The interpreter flushes at exit, and would complain about the same pipe again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
