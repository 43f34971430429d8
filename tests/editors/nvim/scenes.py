from collections.abc import Callable
from pathlib import Path

SCENES: dict[str, Callable[[Path], None]] = {}
