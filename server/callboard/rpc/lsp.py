"""LSP's own messages, typed: pygls' workspace and registry of features, lsprotocol's classes.

Importing this module takes half a second. Only `face` imports it, in a thread, once an LSP message
needs it; nothing else in the house imports pygls or lsprotocol. pygls neither reads nor writes here:
it is given messages that our own reader decoded, and what it wants to send goes through our queue.
"""

import logging
from collections.abc import Callable
from typing import Any, NamedTuple, cast
from urllib.parse import unquote

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, default_converter

from callboard_rpc.common import Json

from .call import LspHooks

logger = logging.getLogger("callboard.rpc")


class AppliedEdit(NamedTuple):
    """What the client said to ``workspace/applyEdit``."""

    applied: bool
    failure_reason: str | None


class _Outlet:
    """Where pygls writes: whole messages, which go to the connection's queue."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self.send: Callable[[bytes], None] | None = None
        self._send = send

    def open(self) -> None:
        self.send = self._send

    def write(self, data: bytes) -> None:
        if self.send is not None:
            self.send(data)

    def close(self) -> None:
        self.send = None


class _Server(LanguageServer):
    """pygls' server without its transport; errors go to the log, not onto the person's screen."""

    def report_server_error(self, error: Exception, source: Any) -> None:
        logger.warning("an LSP message could not be used: %s", type(error).__name__)


class TypedLsp:
    """One client's open documents, folders and settings.

    Args:
        params: those of ``initialize``, as they came.
        send: queues the body of a message that pygls made.
    """

    def __init__(
        self, params: Json, *, version: str, hooks: LspHooks, send: Callable[[bytes], None]
    ) -> None:
        self._converter = default_converter()
        self._outlet = _Outlet(send)
        self.server = _Server(
            "callboard",
            version,
            text_document_sync_kind=types.TextDocumentSyncKind.Incremental,
            protocol_cls=LanguageServerProtocol,
            converter_factory=default_converter,
        )
        protocol = self.server.protocol
        protocol.set_writer(self._outlet, include_headers=False)
        protocol.handle_message(
            cast("Any", _opening(params, self._converter))
        )  # its answer goes nowhere
        self._outlet.open()
        self._register(hooks)

    def _register(self, hooks: LspHooks) -> None:
        def configuration(given: types.DidChangeConfigurationParams) -> None:
            hooks.on_configuration(self._converter.unstructure(given.settings))

        def folders(_given: types.DidChangeWorkspaceFoldersParams) -> None:
            hooks.on_workspace_folders(tuple(self.server.workspace.folders))

        def cancelled(given: types.WorkDoneProgressCancelParams) -> None:
            hooks.on_progress_cancel(given.token)

        def saved(given: types.DidSaveTextDocumentParams) -> None:
            hooks.on_saved(given.text_document.uri)

        self.server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)(configuration)
        self.server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)(folders)
        self.server.feature(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)(cancelled)
        self.server.feature(types.TEXT_DOCUMENT_DID_SAVE)(saved)

    def notification(self, method: str, params: Any) -> None:
        """Acts on one of LSP's notifications. One that does not fit its type is logged and dropped."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        typed: Any = self.server.protocol.structure_message(message)
        if isinstance(typed, types.DidChangeTextDocumentNotification):
            uri = typed.params.text_document.uri
            if uri not in self.server.workspace.text_documents:
                logger.warning("a change of a document that is not open was dropped")
                return
        self.server.protocol.handle_message(cast("Any", typed))

    def open_document_text(self, uri: str) -> tuple[str, int | None] | None:
        """The text and version of an open document, saved or not; ``None`` when it is not open."""
        documents = self.server.workspace.text_documents
        document = documents.get(uri)
        if document is None:
            wanted = _same(uri)
            document = next((d for u, d in documents.items() if _same(u) == wanted), None)
        return None if document is None else (document.source, document.version)

    def log_params(self, level: str, text: str) -> Any:
        """Params of ``window/logMessage``; `level` is error, warning, info, log or debug."""
        kind = types.MessageType[level.capitalize()]
        return self._converter.unstructure(types.LogMessageParams(type=kind, message=text))

    def edit_params(self, label: str, edit: Json) -> Any:
        """Params of ``workspace/applyEdit``. Raises when `edit` is no ``WorkspaceEdit``."""
        typed = self._converter.structure(edit, types.WorkspaceEdit)
        return self._converter.unstructure(types.ApplyWorkspaceEditParams(edit=typed, label=label))

    def edit_result(self, result: Any) -> AppliedEdit:
        typed = self._converter.structure(result, types.ApplyWorkspaceEditResult)
        return AppliedEdit(typed.applied, typed.failure_reason)


def _opening(params: Json, converter: Any) -> types.InitializeRequest:
    """``initialize`` as pygls needs it for its workspace: our positions are UTF-16, whatever else the
    client offers, so its capabilities are left out."""
    folders: list[types.WorkspaceFolder] = []
    for folder in cast("list[Any]", params.get("workspaceFolders") or []):
        try:
            folders.append(converter.structure(folder, types.WorkspaceFolder))
        except Exception:
            logger.warning("a workspace folder of initialize has no uri and name; it is left out")
    root = params.get("rootUri")
    return types.InitializeRequest(
        id="opening",
        params=types.InitializeParams(
            capabilities=types.ClientCapabilities(),
            root_uri=root if isinstance(root, str) else None,
            workspace_folders=folders,
        ),
    )


def _same(uri: str) -> str:
    """One spelling for the ways in which editors write one URI: ``file:///D%3A/x``, ``file:///d:/x``."""
    plain = unquote(uri)
    head, colon, rest = plain.partition(":///")
    if colon and rest[1:2] == ":":
        return f"{head}{colon}{rest[0].lower()}{rest[1:]}"
    return plain
