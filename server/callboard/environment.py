"""Where a host finds its configuration, its agents and its store: parameters, so that tests own them."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import Factory, field, frozen

from .config import Fresh, Loaded, Settings, load, sources, store_path, user_config_dir
from .models.keyfile import withheld_files
from .sessions.profiles import ProfileBook
from .sessions.ready import with_ready


def _fresh_settings(of: "Environment") -> Fresh[Settings]:
    return Fresh(lambda cwd: of.load(cwd).settings, lambda cwd: sources(of.user_dir, Path(cwd)))


def _fresh_profiles(of: "Environment") -> Fresh[ProfileBook]:
    return Fresh(
        lambda cwd: with_ready(
            ProfileBook.load(of.user_dir, Path(cwd)), of.environ.get("PATH", os.defpath)
        ),
        lambda cwd: ProfileBook.sources(of.user_dir, Path(cwd)),
    )


@frozen(kw_only=True)
class Environment:
    """Where a host finds its configuration; parameters, so that tests own them."""

    environ: Mapping[str, str]
    user_dir: Path
    client_config: Mapping[str, Any] | None = None
    store: Path | None = None
    _settings: Fresh[Settings] = field(
        init=False, eq=False, repr=False, default=Factory(_fresh_settings, takes_self=True)
    )
    _profiles: Fresh[ProfileBook] = field(
        init=False, eq=False, repr=False, default=Factory(_fresh_profiles, takes_self=True)
    )

    @classmethod
    def of_process(cls, client_config: Mapping[str, Any] | None = None) -> "Environment":
        environ = dict(os.environ)
        return cls(environ=environ, user_dir=user_config_dir(environ), client_config=client_config)

    def load(self, cwd: str | None = None) -> Loaded:
        return load(
            self.environ,
            self.user_dir,
            None if cwd is None else Path(cwd),
            None if self.client_config is None else dict(self.client_config),
        )

    @property
    def withheld(self) -> tuple[Path, ...]:
        """The files that no agent may have."""
        return withheld_files(self.user_dir)

    def store_path(self) -> Path:
        return self.store or store_path(self.load().settings)

    def settings_for(self, cwd: str) -> Settings:
        """The configuration as it is in a folder now."""
        return self._settings.get(cwd)

    def profiles_for(self, cwd: str) -> ProfileBook:
        """The agent definitions as they are in a folder now."""
        return self._profiles.get(cwd)
