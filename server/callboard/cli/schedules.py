"""``callboard schedule``: agents that are woken by the clock, listed, looked at, paused and ended."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from typing import Annotated

import anyio
from cyclopts import App, Parameter, validators
from rich.console import Console
from rich.table import Table
from rich.text import Text

from callboard_client import Client
from callboard_client.terminal_text import clean_line
from callboard_rpc.common import ScheduleId
from callboard_rpc.convert import unstructure
from callboard_rpc.schedules import Schedule, ScheduleFire, ScheduleUpdateParams
from callboard_rpc.server import ClientCapabilities

from .asking import Policy
from .exits import CommandError, Exit
from .interrupts import Interrupts
from .naming import SCHEDULES, resolve
from .schedules_making import When, add, preview
from .schedules_running import run_here
from .server import StoreOption, connect_existing
from .terminal import block, line, open_console, write_json_line
from .wording import OUTCOME_WORDS, local_time, plural, usage

app = App(
    name="schedule",
    help="Wake agents by the clock: add, list, show, pause, resume, run and remove schedules.",
)
app.command(add)
app.command(preview)

Which = Annotated[
    str, Parameter(help="The schedule, by its name, its id or the beginning of that.")
]
_LATE = timedelta(minutes=1)
Json = Annotated[bool, Parameter(negative=())]
Count = Annotated[int, Parameter(name=["--lines", "-n"], validator=validators.Number(gte=1))]


async def _find(client: Client, given: str) -> Schedule:
    """Raises `CommandError` when it names none, or several."""
    found = [each async for each in client.schedules.list()]
    named = [each for each in found if each.name == given.strip()]
    if len(named) == 1:
        return named[0]
    if named:
        owners = ", ".join(f"{each.schedule_id} of {each.profile}" for each in named)
        raise CommandError(
            f"{plural(len(named), 'schedule')} are called {given!r}: {owners}",
            exit=Exit.USAGE,
            hint="Give the id of the one that is meant.",
        )
    return SCHEDULES.pick(given, {str(each.schedule_id): each for each in found})


def _next(schedule: Schedule, now: datetime) -> Text:
    """When it fires next, or why it does not."""
    if schedule.next_at is not None:
        shown = local_time(schedule.next_at, seconds=True)
        return Text(f"due {shown}", "yellow") if _is_overdue(schedule, now) else Text(shown)
    if schedule.disabled_reason is None:
        return Text("paused", "dim")
    failing = 0 < schedule.max_failures <= schedule.failures
    return Text("failed", "red") if failing else Text("ended", "dim")


def _is_overdue(schedule: Schedule, now: datetime) -> bool:
    """Whether its time has passed by more than servers take: none is there."""
    if schedule.next_at is None:
        return False
    return datetime.fromisoformat(schedule.next_at) + _LATE < now


# --- looking ----------------------------------------------------------------------------------------


@app.command(name="list")
async def list_schedules(
    *,
    profile: str | None = None,
    session: str | None = None,
    json: Json = False,
    store: StoreOption | None = None,
) -> int:
    """List the schedules there are: what fires when, and what is switched off.

    Parameters
    ----------
    profile
        Only those of this agent.
    session
        Only those that run in this session.
    json
        One JSON object a line.
    """
    async with connect_existing(store, name="schedule") as client:
        session_id = None if session is None else (await resolve(client, session)).session_id
        listed = client.schedules.list(profile=profile, session_id=session_id)
        found = [each async for each in listed]
    if json:
        for each in found:
            write_json_line(unstructure(each))
        return Exit.OK
    console = open_console()
    if not found:
        console.print(
            line('There are no schedules. Make one: callboard schedule add "…" --every 1h')
        )
        return Exit.OK
    now = datetime.now(UTC)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("schedule", "agent", "when", "next", "fired"):
        table.add_column(heading, no_wrap=True)
    table.add_column("name")
    for each in found:
        table.add_row(
            Text(each.schedule_id),
            Text(clean_line(each.profile, 20)),
            Text(clean_line(When.of(each.trigger).words, 40)),
            _next(each, now),
            Text(str(each.fire_count)),
            Text(clean_line(each.name), no_wrap=True, overflow="ellipsis"),
        )
    console.print(table)
    return Exit.OK


@app.command
async def show(schedule: Which, /, *, json: Json = False, store: StoreOption | None = None) -> int:
    """Show a schedule: when, where and what, how it stands, and what came of it last.

    Parameters
    ----------
    json
        As one JSON object.
    """
    async with connect_existing(store, name="schedule") as client:
        found = await _find(client, schedule)
        last = [fire async for fire in _newest(client, found, 3)]
    if json:
        write_json_line(unstructure(found))
        return Exit.OK
    console = open_console()
    _print(console, found)
    for fire in reversed(last):
        console.print(_fire_line(fire), soft_wrap=True)
    return Exit.OK


def _print(console: Console, schedule: Schedule) -> None:
    head = line((schedule.name, "bold"), (f"  {schedule.schedule_id}", "dim"))
    console.print(head, soft_wrap=True)
    target = schedule.target
    if target.session_id is not None:
        where = f"in session {target.session_id}"
    else:
        where = f"in a fresh session in {target.fresh.cwd if target.fresh else '?'}"
    rows = [
        ("when", When.of(schedule.trigger).words),
        ("agent", f"{schedule.profile}, {where}"),
        ("next", _standing(schedule, datetime.now(UTC))),
        ("fired", _counts(schedule)),
        ("rules", _rules(schedule)),
    ]
    if schedule.last_error is not None:
        rows.append(("last error", schedule.last_error))
    if schedule.created_by is not None:
        rows.append(("made by", f"the agent of session {schedule.created_by}"))
    for name, words in rows:
        console.print(line((f"{name:<11}", "dim"), words), soft_wrap=True)
    console.print(block(schedule.prompt, indent="  "), soft_wrap=True)


def _standing(schedule: Schedule, now: datetime) -> str:
    if schedule.next_at is not None:
        late = "; it has passed, and no server was there" if _is_overdue(schedule, now) else ""
        return local_time(schedule.next_at, seconds=True) + late
    return f"never: {schedule.disabled_reason or 'it is paused'}"


def _counts(schedule: Schedule) -> str:
    most = "" if schedule.max_fires is None else f" of {schedule.max_fires}"
    words = f"{plural(schedule.fire_count, 'time')}{most}"
    if schedule.last_fired_at is not None:
        words += f", last {local_time(schedule.last_fired_at, seconds=True)}"
    if schedule.skip_count:
        words += f"; {schedule.skip_count} skipped"
    if schedule.failures:
        words += f"; failed {plural(schedule.failures, 'time')} in a row"
    return words


def _rules(schedule: Schedule) -> str:
    missed = {"skip": "missed times are skipped", "run_once": "missed times are one run"}
    busy = {"skip": "skipped while it is at work", "queue": "waits while it is at work"}
    once = schedule.trigger.at is not None
    words = f"{'late if missed' if once else missed[schedule.misfire]}, {busy[schedule.overlap]}"
    if schedule.max_failures:
        words += f", off after {plural(schedule.max_failures, 'failure')} in a row"
    if schedule.expires_at is not None:
        words += f", expires {local_time(schedule.expires_at)}"
    return words


@app.command
async def runs(
    schedule: Which,
    /,
    *,
    lines: Count = 20,
    json: Json = False,
    store: StoreOption | None = None,
) -> int:
    """Show what a schedule has fired, the newest last.

    Parameters
    ----------
    lines
        How many of the last ones.
    json
        One JSON object a line.
    """
    async with connect_existing(store, name="schedule") as client:
        found = await _find(client, schedule)
        fires = [fire async for fire in _newest(client, found, lines)]
    console = open_console()
    for fire in reversed(fires):
        if json:
            write_json_line(unstructure(fire))
        else:
            console.print(_fire_line(fire), soft_wrap=True)
    if not fires and not json:
        console.print(line((f"{found.name} has not fired yet.", "dim")))
    return Exit.OK


async def _newest(client: Client, schedule: Schedule, count: int) -> AsyncGenerator[ScheduleFire]:
    async for fire in client.schedules.runs(schedule.schedule_id):
        yield fire
        count -= 1
        if not count:
            return


def _fire_line(fire: ScheduleFire) -> Text:
    words, style = OUTCOME_WORDS.get(fire.outcome, (fire.outcome, "dim"))
    parts: list[str | tuple[str, str]] = [
        (f"{local_time(fire.due_at, seconds=True)}  ", "dim"),
        (words, style),
    ]
    if fire.count > 1:
        parts.append(f" ({fire.count} times)")
    if fire.reason is not None:
        parts.append(f": {fire.reason}")
    if fire.session_id is not None:
        parts.append((f"  {fire.session_id}", "dim"))
    spent = usage(fire.usage)
    if spent:
        parts.append((f"  {spent}", "dim"))
    return line(*parts)


# --- changing ---------------------------------------------------------------------------------------


@app.command
async def pause(schedule: Which, /, *, store: StoreOption | None = None) -> int:
    """Switch a schedule off. What of it waits for its session does not begin."""
    return await _switch(schedule, store, on=False)


@app.command
async def resume(schedule: Which, /, *, store: StoreOption | None = None) -> int:
    """Switch a schedule on again; failures from before are forgotten."""
    return await _switch(schedule, store, on=True)


async def _switch(schedule: str, store: StoreOption | None, *, on: bool) -> int:
    async with connect_existing(store, name="schedule") as client:
        found = await _find(client, schedule)
        changed = await client.schedules.update(
            ScheduleUpdateParams(schedule_id=found.schedule_id, enabled=on)
        )
    after = changed.schedule
    words = (
        "paused" if after.next_at is None else f"next at {local_time(after.next_at, seconds=True)}"
    )
    open_console().print(line((after.name, "bold"), f": {words}"), soft_wrap=True)
    return Exit.OK


@app.command
async def remove(schedule: Which, /, *, store: StoreOption | None = None) -> int:
    """Delete a schedule and what is known of its runs. A run that is under way goes on."""
    async with connect_existing(store, name="schedule") as client:
        found = await _find(client, schedule)
        await client.schedules.delete(ScheduleId(found.schedule_id))
    open_console().print(line("removed ", (found.name, "bold")), soft_wrap=True)
    return Exit.OK


@app.command
async def run(
    schedule: Which,
    /,
    *,
    approve: Policy = "ask",
    store: StoreOption | None = None,
) -> int:
    """Fire a schedule once, now, and show what its agent does. It counts like any other fire.

    Where its session is at work in another program it waits there, and this command ends.

    Parameters
    ----------
    approve
        Who answers approvals, as for `callboard run`; `leave` leaves them to other clients.
    """
    interrupts = Interrupts()
    code = Exit.CANCELLED
    async with anyio.create_task_group() as tasks:
        await tasks.start(interrupts.watch)
        interrupts.scope = tasks.cancel_scope
        takes = ClientCapabilities(approvals=True)
        async with connect_existing(store, name="schedule", capabilities=takes) as client:
            found = await _find(client, schedule)
            code = await run_here(client, found, interrupts, policy=approve)
        tasks.cancel_scope.cancel()
    return code
