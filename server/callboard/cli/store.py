"""``callboard store``: looking the store through, backing it up, putting a backup back."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter
from rich.text import Text

from callboard_client.terminal_text import clean_line

from .exits import CommandError, Exit
from .server import StoreOption, chosen_store, server_environment
from .terminal import line, open_console, write_json_line
from .wording import local_time, plural, size

if TYPE_CHECKING:
    from callboard.log.checking import Report

app = App(
    name="store", help="Check, back up, restore and shrink the store, the file that holds all."
)

Json = Annotated[bool, Parameter(negative=())]


@app.command
def info(*, json: Json = False, store: StoreOption | None = None) -> int:
    """Tell what the store holds, how large it is, who uses it, and when it was last cared for.

    Parameters
    ----------
    json
        One JSON object.
    """
    from callboard.log.overview import overview
    from callboard.sessions.upkeep import users

    seen = overview(_existing(store), users=users)
    if json:
        write_json_line(
            {
                "store": str(seen.path),
                "storeId": seen.store_id,
                "version": seen.version,
                "bytes": seen.bytes,
                "walBytes": seen.wal_bytes,
                "freeBytes": seen.free_bytes,
                "sessions": seen.sessions,
                "events": seen.events,
                "blobs": seen.blobs,
                "blobBytes": seen.blob_bytes,
                "head": seen.head,
                "indexedThrough": seen.indexed_through,
                "users": list(seen.users),
                "lastBackup": seen.backup,
                "lastCheck": seen.check,
            }
        )
        return Exit.OK
    backup, check = seen.backup or {}, seen.check or {}
    console = open_console()
    for name, value in {
        "store": str(seen.path),
        "id": seen.store_id,
        "version": str(seen.version),
        "size": f"{size(seen.bytes)}, {size(seen.free_bytes)} of it free; WAL {size(seen.wal_bytes)}",
        "holds": f"{plural(seen.sessions, 'session')}, {plural(seen.events, 'event')}, "
        f"{plural(seen.blobs, 'blob')} ({size(seen.blob_bytes)})",
        "search": f"indexed through {seen.indexed_through:,} of {seen.head:,}",
        "used by": ", ".join(seen.users) or "nobody",
        "last backup": f"{local_time(backup['at'])}, {backup.get('path', '')}"
        if backup
        else "none",
        "last check": f"{local_time(check['at'])}, {plural(check.get('problems', 0), 'problem')}"
        if check
        else "none",
    }.items():
        # unbroken, however narrow it is: a path is there to be copied
        console.print(Text.assemble((f"{name:<13}", "dim"), clean_line(value)), soft_wrap=True)
    return Exit.OK


@app.command
def check(
    *,
    repair: Annotated[bool, Parameter(negative=())] = False,
    quick: Annotated[bool, Parameter(negative=())] = False,
    json: Json = False,
    store: StoreOption | None = None,
) -> int:
    """Look the store through. Exit code 1 if something is wrong with it.

    It changes nothing, and others may go on using the store. The file is checked, then that every
    session's events are all there, that blobs are what they should be, and that the search index and
    all tables that are made from the log say what the log says.

    Parameters
    ----------
    repair
        Make anew what can be made from the log: those tables and the search index; and remove blobs
        that belong to nobody. Nothing else is touched. Nobody else may use the store meanwhile.
    quick
        Leave out what takes long.
    json
        One JSON object.
    """
    from callboard.log import checking
    from callboard.log.clock import utc_now
    from callboard.log.ids import IdSource
    from callboard.sessions.upkeep import examine_runs

    if repair and quick:
        raise CommandError("--repair and --quick exclude each other", exit=Exit.USAGE)
    path = _existing(store)
    how: dict[str, Any] = {
        "now": utc_now,
        "ids": IdSource(),
        "projections": _projections(),
        "examinations": (examine_runs,),
    }
    report = checking.repair(path, **how) if repair else checking.check(path, quick=quick, **how)
    if json:
        _write_report(report)
    else:
        _print_report(report)
    return Exit.FAILED if report.problems else Exit.OK


def _write_report(report: "Report") -> None:
    write_json_line(
        {
            "store": str(report.path),
            "storeId": report.store_id,
            "version": report.version,
            "ok": not report.problems,
            "sessions": report.sessions,
            "events": report.events,
            "blobs": report.blobs,
            "head": report.head,
            "findings": [
                {
                    "part": each.part,
                    "severity": each.severity,
                    "repairable": each.repairable,
                    "message": each.message,
                }
                for each in report.findings
            ],
            "repaired": list(report.repaired),
        }
    )


def _print_report(report: "Report") -> None:
    console = open_console()
    for part in report.repaired:
        console.print(line(("✓ ", "green"), f"{part}: made anew"))
    for each in report.findings:
        mark, style = ("✗", "bold red") if each.severity == "problem" else ("!", "yellow")
        console.print(line((f"{mark} ", style), f"{each.part}: {each.message}"), soft_wrap=True)
    counts = (
        f"{plural(report.sessions, 'session')}, {plural(report.events, 'event')}, "
        f"{plural(report.blobs, 'blob')}"
    )
    if not report.problems:
        console.print(line(("✓ ", "green"), f"nothing is wrong with {report.path}: {counts}"))
        return
    if all(each.repairable for each in report.problems):
        advice = "All of it can be made anew from the log: callboard store check --repair"
    elif any(each.part in ("file", "log", "blobs") for each in report.problems):
        advice = (
            "Make no more use of it than you must. `callboard store restore BACKUP` puts a backup in "
            "its place and keeps this one beside it."
        )
    else:
        advice = "A server that opens the store ends what its runs have left; check again then."
    console.print(line((advice, "dim")), soft_wrap=True)


@app.command
def backup(
    destination: Path,
    /,
    *,
    force: Annotated[bool, Parameter(negative=())] = False,
    json: Json = False,
    store: StoreOption | None = None,
) -> int:
    """Write a backup of the store to one file, while others go on using the store.

    Parameters
    ----------
    destination
        The file, or a folder in which it is named after the time.
    force
        Replace the file if it is there, once the new backup is whole.
    json
        One JSON object.
    """
    from callboard.log.backup import back_up
    from callboard.log.clock import utc_now

    made = back_up(_existing(store), destination, now=utc_now, overwrite=force)
    if json:
        write_json_line(
            {
                "backup": str(made.path),
                "bytes": made.bytes,
                "storeId": made.store_id,
                "head": made.head,
                "sessions": made.sessions,
                "at": made.at,
            }
        )
        return Exit.OK
    what = f"{plural(made.sessions, 'session')}, {size(made.bytes)}"
    open_console().print(line(f"backed up to {made.path}", (f"  {what}", "dim")), soft_wrap=True)
    return Exit.OK


@app.command
def restore(source: Path, /, *, json: Json = False, store: StoreOption | None = None) -> int:
    """Put a backup in the store's place. What was there is kept beside it; nobody may use it meanwhile.

    The restored store has a new id: clients that had followed the old one begin anew.

    Parameters
    ----------
    source
        The backup.
    json
        One JSON object.
    """
    from callboard.log.clock import utc_now
    from callboard.log.ids import IdSource
    from callboard.log.restoring import restore as put_back
    from callboard.sessions.upkeep import users

    done = put_back(chosen_store(store), source, ids=IdSource(), now=utc_now, users=users)
    if json:
        write_json_line(
            {
                "store": str(done.path),
                "storeId": done.store_id,
                "head": done.head,
                "sessions": done.sessions,
                "replaced": None if done.replaced is None else str(done.replaced),
            }
        )
        return Exit.OK
    console = open_console()
    words = f"  {plural(done.sessions, 'session')}"
    console.print(line(f"restored {done.path}", (words, "dim")), soft_wrap=True)
    if done.replaced is not None:
        console.print(line((f"what it held before is in {done.replaced}", "dim")), soft_wrap=True)
    return Exit.OK


@app.command
def vacuum(*, json: Json = False, store: StoreOption | None = None) -> int:
    """Make the store smaller: remove what is of no use any more, and write the file anew without gaps.

    Nobody else may use the store meanwhile; while somebody does, this is refused and nothing happens.

    Parameters
    ----------
    json
        One JSON object.
    """
    from callboard.config import load, user_config_dir
    from callboard.log.clock import utc_now
    from callboard.log.ids import IdSource
    from callboard.log.vacuuming import vacuum as make_smaller

    environment = server_environment(store)
    settings = load(environment, user_config_dir(environment)).settings
    done = make_smaller(
        _existing(store),
        now=utc_now,
        ids=IdSource(),
        keep_answers_days=settings.store.idempotency_days,
    )
    if json:
        write_json_line(
            {
                "store": str(done.path),
                "bytesBefore": done.bytes_before,
                "bytesAfter": done.bytes_after,
                "blobsRemoved": done.blobs,
                "answersRemoved": done.answers,
                "draftsRemoved": done.drafts,
            }
        )
        return Exit.OK
    open_console().print(
        line(f"{done.path}: {size(done.bytes_before)} before, {size(done.bytes_after)} now"),
        soft_wrap=True,
    )
    return Exit.OK


def _existing(option: StoreOption | None) -> Path:
    path = chosen_store(option)
    if not path.exists():
        raise CommandError(
            f"there is no store at {path}",
            exit=Exit.USAGE,
            hint="`callboard run` makes it at its first start; --store or CALLBOARD_STORE names another.",
        )
    return path


def _projections() -> Any:
    from callboard.config import Settings
    from callboard.host import builtin_features, projections_of
    from callboard.sessions.telling import RunListeners

    return projections_of(RunListeners(), builtin_features(Settings()))
