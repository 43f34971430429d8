"""``session/*``."""

from pathlib import Path
from typing import Any

from attrs import evolve

from callboard_rpc.common import Empty, MessageId, Page, SessionId, TurnId, Unset
from callboard_rpc.events import Author
from callboard_rpc.sessions import (
    Draft,
    SearchHit,
    Session,
    SessionCancelParams,
    SessionCancelResult,
    SessionCompactParams,
    SessionCompactResult,
    SessionCreateParams,
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

from ...host import Host
from ...log.search import Hit
from ...rooms.rosters import WantedRoom, checked_budget
from ...turns.drafts import draft_of
from ..attachments import attached
from ..call import Call, Handler
from ..pages import LARGEST, invalid, is_folder_name, number, page_size, sized, text
from ..progress import Progress
from .client import Clients, actor_of
from .remade import cancelled
from .rooms import rooms_of


def handlers(host: Host, clients: Clients) -> dict[str, Handler]:
    limits = host.settings.limits
    rooms = rooms_of(host)

    def result(session: Session, draft: Draft | None = None) -> SessionResult:
        return SessionResult(session=session, cursor=host.log.cursor(), draft=draft)

    async def create(call: Call, params: SessionCreateParams) -> SessionResult:
        if not is_folder_name(params.cwd):
            raise invalid("$.cwd", "must be an absolute path")
        settings = host.settings_for(params.cwd)
        wanted = WantedRoom(
            members=params.members,
            roster=params.roster,
            host=params.host,
            burst_budget=params.burst_budget,
        )
        room, own = rooms.planned(params.cwd, wanted, params.profile, settings)
        profile = host.profiles_for(params.cwd).get(own or settings.profile or "default")
        if params.model is not None:
            await host.catalog.resolve(params.model)
        with clients.of(call).subscriptions.held(call):
            session = await host.sessions.create(
                cwd=params.cwd,
                profile=profile.name,
                mode=params.mode or profile.mode or settings.approvals.mode,
                by=actor_of(call),
                model=params.model,
                title=params.title,
                additional_directories=params.additional_directories,
                metadata=params.metadata,
                room=room,
            )
            host.opened.note(session.session_id)
            return result(session)

    async def get(_: Call, params: SessionGetParams) -> SessionResult:
        session = await host.reading.session(params.session_id)
        host.opened.note(session.session_id)
        return result(await with_options(session), await _draft(host, session))

    async def with_options(session: Session) -> Session:
        shown = (await host.cache.state(session.session_id)).offers.shown()
        return evolve(session, options=shown)

    async def list_(_: Call, params: SessionListParams) -> dict[str, Any]:
        before = number(params.cursor, LARGEST)
        cwd = _folder(params.cwd)

        async def fetch(limit: int) -> tuple[list[Session], str | None]:
            page, after = await host.reading.sessions(
                cwd=cwd,
                status=params.status,
                archived=False if params.archived is None else params.archived,
                parent=params.parent,
                query=params.query,
                before=before,
                limit=limit,
            )
            return page, text(after)

        return await sized(fetch, page_size(params.limit, limits.page_items), limits.page_bytes)

    async def prompt(call: Call, params: SessionPromptParams) -> SessionPromptResult:
        actor = actor_of(call)
        content = (*params.content, *await attached(host, params.session_id, params.context, call))
        author = Author(kind="person", name=actor.name or "person", id=actor.id)
        content = await host.submitting.asked(
            params.session_id, content, author=author, client_message_id=params.client_message_id
        )
        with clients.of(call).subscriptions.held(call):
            posted = await host.sessions.prompt(
                params.session_id,
                content,
                author=author,
                by=actor,
                delivery=params.delivery,
                client_message_id=params.client_message_id,
                addressing=rooms.addressing(content, params.to),
                limits=params.limits,
                meta=params.meta,
            )
        host.opened.note(params.session_id)
        return SessionPromptResult(
            event_seq=posted.record.seq,
            outcome=posted.outcome,
            turn_id=None if posted.turn_id is None else TurnId(posted.turn_id),
            cursor=host.log.cursor(posted.record.pos),
            warning=posted.warning,
        )

    async def cancel(call: Call, params: SessionCancelParams) -> SessionCancelResult:
        stopped = await host.sessions.cancel(
            params.session_id,
            by=actor_of(call),
            scope=params.scope,
            turn_id=params.turn_id,
            reason=params.reason,
        )
        return cancelled(stopped.turn_id, stopped.dropped)

    async def wait(call: Call, params: SessionWaitParams) -> SessionWaitResult:
        with Progress(call, params.work_done_token, "Waiting for the agent") as progress:
            waited = await host.waiting.wait(
                params.session_id,
                until=params.until,
                turn_id=params.turn_id,
                timeout_s=None if params.timeout_ms is None else max(0, params.timeout_ms) / 1000,
                changed=lambda session: progress.report(session.status),
            )
        return SessionWaitResult(
            reason=waited.reason,
            cursor=host.log.cursor(),
            approvals=waited.approvals,
            turn=waited.turn,
            final_text=waited.turn.final_text if waited.turn else None,
        )

    async def turns(_: Call, params: SessionTurnsParams) -> dict[str, Any]:
        await host.reading.session(params.session_id)
        begin = number(params.cursor, -1)

        async def fetch(limit: int) -> tuple[list[Turn], str | None]:
            page, after = await host.reading.turns(params.session_id, after=begin, limit=limit)
            return page, text(after)

        return await sized(fetch, page_size(params.limit, limits.page_items), limits.page_bytes)

    async def update(call: Call, params: SessionUpdateParams) -> SessionResult:
        if isinstance(params.model, str):
            await host.catalog.resolve(params.model)
        if isinstance(params.burst_budget, int):
            checked_budget(params.burst_budget)
        options = None
        if not isinstance(params.options, Unset):
            options = await host.options_patch(params.session_id, params.options)
        session = await host.sessions.update(
            params.session_id,
            by=actor_of(call),
            title=params.title,
            pinned=params.pinned,
            metadata=params.metadata,
            mode=params.mode,
            model=params.model,
            burst_budget=params.burst_budget,
            if_unchanged_since=params.if_unchanged_since,
            effort=params.effort,
            options=options,
        )
        return result(await with_options(session))

    async def archive(call: Call, params: SessionMutateParams) -> SessionResult:
        by = actor_of(call)
        return result(await host.sessions.set_archived(params.session_id, archived=True, by=by))

    async def unarchive(call: Call, params: SessionMutateParams) -> SessionResult:
        by = actor_of(call)
        return result(await host.sessions.set_archived(params.session_id, archived=False, by=by))

    async def close(call: Call, params: SessionMutateParams) -> SessionResult:
        return result(await host.sessions.close(params.session_id, by=actor_of(call)))

    async def delete(call: Call, params: SessionMutateParams) -> Empty:
        await host.sessions.delete(params.session_id, by=actor_of(call))
        return Empty()

    async def compact(call: Call, params: SessionCompactParams) -> SessionCompactResult:
        await host.reading.open_session(params.session_id)
        with Progress(call, params.work_done_token, "Summarising"):
            record = await host.compacting.compact(
                params.session_id, by=actor_of(call), instructions=params.instructions
            )
        return SessionCompactResult(
            compacted=record is not None,
            summary_seq=None if record is None else record.seq,
            cursor=host.log.cursor(),
        )

    async def search(_: Call, params: SessionSearchParams) -> Page[SearchHit]:
        limit = page_size(params.limit, limits.page_items)
        hits = await host.log.search(
            params.query,
            session_id=params.session_id,
            before=number(params.cursor, LARGEST),
            limit=limit + 1,
        )
        page = hits[:limit]
        found = await host.reading.titles(
            {hit.record.session_id for hit in page}, cwd=_folder(params.cwd)
        )
        return Page(
            data=tuple(
                _search_hit(hit, found[hit.record.session_id])
                for hit in page
                if hit.record.session_id in found
            ),
            next_cursor=str(page[-1].record.pos) if len(hits) > limit else None,
        )

    return {
        "session/create": create,
        "session/get": get,
        "session/list": list_,
        "session/prompt": prompt,
        "session/cancel": cancel,
        "session/wait": wait,
        "session/turns": turns,
        "session/update": update,
        "session/archive": archive,
        "session/unarchive": unarchive,
        "session/close": close,
        "session/delete": delete,
        "session/compact": compact,
        "session/search": search,
    }


def _folder(cwd: str | None) -> str | None:
    """A folder by the one name under which sessions know it, whatever links and slashes it is
    written with (interrupts-and-peers 74)."""
    if cwd is None:
        return None
    if not is_folder_name(cwd):
        raise invalid("$.cwd", "must be an absolute path")
    try:
        return str(Path(cwd).resolve())
    except (OSError, RuntimeError):
        return cwd


async def _draft(host: Host, session: Session) -> Draft | None:
    if session.active_turn_id is None:
        return None
    said = await draft_of(host.log, host.deltas, host.redactor, session.active_turn_id)
    if said is None:
        return None
    return Draft(
        turn_id=session.active_turn_id,
        message_id=MessageId(said.message_id),
        answer=said.answer,
        thought=said.thought,
        next_index=said.following,
    )


def _search_hit(hit: Hit, title: str | None) -> SearchHit:
    record = hit.record
    return SearchHit(
        session_id=SessionId(record.session_id),
        seq=record.seq,
        type=record.type,
        at=record.at,
        snippet=hit.snippet,
        turn_id=None if record.turn_id is None else TurnId(record.turn_id),
        title=title,
    )
