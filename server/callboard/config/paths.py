"""Where Callboard's files lie for this user, by the rules of the platform."""

import os
from collections.abc import Mapping
from pathlib import Path

from .settings import Settings

APP = "callboard"
DATABASE = "callboard.db"
CONFIG_DIR_VARIABLE = "CALLBOARD_CONFIG_DIR"


def user_config_dir(environ: Mapping[str, str]) -> Path:
    """The folder of the user's ``config.toml``, ``keys.toml`` and ``agents/``.

    ``CALLBOARD_CONFIG_DIR`` names another one than the platform's.
    """
    named = environ.get(CONFIG_DIR_VARIABLE, "").strip()
    if named:
        return Path(named).expanduser().absolute()
    import platformdirs

    return platformdirs.user_config_path(APP, appauthor=False)


def default_store_path() -> Path:
    """The database that is used when none is named."""
    import platformdirs

    return platformdirs.user_data_path(APP, appauthor=False) / DATABASE


def store_path(settings: Settings) -> Path:
    """The database file that `settings` name, absolute. A folder means a file in it."""
    named = settings.store.path
    if named is None:
        return default_store_path()
    path = Path(named).expanduser().absolute()
    return path / DATABASE if path.is_dir() or named.endswith(("/", os.sep)) else path
