"""What an agent lets its session be set to, and which of it fits Callboard's modes. Pure.

A session that may not be written to (``ask``, ``plan``) asks the agent for a mode of its own that does not write. One
that has none is held by what is refused to it; one that asks nobody is not held by us.
"""

from collections.abc import Iterable
from typing import Any, Literal

from attrs import define, evolve, field, frozen

from callboard_rpc.common import Mode, SessionOption

from ...sessions.offers import MOST
from ..contract import sessions, updates
from .offering import Models, Offering, value_of, values_of

_FITTING: dict[Mode, tuple[str, ...]] = {
    "plan": ("plan", "architect", "read-only", "readonly", "ask", "chat"),
    "ask": ("ask", "read-only", "readonly", "chat", "plan", "architect"),
    "work": (),
}


@frozen(kw_only=True)
class Setting:
    """What is to be set, and how: an option, else the mode or the model by a method of its own."""

    value: str
    config_id: str | None = None
    is_model: bool = False
    is_switch: bool = False


@define(kw_only=True)
class _Modes:
    values: tuple[tuple[str, str], ...]
    current: str
    config_id: str | None = None

    @property
    def option_id(self) -> str:
        """What its modes are called among its options."""
        return self.config_id or "mode"


@define
class Choices:
    """What the agent has said of its session. `commands` are those that a prompt can begin with."""

    commands: tuple[updates.AvailableCommand, ...] = ()
    options: tuple[sessions.SessionConfigOption, ...] = ()
    chosen: str | None = None
    """The mode that a person wants it to be in where it may write."""
    _models: Models | None = None
    _modes: _Modes | None = None
    _usual: str | None = field(default=None)
    """The mode that it was in before Callboard changed it."""
    _by_us: str | None = None
    _set_to: str | None = None
    """The chosen mode, once it was brought into that: what it does with it since is its own."""

    def begin(
        self,
        modes: sessions.SessionModeState | None,
        options: tuple[sessions.SessionConfigOption, ...] | None,
        models: Models | None = None,
    ) -> None:
        """As the answer that opens a session has them."""
        self._modes = self._usual = self._by_us = self._set_to = None
        self._models = models
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

    def _configured(self, options: Iterable[Any]) -> None:
        known = sessions.SessionConfigSelect | sessions.SessionConfigBoolean
        self.options = tuple(each for each in options if isinstance(each, known))[:MOST]
        for option in self.options:
            if isinstance(option, sessions.SessionConfigSelect) and option.category == "mode":
                values = tuple((each.value, each.name) for each in values_of(option.options))
                self._modes = _Modes(
                    values=values, current=option.current_value, config_id=option.id
                )
                return

    def wanted(self, mode: Mode) -> Setting | Literal["none", "as it is"]:
        """What is to be set so that the agent is in a mode that fits. ``none``: it has none that does."""
        modes = self._modes
        if mode == "work":
            if modes is None:
                return "as it is"
            back = self._usual if modes.current == self._by_us else None
            if self.chosen is not None and (back is not None or self._set_to != self.chosen):
                back = self.chosen
            if back is None or back == modes.current:
                return "as it is"
            return Setting(value=back, config_id=modes.config_id)
        if modes is None:
            return "none"
        for word in _FITTING[mode]:
            for value, name in modes.values:
                if word in (_plain(value), _plain(name)):
                    if value == modes.current:
                        return "as it is"
                    return Setting(value=value, config_id=modes.config_id)
        return "none"

    def was_brought(self, setting: Setting | None, mode: Mode) -> None:
        """The agent is in a mode that fits ours; `setting` is what it took for that."""
        if mode == "work":
            self._set_to = self.chosen
        if self._modes is None or setting is None:
            return
        if mode == "work":
            self._usual = self._by_us = None
        else:
            self._usual = self._usual or self._modes.current
            self._by_us = setting.value
        self._modes.current = setting.value

    # --- what a person can set ---

    @property
    def mode_option(self) -> str | None:
        """Which of its options are its modes."""
        return None if self._modes is None else self._modes.option_id

    def offered(self, profile: str) -> tuple[SessionOption, ...]:
        """All that it lets a person set. Its mode is the one that it has where Callboard does not hold it."""
        offering = Offering(profile)
        modes, models = self._modes, self._models
        mode = None
        if modes is not None:
            mode = self._usual if modes.current == self._by_us and self._usual else modes.current
        for option in self.options:
            offering.add_option(option, mode if option.id == self.mode_option else None)
        if modes is not None and modes.config_id is None and mode is not None:
            values = [value_of(value, name) for value, name in modes.values]
            offering.add("mode", "Mode", mode, values, "mode")
        if models is not None and not any(each.category == "model" for each in offering.options):
            offering.add("model", "Model", models.current, models.values, "model")
        return tuple(offering.options)

    def setting(self, option_id: str, value: str) -> Setting:
        """How an option is set that is offered."""
        for option in self.options:
            if option.id == option_id:
                switch = isinstance(option, sessions.SessionConfigBoolean)
                return Setting(value=value, config_id=option_id, is_switch=switch)
        return Setting(value=value, is_model=option_id == "model")

    def now_is(self, setting: Setting) -> None:
        """The agent has taken it, and does not say so by itself."""
        if setting.is_model and self._models is not None:
            self._models = evolve(self._models, current=setting.value)
        self.options = tuple(
            evolve(
                option,
                current_value=setting.value == "true" if setting.is_switch else setting.value,
            )
            if option.id == setting.config_id
            else option
            for option in self.options
        )


def _plain(text: str) -> str:
    """A mode's name without what some put around it: ``https://…/modes#plan``, ``Plan Mode``."""
    return text.casefold().rpartition("#")[2].removesuffix("mode").strip().replace(" ", "-")
