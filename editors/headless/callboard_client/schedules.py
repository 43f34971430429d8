"""``schedule/*`` as typed methods: agents that are woken by the clock."""

from collections.abc import AsyncIterator

from callboard_rpc.common import ScheduleId, SessionId
from callboard_rpc.schedules import (
    Misfire,
    Overlap,
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
    ScheduleTarget,
    ScheduleTrigger,
    ScheduleUpdateParams,
)

from .family import Family, pages


class Schedules(Family):
    async def create(
        self,
        profile: str,
        trigger: ScheduleTrigger,
        prompt: str,
        target: ScheduleTarget,
        *,
        name: str | None = None,
        max_fires: int | None = None,
        expires_at: str | None = None,
        max_failures: int = 3,
        misfire: Misfire = "skip",
        overlap: Overlap | None = None,
        enabled: bool = True,
        idempotency_key: str | None = None,
    ) -> ScheduleResult:
        """Has the agent `profile` woken with a `prompt` that it alone reads, in a session that is there or in
        a fresh one each time. See `ScheduleCreateParams` for the bounds and policies."""
        params = ScheduleCreateParams(
            profile=profile,
            trigger=trigger,
            prompt=prompt,
            target=target,
            name=name,
            max_fires=max_fires,
            expires_at=expires_at,
            max_failures=max_failures,
            misfire=misfire,
            overlap=overlap,
            enabled=enabled,
            idempotency_key=idempotency_key,
        )
        return await self._call("schedule/create", params)

    async def get(self, schedule_id: ScheduleId) -> ScheduleResult:
        return await self._call("schedule/get", ScheduleGetParams(schedule_id=schedule_id))

    def list(
        self,
        *,
        profile: str | None = None,
        session_id: SessionId | None = None,
        enabled: bool | None = None,
    ) -> AsyncIterator[Schedule]:
        """By profile, then name; only those of a profile, a session, or a standing where that is given."""
        return pages(
            self._call,
            "schedule/list",
            lambda cursor: ScheduleListParams(
                profile=profile, session_id=session_id, enabled=enabled, cursor=cursor
            ),
        )

    async def update(self, params: ScheduleUpdateParams) -> ScheduleResult:
        """Changes what is given in `params` and nothing else."""
        return await self._call("schedule/update", params)

    async def delete(
        self, schedule_id: ScheduleId, *, idempotency_key: str | None = None
    ) -> ScheduleDeleteResult:
        """Ends a schedule: what runs of it goes on, what waits of it does not begin."""
        params = ScheduleDeleteParams(schedule_id=schedule_id, idempotency_key=idempotency_key)
        return await self._call("schedule/delete", params)

    async def run_now(
        self, schedule_id: ScheduleId, *, idempotency_key: str | None = None
    ) -> ScheduleRunNowResult:
        """Fires once, now, through the server that is asked; it counts towards the bounds."""
        params = ScheduleRunNowParams(schedule_id=schedule_id, idempotency_key=idempotency_key)
        return await self._call("schedule/runNow", params)

    def runs(self, schedule_id: ScheduleId) -> AsyncIterator[ScheduleFire]:
        """What it has fired, the newest first."""
        return pages(
            self._call,
            "schedule/runs",
            lambda cursor: ScheduleRunsParams(schedule_id=schedule_id, cursor=cursor),
        )

    async def preview(self, trigger: ScheduleTrigger, count: int = 5) -> SchedulePreviewResult:
        """The next times of a trigger, 100 at the most."""
        params = SchedulePreviewParams(trigger=trigger, count=count)
        return await self._call("schedule/preview", params)
