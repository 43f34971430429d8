"""In which order the calls of one answer run (`specs/coordination.md` 11, #62-64)."""

import asyncio
import gc
from pathlib import Path

import anyio
import pytest
from attrs import frozen

from callboard.tools.base import Effect
from callboard.tools.scheduling import (
    SUPERSEDED,
    Superseded,
    WriteCoordinator,
    WriteCoordinators,
    run_batch,
)

pytestmark = pytest.mark.anyio


@frozen
class Call:
    name: str
    effect: Effect


class Recorder:
    """Executes calls, noting when each begins and ends; `gates` hold calls until they are set."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.gates: dict[str, anyio.Event] = {}
        self.started = anyio.Event()

    async def __call__(self, call: Call) -> str:
        self.log.append(f"+{call.name}")
        self.started.set()
        try:
            if call.name in self.gates:
                await self.gates[call.name].wait()
            await asyncio.sleep(0)
        finally:
            self.log.append(f"-{call.name}")
        return call.name.upper()


def never() -> bool:
    return False


async def test_coordination_64_a_batch_of_reads_overlaps_and_answers_in_call_order() -> None:
    recorder = Recorder()
    recorder.gates["a"] = anyio.Event()

    async def execute(call: Call) -> str:
        if call.name == "c":
            recorder.gates["a"].set()  # a can end only because c runs beside it
        return await recorder(call)

    calls = [Call(name, "read") for name in "abc"]
    with anyio.fail_after(5):
        outcomes = await run_batch(calls, execute, coordinator=WriteCoordinator(), superseded=never)
    assert outcomes == ("A", "B", "C")
    assert recorder.log.index("-b") < recorder.log.index("-a")


@pytest.mark.parametrize("other", ["write", "execute", "kernel"])
async def test_coordination_64_a_mixed_batch_runs_strictly_in_call_order(other: Effect) -> None:
    recorder = Recorder()
    calls = [Call("a", "read"), Call("b", other), Call("c", "read"), Call("d", other)]
    outcomes = await run_batch(calls, recorder, coordinator=WriteCoordinator(), superseded=never)
    assert outcomes == ("A", "B", "C", "D")
    assert recorder.log == ["+a", "-a", "+b", "-b", "+c", "-c", "+d", "-d"]


async def test_coordination_62_a_steer_supersedes_what_has_not_started_but_reads() -> None:
    recorder = Recorder()
    calls = [
        Call("w1", "write"),
        Call("w2", "write"),
        Call("r", "read"),
        Call("k", "kernel"),
        Call("x", "execute"),
    ]
    outcomes = await run_batch(
        calls, recorder, coordinator=WriteCoordinator(), superseded=lambda: "+w1" in recorder.log
    )
    assert outcomes == ("W1", SUPERSEDED, "R", SUPERSEDED, SUPERSEDED)
    assert recorder.log == ["+w1", "-w1", "+r", "-r"]


async def test_coordination_62_reads_alone_are_never_superseded() -> None:
    recorder = Recorder()
    calls = [Call("a", "read"), Call("b", "read")]
    outcomes = await run_batch(
        calls, recorder, coordinator=WriteCoordinator(), superseded=lambda: True
    )
    assert outcomes == ("A", "B")


async def test_a_steer_that_was_seen_once_holds_for_the_rest_of_the_batch() -> None:
    recorder = Recorder()
    answers = iter([True, False, False, False, False])
    calls = [Call("a", "write"), Call("b", "write")]
    outcomes = await run_batch(
        calls, recorder, coordinator=WriteCoordinator(), superseded=lambda: next(answers)
    )
    assert outcomes == (SUPERSEDED, SUPERSEDED)


async def test_writes_of_a_root_and_its_children_never_overlap_and_take_turns() -> None:
    coordinator = WriteCoordinator()
    inside = 0
    order: list[str] = []

    async def execute(call: Call) -> str:
        nonlocal inside
        inside += 1
        assert inside == 1
        order.append(call.name)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        inside -= 1
        return call.name

    async with anyio.create_task_group() as group:
        for session in ("root", "child1", "child2"):
            calls = [Call(f"{session}-{n}", "write" if n else "execute") for n in range(3)]

            async def run(calls: list[Call] = calls) -> None:
                await run_batch(calls, execute, coordinator=coordinator, superseded=never)

            group.start_soon(run)
    assert [name.partition("-")[0] for name in order[:3]] == ["root", "child1", "child2"]
    assert len(order) == 9


async def test_reads_and_kernel_calls_do_not_wait_for_the_coordinator() -> None:
    coordinator = WriteCoordinator()
    with anyio.fail_after(5):
        async with coordinator.hold():
            calls = [Call("r", "read"), Call("k", "kernel")]
            outcomes = await run_batch(calls, Recorder(), coordinator=coordinator, superseded=never)
    assert outcomes == ("R", "K")


async def test_nobody_elses_write_waits_while_a_person_thinks_about_an_approval() -> None:
    coordinator = WriteCoordinator()
    answer = anyio.Event()
    recorder = Recorder()

    async def admit(call: Call) -> str | None:
        if call.name == "asked":
            await answer.wait()
        return "denied" if call.name == "denied" else None

    async with anyio.create_task_group() as group:

        async def asking() -> None:
            calls = [Call("asked", "write"), Call("denied", "write"), Call("last", "write")]
            outcomes = await run_batch(
                calls, recorder, coordinator=coordinator, superseded=never, admit=admit
            )
            assert outcomes == ("ASKED", "denied", "LAST")

        group.start_soon(asking)
        await asyncio.sleep(0)
        with anyio.fail_after(5):
            await run_batch(
                [Call("other", "write")],
                recorder,
                coordinator=coordinator,
                superseded=never,
                admit=admit,
            )
        answer.set()
    assert recorder.log == ["+other", "-other", "+asked", "-asked", "+last", "-last"]


async def test_a_steer_that_comes_while_a_write_waits_for_its_turn_supersedes_it() -> None:
    coordinator = WriteCoordinator()
    steered = False
    recorder = Recorder()
    outcomes: list[tuple[str | Superseded, ...]] = []

    async def wait_for_turn() -> None:
        outcomes.append(
            await run_batch(
                [Call("w", "write")], recorder, coordinator=coordinator, superseded=lambda: steered
            )
        )

    async with anyio.create_task_group() as group, coordinator.hold():
        group.start_soon(wait_for_turn)
        await asyncio.sleep(0)
        steered = True
    assert outcomes == [(SUPERSEDED,)] and recorder.log == []


@pytest.mark.parametrize("effect", ["read", "write"])
async def test_cancellation_ends_and_awaits_what_is_under_way(effect: Effect) -> None:
    recorder = Recorder()
    coordinator = WriteCoordinator()
    recorder.gates = {"a": anyio.Event(), "b": anyio.Event()}
    calls = [Call("a", effect), Call("b", effect)]
    task = asyncio.create_task(
        run_batch(calls, recorder, coordinator=coordinator, superseded=never)
    )
    await recorder.started.wait()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    running = "ab" if effect == "read" else "a"
    assert sorted(recorder.log) == sorted([f"{mark}{name}" for name in running for mark in "+-"])
    with anyio.fail_after(5):
        async with coordinator.hold():
            pass  # was given back


async def test_a_crash_ends_the_others_and_comes_out_as_itself() -> None:
    recorder = Recorder()
    recorder.gates["slow"] = anyio.Event()

    async def execute(call: Call) -> str:
        if call.name == "crash":
            await recorder.started.wait()
            raise LookupError("broken")
        return await recorder(call)

    with anyio.fail_after(5), pytest.raises(LookupError, match="broken"):
        await run_batch(
            [Call("slow", "read"), Call("crash", "read")],
            execute,
            coordinator=WriteCoordinator(),
            superseded=never,
        )
    assert recorder.log == ["+slow", "-slow"]


async def test_an_empty_batch_has_no_outcomes() -> None:
    assert await run_batch([], Recorder(), coordinator=WriteCoordinator(), superseded=never) == ()


def test_one_root_has_one_coordinator_while_somebody_keeps_it() -> None:
    coordinators = WriteCoordinators()
    one = coordinators.of(Path("/w"))
    assert coordinators.of(Path("/w")) is one
    assert coordinators.of(Path("/v")) is not one
    number = id(one)
    del one
    gc.collect()
    fresh = coordinators.of(Path("/w"))
    assert fresh is coordinators.of(Path("/w")) and number
