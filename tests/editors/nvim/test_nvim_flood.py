"""An answer of 20,000 pieces while somebody types: no key waits.

What would make one wait is a callback that does too much before Neovim looks for keys again. So the work of
each is counted, and no clock decides; how long a key waits in the end is a figure of `make bench`.
"""

import sys
from pathlib import Path

import pytest
from flooding_server import PIECES, STREAMED, WORDS

BEYOND = 60
"""Lines that a callback may write beyond those that have come: what stands below the transcript, once more."""

GAUGE = """
_G.gauge = { most = 0, beyond = 0, turns = 0 }
local gauge, came, handled, written = _G.gauge, 0, 0, 0
local schedule = vim.schedule
function vim.schedule(callback)
  schedule(function()
    handled, written = 0, 0
    callback()
    gauge.turns = gauge.turns + 1
    gauge.most = math.max(gauge.most, handled)
    gauge.beyond = math.max(gauge.beyond, written - came)
    came = math.max(0, came - written)
  end)
end
for name, lines in pairs({ nvim_buf_set_lines = 5, nvim_buf_set_text = 6 }) do
  local set = vim.api[name]
  vim.api[name] = function(...)
    written = written + #select(lines, ...)
    return set(...)
  end
end
function gauge.start()
  local Reducer = require('callboard.model.reducer')
  local delta = Reducer.delta
  function Reducer.delta(transcript, piece)
    handled = handled + 1
    came = came + select(2, piece.text:gsub('\\n', ''))
    return delta(transcript, piece)
  end
  gauge.most, gauge.beyond, gauge.turns = 0, 0, 0
end
"""


@pytest.fixture
def flooded(open_editor):
    """An editor whose server floods, with a chat and the cursor in its input."""
    server = (sys.executable, str(Path(__file__).parent / "flooding_server.py"), "serve")
    editor = open_editor(server=server, init=GAUGE, size=(160, 48))
    editor.command("Callboard new")
    editor.wait_for("Flood")
    editor.lua("_G.gauge.start()")
    return editor


def found(editor):
    return editor.lua(
        "return { most = _G.gauge.most, beyond = _G.gauge.beyond, turns = _G.gauge.turns }"
    )


def test_the_gauge_sees_what_would_make_a_key_wait(flooded):
    flooded.lua(
        """
        local transcript = require('callboard.model.reducer').new('ses_1')
        vim.schedule(function()
          for index = 1, 2000 do
            local piece = { messageId = 'msg_1', turnId = 'trn_1', index = index, text = 'x' }
            require('callboard.model.reducer').delta(transcript, piece)
          end
        end)
        vim.schedule(function()
          local lines = vim.fn['repeat']({ 'x' }, 100)
          local buf = vim.api.nvim_create_buf(false, true)
          vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
          vim.api.nvim_buf_set_text(buf, 0, 0, 0, 0, lines)
          _G.busy = true
        end)
        """
    )
    flooded.wait_for(lambda: flooded.lua("return _G.busy"))
    seen = found(flooded)
    assert (seen["most"], seen["beyond"] >= 200) == (2000, True)


def test_no_key_waits_while_20_000_pieces_of_an_answer_come(flooded):
    editor = flooded
    editor.keys("iflood<C-s>")
    editor.wait_for(lambda: "flood" not in "\n".join(editor.buffer(0)))
    editor.keys("x")
    typed = 1
    while not (streamed := editor.lua(STREAMED, "msg_000001")) or streamed["streaming"]:
        editor.keys("x")
        typed += 1
    assert streamed["size"] == sum(len(WORDS[n % len(WORDS)].encode()) for n in range(PIECES))
    editor.wait_for("done")
    seen = found(editor)
    most = editor.lua("return require('callboard.rpc.client').SLICE")
    editor.keys("<Esc>")
    editor.wait_for(lambda: editor.buffer(0) == ["x" * typed])
    assert 0 < seen["most"] <= most < PIECES / 10, seen
    assert seen["turns"] >= PIECES / most, seen
    assert seen["beyond"] < BEYOND, seen
