"""A tool call on its way, from what the model wrote to what is committed of it."""

from collections.abc import Awaitable, Callable
from typing import Any, Literal

import orjson
from attrs import define, field, frozen

from callboard_rpc.approvals import (
    ApprovalOption,
)
from callboard_rpc.common import ApprovalId, CallId, Json, ToolStatus
from callboard_rpc.events import ToolResult

from ..log.text import well_formed
from ..models.base import ToolOutput
from ..tools.base import Effect, Preview, Tool, ToolOutcome


@frozen(kw_only=True)
class Verdict:
    """What policy says of a call. `reason` is for the model when denied, for the person when asked."""

    effect: Literal["allow", "ask", "deny"]
    reason: str
    options: tuple[ApprovalOption, ...] = ()


Judge = Callable[[Tool, Preview | None], Awaitable[Verdict]]


@define(kw_only=True)
class Call:
    """A call on its way: what was asked, what may be shown of it, and what stands in its way."""

    call_id: CallId
    index: int
    name: str
    provider_call_id: str | None
    tool: Tool | None = None
    arguments: Any = None
    shown: Json = field(factory=dict[str, Any])
    raw: str | None = None
    fault: str | None = None
    preview: Preview | None = None
    unseen: bool = False
    """The preview only repeats the arguments: what the call would touch is known when it begins."""
    verdict: Verdict | None = None
    question: bool = False
    """It asks the person something, and does nothing that would have to be allowed."""
    approval_id: ApprovalId | None = None

    @property
    def effect(self) -> Effect:
        """A call that cannot run changes nothing, so it holds up no reads."""
        if self.tool is None or self.fault is not None:
            return "read"
        return self.tool.effect

    @property
    def title(self) -> str:
        """What a person reads of it."""
        return self.preview.title if self.preview else self.name

    @property
    def signature(self) -> str:
        """Equal for calls that ask for the same thing."""
        text = (
            self.raw
            if self.raw is not None
            else orjson.dumps(self.shown, option=orjson.OPT_SORT_KEYS).decode()
        )
        return f"{self.name}({text})"


@frozen(kw_only=True)
class Settled:
    """A call that is over, and what is to be committed of it."""

    call: Call
    result: ToolResult
    events: tuple[Any, ...] = ()

    @property
    def output(self) -> ToolOutput:
        """What the model is given."""
        return ToolOutput(
            call_id=self.call.call_id, text=self.result.text, is_error=self.result.status != "ok"
        )


def settled_as(
    call: Call,
    status: ToolStatus,
    text: str,
    outcome: ToolOutcome | None = None,
    duration_ms: int | None = None,
) -> Settled:
    """A call that is over, with its one result."""
    return Settled(
        call=call,
        events=outcome.events if outcome else (),
        result=ToolResult(
            call_id=call.call_id,
            name=call.name,
            status=status,
            text=well_formed(text),
            changes=outcome.changes if outcome else (),
            locations=outcome.locations if outcome else (),
            exit_code=outcome.exit_code if outcome else None,
            truncated=outcome.truncated if outcome else False,
            blob=outcome.blob if outcome else None,
            duration_ms=duration_ms,
        ),
    )
