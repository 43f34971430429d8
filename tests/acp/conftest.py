"""What this machine lacks the schema or the clients for is left out; where real clients live."""

import hashlib
import shutil
from collections.abc import Generator
from pathlib import Path

import psutil
import pytest
from acp_clients import SDKS, Place, SdkClient
from acp_tools import has_packages, has_python_sdk

from harness.process import PATIENCE_S

collect_ignore_glob = [
    *([] if has_packages() else ["test_acp_schema.py"]),
    *([] if has_packages() and has_python_sdk() else ["test_acp_clients*"]),
]


@pytest.fixture
def place(tmp_path: Path) -> Generator[Place]:
    """After the test every frame was right, and every process has ended."""
    made = Place(tmp_path)
    try:
        yield made
        made.judge()
        _, alive = psutil.wait_procs(made.left(), timeout=PATIENCE_S)
        assert not alive
    finally:
        for process in made.left():
            process.kill()
        # where acpx has its sockets, whatever TMPDIR says
        home = hashlib.sha256(made.environ["HOME"].encode()).hexdigest()
        shutil.rmtree(Path("/tmp") / f"acpx-{home[:10]}", ignore_errors=True)


@pytest.fixture(params=SDKS)
def client(place: Place, request: pytest.FixtureRequest) -> Generator[SdkClient]:
    with SdkClient(place, request.param) as led:
        yield led
