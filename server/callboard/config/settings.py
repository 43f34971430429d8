"""Every setting, with its type, its default and its unit. Names are those of ``config.toml``.

A setting ``limits.queue`` is written ``[limits] queue = 200`` in TOML, ``CALLBOARD_LIMITS_QUEUE`` in
the environment, and ``{"limits": {"queue": 200}}`` in ``initializationOptions.callboard.config``.
"""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import attrs
from attrs import field, frozen

from .fields import (
    Kind,
    Parse,
    choice,
    choices_by_name,
    integer,
    kind_of,
    names,
    number,
    optional_number,
    optional_text,
    tables,
)
from .hooks import HookSettings

if TYPE_CHECKING:  # the answer to `initialize` waits for this module, and not for the contract
    from callboard_rpc.approvals import Effect
    from callboard_rpc.server import ConfigValue

Source: TypeAlias = Literal["params", "client", "environment", "workspace", "user", "default"]

EFFECTS: "tuple[Effect, ...]" = ("allow", "ask", "deny")
AGENT_INTERRUPTS = "agents.interrupts"
AGENT_MESSAGING = "agents.messaging"
PEERS = "peers"
FEATURES = (AGENT_INTERRUPTS, AGENT_MESSAGING, PEERS)
"""Experimental; all off unless named (PROTOCOL 1)."""

EXPIRE_UNATTENDED_S = 600.0
"""Time for the answer to a question that comes when nobody is there, where 'expire' names none: without
one it would wait for ever, which is what 'park' is for."""

_URL_PASSWORD = re.compile(r"://[^/?#]*@|[?&][^=]*(?:key|token)[^=]*=", re.IGNORECASE)
_SECRET_KEY = re.compile(
    r"key|token|secret|password|authorization|credential|cookie", re.IGNORECASE
)


@frozen(kw_only=True)
class StoreSettings:
    """Where the log lies, and how it is kept."""

    path: str | None = optional_text(
        "The database file, or a folder for it. Default: in the user's data directory."
    )
    checkpoint_bytes: int = integer(
        4 * 1024 * 1024, "WAL size at which a checkpoint is made.", minimum=64 * 1024, unit="bytes"
    )
    wal_limit_bytes: int = integer(
        64 * 1024 * 1024, "Size that the WAL file is cut back to.", minimum=64 * 1024, unit="bytes"
    )
    idempotency_days: int = integer(
        7, "How long answers to requests with an idempotency key are kept.", minimum=1, unit="days"
    )
    waiting: Literal["take_up", "leave"] = choice(
        "take_up",
        "What waited when the server started (prompts, answers, questions whose time is up): 'take_up' goes "
        "on with it, 'leave' leaves it to a server that stays, and begins only what is asked of this one.",
        ("take_up", "leave"),
    )
    retain_archived_days: float | None = optional_number(
        "Archived and closed sessions in which nothing has happened for so long are deleted. "
        "Default: never.",
        minimum=1,
        unit="days",
    )


@frozen(kw_only=True)
class ContextSettings:
    """What a model is sent."""

    tools: Literal["replay", "audit"] = choice(
        "replay",
        "Earlier turns' tool calls: 'replay' sends them again, 'audit' keeps them in the log only.",
        ("replay", "audit"),
    )
    window_default: int = integer(
        128_000,
        "Context window of a model that does not tell its own.",
        minimum=1024,
        unit="tokens",
    )
    reserved_output: int = integer(
        4096, "Part of the window that is left free for the answer.", minimum=1, unit="tokens"
    )
    compact_at: float = number(
        0.85,
        "Part of the window that is filled when the context is compacted.",
        minimum=0.1,
        maximum=1,
    )


@frozen(kw_only=True)
class LimitSettings:
    """What one turn, one session, one request may take."""

    max_iterations: int = integer(50, "Model requests in one turn.", minimum=1, maximum=10_000)
    model_calls: int = integer(
        10, "Model requests at once, in this process.", minimum=1, maximum=1000
    )
    turn_total_s: float = number(3600, "Longest turn.", minimum=1, unit="seconds")
    turn_idle_s: float = number(
        900, "Longest time in which nothing of a turn moves.", minimum=1, unit="seconds"
    )
    model_timeout_s: float = number(
        120, "Longest wait for a model's next byte.", minimum=1, unit="seconds"
    )
    cancel_grace_s: float = number(
        5,
        "Time between asking what runs to stop and killing it.",
        minimum=0,
        maximum=300,
        unit="seconds",
    )
    queue: int = integer(200, "Prompts that may wait in one session.", minimum=1, maximum=100_000)
    frame_bytes: int = integer(
        32 * 1024 * 1024, "Largest JSON-RPC message.", minimum=64 * 1024, unit="bytes"
    )
    page_items: int = integer(200, "Items on a page of a list.", minimum=1, maximum=10_000)
    page_bytes: int = integer(
        1024 * 1024, "Size at which a page of a list ends.", minimum=4096, unit="bytes"
    )
    window: int = integer(
        1000, "Events that a subscription may leave unacknowledged.", minimum=1, maximum=1_000_000
    )
    prompt_bytes: int = integer(8 * 1024 * 1024, "Largest prompt.", minimum=1024, unit="bytes")


@frozen(kw_only=True)
class ApprovalSettings:
    """What an agent may do, and who is asked."""

    mode: Literal["ask", "plan", "work"] = choice(
        "work",
        "Mode of new sessions; only in 'work' may an agent change anything.",
        ("ask", "plan", "work"),
    )
    policy: "Mapping[str, Effect]" = choices_by_name(  # noqa: RUF009 (a field, like the others)
        "allow, ask or deny, by tool, by tool(pattern), or by effect (read, write, execute, kernel).",
        EFFECTS,
    )
    narrowing: "Mapping[str, Effect]" = attrs.Factory(dict[str, "Effect"])
    """What the workspace's own file says in ``approvals.policy``: it can only take away."""
    unattended: Literal["park", "deny", "expire"] = choice(
        "park",
        "An approval that is needed while nobody is connected to this server who could answer: 'park' "
        "waits for as long as it takes, 'deny' refuses at once, 'expire' refuses after expire_s.",
        ("park", "deny", "expire"),
    )
    expire_s: float | None = optional_number(
        "Time after which an unanswered approval is refused; not one that 'park' lets wait. Default: "
        f"never, but {EXPIRE_UNATTENDED_S:g} for one that 'expire' is about.",
        minimum=1,
        unit="seconds",
    )


@frozen(kw_only=True)
class ToolSettings:
    """How tools run."""

    command_timeout_s: float = number(
        120, "Longest run of a command that names no limit itself.", minimum=1, unit="seconds"
    )
    output_bytes: int = integer(
        64 * 1024,
        "Output of a tool that the model reads; the whole is kept.",
        minimum=1024,
        unit="bytes",
    )
    environment_allow: tuple[str, ...] = names(
        (), "Variables of the environment that commands see besides the usual harmless ones."
    )


@frozen(kw_only=True)
class AgentSettings:
    """Child agents: how many there may be, and how long they wait."""

    max_depth: int = integer(
        1,
        "Levels of agents below a root session; 0 allows none.",
        minimum=0,
        maximum=8,
    )
    max_open: int = integer(
        8, "Children of one agent that are not closed.", minimum=1, maximum=1000
    )
    max_running: int = integer(
        4, "Children of one agent that run at once; the others wait.", minimum=1, maximum=1000
    )
    reports: Literal["wake", "wait"] = choice(
        "wake",
        "A child's report when its parent has ended its turn: 'wake' starts one for it, 'wait' leaves it "
        "to the next.",
        ("wake", "wait"),
    )
    cancel_grace_s: float = number(
        120,
        "Time that a cancelled agent has to wind down until it is aborted.",
        minimum=1,
        unit="seconds",
    )
    ask_timeout_s: float = number(
        300, "Longest wait of an agent for its parent's reply.", minimum=1, unit="seconds"
    )


@frozen(kw_only=True)
class RoomSettings:
    """Several agents in one session."""

    burst_budget: int = integer(
        6,
        "Messages of agents that may follow one another until a person says something; 0 and 1 let no agent wake "
        "another.",
        minimum=0,
        maximum=1000,
    )
    roster: str | None = optional_text("The roster of new sessions that name no agent themselves.")
    rosters: Mapping[str, Any] = tables(
        "Lists of agents for rooms, each a table with members and, perhaps, host."
    )


@frozen(kw_only=True)
class ScheduleSettings:
    """Agents that are woken by the clock."""

    max_schedules: int = integer(10_000, "Schedules in one store.", minimum=0, maximum=1_000_000)
    max_of_agent: int = integer(
        20, "Schedules that one session's agent may have made.", minimum=0, maximum=10_000
    )
    min_interval_s: int = integer(
        60,
        "Shortest time between two fires of an agent's own schedules.",
        minimum=1,
        unit="seconds",
    )
    approvals: Literal["ask", "deny"] = choice(
        "ask",
        "What a turn does that the clock has started, where policy says to ask: 'ask' as ever (and park when "
        "nobody is there, or what approvals.unattended says), 'deny' refuses at once.",
        ("ask", "deny"),
    )


@frozen(kw_only=True)
class PeerSettings:
    """Links between unrelated sessions."""

    poll_ms: int = integer(
        2_000, "How often messages are looked for though none was heard of.", minimum=250, unit="ms"
    )
    hourly: int = integer(50, "Messages that one session may send within an hour.", minimum=1)
    undelivered: int = integer(50, "Messages that may wait for one session.", minimum=1)


@frozen(kw_only=True)
class AcpSettings:
    """The Agent Client Protocol: agents that are programs of their own, and editors that speak it to Callboard."""

    idle_s: float = number(
        1800,
        "Time after which an agent's program is ended that has nothing to do; it is started again with the next "
        "prompt.",
        minimum=1,
        unit="seconds",
    )
    terminals: Literal["auto", "client", "own"] = choice(
        "auto",
        "Where a session's commands run while an editor that speaks the protocol has it open: 'own' in "
        "Callboard's runner, 'client' in the editor's terminal where it offers one, 'auto' in the runner where the "
        "editor can show that as a terminal, else as 'client'.",
        ("auto", "client", "own"),
    )


@frozen(kw_only=True)
class DraftSettings:
    """How often the unfinished answer of a running turn is saved: whichever comes first."""

    interval_ms: int = integer(
        250, "Time between two saves.", minimum=10, maximum=60_000, unit="ms"
    )
    bytes: int = integer(4096, "Text between two saves.", minimum=256, unit="bytes")


@frozen(kw_only=True)
class LogSettings:
    """What the server writes about itself (not the event log)."""

    level: Literal["debug", "info", "warning", "error"] = choice(
        "warning", "Least severe lines that are written.", ("debug", "info", "warning", "error")
    )
    file: str | None = optional_text("Where they go instead of stderr.")


@frozen(kw_only=True)
class Origin:
    """The layer that gave a value, and where in it: a file, or a variable of the environment."""

    source: Source
    place: str | None = None


DEFAULT = Origin(source="default")


@frozen(kw_only=True)
class Entry:
    """What one key of an open table holds, fit to be shown, and where it came from."""

    key: str
    value: Any
    source: Source
    origin: str | None


@frozen(kw_only=True)
class Settings:
    """Everything that can be set. All have defaults: an empty configuration is a working one."""

    model: str | None = optional_text("The model of new sessions, as provider/name.")
    profile: str | None = optional_text("The agent definition of new sessions. Default: 'default'.")
    instructions: str | None = optional_text(
        "Text that every agent gets with its system prompt. The workspace's is added to the user's."
    )
    features: tuple[str, ...] = names((), "Experimental features to switch on.", known=FEATURES)
    providers: Mapping[str, Any] = tables("Model providers, each a table (see `callboard doctor`).")
    store: StoreSettings = field(factory=StoreSettings)
    context: ContextSettings = field(factory=ContextSettings)
    limits: LimitSettings = field(factory=LimitSettings)
    approvals: ApprovalSettings = field(factory=ApprovalSettings)
    tools: ToolSettings = field(factory=ToolSettings)
    agents: AgentSettings = field(factory=AgentSettings)
    rooms: RoomSettings = field(factory=RoomSettings)
    schedules: ScheduleSettings = field(factory=ScheduleSettings)
    peers: PeerSettings = field(factory=PeerSettings)
    acp: AcpSettings = field(factory=AcpSettings)
    draft: DraftSettings = field(factory=DraftSettings)
    log: LogSettings = field(factory=LogSettings)
    hooks: HookSettings = field(factory=HookSettings)
    origins: Mapping[str, Origin] = field(factory=dict[str, Origin], repr=False)
    """Where each value that is no default came from, by its dotted key."""
    entries: tuple[Entry, ...] = field(default=(), repr=False)
    """What stands in the open tables (`approvals.policy`, `providers`), each with its origin, and
    the providers' own variables of the environment; secrets are already masked."""

    def values(self) -> "tuple[ConfigValue, ...]":
        """Every setting for ``config/get``, in the order of this file; secrets only as ``"set"``."""
        from callboard_rpc.server import ConfigValue

        settings = (self._entry(key) for key, kind in each_setting() if not kind.open_table)
        return tuple(
            ConfigValue(key=e.key, value=e.value, source=e.source, origin=e.origin)
            for e in (*settings, *self.entries)
        )

    def _entry(self, key: str) -> Entry:
        origin = self.origins.get(key, DEFAULT)
        value: Any = self
        for part in key.split("."):
            value = getattr(value, part)
        show = SHOW.get(key)
        if show is not None:
            value = show(value)
        elif isinstance(value, tuple):
            value = list(cast("tuple[Any, ...]", value))
        return Entry(key=key, value=value, source=origin.source, origin=origin.place)


def each_setting() -> Iterator[tuple[str, Kind]]:
    """Every setting's dotted key and kind."""
    for top in attrs.fields(Settings):
        kind = kind_of(top)
        if kind is not None:
            yield top.name, kind
        elif top.name in GROUPS:
            for inner in attrs.fields(GROUPS[top.name]):
                inner_kind = kind_of(inner)
                if inner_kind is not None:
                    yield f"{top.name}.{inner.name}", inner_kind


GROUPS: dict[str, type[Any]] = {
    "store": StoreSettings,
    "context": ContextSettings,
    "limits": LimitSettings,
    "approvals": ApprovalSettings,
    "tools": ToolSettings,
    "agents": AgentSettings,
    "rooms": RoomSettings,
    "schedules": ScheduleSettings,
    "peers": PeerSettings,
    "acp": AcpSettings,
    "draft": DraftSettings,
    "log": LogSettings,
    "hooks": HookSettings,
}

SHOW: dict[str, Parse] = {key: kind.show for key, kind in each_setting() if kind.show is not None}


def shown(key: str, value: Any) -> Any:
    """`value` as ``config/get`` may tell it: ``"set"`` for what is, or could hold, a secret."""
    name = key.rpartition(".")[2]
    if _SECRET_KEY.search(name) or ".headers." in key or ".env." in key or ".args" in key:
        return "set"
    if isinstance(value, str) and _URL_PASSWORD.search(value):
        return "set"
    return value
