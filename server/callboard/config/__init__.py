"""Configuration (PROTOCOL 7): typed settings, and the layers that they come from.

The lowest floor: it imports nothing of Callboard but the contract. `load` reads the layers and gives
`Loaded`: the `Settings`, each value with its origin for ``config/get``, and what was wrong.
"""

from .freshness import Fresh
from .layers import ConfigWarning
from .load import Loaded, load, sources
from .paths import default_store_path, store_path, user_config_dir
from .settings import (
    EXPIRE_UNATTENDED_S,
    ApprovalSettings,
    ContextSettings,
    DraftSettings,
    LimitSettings,
    LogSettings,
    Origin,
    Settings,
    StoreSettings,
    ToolSettings,
)

__all__ = [
    "EXPIRE_UNATTENDED_S",
    "ApprovalSettings",
    "ConfigWarning",
    "ContextSettings",
    "DraftSettings",
    "Fresh",
    "LimitSettings",
    "Loaded",
    "LogSettings",
    "Origin",
    "Settings",
    "StoreSettings",
    "ToolSettings",
    "default_store_path",
    "load",
    "sources",
    "store_path",
    "user_config_dir",
]
