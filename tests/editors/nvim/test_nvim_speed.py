"""An answer of 20,000 pieces while somebody types: no key waits.

What is measured is Neovim's own processor time between two turns of its loop, drawing included: how busy the
machine is with other things does not come into it.
"""

import sys
from pathlib import Path

import pytest
from flooding_server import PIECES, WORDS

MOST_MS = 50

GAUGE = """
local function used()
  local usage = vim.uv.getrusage()
  return (usage.utime.sec + usage.stime.sec) * 1e3 + (usage.utime.usec + usage.stime.usec) / 1e3
end
local timer, last = vim.uv.new_timer(), nil
_G.gauge = { longest = 0, turns = 0 }
function _G.gauge.start()
  last = used()
  _G.gauge.began, _G.gauge.longest, _G.gauge.turns = last, 0, 0
  timer:start(1, 1, function()
    local now = used()
    _G.gauge.longest = math.max(_G.gauge.longest, now - last)
    _G.gauge.turns = _G.gauge.turns + 1
    last = now
  end)
end
function _G.gauge.stop()
  timer:stop()
  return { longest = _G.gauge.longest, turns = _G.gauge.turns, used = used() - _G.gauge.began }
end
"""
STREAMED = """
local chat = require('callboard.ui.chat').of_session('ses_flooding')
local item = chat and chat.view.transcript.by_id[...]
return item and { streaming = item.streaming == true, size = #item.text } or nil
"""


@pytest.fixture
def flooded(open_editor):
    """An editor whose server floods, with a chat and the cursor in its input."""
    server = (sys.executable, str(Path(__file__).parent / "flooding_server.py"), "serve")
    editor = open_editor(server=server, init=GAUGE, size=(160, 48))
    editor.command("Callboard new")
    editor.wait_for("Flood")
    return editor


def test_the_gauge_sees_what_would_make_a_key_wait(flooded):
    flooded.lua("_G.gauge.start()")
    flooded.lua(
        "vim.schedule(function()"
        "  local ends = vim.uv.getrusage().utime"
        "  ends = ends.sec * 1e6 + ends.usec + 60000"
        "  repeat local now = vim.uv.getrusage().utime until now.sec * 1e6 + now.usec > ends"
        "  _G.busy = true "
        "end)"
    )
    flooded.wait_for(lambda: flooded.lua("return _G.busy"))
    flooded.wait_for(lambda: flooded.lua("return _G.gauge.longest") > MOST_MS)


def test_no_key_waits_while_20_000_pieces_of_an_answer_come(flooded):
    editor = flooded
    editor.keys("iflood<C-s>")
    editor.wait_for(lambda: "flood" not in "\n".join(editor.buffer(0)))
    editor.lua("_G.gauge.start()")
    typed = 0
    while not (streamed := editor.lua(STREAMED, "msg_000001")) or streamed["streaming"]:
        editor.keys("x")
        typed += 1
    found = editor.lua("return _G.gauge.stop()")
    assert streamed["size"] == sum(len(WORDS[n % len(WORDS)].encode()) for n in range(PIECES))
    editor.wait_for("done")
    editor.keys("<Esc>")
    editor.wait_for(lambda: editor.buffer(0) == ["x" * typed])
    assert typed > 0
    assert found["longest"] < MOST_MS, found
