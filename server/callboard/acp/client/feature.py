"""Agents of other makers, as a host takes them in."""

from collections.abc import Mapping

from ...features import Feature, Ground
from .driver import drive
from .service import ExternalAgents

SERVICE = "acp"
"""Under which name the host has the `ExternalAgents`."""


def feature(environ: Mapping[str, str]) -> Feature:
    """`environ` is what the agents' programs inherit."""

    def service(ground: Ground) -> ExternalAgents:
        return ExternalAgents(ground, environ)

    return Feature(
        name=SERVICE,
        service=service,
        recovers=ExternalAgents.recover,
        works=ExternalAgents.keep,
        drivers={"acp": drive},
    )
