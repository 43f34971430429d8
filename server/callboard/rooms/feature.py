"""Rooms, as the host takes them in."""

from ..config import Settings
from ..features import Feature, Ground
from ..log.transaction import Transaction
from ..sessions.beginning import Opening
from ..turns.finish import Ending
from ..turns.reservation import Grant
from . import waking
from .projection import PROJECTION
from .routing import route
from .service import Rooms

SERVICE = "rooms"
"""Under which name the host has the `Rooms`."""


def feature(settings: Settings) -> Feature:
    budget = settings.rooms.burst_budget

    def ended(tx: Transaction, grant: Grant, ending: Ending) -> None:
        waking.ended(tx, grant, ending, budget=budget)

    def service(ground: Ground) -> Rooms:
        return Rooms(
            log=ground.log, reading=ground.reading, profiles=ground.profiles, budget=budget
        )

    return Feature(
        name=SERVICE,
        projections=(PROJECTION,),
        openings=(Opening(name=SERVICE, answers=route),),
        hooks=(ended,),
        service=service,
    )
