"""The first exchange with a server."""

import os

import anyio

from callboard_rpc.convert import StructureError, structure_lenient, unstructure
from callboard_rpc.server import CallboardOptions, HandshakeResult, InitializeParams, PeerInfo
from callboard_rpc.version import SUPPORTED_VERSIONS

from .connection import Connection
from .errors import ProtocolError, StartError
from .options import ClientOptions


async def shake_hands(link: Connection, options: ClientOptions) -> HandshakeResult:
    """Raises `StartError` when no answer comes in time, `RemoteError` when the server refuses,
    `ProtocolError` when it is no Callboard server."""
    info = PeerInfo(name=options.name, version=options.version)
    params = InitializeParams(
        process_id=os.getpid(),
        client_info=info,
        callboard=CallboardOptions(
            protocol_versions=SUPPORTED_VERSIONS,
            client_id=options.client_id,
            client_info=info,
            capabilities=options.capabilities,
            experimental=options.experimental,
            config=options.config,
        ),
    )
    try:
        with anyio.fail_after(options.start_timeout_s):
            result = await link.request("initialize", unstructure(params))
    except TimeoutError:
        said = f"; it wrote {link.stray!r}" if link.stray else ""
        raise StartError(
            f"the server did not answer within {options.start_timeout_s:g} s{said}"
        ) from None
    try:
        handshake = structure_lenient(
            result["capabilities"]["experimental"]["callboard"], HandshakeResult
        )
    except (KeyError, TypeError, StructureError) as fault:
        raise ProtocolError(f"this is not a Callboard server: {fault}") from None
    link.notify("initialized", {})
    return handshake
