"""A session in an editor's own hands: asked for, prompted and looked at through the plugin, without its windows."""

from typing import Any
from uuid import uuid4

from asking import answer, ask, begin
from nvim_harness import Editor

FOLLOW = """
_G.session = require('callboard.app').get():use(...)
"""
SEEN = """
local session = _G.session
local seen = { phase = session.phase, fault = session.fault, items = {}, queue = {}, sending = #session.outbox.sending }
for i, item in ipairs(session.transcript.items) do
  seen.items[i] = {
    kind = item.kind,
    text = item.text,
    seq = item.seq,
    outcome = item.outcome,
    partial = item.partial,
    streaming = item.streaming,
    status = item.result and item.result.status,
  }
end
for i, item in ipairs(session.transcript.queue) do
  seen.queue[i] = item.text
end
seen.last = session.transcript.last_seq
seen.turn = session.transcript.turn
return seen
"""
REPLAY = """
local key, id = ...
local Reducer = require('callboard.model.reducer')
local app = require('callboard.app').get()
local whole = Reducer.new(id)
local function page(after)
  app:request('event/list', { scope = { kind = 'session', id = id }, after = after }, function(err, got)
    for _, event in ipairs(got.data) do
      Reducer.apply(whole, event)
    end
    if got.nextCursor then
      return page(got.nextCursor)
    end
    _G.answers = _G.answers or {}
    local shown, logged = {}, {}
    for _, name in ipairs({ 'items', 'queue', 'turn', 'last_seq', 'plan', 'speakers' }) do
      shown[name] = vim.inspect(_G.session.transcript[name])
      logged[name] = vim.inspect(whole[name])
    end
    _G.answers[key] = { shown = shown, logged = logged }
  end)
end
page(nil)
"""


class Driven:
    """`editor` with one session, followed."""

    def __init__(self, editor: Editor, session_id: str | None = None) -> None:
        self.editor = editor
        if session_id is None:
            made = self.ask("session/create", cwd=str(editor.workspace), title="Driven")
            session_id = made["session"]["sessionId"]
        self.id = session_id
        editor.lua(FOLLOW, self.id)
        self.until(lambda seen: seen["phase"] == "live")

    def ask(self, method: str, **params: Any) -> Any:
        """The result of a request over the editor's own connection."""
        return ask(self.editor, method, **params)

    def begin(self, method: str, **params: Any) -> str:
        """Asks, and does not wait."""
        return begin(self.editor, method, **params)

    def answer(self, key: str) -> dict[str, Any]:
        """``{result}`` or ``{err}`` of what was begun."""
        return answer(self.editor, key)

    def prompt(self, text: str, **params: Any) -> None:
        self.editor.lua(
            "local prompt = ... _G.prompted = nil _G.session:prompt(prompt, function(err, result)"
            " _G.prompted = { err = err, result = result } end)",
            {"text": text, **params},
        )

    def seen(self) -> dict[str, Any]:
        """The transcript, as plain values."""
        return self.editor.lua(SEEN)

    def until(self, holds: Any, what: str = "") -> dict[str, Any]:
        """Waits until a transcript is as wanted, and returns it."""

        def check() -> Any:
            seen = self.seen()
            return seen if holds(seen) else None

        return self.editor.wait_for(check, what=what or "the transcript as wanted")

    def rests(self) -> dict[str, Any]:
        """Waits for the end of all turns."""
        return self.until(
            lambda seen: (
                seen["phase"] == "live"
                and not seen.get("turn")
                and not seen["queue"]
                and not seen["sending"]
                and any(item["kind"] == "turn" for item in seen["items"])
            ),
            "a session that rests",
        )

    def agrees(self) -> None:
        """Fails unless the log, read anew from its beginning, makes the transcript that is shown."""
        key = uuid4().hex
        self.editor.lua(REPLAY, key, self.id)
        found = answer(self.editor, key)
        for name, logged in found["logged"].items():
            shown = found["shown"][name]
            assert shown == logged, f"{name}:\n{shown}\nbut the log has\n{logged}"


def said(editor: Editor) -> list[str]:
    """What the person was told, one message an entry; needs `TOLD` in the editor's start."""
    return editor.lua("return _G.told")


TOLD = """
_G.told = {}
vim.notify = function(text) table.insert(_G.told, text) end
"""
"""Lua for an editor's start: messages go to a list, as a user's own way of showing them would have it."""
