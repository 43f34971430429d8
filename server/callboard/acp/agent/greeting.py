"""The answer to ``initialize``: what this agent can do. Light: it is given before anything else is imported."""

import os
import sys
from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from ...rpc.framing import Framing

if TYPE_CHECKING:
    from ...config import Settings
    from ...log.store import Store
    from ...rpc.serve import Opening

VERSION: Final = 1
"""The only version of the protocol that is spoken: who asks for another one is told of this one."""

AUTH_METHOD: Final = "callboard"
LOGIN_METHOD: Final = "callboard-login"
_CONFIG_DIR: Final = "CALLBOARD_CONFIG_DIR"

EXTENSIONS: Final = ("agent", "approval", "group")
"""Families of Callboard's own methods that can be called as ``_callboard/…``."""

STEERING: Final = "_session/steering"


class Greeter:
    """Answers an ``initialize`` that is plainly valid; everything else is left to the full server."""

    def __init__(self, opening: "Opening") -> None:
        self._opening = opening

    def __call__(self, body: bytes, _: Framing) -> tuple[dict[str, Any], bytes] | None:
        message = orjson.loads(body)
        if not _is_plain(message):
            return None
        params: dict[str, Any] = message["params"]
        result = self.result(params)
        return params, orjson.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def result(self, params: dict[str, Any]) -> dict[str, Any]:
        """Opens the store, and tells what is there. Raises the store's own errors."""

        def answer(store: "Store", host_id: str, _: "Settings") -> dict[str, Any]:
            return _result(store.store_id, host_id, _login(params))

        return self._opening.open(config_of(params), answer)


def config_of(params: dict[str, Any]) -> dict[str, Any] | None:
    """The configuration that came with ``initialize``, in ``_meta.callboard.config``."""
    found = _at(params, "_meta", "callboard", "config")
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def _login(params: dict[str, Any]) -> list[dict[str, Any]]:
    """The way to log in for clients that can run this program in a terminal. They start it as they have it
    configured, with the arguments added; older ones are told a command."""
    if _at(params, "clientCapabilities", "auth", "terminal") is not True:
        return []
    method: dict[str, Any] = {
        "id": LOGIN_METHOD,
        "name": "Log in with an API key",
        "description": "Asks for the key of a provider in a terminal, and stores it for you alone.",
        "type": "terminal",
        "args": ["login"],
    }
    if _at(params, "clientCapabilities", "_meta", "terminal-auth") is True:
        folder = os.environ.get(_CONFIG_DIR)
        method["_meta"] = {
            "terminal-auth": {
                "label": "callboard login",
                "command": sys.executable,
                # without -P a folder's own files could be taken for modules
                "args": ["-P", "-m", "callboard", "login"],
                "env": {_CONFIG_DIR: folder} if folder else {},
            }
        }
    return [method]


def _at(params: dict[str, Any], *names: str) -> Any:
    """What lies below `params` by those names; None where there is nothing."""
    found: Any = params
    for name in names:
        found = cast("dict[str, Any]", found).get(name) if isinstance(found, dict) else None
    return found


def _result(store_id: str, host_id: str, login: list[dict[str, Any]]) -> dict[str, Any]:
    from ...rpc.greeting import NAME, version

    return {
        "protocolVersion": VERSION,
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
            "mcpCapabilities": {"http": False, "sse": False},
            "sessionCapabilities": {
                "list": {},
                "resume": {},
                "close": {},
                "delete": {},
                "additionalDirectories": {},
            },
            "auth": {"logout": {}},
            "_meta": {
                "steering": {"supported": True, "method": STEERING},
                "callboard": {
                    "storeId": store_id,
                    "hostId": host_id,
                    "extensions": [f"_callboard/{family}/*" for family in EXTENSIONS],
                },
            },
        },
        "authMethods": [
            {
                "id": AUTH_METHOD,
                "name": "Callboard's own configuration",
                "description": "Uses the model and the key that Callboard is configured with, or that "
                "`callboard login` has stored.",
            },
            *login,
        ],
        "agentInfo": {"name": NAME, "title": "Callboard", "version": version()},
        "_meta": {"steering": {"supported": True}},
    }


def _is_plain(message: Any) -> bool:
    if type(message) is not dict:
        return False
    fields = cast("dict[str, Any]", message)
    params: Any = fields.get("params")
    if (
        fields.get("jsonrpc") != "2.0"
        or fields.get("method") != "initialize"
        or type(fields.get("id")) not in (int, str)
        or type(params) is not dict
    ):
        return False
    given = cast("dict[str, Any]", params)
    version: Any = given.get("protocolVersion")
    return type(version) is int and 0 <= version < 2**16 and _is_declared(given)


def _is_declared(params: dict[str, Any]) -> bool:
    """Whether what the client says of itself has the shapes that are looked at first; the rest is looked at
    when the contract is there."""
    capabilities: Any = params.get("clientCapabilities")
    info: Any = params.get("clientInfo")
    return (capabilities is None or type(capabilities) is dict) and (
        info is None
        or (
            type(info) is dict
            and all(type(cast("Any", info).get(key)) is str for key in ("name", "version"))
        )
    )
