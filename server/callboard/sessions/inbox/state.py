"""What a delivery is, how far an inbox has come, who holds a claim: values and rules, without I/O."""

import hashlib
from typing import Literal, TypeAlias

import attrs
import orjson
from attrs import frozen

from callboard_rpc.common import Content, Json, TextContent
from callboard_rpc.convert import unstructure
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import Author, DeliveryKind

from ...log.text import all_well_formed, quoted

MAX_ENVELOPE_BYTES = 256 * 1024
MAX_PENDING = 1024
"""Deliveries that may wait in one session."""
MAX_PER_DRAIN = 128
"""Deliveries that a boundary takes in at once."""
MAX_ID_BYTES = 256
MAX_ATTEMPTS = 3
"""Turns that are begun for a delivery and end before they can take it in, until it is set aside."""
MAX_LEASE_S = 3_600.0
MAX_EPOCH = (1 << 63) - 1

Policy: TypeAlias = Literal["respect_wait", "interrupt_wait"]
"""What an authorised delivery does to a turn that runs. Both are taken in at its next boundary.
``interrupt_wait`` (a person, a peer, a parent that steers) makes calls give way that have not begun,
as a steer does; ``respect_wait`` (a child, a timer, a command) lets them run. Neither answers an
approval, nor passes a turn that is parked for one."""

Wake: TypeAlias = Literal["none", "asked", "muted"]


@frozen(kw_only=True)
class Envelope:
    """One delivery. `delivery_id` is its producer's, and makes sending it again harmless.

    `author` is who speaks, `kind` what it is to the session; `meta` is carried into the log and never
    looked into. The text is as untrusted as its producer: frames around it are the producer's work.
    """

    delivery_id: str
    content: tuple[Content, ...]
    author: Author
    kind: DeliveryKind
    policy: Policy = "respect_wait"
    meta: Json | None = None


@frozen(kw_only=True)
class Accepted:
    """A delivery is durable. `repeated`: it was before, under the same id and with the same content."""

    generation: int
    repeated: bool


@frozen(kw_only=True)
class ActiveNotified:
    """A turn runs, and takes the delivery in at its next boundary; should it end before that, the next
    turn does."""

    turn_id: str


@frozen(kw_only=True)
class Coalesced:
    """Nothing had to be started: the wish is durable and joins what is under way (a turn that is ending,
    one that takes in another delivery only, a change of the history, a parked turn), or the delivery is
    not waiting any more."""


@frozen(kw_only=True)
class Started:
    """A turn was begun for it (the spec's ``Reserved``)."""

    turn_id: str


Activation: TypeAlias = ActiveNotified | Coalesced | Started


@frozen(kw_only=True)
class Watermarks:
    """How far an inbox has come, in generations. All three only rise, and
    ``interrupts <= activated <= delivered``."""

    delivered: int = 0
    interrupts: int = 0
    activated: int = 0

    def authorise(self, generation: int, policy: Policy) -> "Watermarks":
        """Lets everything up to `generation` be taken in. Raises invalidParams beyond what there is."""
        if not 1 <= generation <= self.delivered:
            raise CallboardError(
                "invalidParams",
                f"there is no generation {generation} in an inbox that holds {self.delivered}; "
                "authorise what was delivered",
            )
        interrupts = generation if policy == "interrupt_wait" else 0
        return attrs.evolve(
            self,
            interrupts=max(self.interrupts, interrupts),
            activated=max(self.activated, generation),
        )


# --- envelopes ----------------------------------------------------------------------------------


def body_of(envelope: Envelope) -> bytes:
    """All of an envelope but its id, always in the same bytes: what the inbox keeps, and what makes a
    repetition. Raises messageTooLarge, invalidParams."""
    _check_id(envelope.delivery_id)
    if not any(_says_something(block) for block in envelope.content):
        raise CallboardError("invalidParams", f"{_named(envelope)} is empty; put some text into it")
    parts = {
        "content": [unstructure(block) for block in envelope.content],
        "author": unstructure(envelope.author),
        "kind": envelope.kind,
        "policy": envelope.policy,
        "meta": envelope.meta,
    }
    body = orjson.dumps(all_well_formed(parts), option=orjson.OPT_SORT_KEYS)
    if len(body) > MAX_ENVELOPE_BYTES:
        raise CallboardError(
            "messageTooLarge",
            f"{_named(envelope)} has {len(body)} bytes, more than the {MAX_ENVELOPE_BYTES} allowed; put "
            "the material into a file of the workspace and name it",
            data={"limit": MAX_ENVELOPE_BYTES},
        )
    return body


def _says_something(block: Content) -> bool:
    return not isinstance(block, TextContent) or bool(block.text.strip())


def digest_of(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def _named(envelope: Envelope) -> str:
    return f"the delivery {quoted(envelope.delivery_id)}"


def _check_id(delivery_id: str) -> None:
    size = len(delivery_id.encode("utf-8", "surrogatepass"))
    if not delivery_id.isprintable() or not 1 <= size <= MAX_ID_BYTES:
        raise CallboardError(
            "invalidParams",
            f"an id {quoted(delivery_id)} cannot be a delivery's; use 1 to {MAX_ID_BYTES} bytes of "
            "printable text",
        )


# --- claims -------------------------------------------------------------------------------------


class StaleClaim(Exception):
    """The claim is not the one that counts: another took its place, or its time is up. Nothing was
    written."""

    def __init__(self, delivery_id: str, owner: str) -> None:
        super().__init__(
            f"the owner {quoted(owner)} does not hold the delivery {quoted(delivery_id)} any more"
        )
        self.delivery_id = delivery_id
        self.owner = owner


@frozen(kw_only=True)
class Claim:
    """The right to take one delivery in, until `expires_at`. `owner`, `epoch` and `incarnation` are the
    token: each must be exactly the one that counts."""

    session_id: str
    generation: int
    delivery_id: str
    owner: str
    epoch: int
    incarnation: str
    expires_at: str


@frozen(kw_only=True)
class Held:
    """What the inbox knows of a delivery's last claim; `epoch` is 0 before the first."""

    owner: str | None
    epoch: int
    incarnation: str | None
    expires_at: str | None

    def is_live(self, now: str) -> bool:
        """Times are those of `log.clock`, which sort as text. At its very end a claim is over."""
        return self.expires_at is not None and now < self.expires_at

    def is_of(self, claim: Claim) -> bool:
        return (self.owner, self.epoch, self.incarnation) == (
            claim.owner,
            claim.epoch,
            claim.incarnation,
        )


def claimed(held: Held, *, owner: str, now: str, until: str, incarnation: str) -> Held | None:
    """A delivery's claim after `owner` wants it; None while somebody else's is live.

    Who holds a live claim gets the same again, not a longer one. When it is over the epoch rises and the
    incarnation changes, also for the same owner. Raises limitReached when no epoch is left.
    """
    if held.is_live(now):
        return held if held.owner == owner else None
    if held.epoch >= MAX_EPOCH:
        raise CallboardError(
            "limitReached",
            "the delivery was claimed as often as can be counted; it is given to nobody",
        )
    return Held(owner=owner, epoch=held.epoch + 1, incarnation=incarnation, expires_at=until)


def renewed(held: Held, claim: Claim, *, now: str, until: str, incarnation: str) -> Held:
    """A live claim for longer, under a new incarnation; its end never moves back. Raises StaleClaim."""
    if not held.is_of(claim) or not held.is_live(now):
        raise StaleClaim(claim.delivery_id, claim.owner)
    assert held.expires_at is not None
    return attrs.evolve(held, incarnation=incarnation, expires_at=max(held.expires_at, until))
