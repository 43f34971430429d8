"""Putting the layers together: the later one wins, save that a workspace can only narrow."""

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from attrs import field, frozen

from .layers import (
    USER_FILE,
    WORKSPACE_FILE,
    ConfigWarning,
    Given,
    Layer,
    from_client,
    from_environment,
    from_file,
)
from .settings import GROUPS, Entry, Origin, Settings, shown

if TYPE_CHECKING:
    from callboard_rpc.approvals import Effect
    from callboard_rpc.server import ConfigValue

POLICY = "approvals.policy"
PROVIDERS = "providers"
STRICTNESS: "dict[Effect, int]" = {"allow": 0, "ask": 1, "deny": 2}

PROVIDER_VARIABLES = {
    f"{provider.upper()}_{name.upper()}": f"{PROVIDERS}.{provider}.{name}"
    for provider in ("openai", "anthropic")
    for name in ("api_key", "base_url", "model")
}
"""What the model floor reads from the environment by itself, so that an empty HOME is enough."""


@frozen(kw_only=True)
class Loaded:
    """The outcome of `load`. `warnings` are for the log and for ``callboard doctor``."""

    settings: Settings
    warnings: tuple[ConfigWarning, ...] = ()

    @property
    def values(self) -> "tuple[ConfigValue, ...]":
        """Each value with its origin, for ``config/get``."""
        return self.settings.values()


@frozen
class _Merge:
    """The layers so far, lowest first. `values` and `origins` by dotted key."""

    values: dict[str, Any] = field(factory=dict[str, Any])
    origins: dict[str, Origin] = field(factory=dict[str, Origin])
    policy: dict[str, Given] = field(factory=dict[str, Given])
    narrowing: dict[str, Given] = field(factory=dict[str, Given])
    providers: dict[str, dict[str, Given]] = field(factory=dict[str, dict[str, Given]])
    warnings: list[ConfigWarning] = field(factory=list[ConfigWarning])

    def add(self, layer: Layer) -> None:
        self.warnings.extend(layer.warnings)
        for given in layer.given:
            if given.source == "workspace":
                self._narrow(given)
            elif given.key == POLICY:
                for name in cast("dict[str, Effect]", given.value):
                    self.policy[name] = given
                    # The person's own word on the very same thing comes above the workspace's.
                    self.narrowing.pop(name, None)
            elif given.key == PROVIDERS:
                for name, table in cast("dict[str, dict[str, Any]]", given.value).items():
                    self.providers.setdefault(name, {}).update(dict.fromkeys(table, given))
            else:
                self.values[given.key] = given.value
                self.origins[given.key] = _origin(given)

    def _narrow(self, given: Given) -> None:
        match given.key:
            case "instructions":
                above = self.values.get("instructions")
                text = given.value if above is None else f"{above}\n\n{given.value}"
                self.values["instructions"] = text
                self.origins["instructions"] = _origin(given)
            case "approvals.mode":
                if given.value == "work" and self.values.get("approvals.mode", "work") != "work":
                    self._refuse(given, given.key, "a workspace may not widen the mode to 'work'")
                else:
                    self.values[given.key] = given.value
                    self.origins[given.key] = _origin(given)
            case _:
                for name, effect in cast("dict[str, Effect]", given.value).items():
                    if effect == "allow":
                        key = f"{POLICY}.{name}"
                        self._refuse(given, key, "a workspace may not allow; write 'ask' or 'deny'")
                    else:
                        self.narrowing[name] = given

    def _refuse(self, given: Given, key: str, rule: str) -> None:
        warning = ConfigWarning(
            source=given.source,
            place=given.place,
            key=key,
            line=given.line,
            message=f"{rule}; it is ignored",
        )
        self.warnings.append(warning)

    def settings(self, environ: Mapping[str, str]) -> Settings:
        groups: dict[str, dict[str, Any]] = {name: {} for name in GROUPS}
        tops: dict[str, Any] = {}
        for key, value in self.values.items():
            group, _, name = key.rpartition(".")
            (groups[group] if group else tops)[name] = value
        groups["approvals"]["policy"] = {n: g.value[n] for n, g in self.policy.items()}
        groups["approvals"]["narrowing"] = {n: g.value[n] for n, g in self.narrowing.items()}
        providers = {
            name: {key: given.value[name][key] for key, given in table.items()}
            for name, table in self.providers.items()
        }
        return Settings(
            **tops,
            **{name: GROUPS[name](**values) for name, values in groups.items()},
            providers=providers,
            origins=dict(self.origins),
            entries=(*self._policy_entries(), *self._provider_entries(environ)),
        )

    def _policy_entries(self) -> tuple[Entry, ...]:
        return tuple(
            _entry(f"{POLICY}.{name}", given.value[name], given)
            for table in (self.policy, self.narrowing)
            for name, given in table.items()
        )

    def _provider_entries(self, environ: Mapping[str, str]) -> list[Entry]:
        entries: dict[str, Entry] = {}
        for provider, table in self.providers.items():
            for name, given in table.items():
                for key, value in _flat(
                    f"{PROVIDERS}.{provider}.{name}", given.value[provider][name]
                ):
                    entries[key] = _entry(key, value, given)
        for variable, key in PROVIDER_VARIABLES.items():
            value = environ.get(variable, "").strip()
            if value and (key not in entries or entries[key].source == "user"):
                entries[key] = Entry(
                    key=key, value=shown(key, value), source="environment", origin=variable
                )
        return list(entries.values())


def sources(user_dir: Path, cwd: Path | None = None) -> tuple[Path, ...]:
    """The files that `load` reads, there or not."""
    user = user_dir / USER_FILE
    return (user,) if cwd is None else (user, cwd / WORKSPACE_FILE)


def load(
    environ: Mapping[str, str],
    user_dir: Path,
    cwd: Path | None = None,
    client: Mapping[str, Any] | None = None,
) -> Loaded:
    """Read all layers: the user's file in `user_dir`, the workspace's below `cwd`, the environment,
    and what the client sent. Never raises: what cannot be used is a warning, the rest counts."""
    merge = _Merge()
    user_file = user_dir / USER_FILE
    merge.add(from_file(user_file, "user"))
    if cwd is not None:
        merge.add(from_file(cwd / WORKSPACE_FILE, "workspace", within=cwd))
    merge.add(from_environment(environ))
    if client:
        merge.add(from_client(client))
    settings = merge.settings(environ)
    exposed = _exposed_keys(user_file, settings)
    return Loaded(settings=settings, warnings=(*merge.warnings, *exposed))


def _origin(given: Given) -> Origin:
    return Origin(source=given.source, place=given.place)


def _entry(key: str, value: Any, given: Given) -> Entry:
    return Entry(key=key, value=shown(key, value), source=given.source, origin=given.place)


def _flat(key: str, value: Any) -> list[tuple[str, Any]]:
    if not isinstance(value, dict):
        return [(key, value)]
    table = cast("dict[str, Any]", value)
    return [pair for name, item in table.items() for pair in _flat(f"{key}.{name}", item)]


def _exposed_keys(path: Path, settings: Settings) -> list[ConfigWarning]:
    """A warning when others can read a file that holds a key."""
    secrets = [e.key for e in settings.entries if e.source == "user" and e.value == "set"]
    if not secrets:
        return []
    try:
        status = path.stat()
    except OSError:
        return []
    if not hasattr(status, "st_uid") or not stat.S_IMODE(status.st_mode) & 0o077:
        return []
    message = f"holds a key and can be read by others; run: chmod 600 {path}"
    return [ConfigWarning(source="user", place=str(path), key=secrets[0], message=message)]
