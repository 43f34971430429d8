"""The method table: what may be asked of whom, with what, and what comes back.

The dispatcher and the generated documents are made from this table, so a method that is not
here does not exist. Result types that are pages are given as `Page` of the item.
"""

from typing import Any, Literal

from attrs import frozen

from .agents import (
    Agent,
    AgentCloseParams,
    AgentInterruptParams,
    AgentInterruptResult,
    AgentListParams,
    AgentMessageParams,
    AgentMessageResult,
    AgentReplyParams,
    AgentReplyResult,
    AgentResult,
    AgentSpawnParams,
    AgentWaitParams,
    AgentWaitResult,
)
from .approvals import (
    Approval,
    ApprovalAnswerParams,
    ApprovalGetParams,
    ApprovalListParams,
    ApprovalRequestParams,
    ApprovalRequestResult,
    ApprovalResult,
    Rule,
    RuleAddParams,
    RuleListParams,
    RuleRemoveParams,
    RuleResult,
)
from .common import Empty, Page
from .history import (
    QueuedPrompt,
    SessionForkParams,
    SessionQueueParams,
    SessionQueueRemoveParams,
    SessionQueueResult,
    SessionQueueUpdateParams,
    SessionRewindParams,
    SessionRewindResult,
)
from .server import (
    BlobReadParams,
    BlobReadResult,
    ConfigGetParams,
    ConfigGetResult,
    Diagnostics,
    InitializeParams,
    InitializeResult,
    ModelInfo,
    ModelListParams,
    PingParams,
    PingResult,
    ProfileInfo,
    ProfileListParams,
    ReadFileParams,
    ReadFileResult,
    SchemaParams,
    SchemaResult,
    ServerInfo,
)
from .sessions import (
    SearchHit,
    Session,
    SessionCancelParams,
    SessionCancelResult,
    SessionCompactParams,
    SessionCompactResult,
    SessionCreateParams,
    SessionExportParams,
    SessionExportResult,
    SessionGetParams,
    SessionListParams,
    SessionMutateParams,
    SessionPromptParams,
    SessionPromptResult,
    SessionResult,
    SessionSearchParams,
    SessionTurnsParams,
    SessionUpdateParams,
    SessionWaitParams,
    SessionWaitResult,
    Turn,
)
from .streams import (
    AckParams,
    EventBatch,
    EventDelta,
    EventListParams,
    EventListResult,
    EventReset,
    SubscribeParams,
    SubscribeResult,
    UnsubscribeParams,
)
from .transfer import (
    SessionImportParams,
    SessionImportResult,
    SessionUsageParams,
    SessionUsageResult,
)

Direction = Literal["clientToServer", "serverToClient"]


@frozen(kw_only=True)
class Method:
    """`mutates` methods take an ``idempotencyKey``; `errors` are the kinds beyond the general ones."""

    name: str
    params: Any
    result: Any = None
    direction: Direction = "clientToServer"
    kind: Literal["request", "notification"] = "request"
    mutates: bool = False
    errors: tuple[str, ...] = ()
    stability: Literal["stable", "experimental"] = "stable"
    doc: str = ""

    @property
    def family(self) -> str:
        return self.name.partition("/")[0]


_SESSION = ("sessionNotFound",)
_OPEN = ("sessionNotFound", "sessionClosed", "sessionArchived")
_STORE = ("storeBusy", "storeReadOnly", "storeFull")
_AGENT = ("agentNotFound", "agentClosed")

_TABLE = (
    Method(
        name="initialize",
        params=InitializeParams,
        result=InitializeResult,
        errors=(
            "unsupportedVersion",
            "storeBusy",
            "storeReadOnly",
            "storeCorrupt",
            "storeVersion",
            "storeFull",
            "storeUnsupported",
            "storeIo",
        ),
        doc="Opens the conversation.",
    ),
    Method(name="initialized", params=Empty, kind="notification", doc="The client is ready."),
    Method(name="shutdown", params=Empty, result=Empty, doc="No more work; `exit` follows."),
    Method(name="exit", params=Empty, kind="notification", doc="Ends the process."),
    Method(name="server/info", params=Empty, result=ServerInfo, doc="What this server is."),
    Method(name="server/ping", params=PingParams, result=PingResult, doc="Answers at once."),
    Method(
        name="server/diagnostics",
        params=Empty,
        result=Diagnostics,
        doc="Queues, leases, hosts, sizes.",
    ),
    Method(
        name="server/schema",
        params=SchemaParams,
        result=SchemaResult,
        doc="This contract, as text.",
    ),
    Method(
        name="config/get",
        params=ConfigGetParams,
        result=ConfigGetResult,
        doc="Each setting and where it came from.",
    ),
    Method(
        name="model/list",
        params=ModelListParams,
        result=Page[ModelInfo],
        doc="Models that can be used, and why others cannot.",
    ),
    Method(
        name="profile/list",
        params=ProfileListParams,
        result=Page[ProfileInfo],
        doc="Agent definitions.",
    ),
    Method(
        name="blob/read",
        params=BlobReadParams,
        result=BlobReadResult,
        errors=("blobNotFound",),
        doc="A piece of a large value.",
    ),
    Method(
        name="session/create",
        params=SessionCreateParams,
        result=SessionResult,
        mutates=True,
        errors=("pathNotFound", "profileNotFound", "modelUnavailable", "featureDisabled", *_STORE),
        doc="A new session in a folder.",
    ),
    Method(
        name="session/get",
        params=SessionGetParams,
        result=SessionResult,
        errors=_SESSION,
        doc="One session as it is now.",
    ),
    Method(
        name="session/list",
        params=SessionListParams,
        result=Page[Session],
        errors=("invalidCursor",),
        doc="Sessions, newest first.",
    ),
    Method(
        name="session/prompt",
        params=SessionPromptParams,
        result=SessionPromptResult,
        mutates=True,
        errors=(*_OPEN, "queueFull", "messageTooLarge", "pathDenied", "pathNotFound", *_STORE),
        doc="Durable prompt; starts, queues or steers.",
    ),
    Method(
        name="session/cancel",
        params=SessionCancelParams,
        result=SessionCancelResult,
        mutates=True,
        errors=(*_SESSION, "turnNotFound", "turnMismatch"),
        doc="Stops the turn, the queue, or the whole tree.",
    ),
    Method(
        name="session/wait",
        params=SessionWaitParams,
        result=SessionWaitResult,
        errors=(*_SESSION, "turnNotFound"),
        doc="Answers when the session is done, or needs someone.",
    ),
    Method(
        name="session/turns",
        params=SessionTurnsParams,
        result=Page[Turn],
        errors=(*_SESSION, "invalidCursor"),
        doc="Turns, oldest first.",
    ),
    Method(
        name="session/update",
        params=SessionUpdateParams,
        result=SessionResult,
        mutates=True,
        errors=(*_SESSION, "modelUnavailable"),
        doc="Changes title, pin, metadata, mode, model.",
    ),
    Method(
        name="session/archive",
        params=SessionMutateParams,
        result=SessionResult,
        mutates=True,
        errors=_SESSION,
        doc="Hides a session from lists.",
    ),
    Method(
        name="session/unarchive",
        params=SessionMutateParams,
        result=SessionResult,
        mutates=True,
        errors=_SESSION,
        doc="Shows it again.",
    ),
    Method(
        name="session/delete",
        params=SessionMutateParams,
        result=Empty,
        mutates=True,
        doc="Stops it, then deletes it and its children; an unknown id succeeds.",
    ),
    Method(
        name="session/close",
        params=SessionMutateParams,
        result=SessionResult,
        mutates=True,
        errors=_SESSION,
        doc="Ends it and its children for good.",
    ),
    Method(
        name="session/compact",
        params=SessionCompactParams,
        result=SessionCompactResult,
        mutates=True,
        errors=(
            *_OPEN,
            "turnInProgress",
            "leaseLost",
            "profileNotFound",
            "modelUnavailable",
            "authRequired",
            "modelError",
            "contextWindowExceeded",
        ),
        doc="Summarises what was said so far.",
    ),
    Method(
        name="session/fork",
        params=SessionForkParams,
        result=SessionResult,
        mutates=True,
        errors=(*_SESSION, "turnNotFound", "turnInProgress", "rootOnly", "leaseLost", *_STORE),
        doc="A new session that has this one's history up to the end of a turn.",
    ),
    Method(
        name="session/rewind",
        params=SessionRewindParams,
        result=SessionRewindResult,
        mutates=True,
        errors=(*_OPEN, "turnNotFound", "turnInProgress", "leaseLost", *_STORE),
        doc="Goes back to before a turn; the log keeps all, files stay as they are.",
    ),
    Method(
        name="session/queue",
        params=SessionQueueParams,
        result=Page[QueuedPrompt],
        errors=(*_SESSION, "invalidCursor"),
        doc="Prompts that wait, in order.",
    ),
    Method(
        name="session/queueUpdate",
        params=SessionQueueUpdateParams,
        result=SessionQueueResult,
        mutates=True,
        errors=(
            *_SESSION,
            "promptNotFound",
            "promptTaken",
            "messageTooLarge",
            "hookBlocked",
            *_STORE,
        ),
        doc="Changes what a waiting prompt says.",
    ),
    Method(
        name="session/queueRemove",
        params=SessionQueueRemoveParams,
        result=SessionQueueResult,
        mutates=True,
        errors=(*_SESSION, "promptNotFound", "promptTaken", *_STORE),
        doc="Drops a waiting prompt.",
    ),
    Method(
        name="session/search",
        params=SessionSearchParams,
        result=Page[SearchHit],
        doc="Full text over what was said and printed.",
    ),
    Method(
        name="session/export",
        params=SessionExportParams,
        result=SessionExportResult,
        errors=(*_SESSION, "invalidCursor"),
        doc="The session as JSON lines or Markdown.",
    ),
    Method(
        name="session/import",
        params=SessionImportParams,
        result=SessionImportResult,
        mutates=True,
        errors=(
            "importRefused",
            "sessionExists",
            "pathNotFound",
            "pathDenied",
            "messageTooLarge",
            "leaseLost",
            *_STORE,
        ),
        doc="A session from what an export wrote; all of it, or nothing.",
    ),
    Method(
        name="session/usage",
        params=SessionUsageParams,
        result=SessionUsageResult,
        errors=(*_SESSION, "invalidCursor"),
        doc="Tokens and cost by run, model, session and tree.",
    ),
    Method(
        name="event/subscribe",
        params=SubscribeParams,
        result=SubscribeResult,
        errors=("invalidCursor", "cursorExpired", *_SESSION),
        doc="History from a cursor, then live.",
    ),
    Method(
        name="event/unsubscribe",
        params=UnsubscribeParams,
        result=Empty,
        doc="Ends a subscription; an unknown id succeeds.",
    ),
    Method(
        name="event/ack",
        params=AckParams,
        kind="notification",
        doc="Opens the window of a subscription.",
    ),
    Method(
        name="event/list",
        params=EventListParams,
        result=EventListResult,
        errors=("invalidCursor", "cursorExpired", *_SESSION),
        doc="History, a page at a time.",
    ),
    Method(
        name="approval/list",
        params=ApprovalListParams,
        result=Page[Approval],
        errors=("invalidCursor",),
        doc="Approvals, oldest first.",
    ),
    Method(
        name="approval/get",
        params=ApprovalGetParams,
        result=ApprovalResult,
        errors=("approvalNotFound",),
        doc="One approval.",
    ),
    Method(
        name="approval/answer",
        params=ApprovalAnswerParams,
        result=ApprovalResult,
        mutates=True,
        errors=("approvalNotFound", "alreadyResolved", "approvalExpired", "optionInvalid"),
        doc="The first committed answer wins.",
    ),
    Method(
        name="approval/ruleList", params=RuleListParams, result=Page[Rule], doc="Standing answers."
    ),
    Method(
        name="approval/ruleAdd",
        params=RuleAddParams,
        result=RuleResult,
        mutates=True,
        errors=_SESSION,
        doc="Adds a standing answer.",
    ),
    Method(
        name="approval/ruleRemove",
        params=RuleRemoveParams,
        result=RuleResult,
        mutates=True,
        errors=("ruleNotFound",),
        doc="Revokes a standing answer.",
    ),
    Method(
        name="agent/list",
        params=AgentListParams,
        result=Page[Agent],
        errors=(*_SESSION, "invalidCursor"),
        doc="The agents of a tree, each as it is now.",
    ),
    Method(
        name="agent/spawn",
        params=AgentSpawnParams,
        result=AgentResult,
        mutates=True,
        errors=(
            *_OPEN,
            "nameInUse",
            "depthExceeded",
            "limitReached",
            "messageTooLarge",
            "profileNotFound",
            "modelUnavailable",
            "authRequired",
            *_STORE,
        ),
        doc="A new child agent with a brief.",
    ),
    Method(
        name="agent/send",
        params=AgentMessageParams,
        result=AgentMessageResult,
        mutates=True,
        errors=(*_AGENT, "sessionArchived", "queueFull", "messageTooLarge", *_STORE),
        doc="A message for the agent's next boundary; starts nothing.",
    ),
    Method(
        name="agent/continue",
        params=AgentMessageParams,
        result=AgentMessageResult,
        mutates=True,
        errors=(*_AGENT, "sessionArchived", "queueFull", "messageTooLarge", *_STORE),
        doc="A message that the agent goes on with.",
    ),
    Method(
        name="agent/wait",
        params=AgentWaitParams,
        result=AgentWaitResult,
        errors=(*_SESSION, "agentNotFound"),
        doc="Answers when a child has finished, or needs someone.",
    ),
    Method(
        name="agent/interrupt",
        params=AgentInterruptParams,
        result=AgentInterruptResult,
        mutates=True,
        errors=(*_AGENT, "featureDisabled", *_STORE),
        doc="Corrects, winds down, or ends an agent's turn.",
    ),
    Method(
        name="agent/close",
        params=AgentCloseParams,
        result=AgentResult,
        mutates=True,
        errors=("agentNotFound", *_STORE),
        doc="Ends an agent, and those below it, for good.",
    ),
    Method(
        name="agent/reply",
        params=AgentReplyParams,
        result=AgentReplyResult,
        mutates=True,
        errors=("askNotFound", "askSettled", "featureDisabled", "messageTooLarge", *_STORE),
        doc="Answers an agent's question for its parent.",
    ),
    Method(
        name="event/batch",
        params=EventBatch,
        direction="serverToClient",
        kind="notification",
        doc="Events of a subscription, in order.",
    ),
    Method(
        name="event/delta",
        params=EventDelta,
        direction="serverToClient",
        kind="notification",
        doc="Text as it streams.",
    ),
    Method(
        name="event/reset",
        params=EventReset,
        direction="serverToClient",
        kind="notification",
        doc="Subscribe again from here.",
    ),
    Method(
        name="approval/request",
        params=ApprovalRequestParams,
        result=ApprovalRequestResult,
        direction="serverToClient",
        doc="Asks a client that declared `approvals`.",
    ),
    Method(
        name="client/readFile",
        params=ReadFileParams,
        result=ReadFileResult,
        direction="serverToClient",
        doc="The text of a buffer, for clients that declared it.",
    ),
)

METHODS: dict[str, Method] = {method.name: method for method in _TABLE}
"""Every method by name."""
