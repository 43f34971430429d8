"""Telling of runs that have ended, when the store cannot be read."""

from pathlib import Path
from typing import Any

import pytest

from callboard.log.sqlite import sqlite3
from callboard.sessions.projection import SQL
from callboard.sessions.telling import RunListener, RunListeners, Telling
from callboard_rpc.errors import CallboardError
from callboard_rpc.sessions import Turn
from harness.inside import host_in

pytestmark = pytest.mark.anyio


async def test_a_store_that_cannot_be_read_is_named_to_whoever_looks_whom_to_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Execution 24-26: so it is met like any other fault of the store, and no bare SQLite error ends
    who looks."""

    class Broken:
        def execute(self, *_: object) -> Any:
            raise sqlite3.OperationalError("disk I/O error")

    async def told(_: Turn) -> None:
        raise AssertionError("nobody can be told")

    listeners = RunListeners()
    listeners.register([RunListener(name="parent", told=told)])
    async with host_in(tmp_path) as host:
        telling = Telling(
            host.log, listeners, host.reading, host_id=host.host_id, spawn=host.spawn
        )  # fmt: skip
        row = ("parent", "trn_a", "ses_a", "host_gone")
        await host.log.transact(lambda tx: tx.execute(SQL["insert_run_to_tell"], *row))
        with monkeypatch.context() as patch:
            patch.setattr(host.log.feed, "_reader", Broken())
            with pytest.raises(CallboardError) as caught:
                await telling.adopt()
        assert caught.value.kind == "storeIo"
