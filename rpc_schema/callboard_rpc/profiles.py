"""``agent/probe``: what the agent of a profile is like, found out by trying."""

from typing import Literal, TypeAlias

from attrs import field

from .frozen import frozen

ProbeStatus: TypeAlias = Literal["ready", "needsAuth", "missing", "error"]
"""``needsAuth``: it wants a login, or a key. ``missing``: its program is not there. ``error``: something else is
wrong, which the checks tell."""

ProfileStatus: TypeAlias = Literal["ready", "needsAuth", "missing", "error", "unknown"]
"""As by the last probe, or the last session, of this server; ``unknown`` before."""


@frozen(kw_only=True)
class AgentProbeParams:
    """`cwd` is the folder whose profiles are meant: that of the server by default."""

    profile: str
    cwd: str | None = None


@frozen(kw_only=True)
class ProbeCheck:
    """One thing that was looked at, in the order in which they were; none comes behind one that is not ok. The
    detail of that one says what to do."""

    name: Literal["program", "handshake", "session", "model"]
    ok: bool
    detail: str


@frozen(kw_only=True)
class ProbedAgent:
    """What an agent calls itself."""

    name: str
    title: str | None = None
    version: str | None = None


@frozen(kw_only=True)
class ProbedChoice:
    """A mode or a model that an agent's session can be set to."""

    id: str
    name: str
    description: str | None = None
    current: bool = False


@frozen(kw_only=True)
class ProbedLogin:
    """A way to log in that an agent offers."""

    id: str
    name: str
    description: str | None = None


@frozen(kw_only=True)
class AgentProbeResult:
    """`ok` is a `status` of ``ready``. Of an agent that is a program of its own: what it calls itself, what it can
    do, how one logs in to it, and what its session can be set to. Of any other `models` has the one that it would
    use. All words of an agent are cut to a bounded length."""

    profile: str
    ok: bool
    status: ProbeStatus
    checks: tuple[ProbeCheck, ...]
    agent_info: ProbedAgent | None = None
    capabilities: dict[str, bool] = field(factory=dict[str, bool])
    auth_methods: tuple[ProbedLogin, ...] = ()
    modes: tuple[ProbedChoice, ...] = ()
    models: tuple[ProbedChoice, ...] = ()
