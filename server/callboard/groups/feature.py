"""Groups, as the host takes them in."""

from ..features import Feature, Ground
from .calling import SERVICE
from .messages import SOURCE
from .projection import PROJECTION
from .service import Groups
from .tools import GROUP_TOOLS


def feature() -> Feature:
    return Feature(
        name=SERVICE,
        tools=GROUP_TOOLS,
        sources=(SOURCE,),
        projections=(PROJECTION,),
        service=_service,
        recovers=Groups.recover,
    )


def _service(ground: Ground) -> Groups:
    return Groups(ground.log)
