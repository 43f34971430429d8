"""Turns that something else than a language model drives: what such a driver is given, and the place that a
model has in its turn.

Whatever drives it, a turn begins by a trigger, has one end and each call of it one result: what differs is
only who says what is done next.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TypeAlias

from attrs import frozen

from callboard_rpc.common import CallId, Failure, Mode, Usage

from ..models.base import ModelCard, ModelError, ModelEvent, ModelRequest
from ..tools.base import ToolContext
from ..tools.workspace import FolderWorkspace
from ..turns.turn import Progress, Turn
from .profiles import Profile
from .state import SessionState

PROVIDER = "acp"
"""What comes first in the id of the model of an agent that is a program of its own."""


def model_id_of(profile: Profile) -> str:
    """The model that events name for a turn of such an agent: it has its own, and need not say which."""
    return f"{PROVIDER}/{profile.name}"


@frozen(kw_only=True)
class Driving:
    """One turn, as its driver sees it. `mode` is the narrowest that holds now; `context_of` is what a tool is
    given for a call; `notes` are parts of the system prompt that are for any agent. `speaker` is who reads, where
    there may be others."""

    profile: Profile
    state: SessionState
    workspace: FolderWorkspace
    mode: Callable[[], Mode]
    context_of: Callable[[CallId], ToolContext]
    notes: Sequence[str]
    speaker: str | None
    resumed: bool


Driver: TypeAlias = Callable[[Driving, Turn, Progress], Awaitable[None]]
"""Runs a turn until its end is committed, as `turns.loop.steps` does."""


class Unasked:
    """The model of a turn that has none: it has a name, and is never asked."""

    def __init__(self, profile: Profile) -> None:
        self.card = ModelCard(
            model_id=model_id_of(profile),
            provider=PROVIDER,
            name=profile.name,
            supports_tools=False,
        )

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        message = f"{self.card.model_id} is an agent, and no model that could be asked"
        raise ModelError(Failure(kind="modelUnavailable", message=message))
        yield  # pragma: no cover - makes it a generator


class Untold:
    """The context of such a turn: the agent keeps its own, and makes room in it by itself."""

    async def request(self, *, nudge: str | None) -> ModelRequest:
        raise NotImplementedError("a turn that an agent drives makes no request of a model")

    async def compact(self, *, force: bool) -> bool:
        return False

    def measured(self, usage: Usage) -> None:
        return None
