"""``session/export``, ``session/import`` and ``session/usage``."""

from contextlib import ExitStack
from pathlib import Path

from callboard_rpc.common import SessionId
from callboard_rpc.errors import CallboardError
from callboard_rpc.sessions import SessionExportParams, SessionExportResult
from callboard_rpc.transfer import (
    SessionImportParams,
    SessionImportResult,
    SessionUsageParams,
    SessionUsageResult,
)

from ...host import Host
from ...log.importing import PIECE_EVENTS
from ...sessions.importing import Imported
from ..call import Call, Handler
from ..pages import invalid, is_folder_name, number, page_size, text
from ..progress import Progress
from .client import Clients


def handlers(host: Host, clients: Clients) -> dict[str, Handler]:
    limits = host.settings.limits

    async def export(call: Call, params: SessionExportParams) -> SessionExportResult:
        limit = page_size(params.limit, limits.page_items)
        with Progress(call, params.work_done_token, "Exporting") as progress:
            if params.format == "jsonl":
                piece = await host.writing_out.piece(
                    params.session_id, cursor=params.cursor, limit=limit
                )
                done = 100 * piece.events // max(1, piece.through)
                progress.report(f"{piece.events:,} of {piece.through:,} events", done)
                return SessionExportResult(text=piece.text, next_cursor=piece.cursor)
            session = await host.reading.session(params.session_id)
            after = number(params.cursor, 0)
            markdown, reached = await host.exporting.markdown(
                params.session_id, after=after, limit=limit
            )
            progress.report(f"{session.head_seq:,} events in all")
        return SessionExportResult(text=markdown, next_cursor=text(reached))

    async def import_(call: Call, params: SessionImportParams) -> SessionImportResult:
        folder = None if params.cwd is None else _folder(params.cwd)
        if (params.path is None) == (params.content is None):
            raise invalid("$.path", "or $.content is to be given, one of the two")
        if params.path is not None:
            if not is_folder_name(params.path):
                raise invalid("$.path", "must be an absolute path")
            source = host.importing.open(params.path)
        else:
            source = params.content or ""
        with (
            Progress(call, params.work_done_token, "Importing") as progress,
            ExitStack() as holds,
        ):

            def publishing(events: int) -> None:
                # of what is written at once the answer comes first; nobody is to wait for a long one
                if events <= PIECE_EVENTS:
                    holds.enter_context(clients.of(call).subscriptions.held(call))

            imported = await host.importing.run(
                source,
                as_new=params.new_id,
                folder=folder,
                tell=progress.report,
                publishing=publishing,
            )
        host.opened.note(imported.session_id)
        return await import_result(host, imported)

    async def usage(_: Call, params: SessionUsageParams) -> SessionUsageResult:
        return await host.usage.of(
            params.session_id,
            after=number(params.cursor, -1),
            limit=page_size(params.limit, limits.page_items),
        )

    return {"session/export": export, "session/import": import_, "session/usage": usage}


async def import_result(host: Host, imported: Imported) -> SessionImportResult:
    """What ``session/import`` answers."""
    return SessionImportResult(
        session=await host.reading.session(imported.session_id),
        cursor=host.log.cursor(),
        exported_id=SessionId(imported.exported_id),
        events=imported.events,
        added=imported.added,
    )


def _folder(cwd: str) -> str:
    if not is_folder_name(cwd):
        raise invalid("$.cwd", "must be an absolute path")
    try:
        resolved = Path(cwd).resolve(strict=True)
    except (OSError, RuntimeError) as fault:
        raise CallboardError(
            "pathNotFound", f"there is no folder {cwd[:200]}", data={"path": cwd}
        ) from fault
    if not resolved.is_dir():
        raise CallboardError("pathNotFound", f"{cwd[:200]} is not a folder", data={"path": cwd})
    return str(resolved)
