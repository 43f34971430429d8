"""Versions, in a module that costs nothing to import."""

from typing import Final

PROTOCOL_VERSION: Final = "1.0"
"""The protocol version this package describes, ``major.minor``; a minor only adds."""

SUPPORTED_VERSIONS: Final = ("1.0",)
"""Every protocol version that this package can speak, newest first."""
