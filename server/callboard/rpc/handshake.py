"""The answer to ``initialize``: checked and built the same way on the fast path and on the full one.

Light: `boot` imports it before anything else of the server.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from callboard_rpc.version import SUPPORTED_VERSIONS

from .framing import Framing

Handshake: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""``handshake(params) -> HandshakeResult`` in wire form; cheap, since it is called before the server
is imported. `params` are those of ``initialize`` as they came."""

INCREMENTAL: Final = 2

LSP_CAPABILITIES: Final[dict[str, Any]] = {
    "positionEncoding": "utf-16",
    "textDocumentSync": {
        "openClose": True,
        "change": INCREMENTAL,
        "save": {"includeText": False},
    },
    "workspace": {"workspaceFolders": {"supported": True, "changeNotifications": True}},
}
"""What an LSP client is told beyond Callboard's own part."""


def options_of(params: dict[str, Any]) -> Any:
    """Callboard's part of the params: ``callboard``, or ``initializationOptions.callboard``."""
    own = params.get("callboard")
    if own is not None:
        return own
    options = params.get("initializationOptions")
    return options.get("callboard") if isinstance(options, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def choose_version(offered: Any) -> str | None:
    """The newest protocol version that both sides speak."""
    return next((version for version in SUPPORTED_VERSIONS if version in offered), None)


def build_answer(framing: Framing, version: str, handshake: dict[str, Any]) -> dict[str, Any]:
    """The result of ``initialize``. In ndjson framing only Callboard's own part."""
    own = {**handshake, "protocolVersion": version}
    capabilities = LSP_CAPABILITIES if framing == "lsp" else {}
    return {
        "capabilities": {**capabilities, "experimental": {"callboard": own}},
        "serverInfo": handshake["serverInfo"],
    }
