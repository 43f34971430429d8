"""What this server says of itself. Imported by the fast start, so it loads nothing heavy."""

from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from typing import Any, Final

from ..config.settings import FEATURES

NAME: Final = "callboard"

_PARTS = {"sessions": True, "approvals": True, "agents": True, "groups": True, "rooms": True,
          "schedules": True, "acp": True}  # fmt: skip


def version() -> str:
    """The version of the installed package."""
    try:
        return version_of(NAME)
    except PackageNotFoundError:
        return "0"


def features(switched_on: Iterable[str]) -> dict[str, bool]:
    """What is there, and which experimental parts the configuration has switched on."""
    on = set(switched_on)
    return {**_PARTS, **{name: name in on for name in FEATURES}}


def greeting(
    *, store_id: str, host_id: str, head: str, switched_on: Iterable[str], limits: dict[str, int]
) -> dict[str, Any]:
    """``capabilities.experimental.callboard``, but for the protocol version that is agreed upon."""
    return {
        "storeId": store_id,
        "hostId": host_id,
        "serverInfo": {"name": NAME, "version": version()},
        "features": features(switched_on),
        "limits": limits,
        "head": head,
    }
