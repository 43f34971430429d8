"""``schedule/*``: a person at the clock of this store."""

from typing import Any

from callboard_rpc.schedules import (
    Schedule,
    ScheduleCreateParams,
    ScheduleDeleteParams,
    ScheduleDeleteResult,
    ScheduleFire,
    ScheduleGetParams,
    ScheduleListParams,
    SchedulePreviewParams,
    SchedulePreviewResult,
    ScheduleResult,
    ScheduleRunNowParams,
    ScheduleRunNowResult,
    ScheduleRunsParams,
    ScheduleUpdateParams,
)

from ...host import Host
from ...schedules.reading import preview
from ...schedules.service import Schedules
from ..call import Call, Handler
from ..pages import LARGEST, number, page_size, sized, text


def schedules_of(host: Host) -> Schedules:
    service = host.services["schedules"]
    assert isinstance(service, Schedules)
    return service


def handlers(host: Host) -> dict[str, Handler]:
    schedules = schedules_of(host)
    limits = host.settings.limits

    async def create(_: Call, params: ScheduleCreateParams) -> ScheduleResult:
        return schedule_result(host, await schedules.create(params))

    async def get(_: Call, params: ScheduleGetParams) -> ScheduleResult:
        return schedule_result(host, schedules.reading.schedule(params.schedule_id))

    async def list_(_: Call, params: ScheduleListParams) -> dict[str, Any]:
        async def fetch(limit: int) -> tuple[tuple[Schedule, ...], str | None]:
            return await schedules.reading.page(
                after=params.cursor,
                profile=params.profile,
                session_id=params.session_id,
                enabled=params.enabled,
                limit=limit,
            )

        return await sized(fetch, page_size(params.limit, limits.page_items), limits.page_bytes)

    async def update(_: Call, params: ScheduleUpdateParams) -> ScheduleResult:
        return schedule_result(host, await schedules.update(params))

    async def delete(_: Call, params: ScheduleDeleteParams) -> ScheduleDeleteResult:
        deleted = await schedules.delete(params.schedule_id)
        return ScheduleDeleteResult(cursor=host.log.cursor(), deleted=deleted)

    async def run_now(_: Call, params: ScheduleRunNowParams) -> ScheduleRunNowResult:
        fire = await schedules.run_now(params.schedule_id)
        return ScheduleRunNowResult(fire=fire, cursor=host.log.cursor())

    async def runs(_: Call, params: ScheduleRunsParams) -> dict[str, Any]:
        before = number(params.cursor, LARGEST)

        async def fetch(limit: int) -> tuple[tuple[ScheduleFire, ...], str | None]:
            found, place = await schedules.reading.runs(
                params.schedule_id, before=before, limit=limit
            )
            return found, text(place)

        return await sized(fetch, page_size(params.limit, limits.page_items), limits.page_bytes)

    async def preview_(_: Call, params: SchedulePreviewParams) -> SchedulePreviewResult:
        return SchedulePreviewResult(times=preview(params.trigger, params.count, schedules.now()))

    return {
        "schedule/create": create,
        "schedule/get": get,
        "schedule/list": list_,
        "schedule/update": update,
        "schedule/delete": delete,
        "schedule/runNow": run_now,
        "schedule/runs": runs,
        "schedule/preview": preview_,
    }


def schedule_result(host: Host, schedule: Schedule) -> ScheduleResult:
    """What ``schedule/create`` and ``schedule/update`` answer."""
    return ScheduleResult(schedule=schedule, cursor=host.log.cursor())
