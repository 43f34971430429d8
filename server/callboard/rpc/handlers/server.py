"""``server/*``, ``config/*``, ``model/*``, ``profile/*`` and ``blob/*``."""

import asyncio
import base64
import os
from typing import TypeVar

import psutil

from callboard_rpc import published
from callboard_rpc.common import Empty, HostId, Page
from callboard_rpc.server import (
    BlobReadParams,
    BlobReadResult,
    ConfigGetParams,
    ConfigGetResult,
    Diagnostics,
    HostInfo,
    LeaseInfo,
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
from callboard_rpc.version import PROTOCOL_VERSION

from ...host import Host
from ...log.clock import parse
from ...log.log import Log
from ...log.sqlite import VERSION as SQLITE_VERSION
from ...log.sqlite import has_wal_reset_bug
from ...sessions.identity import life
from ..call import Call, Handler
from ..greeting import NAME, features, version
from ..pages import LARGEST, invalid, is_folder_name, number, page_size
from .probing import book_of, infos

_BLOB_BYTES = 512 * 1024

T = TypeVar("T")


def handlers(host: Host) -> dict[str, Handler]:
    items = host.settings.limits.page_items

    async def info(_: Call, __: Empty) -> ServerInfo:
        log = host.log
        uptime = parse(log.now()) - parse(host.started_at)
        model, source = await _model(host)
        return ServerInfo(
            name=NAME,
            version=version(),
            protocol_version=PROTOCOL_VERSION,
            store_id=log.store_id,
            host_id=HostId(host.host_id),
            pid=os.getpid(),
            started_at=host.started_at,
            uptime_ms=round(uptime.total_seconds() * 1000),
            store_path=str(log.path),
            head=log.cursor(),
            features=features(host.settings.features),
            sqlite_version=SQLITE_VERSION,
            model=model,
            model_source=source,
        )

    async def ping(_: Call, params: PingParams) -> PingResult:
        return PingResult(at=host.log.now(), head=host.log.cursor(), echo=params.echo)

    async def diagnostics(_: Call, __: Empty) -> Diagnostics:
        return await _diagnostics(host)

    async def schema(_: Call, params: SchemaParams) -> SchemaResult:
        return SchemaResult(text=published.read(params.format))

    async def config_get(_: Call, params: ConfigGetParams) -> ConfigGetResult:
        if params.cwd is not None and not is_folder_name(params.cwd):
            raise invalid("$.cwd", "must be an absolute path")
        values = host.environment.load(params.cwd).values
        if params.keys is not None:
            values = tuple(value for value in values if value.key in params.keys)
        return ConfigGetResult(values=values)

    async def model_list(_: Call, params: ModelListParams) -> Page[ModelInfo]:
        return _page(await host.catalog.list(), params.cursor, page_size(params.limit, items))

    async def profile_list(_: Call, params: ProfileListParams) -> Page[ProfileInfo]:
        listed = infos(host, book_of(host, params.cwd))
        return _page(listed, params.cursor, page_size(params.limit, items))

    async def blob_read(_: Call, params: BlobReadParams) -> BlobReadResult:
        if params.offset < 0:
            raise invalid("$.offset", "must not be negative")
        wanted = _BLOB_BYTES if params.length is None else params.length
        if wanted < 0:
            raise invalid("$.length", "must not be negative")
        data, size, mime_type = await host.log.read_blob(
            params.blob_id,
            offset=min(params.offset, LARGEST),
            length=min(wanted, _BLOB_BYTES),
        )
        return BlobReadResult(
            data_base64=base64.b64encode(data).decode(),
            size=size,
            eof=params.offset + len(data) >= size,
            mime_type=mime_type,
        )

    return {
        "server/info": info,
        "server/ping": ping,
        "server/diagnostics": diagnostics,
        "server/schema": schema,
        "config/get": config_get,
        "model/list": model_list,
        "profile/list": profile_list,
        "blob/read": blob_read,
    }


def _page(all_: tuple[T, ...], cursor: str | None, limit: int) -> Page[T]:
    start = max(0, number(cursor, 0))
    page = all_[start : start + limit]
    end = start + len(page)
    return Page(data=page, next_cursor=str(end) if end < len(all_) else None)


async def _model(host: Host) -> tuple[str | None, str]:
    """The model of a session that names none, and why it is this one, or why there is none."""
    try:
        selection = await host.catalog.selected()
    except Exception as fault:
        return None, str(fault)
    try:
        await host.catalog.resolve(selection.model_id)
    except Exception as fault:
        return None, f"{selection.model_id} (from {selection.source}) cannot be used: {fault}"
    return selection.model_id, selection.source


async def _count(log: Log, sql: str) -> int:
    return (await log.query(sql))[0][0]


async def _diagnostics(host: Host) -> Diagnostics:
    log = host.log
    wal = log.path.with_name(log.path.name + "-wal")
    owners = await log.query(
        "SELECT session_id, host_id, fence, turn_id FROM owners WHERE fence IS NOT NULL"
    )
    hosts = await log.query(
        "SELECT host_id, pid, started_at, heartbeat_at, process_born FROM hosts ORDER BY started_at"
    )
    warnings = list(host.warnings)
    if has_wal_reset_bug(SQLITE_VERSION):
        warnings.append(
            f"SQLite {SQLITE_VERSION} has the WAL-reset bug; the store's lock file guards against it"
        )
    return Diagnostics(
        queues={
            "writer": log.queue_length,
            "turns": host.dispatcher.running,
            "pendingTriggers": await _count(
                log, "SELECT count(*) FROM triggers WHERE state = 'pending'"
            ),
            "pendingApprovals": await _count(
                log, "SELECT count(*) FROM approvals WHERE state = 'pending'"
            ),
            "pendingDeliveries": await _count(log, "SELECT count(*) FROM inbox"),
            "openAgents": await _count(log, "SELECT count(*) FROM agents WHERE status <> 'closed'"),
        },
        leases=tuple(
            LeaseInfo(session_id=s, host_id=h, fence=f, turn_id=t) for s, h, f, t in owners
        ),
        hosts=tuple(
            HostInfo(
                host_id=h, pid=pid, started_at=s, heartbeat_at=b, alive=life(pid, born) != "gone"
            )
            for h, pid, s, b, born in hosts
        ),
        store_bytes=log.path.stat().st_size,
        wal_bytes=wal.stat().st_size if wal.exists() else 0,
        events=await _count(log, "SELECT count(*) FROM events"),
        sessions=await _count(log, "SELECT count(*) FROM sessions"),
        tasks=len(asyncio.all_tasks()),
        memory_bytes=psutil.Process().memory_info().rss,
        indexed_through=(await log.query("SELECT through FROM search_progress"))[0][0],
        warnings=tuple(warnings),
    )
