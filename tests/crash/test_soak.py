"""Long runs of random kills; `make soak` runs them, nothing else does."""

import secrets
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3_600)]


def test_three_hundred_kills_lose_nothing_and_run_nothing_twice() -> None:
    seed = secrets.randbelow(1_000_000)
    print(f"seed {seed}")
    loop = Path(__file__).with_name("kill_loop.py")
    command = [sys.executable, str(loop), "--rounds", "1", "--kills", "300", "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"seed {seed}\n{done.stdout[-4_000:]}\n{done.stderr[-4_000:]}"
