"""The server behind ``callboard serve --acp``, once ``initialize`` is answered: a host, and its one editor."""

import logging
import os
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from callboard_rpc.errors import CallboardError

from ...host import Environment, Host
from ...log.ids import IdSource
from ...log.redact import Redactor
from ...rpc import loop
from ...rpc.boot import Boot
from ...rpc.conversing import Means, WireLimits, converse
from ...rpc.fault import Faults
from ...rpc.hosting import Again, log_to_stderr, opened_host, tell, warm
from ...rpc.lifecycle import EndReason
from ...rpc.offers import Offers
from ...rpc.wire import Wire
from ...tools.environment import secret_values
from .conversation import EditorConversation, refusing
from .editor import Editor, actor_of
from .faults import fault_of
from .greeting import Greeter, config_of
from .handlers import served
from .permissions import Permissions

if TYPE_CHECKING:
    from ...rpc.serve import Opening

_log = logging.getLogger(__name__)


def run(wire: Wire, boot: Boot, opening: "Opening", greeter: Greeter) -> int:
    """Runs the event loop until the client is gone; returns the exit code."""
    log_to_stderr()
    return loop.run(_main(wire, boot, opening, greeter))


async def _main(wire: Wire, boot: Boot, opening: "Opening", greeter: Greeter) -> int:
    async with AsyncExitStack() as stack:
        reception = _Reception(stack, boot, opening, greeter)
        return await converse(
            wire,
            boot,
            make=reception.make,
            serve=reception.serve,
            on_end=reception.ended,
            on_close=reception.closed,
            last_resort=os._exit,
        )


class _Reception:
    """Brings the editor and the host together; the host is opened by that client's configuration."""

    def __init__(
        self, stack: AsyncExitStack, boot: Boot, opening: "Opening", greeter: Greeter
    ) -> None:
        self._stack = stack
        self._boot = boot
        self._opening = opening
        self._greeter = greeter
        self._redactor = Redactor(secret_values(os.environ))
        self._ids = IdSource()
        self._fault = fault_of(Faults(self._redacted), lambda: self._ids.new("req"))
        self._host: Host | None = None
        self._editor: Editor | None = None
        self._offers: Offers | None = None
        self._take_limit()

    def _redacted(self, text: str) -> str:
        return self._redactor.text(text)

    def _take_limit(self) -> None:
        if self._opening.frame_limit is not None:
            self._boot.frames.limit = self._opening.frame_limit

    def make(self, means: Means) -> EditorConversation:
        return EditorConversation(
            means,
            greet=self._greet,
            fault=self._fault,
            frames=self._boot.frames,
            max_in_flight=WireLimits().max_in_flight,
        )

    def _greet(self, params: dict[str, Any]) -> dict[str, Any]:
        """Raises the store's own errors; the person sees them too, if the editor shows them."""
        try:
            answer = self._greeter.result(params)
        except CallboardError as error:
            tell(error)
            raise
        self._take_limit()
        return answer

    async def serve(self, conversation: EditorConversation) -> int | None:
        """Opens the host. Where that fails, whatever the client asks is answered by the reason, and tried
        again for a reason that may pass."""
        try:
            environment = Environment.of_process(config_of(conversation.params))
            host = await self._stack.enter_async_context(opened_host(environment, self._opening))
        except CallboardError as error:
            tell(error)
            again = Again(error, partial(self.serve, conversation))
            conversation.serve(refusing(lambda _, error=error: error, self._fault, again))
            return None
        except Exception:
            _log.exception("the host could not be started")
            broken = CallboardError("internal", "the server could not start; its log says why")
            conversation.serve(refusing(lambda _: broken, self._fault))
            return None
        self._host = host
        self._redactor = host.redactor
        actor = actor_of(conversation, f"client_{self._ids.new('req')}")
        editor = self._editor = Editor(host, conversation, actor)
        self._offers = Offers(
            host, covers=editor.covers, ask=Permissions(host, editor).ask, actor=actor
        )
        editor.start()
        self._offers.start()
        host.spawn(lambda: warm(host), "warm-up")
        conversation.serve(served(host, editor, self._offers, self._fault))
        return None

    def closed(self, _: EditorConversation, reason: str) -> None:
        editor, offers, host = self._editor, self._offers, self._host
        if editor is None or offers is None or host is None:
            return

        editor.halt()

        async def leave() -> None:
            await offers.close()
            await editor.leave()

        self._editor = None
        host.spawn(leave, f"clean-up of a client ({reason})")

    async def ended(self, reason: EndReason) -> None:
        if self._host is not None:
            await self._host.stop(f"the client is gone ({reason})")
