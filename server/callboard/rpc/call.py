"""What a handler gets and gives: a `Call` and typed params in, a result out."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from anyio import CancelScope
from attrs import define, field, frozen

from callboard_rpc.common import Json
from callboard_rpc.server import ClientCapabilities, PeerInfo

from .framing import Framing

if TYPE_CHECKING:
    from .connection import Connection


@frozen(kw_only=True)
class Client:
    """Who is at the other end, as it said in ``initialize``.

    `client_id` is stable over reconnects when the client gave one; otherwise it is made for this
    connection. `raw` holds all of ``params`` as they came.
    """

    client_id: str
    framing: Framing
    info: PeerInfo | None
    capabilities: ClientCapabilities
    experimental: bool
    config: Json
    process_id: int | None
    root_uri: str | None
    raw: Json


def _no_callbacks() -> list[Callable[[], None]]:
    return []


@define(kw_only=True, eq=False)
class Call:
    """One request, or one notification (`request_id` is ``None`` then).

    `cancelled` is the scope that ``$/cancelRequest`` cancels. It ends this call only: durable work
    belongs to the host's tasks, never into a handler. `correlation_id` is in the answer's error and
    in the log.
    """

    method: str
    client: Client
    connection: "Connection"
    request_id: int | str | None
    correlation_id: str
    cancelled: CancelScope
    idempotency_key: str | None = None
    callbacks: list[Callable[[], None]] = field(factory=_no_callbacks)
    endings: list[Callable[[], None]] = field(factory=_no_callbacks)
    ended: bool = False

    @property
    def client_id(self) -> str:
        return self.client.client_id

    @property
    def capabilities(self) -> ClientCapabilities:
        return self.client.capabilities

    def after_reply(self, callback: Callable[[], None]) -> None:
        """Runs `callback` on the loop once the result is queued, and not at all after an error.

        So a client knows an id before the first event that names it (PROTOCOL 3).
        """
        self.callbacks.append(callback)

    def after_end(self, callback: Callable[[], None]) -> None:
        """Runs `callback` on the loop once the answer is queued, whatever answer it is; at once when
        it is already. For what must be given back."""
        if self.ended:
            callback()
        else:
            self.endings.append(callback)

    def over(self) -> list[Callable[[], None]]:
        """Marks the call as answered; what is to run then, besides what an answer brings."""
        self.ended = True
        endings, self.endings = self.endings, []
        return endings


Handler: TypeAlias = Callable[[Call, Any], Awaitable[Any]]
"""``async (call, params) -> result``: params and result are of the classes in `METHODS`."""


@frozen
class Heed:
    """A handler of a notification that waits for nothing: it runs where the message is read, without
    a task of its own."""

    run: Callable[[Call, Any], None]


Handlers: TypeAlias = Mapping[str, Handler | Heed]


@frozen(kw_only=True)
class KeyedRequest:
    """A mutating request that carries an ``idempotencyKey``. `params` are as they came, without it.

    Calls of one client start in the order in which they arrived. Whoever lets this request wait for
    another one calls `pass_turn` before, so that those behind it can go on.
    """

    client_id: str
    method: str
    key: str
    params: Json
    pass_turn: Callable[[], None]


class IdempotencyHook(Protocol):
    """Remembers the answers of keyed requests (PROTOCOL 2)."""

    async def run(self, request: KeyedRequest, start: Callable[[], Awaitable[bytes]]) -> bytes:
        """The stored answer (the JSON text of the result) of the same request, or that of `start`,
        which runs the handler. Raises ``idempotencyConflict`` when the key was used with other params,
        and whatever `start` raises, which is not stored."""
        ...


@frozen(kw_only=True)
class Served:
    """What a client can ask for: handlers by method name, ``shutdown`` perhaps among them, which runs
    before its answer. `replay` answers keyed requests a second time; ``None`` runs them again."""

    handlers: Handlers
    replay: IdempotencyHook | None = None


def _ignore(*_: Any) -> None:
    return None


@frozen(kw_only=True)
class LspHooks:
    """What the host wants to hear of LSP's own messages. Called on the loop; must not block.

    `on_configuration` gets the settings as they came, `on_workspace_folders` the URIs that are open
    now, `on_progress_cancel` the token, `on_saved` the document's URI.
    """

    on_configuration: Callable[[Any], None] = _ignore
    on_workspace_folders: Callable[[tuple[str, ...]], None] = _ignore
    on_progress_cancel: Callable[[int | str], None] = _ignore
    on_saved: Callable[[str], None] = _ignore
