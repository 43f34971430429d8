"""Runs an agent, and keeps every frame of both directions: ``recorded.py FOLDER COMMAND...``.

A frame is kept before it is passed on, so that no answer stands before what it answers. Each process has a
file of its own in the folder; lines begin with ``>`` to the agent and ``<`` from it.
"""

import os
import subprocess
import sys
import threading
import time

with open(f"{sys.argv[1]}/{time.time_ns()}-{os.getpid()}", "wb", buffering=0) as kept:  # noqa: PTH123
    agent = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert agent.stdin is not None and agent.stdout is not None
    to_agent, from_agent = agent.stdin, agent.stdout

    def pass_on() -> None:
        for line in sys.stdin.buffer:
            kept.write(b"> " + line)
            to_agent.write(line)
            to_agent.flush()
        to_agent.close()

    threading.Thread(target=pass_on, daemon=True).start()
    for line in from_agent:
        kept.write(b"< " + line)
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    code = agent.wait()
os._exit(code)
