"""pytest-lsp, a client that we did not write, drives the server through LSP's own handshake."""

import asyncio
import os
import sys
from typing import Any

import pytest
import pytest_asyncio
import pytest_lsp
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from harness.process import scenario

pytestmark = pytest.mark.asyncio

SCENARIO = """
rules:
  - when: {last_user: {regex: "(?s)unsaved (\\\\w+)"}}
    answer: [{say: "I see {{match.1}}."}]
default:
  - say: I see nothing.
"""


def plain(value: Any) -> Any:
    """What pygls made of a result of ours (tuples with names), as JSON again."""
    if hasattr(value, "_asdict"):
        return {name: plain(item) for name, item in value._asdict().items()}
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.py").write_text("on disk\n")
    return folder


@pytest_asyncio.fixture(params=["neovim", "visual-studio-code"])
async def client(request, tmp_path, work):
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith("CALLBOARD")},
        "HOME": str(tmp_path),
        "CALLBOARD_STORE": str(tmp_path / "store.db"),
        "CALLBOARD_CONFIG_DIR": str(tmp_path / "config"),
        "CALLBOARD_MODEL": scenario(tmp_path, SCENARIO),
    }
    config = pytest_lsp.ClientServerConfig(
        server_command=[sys.executable, "-m", "callboard", "serve"], server_env=environment
    )
    client = await config.start()
    client.events = asyncio.Queue()

    @client.feature("event/batch")
    def _(params: Any) -> None:
        for event in plain(params)["events"]:
            client.events.put_nowait(event)

    client.result = await client.initialize_session(
        types.InitializeParams(
            capabilities=pytest_lsp.client_capabilities(request.param),
            root_uri=work.as_uri(),
            workspace_folders=[types.WorkspaceFolder(uri=work.as_uri(), name="work")],
            initialization_options={"callboard": {"protocolVersions": ["1.0"], "clientId": "lsp"}},
        )
    )
    yield client
    if client._server.returncode is None:
        await client.shutdown_session()
    assert client._server.returncode == 0
    await client.stop()


async def ask(client: Any, method: str, **params: Any) -> Any:
    return plain(await client.protocol.send_request_async(method, params))


async def test_the_handshake_offers_text_sync_and_our_own_part(client):
    capabilities = client.result.capabilities
    assert client.result.server_info.name == "callboard"
    assert capabilities.text_document_sync.change == types.TextDocumentSyncKind.Incremental
    assert capabilities.position_encoding == types.PositionEncodingKind.Utf16
    own = plain(capabilities.experimental)["callboard"]
    assert own["protocolVersion"] == "1.0" and own["storeId"].startswith("store_")
    assert (await ask(client, "server/info"))["storeId"] == own["storeId"]
    with pytest.raises(JsonRpcException) as unknown:
        await client.text_document_hover_async(
            types.HoverParams(types.TextDocumentIdentifier("file:///x"), types.Position(0, 0))
        )
    assert unknown.value.code == -32601


async def test_a_session_is_made_prompted_followed_and_awaited(client, work):
    session = (await ask(client, "session/create", cwd=str(work)))["session"]["sessionId"]
    await ask(client, "event/subscribe", scope={"kind": "session", "id": session}, deltas=False)
    content = [{"type": "text", "text": "hello"}]
    said = await ask(client, "session/prompt", sessionId=session, content=content)
    assert said["outcome"] == "started"
    waited = await ask(client, "session/wait", sessionId=session, until="idle")
    assert waited["finalText"] == "I see nothing." and waited["turn"]["state"] == "completed"
    kinds: list[str] = []
    while not kinds or kinds[-1] != "turn_finished":
        kinds.append((await asyncio.wait_for(client.events.get(), 20))["type"])
    assert kinds == ["message", "turn_started", "ack", "message", "turn_finished"]
    with pytest.raises(JsonRpcException) as wrong:
        await ask(client, "session/prompt", sessionId=session, content="hello")
    assert wrong.value.code == -32602


async def test_context_is_what_the_editor_shows_not_what_is_on_disk(client, work):
    session = (await ask(client, "session/create", cwd=str(work)))["session"]["sessionId"]
    uri = (work / "a.py").as_uri()

    async def answer() -> str:
        content = [{"type": "text", "text": "look"}]
        await ask(
            client, "session/prompt", sessionId=session, content=content, context=[{"uri": uri}]
        )
        return (await ask(client, "session/wait", sessionId=session))["finalText"]

    assert await answer() == "I see nothing."
    client.text_document_did_open(
        types.DidOpenTextDocumentParams(
            types.TextDocumentItem(uri=uri, language_id="python", version=1, text="unsaved one\n")
        )
    )
    assert await answer() == "I see one."
    client.text_document_did_change(
        types.DidChangeTextDocumentParams(
            text_document=types.VersionedTextDocumentIdentifier(uri=uri, version=2),
            content_changes=[
                types.TextDocumentContentChangePartial(
                    range=types.Range(types.Position(0, 8), types.Position(0, 11)), text="two"
                )
            ],
        )
    )
    assert await answer() == "I see two."
    client.text_document_did_close(
        types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri=uri))
    )
    assert await answer() == "I see nothing."


async def test_shutdown_then_exit_leave_nothing_running(client, work):
    session = (await ask(client, "session/create", cwd=str(work)))["session"]["sessionId"]
    await ask(client, "session/get", sessionId=session)
    await client.shutdown_session()
    assert client._server.returncode == 0
