"""What ``callboard doctor`` looks at: what is found, what is missing, and what to do about it.

Nothing here changes anything, opens the store for writing, or asks a provider for an answer. The
way it is shown is the command's business.
"""

import os
import platform
import re
import shutil
import stat
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol

from anyio import to_thread
from attrs import frozen

from callboard_rpc.errors import CallboardError

from .config import Loaded, load, store_path, user_config_dir
from .config.layers import USER_FILE, WORKSPACE_FILE
from .log import carebook, filesystem, sqlite
from .log.redact import Redactor
from .models.keys import KeyRing
from .sessions.profiles import ProfileBook
from .sessions.ready import with_ready
from .tools.environment import secret_values

if TYPE_CHECKING:
    from callboard_rpc.profiles import AgentProbeResult

    from .config.hooks import HookCommand
    from .models.catalog import ModelCatalog

LEAST_FREE_BYTES: Final = 50 * 1024 * 1024
"""With less on the disk than this the store can hardly work."""
LITTLE_FREE_BYTES: Final = 1024 * 1024 * 1024

ADDRESSES: Final = frozenset({"OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"})
"""Variables that send a provider's requests elsewhere."""

EDITORS: Final[Mapping[str, str]] = {
    "code": "VS Code", "codium": "VSCodium", "nvim": "Neovim", "zed": "Zed", "zeditor": "Zed",
    "hx": "Helix", "emacs": "Emacs", "vim": "Vim", "idea": "IntelliJ IDEA", "pycharm": "PyCharm",
}  # fmt: skip
_PLAIN_PATH: Final = re.compile(r"\.{0,2}/[\w./+-]*")
_SQLITE_HEADER: Final = b"SQLite format 3\0"

_WORTH_TELLING: Final = ("resume", "load", "images", "resources", "corrections")
"""What of an agent's abilities a person can make use of."""

Status = Literal["ok", "warn", "fail"]


@frozen(kw_only=True)
class Check:
    """One finding. ``fail``: Callboard does not work like this. `advice` says what to do, if anything; `more` is
    the whole of what it says in short."""

    name: str
    status: Status
    found: str
    advice: str = ""
    more: str = ""


class Chosen(Protocol):
    """The model that would be used, and why."""

    @property
    def model_id(self) -> str: ...

    @property
    def source(self) -> str: ...


class Catalog(Protocol):
    """What is asked of the models: `callboard.models.catalog.ModelCatalog` is one."""

    async def selected(self) -> Chosen: ...


async def examine(
    environ: Mapping[str, str],
    *,
    user_dir: Path | None = None,
    cwd: Path | None = None,
    catalog: Catalog | None = None,
) -> tuple[Check, ...]:
    """Look at everything, in the order in which it is worth mending.

    `user_dir` and `cwd` are the user's configuration directory and the workspace; the platform's and
    the current one by default. `catalog` says which model would be used; one is made when absent.
    """
    folder = user_dir if user_dir is not None else user_config_dir(environ)
    here = cwd if cwd is not None else await to_thread.run_sync(Path.cwd)
    loaded = await to_thread.run_sync(load, environ, folder, here)
    keys = KeyRing(environ, folder)
    path = store_path(loaded.settings)
    return (
        python_check(sys.version_info[:3], platform.python_implementation()),
        sqlite_check(sqlite.VERSION, sqlite.LIBRARY),
        *await to_thread.run_sync(store_checks, path),
        *configuration_checks(loaded, folder / USER_FILE, here / WORKSPACE_FILE),
        *await to_thread.run_sync(profile_checks, folder, here),
        *await agent_checks(folder, here, environ),
        *await to_thread.run_sync(hook_checks, loaded, folder, environ.get("PATH", os.defpath)),
        await to_thread.run_sync(keys_check, loaded, keys, environ),
        *await to_thread.run_sync(address_checks, loaded, environ),
        await _model_check(loaded, keys, environ, catalog),
        *await to_thread.run_sync(program_checks, environ.get("PATH", os.defpath)),
    )


def python_check(version: tuple[int, int, int], implementation: str) -> Check:
    """Whether this Python is new enough."""
    found = f"{implementation} {'.'.join(map(str, version))}"
    if version >= (3, 11, 0):
        return Check(name="Python", status="ok", found=found)
    return Check(name="Python", status="fail", found=found, advice="Install Python 3.11 or newer.")


def sqlite_check(version: str, library: str) -> Check:
    """Whether the SQLite library has the WAL-reset bug (DESIGN 3)."""
    found = f"{version}, from {library}"
    if not sqlite.has_wal_reset_bug(version):
        return Check(name="SQLite", status="ok", found=found)
    return Check(
        name="SQLite",
        status="warn",
        found=f"{found}, has the WAL-reset bug (fixed in 3.51.3, 3.50.7 and 3.44.6)",
        advice="Callboard's lock file keeps it from happening; do not open the store for writing with "
        "other programs. A newer library: pip install pysqlite3",
    )


# --- the store --------------------------------------------------------------------------------------


def store_checks(path: Path) -> tuple[Check, ...]:
    """Whether the store can lie at `path`: its file, its folder, the disk below."""
    existing = path.parent
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    return (
        _file_check(path, existing),
        *([_care_check(path)] if path.is_file() else []),
        _disk_check(path, existing),
    )


def _file_check(path: Path, existing: Path) -> Check:
    def check(status: Status, found: str, advice: str = "") -> Check:
        return Check(name="Store", status=status, found=f"{path}: {found}", advice=advice)

    elsewhere = "Choose another place with --store or CALLBOARD_STORE."
    try:
        filesystem.real(path)
    except CallboardError:
        return check("fail", "is a link to itself", elsewhere)
    try:
        if not path.exists():
            if existing.is_dir() and os.access(existing, os.W_OK | os.X_OK):
                return check("ok", "not there yet; it is made at the first start")
            return check("fail", f"{existing} cannot be written", elsewhere)
        if not path.is_file():
            return check("fail", "is not a file", elsewhere)
        if not os.access(path, os.R_OK | os.W_OK) or not os.access(path.parent, os.W_OK | os.X_OK):
            advice = f"Mend the permissions of the file and its folder. {elsewhere}"
            return check("fail", "cannot be written", advice)
        with path.open("rb") as file:
            start = file.read(len(_SQLITE_HEADER))
        if start and start != _SQLITE_HEADER:
            return check("fail", "is no SQLite database", f"Move it away. {elsewhere}")
        if _open_to_others(path):
            return check("warn", "other users can read it", f"Run: chmod 600 {path}")
        return check("ok", _size(path.stat().st_size) + _wal_size(path))
    except OSError as fault:
        return check("fail", f"cannot be looked at: {fault.strerror or fault}", elsewhere)


def _wal_size(path: Path) -> str:
    try:
        size = path.with_name(path.name + "-wal").stat().st_size
    except OSError:
        return ""
    return f", WAL {_size(size)}" if size else ""


def _care_check(path: Path) -> Check:
    """The last backup and the last check, as far as they are known of."""
    known = carebook.read(path)
    backup, looked = known.get("backup"), known.get("check")
    found = f"last backup {_local(backup['at'])}" if backup else "never backed up"
    if looked is None:
        return Check(name="Care", status="ok", found=f"{found}, never checked", advice=_CARE)
    problems = looked.get("problems", 0)
    found = f"{found}, last check {_local(looked['at'])}"
    if problems:
        advice = "Run: callboard store check"
        found = f"{found} found {problems} problems"
        return Check(name="Care", status="warn", found=found, advice=advice)
    return Check(name="Care", status="ok", found=f"{found} found nothing wrong")


def _local(at: str) -> str:
    try:
        return datetime.fromisoformat(at).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return at


_CARE: Final = (
    "`callboard store backup FILE` and `callboard store check` do it, also while it is in use."
)


def _open_to_others(path: Path) -> bool:
    return os.name == "posix" and bool(stat.S_IMODE(path.stat().st_mode) & 0o077)


def _disk_check(path: Path, existing: Path) -> Check:
    elsewhere = "Choose a local folder with --store or CALLBOARD_STORE."
    kind = filesystem.type_of(existing)
    if filesystem.is_network(kind):
        found = f"{existing} is on a network file system ({kind}), where SQLite cannot keep a store safe"
        return Check(name="Disk", status="fail", found=found, advice=elsewhere)
    try:
        free = shutil.disk_usage(existing).free
    except OSError as fault:
        found = f"{existing} cannot be looked at: {fault.strerror or fault}"
        return Check(name="Disk", status="warn", found=found)
    found = f"{_size(free)} free below {path.parent}" + (f" ({kind})" if kind else "")
    if free < LEAST_FREE_BYTES:
        return Check(name="Disk", status="fail", found=found, advice=f"Make room. {elsewhere}")
    if free < LITTLE_FREE_BYTES:
        return Check(name="Disk", status="warn", found=found, advice="Make room soon.")
    return Check(name="Disk", status="ok", found=found)


def _size(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


# --- configuration, keys, the model -----------------------------------------------------------------


def configuration_checks(loaded: Loaded, *files: Path) -> tuple[Check, ...]:
    """The files of which everything counts, and each thing in the configuration that does not."""
    there = [str(path) for path in files if path.is_file()]
    faulty = {warning.place for warning in loaded.warnings}
    whole = [path for path in there if path not in faulty]
    checks: list[Check] = []
    if whole:
        checks.append(Check(name="Configuration", status="ok", found=", ".join(whole)))
    elif not loaded.warnings:
        found = f"no file; {files[0]} would be read"
        checks.append(Check(name="Configuration", status="ok", found=found))
    checks += [
        Check(
            name="Configuration",
            status="warn",
            found=str(warning),
            advice="Nothing of it is used until it is mended."
            if warning.severity == "error"
            else "",
        )
        for warning in loaded.warnings
    ]
    return tuple(checks)


def profile_checks(user_dir: Path, cwd: Path) -> tuple[Check, ...]:
    """How many agents are defined, where, and each that cannot be used."""
    book = ProfileBook.load(user_dir, cwd)
    defined = [each for each in book.profiles.values() if each.source != "builtin"]
    folders = ProfileBook.sources(user_dir, cwd)
    counts = [
        f"{count} in {folder}"
        for folder in folders
        if (count := sum(_lies_in(each.path, folder) for each in defined if each.error is None))
    ]
    broken = [f"{each.path}: {each.error}" for each in defined if each.error is not None]
    checks: list[Check] = []
    if counts:
        checks.append(Check(name="Profiles", status="ok", found=", ".join(counts)))
    elif not broken and not book.warnings:
        found = f"only the built-in one; {folders[0]}/NAME.md would be one more"
        checks.append(Check(name="Profiles", status="ok", found=found))
    advice = "It is not used until it is mended."
    checks += [Check(name="Profiles", status="warn", found=f, advice=advice) for f in broken]
    checks += [Check(name="Profiles", status="warn", found=warning) for warning in book.warnings]
    return tuple(checks)


async def agent_checks(user_dir: Path, cwd: Path, environ: Mapping[str, str]) -> tuple[Check, ...]:
    """The agents that are programs of their own: each is started, asked what it is, and ended."""
    book = with_ready(ProfileBook.load(user_dir, cwd), environ.get("PATH", os.defpath))
    found = [p for p in book.profiles.values() if p.kind == "acp" and p.error is None]
    if not found:
        return ()
    from .acp.client.probe import probe_all

    redactor = Redactor((*secret_values(environ), *KeyRing(environ, user_dir).secrets()))
    probed = await probe_all(found, environ, redact=redactor.text)
    return tuple(_agent_check(each) for each in sorted(probed, key=lambda each: each.profile))


def _agent_check(probed: "AgentProbeResult") -> Check:
    from .acp.client.last_words import in_short

    name = f"Agent {probed.profile}"
    who = next((c.detail for c in probed.checks if c.name == "handshake" and c.ok), "says no name")
    if probed.ok:
        can = [each for each in _WORTH_TELLING if probed.capabilities.get(each)]
        return Check(name=name, status="ok", found=f"{who}, can {', '.join(can)}" if can else who)
    said = probed.checks[-1].detail
    advice = in_short(said)
    found = {"needsAuth": f"{who}, not logged in", "missing": "is not there"}
    return Check(
        name=name,
        status="warn",
        found=found.get(probed.status, "does not work"),
        advice=advice,
        more=said if said != advice else "",
    )


def hook_checks(loaded: Loaded, user_dir: Path, search_path: str) -> tuple[Check, ...]:
    """How many hooks there are of which kind, and each whose program is missing: it would decide nothing.
    Their commands are not shown, since they may hold keys."""
    from .hooks.state import SETTINGS

    counts: list[str] = []
    missing: list[Check] = []
    for key in SETTINGS.values():
        commands: tuple[HookCommand, ...] = getattr(loaded.settings.hooks, key)
        if commands:
            counts.append(f"{len(commands)} {key}")
        missing += [
            Check(
                name="Hooks",
                status="warn",
                found=f"hooks.{key} number {number}: its program is missing, or may not be run",
                advice=f"It decides nothing until it is mended. Relative paths begin at {user_dir}.",
            )
            for number, each in enumerate(commands, 1)
            if not _can_begin(each.command, user_dir, search_path)
        ]
    found = (Check(name="Hooks", status="ok", found=", ".join(counts)),) if counts else ()
    return (*found, *missing)


def _can_begin(command: str | tuple[str, ...], folder: Path, search_path: str) -> bool:
    """Whether the program can be run; of a line for the shell only a plain path at its beginning is
    looked at."""
    first = command.split(maxsplit=1)[0] if isinstance(command, str) else command[0]
    if _PLAIN_PATH.fullmatch(first):
        return os.access(folder / first, os.X_OK)
    return isinstance(command, str) or shutil.which(first, path=search_path) is not None


def _lies_in(path: str | None, folder: Path) -> bool:
    return path is not None and Path(path).parent == folder


def address_checks(loaded: Loaded, environ: Mapping[str, str]) -> tuple[Check, ...]:
    """Where the models of the providers are whose address the environment changes. What may be an
    address holds no secrets (`models.providers`)."""
    from .models.builtin import all_providers

    checks: list[Check] = []
    for provider in all_providers(loaded.settings.providers, environ).values():
        variable = f"{provider.name.upper()}_BASE_URL"
        if variable not in ADDRESSES or not environ.get(variable, "").strip():
            continue
        if provider.problem is not None:
            checks.append(Check(name="Address", status="warn", found=provider.problem))
            continue
        found = f"{provider.name} is at {provider.base_url}, by {variable}"
        checks.append(Check(name="Address", status="ok", found=found))
    return tuple(checks)


def keys_check(loaded: Loaded, keys: KeyRing, environ: Mapping[str, str]) -> Check:
    """For which providers there is a key, and where: never the key."""
    from .models.builtin import all_providers

    found: list[str] = []
    for provider in all_providers(loaded.settings.providers, environ).values():
        try:
            key = keys.find(provider.name, provider.key_env)
        except CallboardError as fault:
            return Check(name="Keys", status="warn", found=fault.message)
        if key is not None:
            found.append(f"{provider.name} ({key.source})")
    if found:
        return Check(name="Keys", status="ok", found=", ".join(found))
    return Check(
        name="Keys",
        status="ok",
        found="none",
        advice="For a hosted model run: callboard login. Or set OPENAI_API_KEY or ANTHROPIC_API_KEY, or write "
        f"{keys.path}.",
    )


async def _model_check(
    loaded: Loaded, keys: KeyRing, environ: Mapping[str, str], catalog: Catalog | None
) -> Check:
    from .models.catalog import DEMO_ID

    try:
        if catalog is not None:
            chosen = await catalog.selected()
        else:
            async with _catalog(loaded, keys, environ) as made:
                chosen = await made.selected()
                await made.resolve(chosen.model_id)
    except CallboardError as fault:
        advice = "Set CALLBOARD_MODEL=provider/model, or model in config.toml."
        return Check(name="Model", status="fail", found=fault.message, advice=advice)
    found = f"{chosen.model_id}: {chosen.source}"
    if chosen.model_id == DEMO_ID:
        advice = (
            "This is a demonstration with fixed answers. Store a key with callboard login, set one, or start "
            "Ollama, llama.cpp or LM Studio."
        )
        return Check(name="Model", status="warn", found=found, advice=advice)
    return Check(name="Model", status="ok", found=found)


@asynccontextmanager
async def _catalog(
    loaded: Loaded, keys: KeyRing, environ: Mapping[str, str]
) -> AsyncGenerator["ModelCatalog"]:
    from .log.redact import Redactor
    from .models.catalog import ModelCatalog, ModelSettings
    from .models.http import HttpClient

    settings = loaded.settings

    def redact(text: str) -> str:  # by what is known then: a key may be found after this client
        return Redactor(keys.secrets()).text(text)

    http = HttpClient(redact=redact)
    try:
        wanted = ModelSettings(model=settings.model, providers=settings.providers)
        yield ModelCatalog(wanted, keys, http, environ)
    finally:
        await http.aclose()


# --- programs ---------------------------------------------------------------------------------------


def program_checks(search_path: str) -> tuple[Check, ...]:
    """The programs that Callboard uses where they are there, and the editors on the path."""

    def which(name: str) -> str | None:
        return shutil.which(name, path=search_path)

    editors = [f"{title} ({where})" for name, title in EDITORS.items() if (where := which(name))]
    return (
        _program("ripgrep", which("rg"), "Searching works without it, and is faster with it."),
        _program("git", which("git"), "Agents use it to see and to undo what was changed."),
        _program("shell", which("bash") or which("sh"), "Commands cannot run without a shell."),
        Check(
            name="Editors",
            status="ok",
            found=", ".join(editors) or "none found; `callboard run` works in a terminal",
        ),
    )


def _program(name: str, where: str | None, why: str) -> Check:
    if where is not None:
        return Check(name=name, status="ok", found=where)
    return Check(name=name, status="warn", found="not found", advice=f"Install it. {why}")
