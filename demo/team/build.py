"""Waits until a step of the build has been done elsewhere: `python3 build.py compile`."""

import pathlib
import sys
import time

step = sys.argv[1]
done = pathlib.Path("build") / step
print(f"waiting for {done}", flush=True)
while not done.exists():
    time.sleep(0.02)
print(f"{step}: done")
