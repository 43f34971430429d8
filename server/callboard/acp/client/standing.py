"""How the agents of profiles stand, as far as this process has seen: by its last probe, or session, of each. Nothing is
started to know it, and what was seen counts for the very command that it was seen of."""

import os
import shutil
from collections.abc import Mapping

from callboard_rpc.errors import CallboardError
from callboard_rpc.profiles import ProbeStatus, ProfileStatus

from ...sessions.profiles import Profile

_Means = tuple[tuple[str, ...], tuple[tuple[str, str], ...]]


class Standings:
    """The last of each profile, by its name."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[_Means, ProbeStatus]] = {}

    def note(self, profile: Profile, status: ProbeStatus) -> None:
        self._seen[profile.name] = (_means(profile), status)

    def of(self, profile: Profile) -> ProfileStatus:
        means, status = self._seen.get(profile.name, (None, "unknown"))
        return status if means == _means(profile) else "unknown"


def status_of(error: CallboardError, profile: Profile, environ: Mapping[str, str]) -> ProbeStatus:
    """What an agent that could not be used is, by the error that came of it."""
    if error.kind == "authRequired":
        return "needsAuth"
    missing = error.kind == "modelUnavailable" and program_of(profile, environ) is None
    return "missing" if missing else "error"


def program_of(profile: Profile, environ: Mapping[str, str]) -> str | None:
    """Where the program of an agent is, if it is there."""
    return shutil.which(profile.command[0], path=environ.get("PATH", os.defpath))


def _means(profile: Profile) -> _Means:
    return profile.command, tuple(sorted(profile.env.items()))
