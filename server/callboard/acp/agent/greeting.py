"""The answer to ``initialize``: what this agent can do. Light: it is given before anything else is imported."""

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
            return _result(store.store_id, host_id)

        return self._opening.open(config_of(params), answer)


def config_of(params: dict[str, Any]) -> dict[str, Any] | None:
    """The configuration that came with ``initialize``, in ``_meta.callboard.config``."""
    found: Any = params
    for name in ("_meta", "callboard", "config"):
        found = cast("dict[str, Any]", found).get(name) if isinstance(found, dict) else None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def _result(store_id: str, host_id: str) -> dict[str, Any]:
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
                "description": "Uses the model and the key that Callboard is configured with; "
                "there is nothing to log in to.",
            }
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
