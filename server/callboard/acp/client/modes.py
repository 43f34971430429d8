"""What an agent lets its session be set to, and which of it fits Callboard's modes. Pure.

A session that may not be written to (``ask``, ``plan``) asks the agent for a mode of its own that does not write. One
that has none is held by what is refused to it; one that asks nobody is not held by us.
"""

from collections.abc import Iterable
from typing import Any, Literal

from attrs import define, field, frozen

from callboard_rpc.common import Mode

from ..contract import sessions, updates

_FITTING: dict[Mode, tuple[str, ...]] = {
    "plan": ("plan", "architect", "read-only", "readonly", "ask", "chat"),
    "ask": ("ask", "read-only", "readonly", "chat", "plan", "architect"),
    "work": (),
}


@frozen(kw_only=True)
class Setting:
    """A mode of the agent's, and how it is set: by ``session/set_mode``, or as an option."""

    value: str
    config_id: str | None = None


@define(kw_only=True)
class _Modes:
    values: tuple[tuple[str, str], ...]
    current: str
    config_id: str | None = None


@define
class Choices:
    """What the agent has said of its session. `commands` are those that a prompt can begin with."""

    commands: tuple[updates.AvailableCommand, ...] = ()
    options: tuple[sessions.SessionConfigOption, ...] = ()
    _modes: _Modes | None = None
    _usual: str | None = field(default=None)
    """The mode that it was in before Callboard changed it."""
    _by_us: str | None = None

    def begin(
        self,
        modes: sessions.SessionModeState | None,
        options: tuple[sessions.SessionConfigOption, ...] | None,
    ) -> None:
        """As the answer that opens a session has them."""
        self._modes = self._usual = self._by_us = None
        if modes is not None:
            values = tuple((mode.id, mode.name) for mode in modes.available_modes)
            self._modes = _Modes(values=values, current=modes.current_mode_id)
        self._configured(options or ())

    def heed(self, update: Any) -> None:
        """Takes in what an update says of it."""
        match update:
            case updates.AvailableCommandsUpdate(available_commands=commands):
                self.commands = commands
            case updates.CurrentModeUpdate(current_mode_id=current):
                if self._modes is not None and self._modes.config_id is None:
                    self._modes.current = current
            case updates.ConfigOptionUpdate(config_options=options):
                self._configured(options)
            case _:
                pass

    @property
    def modes(self) -> tuple[tuple[str, str], ...]:
        """Its own modes, each with its name."""
        return () if self._modes is None else self._modes.values

    @property
    def mode(self) -> str | None:
        """The one of them that it is in."""
        return None if self._modes is None else self._modes.current

    def _configured(self, options: Iterable[Any]) -> None:
        self.options = tuple(options)
        for option in self.options:
            if isinstance(option, sessions.SessionConfigSelect) and option.category == "mode":
                values = tuple(_values(option.options))
                self._modes = _Modes(
                    values=values, current=option.current_value, config_id=option.id
                )
                return

    def wanted(self, mode: Mode) -> Setting | Literal["none", "as it is"]:
        """What is to be set so that the agent is in a mode that fits. ``none``: it has none that does."""
        modes = self._modes
        if mode == "work":
            if modes is None or self._usual is None or modes.current != self._by_us:
                return "as it is"
            return Setting(value=self._usual, config_id=modes.config_id)
        if modes is None:
            return "none"
        for word in _FITTING[mode]:
            for value, name in modes.values:
                if word in (_plain(value), _plain(name)):
                    if value == modes.current:
                        return "as it is"
                    return Setting(value=value, config_id=modes.config_id)
        return "none"

    def was_set(self, setting: Setting) -> None:
        """The agent has it now."""
        if self._modes is None:
            return
        if setting.value == self._usual:
            self._usual = self._by_us = None
        else:
            self._usual = self._usual or self._modes.current
            self._by_us = setting.value
        self._modes.current = setting.value


def _values(entries: Iterable[Any]) -> Iterable[tuple[str, str]]:
    for entry in entries:
        if isinstance(entry, sessions.SessionConfigSelectGroup):
            yield from _values(entry.options)
        elif isinstance(entry, sessions.SessionConfigSelectOption):
            yield entry.value, entry.name


def _plain(text: str) -> str:
    """A mode's name without what some put around it: ``https://…/modes#plan``, ``Plan Mode``."""
    return text.casefold().rpartition("#")[2].removesuffix("mode").strip().replace(" ", "-")
