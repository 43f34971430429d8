"""The methods that an editor can call, by name."""

from collections.abc import Callable
from typing import Any

from callboard_rpc.errors import CallboardError

from ...host import Host
from ...models.catalog import DEMO_ID
from ...rpc.handlers.rooms import rooms_of
from ...rpc.offers import Offers
from ...rpc.pages import invalid
from ..contract import server as acp
from ..contract import sessions as acp_sessions
from ..peer import Handler, Incoming, Served
from . import options
from .editor import Editor
from .extensions import extensions
from .greeting import AUTH_METHOD, LOGIN_METHOD, STEERING
from .opening import Sessions
from .prompting import Prompting


def served(
    host: Host,
    editor: Editor,
    offers: Offers,
    fault: Callable[[BaseException, str], dict[str, Any]],
) -> Served:
    """Everything that this client can call."""
    sessions = Sessions(host, editor, offers)
    prompting = Prompting(host, editor, rooms_of(host), offers)
    handlers: dict[str, Handler] = {
        "initialize": _again,
        **_authentication(host, editor),
        **_settings(host, editor),
        "session/new": sessions.new,
        "session/load": sessions.load,
        "session/resume": sessions.resume,
        "session/list": sessions.list,
        "session/close": sessions.close,
        "session/delete": sessions.delete,
        "session/prompt": prompting.prompt,
        STEERING: prompting.steer,
        **extensions(host, editor),
    }
    return Served(handlers=handlers, heeds={"session/cancel": prompting.cancel}, fault=fault)


async def _again(_: Incoming, __: Any) -> Any:
    raise CallboardError("invalidRequest", "initialize was answered already; it comes once")


def _authentication(host: Host, editor: Editor) -> dict[str, Handler]:
    async def authenticate(_: Incoming, params: acp.AuthenticateRequest) -> Any:
        """Instant where a model can be used. Raises authRequired with what is missing where none can. A client
        need not name the login in a terminal once that is over; one that does wants a model to be there for it."""
        if params.method_id not in (AUTH_METHOD, LOGIN_METHOD):
            raise invalid("$.methodId", f"is no way to authenticate; there is {AUTH_METHOD!r}")
        try:
            selected = await host.catalog.selected()
            await host.catalog.resolve(selected.model_id)
        except CallboardError as error:
            raise CallboardError("authRequired", error.message) from error
        if params.method_id == LOGIN_METHOD and selected.model_id == DEMO_ID:
            raise CallboardError("authRequired", f"only a demonstration answers: {selected.source}")
        editor.logged_out = False
        return acp.AuthenticateResponse()

    async def logout(_: Incoming, __: acp.LogoutRequest) -> Any:
        """Keys are the person's configuration, and stay. This client begins nothing more until it
        authenticates."""
        editor.logged_out = True
        return acp.LogoutResponse()

    return {"authenticate": authenticate, "logout": logout}


def _settings(host: Host, editor: Editor) -> dict[str, Handler]:
    async def set_mode(_: Incoming, params: acp_sessions.SetSessionModeRequest) -> Any:
        mode = options.mode_named(params.mode_id, "$.modeId")
        await options.set_mode(host, params.session_id, mode, by=editor.actor)
        return acp_sessions.SetSessionModeResponse()

    async def set_option(_: Incoming, params: acp_sessions.SetSessionConfigOptionRequest) -> Any:
        await host.reading.session(params.session_id)
        await options.set_option(
            host, params.session_id, params.config_id, params.value, by=editor.actor
        )
        return acp_sessions.SetSessionConfigOptionResponse(
            config_options=await options.config_options(host, params.session_id)
        )

    async def set_model(_: Incoming, params: Any) -> Any:
        """As clients have it that were made before models were an option."""
        if not isinstance(params, dict):
            raise invalid("$", "must be an object")
        named: dict[str, Any] = params  # pyright: ignore[reportUnknownVariableType]
        for key in ("sessionId", "modelId"):
            if not isinstance(named.get(key), str):
                raise invalid(f"$.{key}", "must be a text")
        await host.reading.session(named["sessionId"])
        await options.set_model(host, named["sessionId"], named["modelId"], by=editor.actor)
        return {}

    return {
        "session/set_mode": set_mode,
        "session/set_config_option": set_option,
        "session/set_model": set_model,
    }
