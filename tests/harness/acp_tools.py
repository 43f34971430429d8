"""What this machine has of the published material of the Agent Client Protocol.

As a program it says what is missing, for `.ci/left-out`. Without the schema frames are judged by Callboard's
own contract of the protocol instead, strictly.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / ".tools" / "acp" / "node_modules"
SDK = PACKAGES / "@agentclientprotocol" / "sdk"
SCHEMA = SDK / "schema" / "v1" / "schema.json"


def has_schema() -> bool:
    return SCHEMA.exists()


def missing() -> list[str]:
    """What would have to be there for all tests to run as they are meant."""
    return [] if has_schema() else ["the published schema of the Agent Client Protocol"]


if __name__ == "__main__":
    print(", ".join(missing()))
