"""The LSP side of a connection, before it is needed: queues LSP's messages and loads `lsp` once.

Messages that come while it loads are kept in order; whoever asks for a document waits for them.
"""

import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import anyio
import anyio.to_thread

from callboard_rpc.common import Json

from .call import LspHooks

if TYPE_CHECKING:
    from .lsp import AppliedEdit, TypedLsp

logger = logging.getLogger("callboard.rpc")

LogLevel: TypeAlias = Literal["error", "warning", "info", "log", "debug"]

LSP_NOTIFICATIONS = frozenset(
    {
        "textDocument/didOpen",
        "textDocument/didChange",
        "textDocument/didSave",
        "textDocument/didClose",
        "workspace/didChangeConfiguration",
        "workspace/didChangeWorkspaceFolders",
        "window/workDoneProgress/cancel",
        "$/setTrace",
    }
)
"""LSP's notifications that a client may send and that mean something here."""


class Sender(Protocol):
    """What the face needs of its connection."""

    def send(self, body: bytes) -> None: ...
    def notify(self, method: str, params: Any = None) -> None: ...
    async def request(self, method: str, params: Any = None, *, timeout: float | None) -> Any: ...
    def spawn(self, run: Callable[[], Coroutine[Any, Any, None]]) -> None: ...


class LspFace:
    """LSP's messages of one connection in LSP framing.

    Args:
        params: those of ``initialize``, as they came.
    """

    def __init__(self, sender: Sender, params: Json, *, version: str, hooks: LspHooks) -> None:
        self._sender = sender
        self._params = params
        self._version = version
        self._hooks = hooks
        self._waiting: list[tuple[str, Any]] = []
        self._typed: TypedLsp | None = None
        self._loading = anyio.Lock()

    @property
    def loaded(self) -> bool:
        """Whether pygls has been imported for this connection."""
        return self._typed is not None

    def notification(self, method: str, params: Any) -> bool:
        """Takes a notification if it is one of LSP's; it is acted upon now, or once `lsp` is loaded."""
        if method not in LSP_NOTIFICATIONS:
            return False
        if self._typed is not None:
            _act(self._typed, method, params)
            return True
        self._waiting.append((method, params))
        if len(self._waiting) == 1:
            self._sender.spawn(self._load_first)
        return True

    async def open_document_text(self, uri: str) -> tuple[str, int | None] | None:
        """Text and version of a document that is open in the editor, unsaved changes included.

        ``None`` when it is not open. Everything that arrived before this call is taken into account.
        """
        if self._typed is None and not self._waiting:
            return None
        return (await self._load()).open_document_text(uri)

    async def log_message(self, level: LogLevel, text: str) -> None:
        """Writes a line into the editor's output window (``window/logMessage``)."""
        self._sender.notify("window/logMessage", (await self._load()).log_params(level, text))

    async def apply_edit(self, edit: Json, *, label: str, timeout: float | None) -> "AppliedEdit":
        """Asks the editor to apply a ``WorkspaceEdit`` (``workspace/applyEdit``).

        `timeout` in seconds. Raises what `Connection.request` raises, and `ValueError` or `TypeError`
        when `edit` is none.
        """
        typed = await self._load()
        params = typed.edit_params(label, edit)
        result = await self._sender.request("workspace/applyEdit", params, timeout=timeout)
        return typed.edit_result(result)

    async def _load_first(self) -> None:
        try:
            await self._load()
        except Exception:
            logger.exception("the LSP layer could not be loaded; documents are read from disk")
            self._waiting.clear()

    async def _load(self) -> "TypedLsp":
        async with self._loading:
            typed = self._typed
            if typed is None:
                module = await anyio.to_thread.run_sync(_import)
                typed = module.TypedLsp(
                    self._params, version=self._version, hooks=self._hooks, send=self._sender.send
                )
                waiting, self._waiting = self._waiting, []
                for method, params in waiting:
                    _act(typed, method, params)
                self._typed = typed
            return typed


def _import() -> Any:
    from . import lsp

    return lsp


def _act(typed: "TypedLsp", method: str, params: Any) -> None:
    try:
        typed.notification(method, params)
    except Exception as fault:
        logger.warning("%s does not fit its type: %s", method, type(fault).__name__)
