"""Requests over the connection that an editor's plugin has to its server."""

from typing import Any
from uuid import uuid4

from nvim_harness import Editor

ASK = """
local key, method, params = ...
params = next(params) == nil and vim.empty_dict() or params
_G.answers = _G.answers or {}
require('callboard.app').get():request(method, params, function(err, result)
  _G.answers[key] = { err = err, result = result }
end)
"""


def begin(editor: Editor, method: str, **params: Any) -> str:
    """Asks, and does not wait; the key of the answer."""
    key = uuid4().hex
    editor.lua(ASK, key, method, params)
    return key


def answer(editor: Editor, key: str, what: str = "an answer") -> dict[str, Any]:
    """``{result}`` or ``{err}`` of what was begun, waited for."""
    return editor.wait_for(lambda: editor.lua("return (_G.answers or {})[...]", key), what=what)


def ask(editor: Editor, method: str, **params: Any) -> Any:
    """The result of a request."""
    answered = answer(editor, begin(editor, method, **params), f"an answer to {method}")
    assert "err" not in answered, answered["err"]
    return answered["result"]
