"""The requests of the method table as typed methods, a class for each family."""

import base64
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import attrs

from callboard_rpc.approvals import (
    Approval,
    ApprovalAnswerParams,
    ApprovalGetParams,
    ApprovalListParams,
    ApprovalResult,
    ApprovalState,
    Effect,
    Rule,
    RuleAddParams,
    RuleListParams,
    RuleRemoveParams,
    RuleResult,
    RuleScope,
)
from callboard_rpc.common import (
    UNSET,
    ApprovalId,
    BlobId,
    Content,
    ContextItem,
    Cursor,
    Effort,
    Json,
    Limits,
    Mode,
    RuleId,
    SessionId,
    SessionStatus,
    TextContent,
    TurnId,
    Unset,
)
from callboard_rpc.events import Delivery, Event
from callboard_rpc.profiles import AgentProbeParams, AgentProbeResult
from callboard_rpc.server import (
    BlobReadParams,
    BlobReadResult,
    ConfigGetParams,
    ConfigGetResult,
    Diagnostics,
    ModelInfo,
    ModelListParams,
    PingParams,
    PingResult,
    ProfileInfo,
    ProfileListParams,
    SchemaParams,
    SchemaResult,
    ServerInfo,
)
from callboard_rpc.sessions import (
    CancelScope,
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
from callboard_rpc.streams import EventListParams, EventListResult, Scope
from callboard_rpc.transfer import (
    SessionImportParams,
    SessionImportResult,
    SessionUsageParams,
    SessionUsageResult,
)

from .family import Family, pages
from .history import SessionHistory


def _absolute(path: str | Path) -> str:
    return str(Path(path).absolute())


class Server(Family):
    """``server/*``."""

    async def info(self) -> ServerInfo:
        return await self._call("server/info", None)

    async def ping(self, echo: Any = None) -> PingResult:
        return await self._call("server/ping", PingParams(echo=echo))

    async def diagnostics(self) -> Diagnostics:
        return await self._call("server/diagnostics", None)

    async def schema(self, format: Literal["json", "typescript", "lua", "methods"] = "json") -> str:
        result: SchemaResult = await self._call("server/schema", SchemaParams(format=format))
        return result.text


class Config(Family):
    """``config/*``."""

    async def get(
        self, *, cwd: str | Path | None = None, keys: Iterable[str] | None = None
    ) -> ConfigGetResult:
        params = ConfigGetParams(
            cwd=None if cwd is None else str(cwd), keys=None if keys is None else tuple(keys)
        )
        return await self._call("config/get", params)


class Models(Family):
    """``model/*``."""

    def list(self) -> AsyncIterator[ModelInfo]:
        return pages(self._call, "model/list", lambda cursor: ModelListParams(cursor=cursor))


class Profiles(Family):
    """``profile/*``."""

    def list(self, *, cwd: str | Path | None = None) -> AsyncIterator[ProfileInfo]:
        folder = None if cwd is None else str(cwd)
        return pages(
            self._call,
            "profile/list",
            lambda cursor: ProfileListParams(cwd=folder, cursor=cursor),
        )

    async def probe(self, name: str, *, cwd: str | Path | None = None) -> AgentProbeResult:
        """Whether the agent of a profile can be used. One that is a program of its own is started for it, and
        ended; that takes ten seconds at the most."""
        params = AgentProbeParams(profile=name, cwd=None if cwd is None else str(cwd))
        return await self._call("agent/probe", params)


class Blobs(Family):
    """``blob/*``: values too large for an event."""

    async def read(
        self, blob_id: BlobId, *, offset: int = 0, length: int | None = None
    ) -> BlobReadResult:
        params = BlobReadParams(blob_id=blob_id, offset=offset, length=length)
        return await self._call("blob/read", params)

    async def whole(self, blob_id: BlobId) -> bytes:
        """All of it, however many pieces that takes."""
        pieces: list[bytes] = []
        offset = 0
        while True:
            result = await self.read(blob_id, offset=offset)
            piece = base64.b64decode(result.data_base64)
            pieces.append(piece)
            offset += len(piece)
            if result.eof or not piece:
                return b"".join(pieces)


class Sessions(SessionHistory):
    """``session/*``. Times are in milliseconds."""

    async def create(
        self,
        cwd: str | Path,
        *,
        profile: str | None = None,
        title: str | None = None,
        model: str | None = None,
        mode: Mode | None = None,
        members: Iterable[str] | None = None,
        roster: str | None = None,
        host: str | None = None,
        burst_budget: int | None = None,
        additional_directories: Iterable[str | Path] = (),
        metadata: Json | None = None,
        idempotency_key: str | None = None,
    ) -> SessionResult:
        """`cwd` is made absolute. `members`, or those of a `roster` of the configuration, make it a room."""
        params = SessionCreateParams(
            cwd=_absolute(cwd),
            profile=profile,
            title=title,
            model=model,
            mode=mode,
            members=None if members is None else tuple(members),
            roster=roster,
            host=host,
            burst_budget=burst_budget,
            additional_directories=tuple(_absolute(extra) for extra in additional_directories),
            metadata=metadata,
            idempotency_key=idempotency_key,
        )
        return await self._call("session/create", params)

    async def get(self, session_id: SessionId) -> SessionResult:
        return await self._call("session/get", SessionGetParams(session_id=session_id))

    def list(
        self,
        *,
        cwd: str | Path | None = None,
        status: SessionStatus | None = None,
        archived: bool | None = None,
        parent: SessionId | None = None,
        query: str | None = None,
    ) -> AsyncIterator[Session]:
        """Newest first, page after page."""
        folder = None if cwd is None else _absolute(cwd)
        return pages(
            self._call,
            "session/list",
            lambda cursor: SessionListParams(
                cwd=folder,
                status=status,
                archived=archived,
                parent=parent,
                query=query,
                cursor=cursor,
            ),
        )

    async def prompt(
        self,
        session_id: SessionId,
        prompt: str | Iterable[Content],
        *,
        delivery: Delivery = "auto",
        client_message_id: str | None = None,
        context: Iterable[ContextItem] = (),
        to: str | None = None,
        limits: Limits | None = None,
        idempotency_key: str | None = None,
    ) -> SessionPromptResult:
        """Returns when the prompt is durable, not when it is answered. In a room it is for `to`, else for whom
        it mentions first, else for the host."""
        content = (TextContent(text=prompt),) if isinstance(prompt, str) else tuple(prompt)
        params = SessionPromptParams(
            session_id=session_id,
            content=content,
            delivery=delivery,
            client_message_id=client_message_id,
            context=tuple(context),
            to=to,
            limits=limits,
            idempotency_key=idempotency_key,
        )
        return await self._call("session/prompt", params)

    async def cancel(
        self,
        session_id: SessionId,
        *,
        turn_id: TurnId | None = None,
        scope: CancelScope = "turn",
        reason: str | None = None,
    ) -> SessionCancelResult:
        params = SessionCancelParams(
            session_id=session_id, turn_id=turn_id, scope=scope, reason=reason
        )
        return await self._call("session/cancel", params)

    async def wait(
        self,
        session_id: SessionId,
        until: Literal["turnEnd", "idle", "attention"] = "idle",
        *,
        turn_id: TurnId | None = None,
        timeout_ms: int | None = None,
    ) -> SessionWaitResult:
        params = SessionWaitParams(
            session_id=session_id, until=until, turn_id=turn_id, timeout_ms=timeout_ms
        )
        return await self._call("session/wait", params)

    def turns(self, session_id: SessionId) -> AsyncIterator[Turn]:
        return pages(
            self._call,
            "session/turns",
            lambda cursor: SessionTurnsParams(session_id=session_id, cursor=cursor),
        )

    async def update(
        self,
        session_id: SessionId,
        *,
        title: str | Unset | None = UNSET,
        pinned: bool | Unset = UNSET,
        metadata: Json | Unset | None = UNSET,
        mode: Mode | Unset = UNSET,
        model: str | Unset | None = UNSET,
        burst_budget: int | Unset | None = UNSET,
        effort: Effort | Unset | None = UNSET,
        options: Mapping[str, str | None] | None = None,
    ) -> SessionResult:
        """What is left out stays, None clears. `options` are those that agents of other makers have told."""
        params = SessionUpdateParams(
            session_id=session_id,
            title=title,
            pinned=pinned,
            metadata=metadata,
            mode=mode,
            model=model,
            burst_budget=burst_budget,
            effort=effort,
            options=UNSET if options is None else dict(options),
        )
        return await self._call("session/update", params)

    async def archive(self, session_id: SessionId) -> SessionResult:
        return await self._call("session/archive", SessionMutateParams(session_id=session_id))

    async def unarchive(self, session_id: SessionId) -> SessionResult:
        return await self._call("session/unarchive", SessionMutateParams(session_id=session_id))

    async def delete(self, session_id: SessionId) -> None:
        """Stops it first. An unknown session is a success."""
        await self._call("session/delete", SessionMutateParams(session_id=session_id))

    async def close(self, session_id: SessionId) -> SessionResult:
        return await self._call("session/close", SessionMutateParams(session_id=session_id))

    async def compact(
        self, session_id: SessionId, instructions: str | None = None
    ) -> SessionCompactResult:
        params = SessionCompactParams(session_id=session_id, instructions=instructions)
        return await self._call("session/compact", params)

    def search(
        self,
        query: str,
        *,
        session_id: SessionId | None = None,
        cwd: str | Path | None = None,
    ) -> AsyncIterator[SearchHit]:
        folder = None if cwd is None else _absolute(cwd)
        return pages(
            self._call,
            "session/search",
            lambda cursor: SessionSearchParams(
                query=query, session_id=session_id, cwd=folder, cursor=cursor
            ),
        )

    async def import_file(
        self,
        path: str | Path,
        *,
        new_id: bool = False,
        cwd: str | Path | None = None,
        work_done_token: str | int | None = None,
        idempotency_key: str | None = None,
    ) -> SessionImportResult:
        """Imports what an export wrote into a file of the server's machine. `path` and `cwd` are made
        absolute. Raises `RemoteError` of kind ``importRefused``, ``sessionExists`` and others; then
        nothing was imported."""
        params = SessionImportParams(
            path=_absolute(path),
            new_id=new_id,
            cwd=None if cwd is None else _absolute(cwd),
            work_done_token=work_done_token,
            idempotency_key=idempotency_key,
        )
        return await self._call("session/import", params)

    async def import_text(
        self,
        content: str,
        *,
        new_id: bool = False,
        cwd: str | Path | None = None,
        idempotency_key: str | None = None,
    ) -> SessionImportResult:
        """The same for a text, which must fit into a frame: for a server that cannot see the file."""
        params = SessionImportParams(
            content=content,
            new_id=new_id,
            cwd=None if cwd is None else _absolute(cwd),
            idempotency_key=idempotency_key,
        )
        return await self._call("session/import", params)

    async def usage(self, session_id: SessionId) -> SessionUsageResult:
        """What a session and its tree have used, with all of its runs."""
        result: SessionUsageResult = await self._call(
            "session/usage", SessionUsageParams(session_id=session_id)
        )
        runs = list(result.runs)
        cursor = result.next_cursor
        while cursor is not None:
            more: SessionUsageResult = await self._call(
                "session/usage", SessionUsageParams(session_id=session_id, cursor=cursor)
            )
            runs += more.runs
            cursor = more.next_cursor
        return attrs.evolve(result, runs=tuple(runs), next_cursor=None)

    async def export(
        self, session_id: SessionId, format: Literal["jsonl", "markdown"] = "jsonl"
    ) -> AsyncIterator[str]:
        """The pieces of the export, in order."""
        cursor: str | None = None
        while True:
            params = SessionExportParams(session_id=session_id, format=format, cursor=cursor)
            result: SessionExportResult = await self._call("session/export", params)
            yield result.text
            cursor = result.next_cursor
            if cursor is None:
                return


class Events(Family):
    """``event/list``. Live events are ``client.events(...)``."""

    async def page(
        self,
        scope: Scope,
        *,
        after: Cursor | None = None,
        before: Cursor | None = None,
        types: Iterable[str] | None = None,
        limit: int | None = None,
    ) -> EventListResult:
        params = EventListParams(
            scope=scope,
            after=after,
            before=before,
            types=None if types is None else tuple(types),
            limit=limit,
        )
        return await self._call("event/list", params)

    async def all(
        self, scope: Scope, *, after: Cursor | None = None, types: Iterable[str] | None = None
    ) -> AsyncIterator[Event]:
        """Every event after `after` (default: from the start), page after page."""
        chosen = None if types is None else tuple(types)
        while True:
            result = await self.page(scope, after=after, types=chosen)
            for event in result.data:
                yield event
            after = result.next_cursor
            if after is None:
                return


class Approvals(Family):
    """``approval/*``."""

    def list(
        self, *, state: ApprovalState | None = None, session_id: SessionId | None = None
    ) -> AsyncIterator[Approval]:
        return pages(
            self._call,
            "approval/list",
            lambda cursor: ApprovalListParams(state=state, session_id=session_id, cursor=cursor),
        )

    async def get(self, approval_id: ApprovalId) -> Approval:
        params = ApprovalGetParams(approval_id=approval_id)
        result: ApprovalResult = await self._call("approval/get", params)
        return result.approval

    async def answer(
        self, approval_id: ApprovalId, option_id: str, feedback: str | None = None
    ) -> Approval:
        """Raises `RemoteError` of kind ``alreadyResolved`` when another answer was first."""
        params = ApprovalAnswerParams(
            approval_id=approval_id, option_id=option_id, feedback=feedback
        )
        result: ApprovalResult = await self._call("approval/answer", params)
        return result.approval

    def rules(
        self, *, scope: RuleScope | None = None, session_id: SessionId | None = None
    ) -> AsyncIterator[Rule]:
        return pages(
            self._call,
            "approval/ruleList",
            lambda cursor: RuleListParams(scope=scope, session_id=session_id, cursor=cursor),
        )

    async def add_rule(
        self,
        scope: RuleScope,
        effect: Effect,
        tool: str,
        *,
        pattern: str | None = None,
        session_id: SessionId | None = None,
        workspace: str | Path | None = None,
    ) -> Rule:
        params = RuleAddParams(
            scope=scope,
            effect=effect,
            tool=tool,
            pattern=pattern,
            session_id=session_id,
            workspace=None if workspace is None else _absolute(workspace),
        )
        result: RuleResult = await self._call("approval/ruleAdd", params)
        return result.rule

    async def remove_rule(self, rule_id: RuleId) -> Rule:
        params = RuleRemoveParams(rule_id=rule_id)
        result: RuleResult = await self._call("approval/ruleRemove", params)
        return result.rule
