"""Every command talks to a server that it starts, through the client: one way for all."""

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio.to_thread
from attrs import frozen
from cyclopts import Parameter

from callboard_client import Client, ClientOptions
from callboard_rpc.common import Json
from callboard_rpc.server import ClientCapabilities

from .exits import CommandError, Exit

if TYPE_CHECKING:
    from callboard.config import Settings


@Parameter(name="*")
@frozen(kw_only=True)
class StoreOption:
    store: Annotated[Path | None, Parameter(name="--store")] = None
    """The store to use, instead of $CALLBOARD_STORE or the default one."""


def server_environment(option: StoreOption | None) -> dict[str, str]:
    """This process's environment, with the chosen store."""
    environment = dict(os.environ)
    if option is not None and option.store is not None:
        environment["CALLBOARD_STORE"] = os.path.abspath(option.store)  # noqa: PTH100 (no symlinks resolved)
    return environment


def chosen_store(option: StoreOption | None) -> Path:
    """Where the store lies that a command is about."""
    return _store_path(server_environment(option))


@asynccontextmanager
async def connect(
    option: StoreOption | None,
    *,
    name: str,
    capabilities: ClientCapabilities | None = None,
    restart: bool = False,
    config: Json | None = None,
) -> AsyncGenerator[Client, None]:
    """A server and a client of it. `name` is the command's, for the log; `config` goes before what the
    person has configured.

    The server goes when the command ends, so it begins nothing that waits for one that stays.
    """
    options = ClientOptions(
        env=server_environment(option),
        name=f"callboard {name}",
        version=version("callboard"),
        capabilities=capabilities or ClientCapabilities(deltas=False),
        restart=restart,
        config={**(config or {}), "store": {"waiting": "leave"}},
    )
    async with Client.start(options=options) as client:
        yield client


@asynccontextmanager
async def connect_existing(
    option: StoreOption | None,
    *,
    name: str,
    capabilities: ClientCapabilities | None = None,
    restart: bool = False,
) -> AsyncGenerator[Client, None]:
    """`connect` for a command that looks at what there is: a store that is not there is an error,
    and is not made."""
    path = await anyio.to_thread.run_sync(_store_path, server_environment(option))
    if not await anyio.to_thread.run_sync(_is_there, path):
        raise CommandError(
            f"there is no store at {path}",
            exit=Exit.USAGE,
            hint="`callboard run` makes it at its first start; --store or CALLBOARD_STORE names another.",
        )
    async with connect(option, name=name, capabilities=capabilities, restart=restart) as client:
        yield client


def _store_path(environment: Mapping[str, str]) -> Path:
    """Where the server that is started with `environment` has its store."""
    from callboard.config import store_path

    return store_path(settings_of(environment))


def settings_of(environment: Mapping[str, str]) -> "Settings":
    """What the person has configured, by file and by variable."""
    from callboard.config import load, user_config_dir

    return load(environment, user_config_dir(environment)).settings


def _is_there(path: Path) -> bool:
    """Whether there is something at `path`. What cannot be looked at is for the server to tell."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True
