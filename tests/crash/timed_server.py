"""A real server that tells how long its commits took, from being submitted to being known.

Started like ``callboard serve``; writes JSON to the file ``TIMED_TO`` names when it ends.
"""

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from callboard.cli import main
from callboard.log.writer import Writer

taken: list[float] = []
submit = Writer.submit


def timed(self: Writer, function: Any) -> "asyncio.Future[Any]":
    began = time.perf_counter()
    future = submit(self, function)
    future.add_done_callback(lambda _: taken.append(time.perf_counter() - began))
    return future


Writer.submit = timed

if __name__ == "__main__":
    code = main()
    Path(os.environ["TIMED_TO"]).write_text(json.dumps(taken), "utf-8")
    sys.exit(code)
