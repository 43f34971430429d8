"""LSP framing on the real server, byte by byte; and the text of buffers that a client holds."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.checked import CheckedServer
from harness.process import ServerProcess, scenario

SCENARIO = """
rules:
  - when: {last_user: {regex: "(?s)unsaved (\\\\w+)"}}
    answer: [{say: "I see {{match.1}}."}]
  - when: {last_user: write it, step: 0}
    answer: [{call: {tool: write_file, arguments: {path: note.txt, content: "hello"}}}]
default:
  - say: I see nothing.
"""


class LspServer(ServerProcess):
    """The same harness over ``Content-Length`` headers."""

    def send(self, message: Any) -> None:
        assert self.process.stdin is not None
        body = json.dumps(message).encode()
        with self._lock:
            self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
            self.process.stdin.flush()

    def _read(self) -> None:
        out = self.process.stdout
        assert out is not None
        while header := out.readline():
            name, _, value = header.partition(b":")
            assert name == b"Content-Length" and header.endswith(b"\r\n"), header
            assert out.readline() == b"\r\n"
            self._inbox.put(json.loads(out.read(int(value))))
        self._inbox.put(None)


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.py").write_text("on disk\n")
    return folder


def look(server: ServerProcess, session: str, uri: str) -> str:
    """What the agent says when it is shown a file."""
    content = [{"type": "text", "text": "look"}]
    server.call("session/prompt", sessionId=session, content=content, context=[{"uri": uri}])
    return server.wait(session)["finalText"]


def opened(server: ServerProcess, uri: str, text: str) -> None:
    document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
    server.notify("textDocument/didOpen", textDocument=document)


def test_a_whole_turn_with_an_approval_over_lsp_framing(tmp_path, work):
    with LspServer(tmp_path, model=scenario(tmp_path, SCENARIO)) as server:
        server.notify("initialized")
        assert server.hello["capabilities"]["textDocumentSync"]["openClose"]
        session = server.create(work)
        server.call("event/subscribe", scope={"kind": "session", "id": session})
        server.prompt(session, "write it")
        asked = server.until(lambda m: m.get("method") == "approval/request")
        options = asked["params"]["approval"]["options"]
        once = next(o["optionId"] for o in options if o["kind"] == "allow_once")
        server.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"optionId": once}})
        server.wait(session)
        assert (work / "note.txt").read_text() == "hello"
        assert server.call("shutdown") is None
        server.notify("exit")
        assert server.process.wait(10) == 0


@pytest.mark.parametrize("spelling", ["plain", "escaped"])
def test_an_open_document_is_found_by_any_spelling_of_its_uri(tmp_path, work, spelling):
    odd = work / "a b+c.py"
    odd.write_text("on disk\n")
    uri = odd.as_uri()
    other = uri.replace("%20", " ") if spelling == "plain" else uri.replace("+", "%2B")
    with LspServer(tmp_path, model=scenario(tmp_path, SCENARIO)) as server:
        session = server.create(work)
        opened(server, other, "unsaved one\n")
        assert look(server, session, uri) == "I see one."
        outside = (tmp_path / "outside.py").as_uri()
        opened(server, outside, "unsaved two\n")
        with pytest.raises(Exception, match="outside of the workspace"):
            look(server, session, outside)


def test_many_documents_cost_nobody_the_answer(tmp_path, work):
    """Notifications of an editor that is starting up, some of them wrong, in front of a request."""
    with LspServer(tmp_path, model=scenario(tmp_path, SCENARIO)) as server:
        for n in range(100):
            opened(server, f"{work.as_uri()}/f{n}.py", "x = 1\n" * 100)
        server.notify("textDocument/didChange", textDocument={"uri": "file:///none", "version": 2})
        server.notify("textDocument/didClose", textDocument={"uri": "file:///none"})
        server.notify("$/setTrace", value="off")
        server.notify("workspace/didChangeConfiguration", settings=None)
        server.notify("textDocument/willSave", nonsense=True)
        assert server.call("server/ping")["head"]
        session = server.create(work)
        assert look(server, session, f"{work.as_uri()}/a.py") == "I see nothing."


# --- clients without documents -------------------------------------------------------------------------


class Editor(CheckedServer):
    """An ndjson client that is asked for the text of its buffers; `reply` says what it answers."""

    def __init__(self, folder: Path, reply: Any) -> None:
        self.reply = reply
        self.read: list[str] = []
        capabilities = {"approvals": False, "deltas": False, "readFile": True}
        super().__init__(
            folder,
            model=scenario(folder, SCENARIO),
            callboard={"capabilities": capabilities},
        )

    def receive(self, timeout: float = 30.0) -> dict[str, Any]:
        message = super().receive(timeout)
        if message.get("method") == "client/readFile":
            self.read.append(message["params"]["uri"])
            if self.reply is not None:
                self.send({"jsonrpc": "2.0", "id": message["id"], **self.reply})
        return message


@pytest.mark.parametrize(
    ("reply", "seen"),
    [
        ({"result": {"text": "unsaved one", "version": 3}}, "one."),
        ({"result": {"text": "unsaved\ud800 \u0000 two"}}, "nothing."),
        ({"error": {"code": -32603, "message": "no"}}, "nothing."),
        ({"result": {"version": 3}}, "nothing."),
        ({"result": None}, "nothing."),
        (None, "nothing."),
    ],
)
def test_a_buffer_of_the_client_is_used_and_the_disk_where_it_gives_none(
    tmp_path, work, reply, seen
):
    with Editor(tmp_path, reply) as server:
        session = server.create(work)
        uri = (work / "a.py").as_uri()
        assert look(server, session, uri) == f"I see {seen}"
        assert server.read == [uri]
        content = server.events(session)[1]["data"]["content"]
        if "unsaved" not in json.dumps(reply):
            assert content[1]["text"] == "on disk\n"


def test_no_file_is_asked_for_that_the_session_may_not_see(tmp_path, work):
    with Editor(tmp_path, {"result": {"text": "unsaved one"}}) as server:
        session = server.create(work)
        with pytest.raises(Exception, match="outside of the workspace"):
            look(server, session, "file:///etc/passwd")
        assert server.read == []
