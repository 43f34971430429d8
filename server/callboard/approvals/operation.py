"""What a person was asked about, so that an answer is never taken for something else.

A call that waits over the death of its server is looked at again when it is answered; the folder may
be another one by then. The answer holds for what was shown, and for nothing else (execution 48).
"""

from collections.abc import Callable
from typing import Any

import orjson

from callboard_rpc.approvals import Approval, ToolCallSubject
from callboard_rpc.convert import unstructure

from ..log.text import all_well_formed, spill


def same_operation(asked: Approval, other: Approval, *, redact: Callable[[str], str]) -> bool:
    """Whether two requests are about the same: call, tool, and what it would do, as far as the log
    shows it. `redact` is the log's: what it has taken out of one is taken out of the other."""
    return (asked.call_id, asked.tool, asked.session_id) == (
        other.call_id,
        other.tool,
        other.session_id,
    ) and same_subject(asked, other.subject, redact=redact)


def same_subject(asked: Approval, subject: Any, *, redact: Callable[[str], str]) -> bool:
    """Whether a call that would do `subject` now is what was asked about."""
    return _as_logged(asked.subject, redact) == _as_logged(subject, redact)


def only_named(asked: Approval) -> bool:
    """Whether nothing was shown but the call itself: what it would do could not be seen yet."""
    return isinstance(asked.subject, ToolCallSubject)


def _as_logged(subject: Any, redact: Callable[[str], str]) -> Any:
    text = redact(orjson.dumps(all_well_formed(unstructure(subject))).decode())
    return spill(orjson.loads(text))[0]
