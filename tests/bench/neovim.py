"""How long a key waits in Neovim while an answer of 20,000 pieces comes.

It is Neovim's own processor time between two turns of its loop, drawing included: how busy the machine is with
other things does not come into it.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from figure import Figure, Topic, rounds

_TESTS = Path(__file__).parents[1]
_GAUGE = """
local function used()
  local usage = vim.uv.getrusage()
  return (usage.utime.sec + usage.stime.sec) * 1e3 + (usage.utime.usec + usage.stime.usec) / 1e3
end
local timer, last = vim.uv.new_timer(), nil
_G.gauge = { longest = 0 }
function _G.gauge.start()
  last = used()
  timer:start(1, 1, function()
    local now = used()
    _G.gauge.longest = math.max(_G.gauge.longest, now - last)
    last = now
  end)
end
"""


def _longest_ms(nvim: Path, folder: Path) -> float:
    from flooding_server import STREAMED
    from nvim_harness import Editor

    server = (sys.executable, str(_TESTS / "editors" / "nvim" / "flooding_server.py"), "serve")
    with Editor(nvim, folder, server=server, init=_GAUGE, size=(160, 48)) as editor:
        editor.command("Callboard new")
        editor.wait_for("Flood")
        editor.lua("_G.gauge.start()")
        editor.keys("iflood<C-s>")

        def over() -> Any:
            editor.keys("x")
            streamed = editor.lua(STREAMED, "msg_000001")
            return streamed and not streamed["streaming"]

        editor.wait_for(over)
        return editor.lua("return _G.gauge.longest")


def measure(thorough: float) -> list[Figure]:
    """Of each Neovim that the tests have; none where there is none."""
    sys.path += [str(_TESTS), str(_TESTS / "editors" / "nvim")]
    from nvim_versions import versions

    figures: list[Figure] = []
    for name, nvim in versions().items():
        samples: list[float] = []
        for _ in range(rounds(5, thorough)):
            with TemporaryDirectory(prefix="callboard-bench-") as folder:
                samples.append(_longest_ms(nvim, Path(folder)))
        figures.append(
            Figure(
                name=f"Neovim {name}: the longest that a key waits while 20,000 pieces come",
                unit="ms",
                ours=samples,
                target=50,
            )
        )
    return figures


TOPIC = Topic(name="neovim", about="keys in Neovim while an answer streams", measure=measure)
