"""Eight processes do everything at once to one store, and then it is counted."""

import secrets
from pathlib import Path

import pytest
from mixed import Storm
from mixed_agents import AgentStorm

from harness.invariants import check_projections

pytestmark = pytest.mark.anyio


async def _storm(
    folder: Path, *, processes: int, count: int, seed: int, kind: type[Storm] = Storm
) -> Storm:
    print(f"seed {seed}")
    storm = kind(folder, processes=processes, seed=seed)
    storm.check(storm.run(count))
    await check_projections(folder)
    print(storm.report())
    return storm


async def test_eight_processes_on_one_store_lose_nothing_and_meet_no_lock(tmp_path: Path) -> None:
    await _storm(tmp_path, processes=8, count=60, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(1_800)
async def test_eight_processes_do_a_thousand_things_each_and_none_starves(tmp_path: Path) -> None:
    storm = await _storm(tmp_path, processes=8, count=1_000, seed=secrets.randbelow(1_000_000))
    # the very slowest is printed, beside the disk's own: it depends on who else is busy
    for taken in storm.commits_ms():
        assert sorted(taken)[len(taken) * 99 // 100] < 250


async def test_six_processes_with_agents_of_each_other_lose_nothing(tmp_path: Path) -> None:
    await _storm(tmp_path, processes=6, count=50, seed=1, kind=AgentStorm)


@pytest.mark.soak
@pytest.mark.timeout(1_800)
async def test_eight_processes_do_a_thousand_things_each_to_agents_of_each_other(
    tmp_path: Path,
) -> None:
    seed = secrets.randbelow(1_000_000)
    await _storm(tmp_path, processes=8, count=1_000, seed=seed, kind=AgentStorm)
