"""Every command talks to a server that it starts, through the client: one way for all."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

from attrs import frozen
from cyclopts import Parameter

from callboard_client import Client, ClientOptions
from callboard_rpc.server import ClientCapabilities


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


@asynccontextmanager
async def connect(
    option: StoreOption | None,
    *,
    name: str,
    capabilities: ClientCapabilities | None = None,
    restart: bool = False,
) -> AsyncGenerator[Client, None]:
    """A server and a client of it. `name` is the command's, for the log."""
    options = ClientOptions(
        env=server_environment(option),
        name=f"callboard {name}",
        version=version("callboard"),
        capabilities=capabilities or ClientCapabilities(deltas=False),
        restart=restart,
    )
    async with Client.start(options=options) as client:
        yield client
