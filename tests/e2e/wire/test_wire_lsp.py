"""LSP's own messages, in a real process over real pipes."""

import pytest
from wire_peer import PROBE, reply

OPENED = {"uri": "file:///w/a.txt", "languageId": "text", "version": 1, "text": "one\ntwo 😀 x\n"}


@pytest.mark.parametrize("framing", ["lsp"], indirect=True)
class TestLsp:
    def test_unsaved_text_is_what_the_editor_shows(self, start):
        peer = start()
        uri = {"uri": OPENED["uri"]}
        assert peer.call(1, "document", **uri) is None
        peer.tell("textDocument/didOpen", {"textDocument": OPENED})
        place = {"line": 1, "character": 7}  # behind the emoji, which is two UTF-16 units
        peer.tell(
            "textDocument/didChange",
            {
                "textDocument": {**uri, "version": 2},
                "contentChanges": [
                    {"range": {"start": place, "end": {"line": 1, "character": 8}}, "text": "y"},
                    {"range": {"start": {"line": 0, "character": 0}, "end": place}, "text": "Z"},
                ],
            },
        )
        assert peer.call(2, "document", **uri) == ["Zy\n", 2]
        peer.tell("textDocument/didSave", {"textDocument": uri})
        peer.tell("textDocument/didClose", {"textDocument": uri})
        assert peer.call(3, "document", **uri) is None
        assert peer.call(4, "report")["notes"] == [["saved", OPENED["uri"]]]

    def test_positions_are_utf_16_whatever_else_the_client_offers(self, start):
        peer = start(opened=False)
        peer.open(capabilities={"general": {"positionEncodings": ["utf-32", "utf-8", "utf-16"]}})
        peer.tell("textDocument/didOpen", {"textDocument": OPENED})
        change = {
            "range": {"start": {"line": 1, "character": 6}, "end": {"line": 1, "character": 8}},
            "text": "!",
        }
        peer.tell(
            "textDocument/didChange",
            {"textDocument": {"uri": OPENED["uri"], "version": 2}, "contentChanges": [change]},
        )
        assert peer.call(1, "document", uri=OPENED["uri"]) == ["one\ntwo 😀!\n", 2]

    def test_one_document_is_found_under_every_spelling_of_its_uri(self, start):
        peer = start()
        document = {**OPENED, "uri": "file:///d%3A/a%20b.txt"}
        peer.tell("textDocument/didOpen", {"textDocument": document})
        assert peer.call(1, "document", uri="file:///D:/a b.txt") == [OPENED["text"], 1]

    def test_what_is_wrong_or_not_open_is_dropped(self, start):
        peer = start()
        peer.tell("textDocument/didOpen", {"textDocument": {"uri": 5}})
        peer.tell("textDocument/didOpen", [1])
        peer.tell("textDocument/didOpen")
        peer.tell(
            "textDocument/didChange",
            {
                "textDocument": {"uri": PROBE.as_uri(), "version": 2},
                "contentChanges": [{"text": "not open"}],
            },
        )
        assert peer.call(1, "document", uri=PROBE.as_uri()) is None
        peer.alive()
        assert peer.aside == []

    def test_settings_folders_trace_and_progress_reach_the_host(self, start):
        peer = start(opened=False)
        peer.open(workspaceFolders=[{"uri": "file:///w", "name": "w"}])
        peer.tell("$/setTrace", {"value": "verbose"})
        peer.tell("workspace/didChangeConfiguration", {"settings": {"callboard": {"class": 1}}})
        added = [{"uri": "file:///v", "name": "v"}]
        peer.tell("workspace/didChangeWorkspaceFolders", {"event": {"added": added, "removed": []}})
        peer.tell("window/workDoneProgress/cancel", {"token": "t1"})
        peer.call(1, "document", uri="file:///none")  # waits until all of it was acted upon
        assert peer.call(2, "report")["notes"] == [
            ["configuration", {"callboard": {"class": 1}}],
            ["folders", ["file:///w", "file:///v"]],
            ["progress", "t1"],
        ]

    def test_a_line_for_the_output_window_is_typed(self, start):
        peer = start()
        peer.call(1, "log", text="hello")
        note = peer.next()
        assert note["method"] == "window/logMessage"
        assert note["params"] == {"type": 3, "message": "hello"}

    def test_an_edit_is_asked_for_and_its_outcome_typed(self, start):
        peer = start()
        place = {"line": 0, "character": 0}
        change = {"range": {"start": place, "end": place}, "newText": "x"}
        edit = {"changes": {"file:///w/a.txt": [change]}}
        peer.do(1, "edit", edit=edit)
        message = peer.next()
        assert message["method"] == "workspace/applyEdit"
        assert message["params"] == {"label": "probe", "edit": edit}
        reply(peer, message["id"], result={"applied": False, "failureReason": "stale"})
        assert peer.answer(1)["result"]["echo"] == [False, "stale"]

    def test_pygls_is_imported_only_once_a_message_needs_it(self, start):
        peer = start()
        assert peer.call(1, "report")["heavy"] == []
        peer.tell("textDocument/didOpen", {"textDocument": OPENED})
        peer.call(2, "document", uri=OPENED["uri"])
        assert peer.call(3, "report")["heavy"] == ["lsprotocol", "pygls"]
