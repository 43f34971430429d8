"""Sessions begin, are opened again, are listed and end: ``session/new`` and those that belong to it."""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from callboard_rpc.common import Json
from callboard_rpc.errors import CallboardError
from callboard_rpc.sessions import Session

from ...host import Host
from ...log.record import Record
from ...rpc.offers import Offers
from ...rpc.pages import LARGEST, invalid, is_folder_name, number, text
from ..contract import convert, updates
from ..contract import sessions as acp
from ..peer import Incoming
from . import commands, options, servers, standing
from .displays import way_of
from .editor import Editor
from .files import EditorFiles
from .follower import Follower
from .replaying import begun_message, go_on_from_here, replay
from .terminals import EditorTerminals
from .texts import PIECE_BYTES, weight

_PAGE: Final = 50
_CLOSING_S: Final = 10.0


class Sessions:
    """The ``session/*`` methods but for prompting."""

    def __init__(self, host: Host, editor: Editor, offers: Offers) -> None:
        self._host = host
        self._editor = editor
        self._offers = offers
        self._titles: dict[str, str | None] = {}

    # --- beginning ---

    async def new(self, incoming: Incoming, params: acp.NewSessionRequest) -> Any:
        self._editor.signed_in()
        cwd = _absolute(params.cwd, "$.cwd")
        host = self._host
        settings = host.settings_for(cwd)
        profile = host.profiles_for(cwd).get(settings.profile or "default")
        try:
            session = await host.sessions.create(
                cwd=cwd,
                profile=profile.name,
                mode=profile.mode or settings.approvals.mode,
                by=self._editor.actor,
                additional_directories=_directories(params.additional_directories),
                metadata=servers.metadata(params.mcp_servers),
            )
        except CallboardError as error:
            raise _folder_error(error) from error
        follower = self._follower(session)
        self._titles[session.session_id] = None
        async with self._or_not_at_all(follower):
            self._begin(incoming, follower, params.mcp_servers)
            return acp.NewSessionResponse(
                session_id=session.session_id,
                modes=await options.modes(host, session.session_id),
                config_options=await options.config_options(host, session.session_id),
                meta=servers.told(params.mcp_servers),
            )

    async def load(self, incoming: Incoming, params: acp.LoadSessionRequest) -> Any:
        follower = await self._reopened(params.session_id, params.cwd)
        through = self._host.log.head
        follower.position = through
        async with self._or_not_at_all(follower):
            await replay(self._host, follower, through=through)
            for update in await begun_message(self._host, follower):
                await follower.tell(update)
            return await self._reopen(
                incoming, follower, params.mcp_servers, acp.LoadSessionResponse, []
            )

    async def resume(self, incoming: Incoming, params: acp.ResumeSessionRequest) -> Any:
        follower = await self._reopened(params.session_id, params.cwd)
        async with self._or_not_at_all(follower):
            await go_on_from_here(self._host, follower)
            begun = await begun_message(self._host, follower)
            return await self._reopen(
                incoming, follower, params.mcp_servers, acp.ResumeSessionResponse, begun
            )

    async def _reopened(self, session_id: str, cwd: str) -> Follower:
        """Raises sessionNotFound, and invalidParams for another folder than the session's: an agent does not
        change the place that it works in."""
        self._editor.signed_in()
        self._host.log.refresh()
        session = await self._host.reading.session(session_id)
        given = _absolute(cwd, "$.cwd")
        if _real(given) != _real(session.cwd):
            raise invalid("$.cwd", f"is not the folder of session {session_id}, {session.cwd}")
        while self._editor.opened(session_id):  # it may be opened again while one opening is closed
            await self._editor.close(session_id)
        self._titles[session_id] = standing.title_of(session.title)
        follower = self._follower(session)
        follower.story.streams.hold()
        return follower

    async def _reopen(
        self,
        incoming: Incoming,
        follower: Follower,
        given: Sequence[acp.McpServer],
        answer: type[acp.LoadSessionResponse] | type[acp.ResumeSessionResponse],
        first: list[updates.SessionUpdate],
    ) -> Any:
        session_id = follower.session_id
        first += [update async for update in standing.as_it_stands(self._host, session_id)]
        self._begin(incoming, follower, given, first)
        return answer(
            modes=await options.modes(self._host, session_id),
            config_options=await options.config_options(self._host, session_id),
            meta=servers.told(given),
        )

    def _follower(self, session: Session) -> Follower:
        host, editor = self._host, self._editor
        way = way_of(editor.capabilities, host.settings_for(session.cwd).acp.terminals)
        follower = Follower(
            host,
            session.session_id,
            session.root_id,
            capabilities=editor.capabilities,
            send=editor.update,
            room=editor.conversation.room,
            settled=self._settled,
            steps=lambda session_id: standing.most_iterations(host, session_id),
            way=way,
            cwd=session.cwd,
        )
        editor.follow(follower)
        files = EditorFiles(editor, session.session_id)
        if files.is_offered:
            follower.at_end(host.buffers.add(session.session_id, files))
        if way == "client":
            terminals = EditorTerminals(editor, follower)
            follower.at_end(host.terminals.add(session.session_id, terminals))
        return follower

    async def _settled(self, follower: Follower, record: Record) -> Iterable[updates.SessionUpdate]:
        told: list[updates.SessionUpdate] = []
        session_id = follower.session_id
        known = self._titles.get(session_id)
        async for update in standing.standing(self._host, session_id, record, known):
            if isinstance(update, updates.SessionInfoUpdate):
                self._titles[session_id] = update.title
            told.append(update)
        return told

    @asynccontextmanager
    async def _or_not_at_all(self, follower: Follower) -> AsyncGenerator[None]:
        """A session whose opening fails, or is called off, is not open: nobody would follow it."""
        try:
            yield
        except BaseException:
            await self._editor.let_go(follower)
            raise

    def _begin(
        self,
        incoming: Incoming,
        follower: Follower,
        given: Sequence[acp.McpServer],
        first: Sequence[updates.SessionUpdate] = (),
    ) -> None:
        """What follows the answer: the client knows the session then."""

        def begun() -> None:
            send = self._editor.update
            send(follower.session_id, commands.available())
            for update in (*servers.notices(follower.story, given), *first):
                send(follower.session_id, update)
            follower.start()
            session_id = follower.session_id
            self._offers.look(lambda of, root: session_id in (of, root), again=True)

        incoming.after_reply(begun)

    # --- looking ---

    async def list(self, _: Incoming, params: acp.ListSessionsRequest) -> Any:
        """Editors make a session whenever they open a chat; those in which nothing was said are left out."""
        before = number(params.cursor, LARGEST)
        cwd = None if params.cwd is None else _real(_absolute(params.cwd, "$.cwd"))
        self._host.log.refresh()
        most = _PAGE
        while True:
            found, after = await self._host.reading.sessions(
                cwd=cwd, archived=False, begun=True, before=before, limit=most
            )
            page = acp.ListSessionsResponse(
                sessions=tuple(map(_listed, found)), next_cursor=text(after)
            )
            if most == 1 or weight(convert.unstructure(page)) <= PIECE_BYTES:
                return page
            most = max(1, most // 2)  # long folders: fewer of them fit a frame

    # --- ending ---

    async def close(self, _: Incoming, params: acp.CloseSessionRequest) -> Any:
        """Ends what runs in a session and lets it go. It stays, and can be loaded again: that is not the end
        that ``session/close`` is in Callboard's own protocol."""
        await self._host.reading.session(params.session_id)
        follower = self._editor.opened(params.session_id)
        if follower is not None:
            for waiting in follower.prompts:
                waiting.cancelled = True
            await self._host.sessions.cancel(
                params.session_id,
                by=self._editor.actor,
                scope="tree",
                reason="the editor closed it",
            )
            await self._host.waiting.wait(
                params.session_id, until="idle", turn_id=None, timeout_s=_CLOSING_S
            )
            await self._editor.close(params.session_id)
            self._titles.pop(params.session_id, None)
        return acp.CloseSessionResponse()

    async def delete(self, _: Incoming, params: acp.DeleteSessionRequest) -> Any:
        if not await self._host.sessions.delete(params.session_id, by=self._editor.actor):
            raise CallboardError(
                "sessionNotFound", f"there is no session {params.session_id[:80]!r}"
            )
        await self._editor.close(params.session_id)
        self._titles.pop(params.session_id, None)
        return acp.DeleteSessionResponse()


def _listed(session: Session) -> acp.SessionInfo:
    return acp.SessionInfo(
        session_id=session.session_id,
        cwd=session.cwd,
        title=standing.title_of(session.title),
        updated_at=session.updated_at,
        additional_directories=session.additional_directories,
        meta={"callboard": {"status": session.status, "profile": session.profile}},
    )


def _absolute(path: str, name: str) -> str:
    if not is_folder_name(path):
        raise invalid(name, "must be an absolute path")
    return path


def _directories(paths: Sequence[str]) -> Sequence[str]:
    for index, path in enumerate(paths):
        _absolute(path, f"$.additionalDirectories[{index}]")
    return paths


def _real(path: str) -> str:
    """A folder by the one name under which sessions know it."""
    try:
        return str(Path(path).resolve())
    except (OSError, RuntimeError):
        return path


def _folder_error(error: CallboardError) -> CallboardError:
    """A folder that is not there is a fault of the params."""
    if error.kind != "pathNotFound":
        return error
    data: Json = {**error.data, "errors": [{"path": "$.cwd", "message": error.message}]}
    return CallboardError("invalidParams", error.message, data=data)
