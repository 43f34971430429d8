"""What an agent's session is set to: a mode that fits ours, and what a person wants of its own options."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from callboard_rpc.common import Mode, SessionOption
from callboard_rpc.errors import CallboardError

from ...sessions.offers import Values, has_options, has_values
from ...sessions.profiles import Profile
from ..contract import sessions, updates
from ..contract.convert import structure_lenient
from .modes import Choices, Setting

_log = logging.getLogger(__name__)


class Settling:
    """Of one agent. `ask` asks it, and gives the answer as it came, or raises `CallboardError`."""

    def __init__(
        self, profile: Profile, choices: Choices, ask: Callable[[str, Any], Awaitable[Any]]
    ) -> None:
        self._profile = profile
        self._choices = choices
        self._ask = ask
        self._session_id = ""
        self._set: dict[str, str] = {}
        """What was set of what a person wants; what the agent does with it since is its own."""

    def begin(self, session_id: str) -> None:
        """Nothing was set yet in that session of the agent's."""
        self._session_id = session_id
        self._set = {}

    async def settle(self, mode: Mode, wanted: Values) -> None:
        """Brings the agent's session into a mode that fits ours, and sets what a person wants of it, once. Raises
        `CallboardError` for what it does not have, or take."""
        choices = self._choices
        told = choices.offered(self._profile.name)
        for option_id, value in wanted.items():
            if self._set.get(option_id) != value:
                self._must_have(told, option_id, value)
        choices.chosen = None if choices.mode_option is None else wanted.get(choices.mode_option)
        await self._bring(mode)
        for option_id, value in wanted.items():
            if option_id == choices.mode_option or self._set.get(option_id) == value:
                continue
            if not any(each.option_id == option_id and each.value == value for each in told):
                await self._put(choices.setting(option_id, value))
            self._set[option_id] = value

    def _must_have(self, told: Sequence[SessionOption], option_id: str, value: str) -> None:
        option = next((each for each in told if each.option_id == option_id), None)
        if option is not None and value in [each.value for each in option.values]:
            return
        what = f"{option_id} {value!r}; " if option else f"option {option_id!r}; "
        has = has_values(option) if option else has_options(told)
        raise CallboardError(
            "modelUnavailable",
            f"the agent {self._profile.name!r} has no {what}{has}. "
            "Set another with `callboard run --option`, or, also null, with session/update",
        )

    async def _bring(self, mode: Mode) -> None:
        wanted = self._choices.wanted(mode)
        if not isinstance(wanted, Setting):
            self._choices.was_brought(None, mode)
            return
        try:
            await self._put(wanted)
        except CallboardError as fault:
            if mode == "work" and wanted.value == self._choices.chosen:
                raise
            _log.info("agent %s stays in its mode: %s", self._profile.name, fault)
            return
        self._choices.was_brought(wanted, mode)

    async def _put(self, setting: Setting) -> None:
        """Sets something of the agent's session. Raises `CallboardError`."""
        asked: Any
        if setting.config_id is not None:
            method = "session/set_config_option"
            switch = setting.is_switch
            asked = sessions.SetSessionConfigOptionRequest(
                session_id=self._session_id,
                config_id=setting.config_id,
                value=setting.value == "true" if switch else setting.value,
                type="boolean" if switch else None,
            )
        elif setting.is_model:
            method = "session/set_model"
            asked = {"sessionId": self._session_id, "modelId": setting.value}
        else:
            method = "session/set_mode"
            asked = sessions.SetSessionModeRequest(
                session_id=self._session_id, mode_id=setting.value
            )
        answer = await self._ask(method, asked)
        self._choices.now_is(setting)
        if isinstance(answer, dict) and "configOptions" in answer:
            self._heed_options(cast("dict[str, Any]", answer))

    def _heed_options(self, answer: dict[str, Any]) -> None:
        """An agent tells all of its options when one is set: others may be different then."""
        try:
            told = structure_lenient(answer, sessions.SetSessionConfigOptionResponse)
        except Exception as fault:
            _log.info("agent %s told options that cannot be read: %s", self._profile.name, fault)
            return
        self._choices.heed(updates.ConfigOptionUpdate(config_options=told.config_options))
