"""The rules of the inbox without a store: watermarks, digests, claims."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inbox_kit import envelope

from callboard.sessions.inbox.state import (
    Claim,
    Held,
    Policy,
    StaleClaim,
    Watermarks,
    body_of,
    claimed,
    digest_of,
    renewed,
)
from callboard_rpc.common import TextContent
from callboard_rpc.errors import CallboardError

POLICIES: list[Policy] = ["respect_wait", "interrupt_wait"]


@given(
    delivered=st.integers(1, 20),
    steps=st.lists(st.tuples(st.integers(-2, 25), st.sampled_from(POLICIES)), max_size=30),
)
def test_execution_4_watermarks_only_rise_and_keep_their_order(
    delivered: int, steps: list[tuple[int, Policy]]
) -> None:
    at = Watermarks(delivered=delivered)
    for generation, policy in steps:
        before = at
        try:
            at = at.authorise(generation, policy)
        except CallboardError as error:
            assert error.kind == "invalidParams"
            assert not 1 <= generation <= delivered
            continue
        assert at.activated >= max(before.activated, generation)
        assert at.interrupts >= before.interrupts
        assert at.interrupts <= at.activated <= at.delivered == delivered
        assert (at.interrupts > before.interrupts) <= (policy == "interrupt_wait")


def test_a_digest_tells_content_apart_and_not_the_id() -> None:
    one = envelope("text", "one")
    assert digest_of(body_of(one)) == digest_of(body_of(envelope("text", "two")))
    others = [
        envelope("other"),
        attrs.evolve(one, kind="report"),
        attrs.evolve(one, policy="interrupt_wait"),
        attrs.evolve(one, meta={"a": 1}),
        attrs.evolve(one, author=attrs.evolve(one.author, name="somebody")),
        attrs.evolve(one, content=(TextContent(text="text"), TextContent(text="more"))),
    ]
    digests = {digest_of(body_of(each)) for each in (one, *others)}
    assert len(digests) == 1 + len(others)
    ordered = attrs.evolve(one, meta={"a": 1, "b": 2})
    assert body_of(ordered) == body_of(attrs.evolve(one, meta={"b": 2, "a": 1}))


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["here", "there"]),
            st.integers(0, 30),
            st.integers(1, 20),
            st.booleans(),
        ),
        max_size=60,
    )
)
def test_execution_40_however_claims_follow_each_other_one_holds_at_a_time(
    steps: list[tuple[str, int, int, bool]],
) -> None:
    held, now = Held(owner=None, epoch=0, incarnation=None, expires_at=None), 0
    tokens: set[tuple[int, str]] = set()
    for number, (owner, passes, lease, renews) in enumerate(steps):
        now += passes
        clock, until = f"{now:06}", f"{now + lease:06}"
        live = held.is_live(clock)
        if renews and held.owner == owner:
            claim = _claim(held)
            if not live:
                with pytest.raises(StaleClaim):
                    renewed(held, claim, now=clock, until=until, incarnation=str(number))
                continue
            after = renewed(held, claim, now=clock, until=until, incarnation=str(number))
            assert after.epoch == held.epoch
            assert after.expires_at == max(held.expires_at or "", until)
        else:
            got = claimed(held, owner=owner, now=clock, until=until, incarnation=str(number))
            if live:
                assert got == (held if held.owner == owner else None)
                continue
            assert got is not None
            after = got
            assert (after.epoch, after.owner) == (held.epoch + 1, owner)
        token = (after.epoch, after.incarnation or "")
        assert token not in tokens  # a token counts once and never again
        tokens.add(token)
        held = after


def _claim(held: Held) -> Claim:
    assert held.owner is not None
    assert held.incarnation is not None
    assert held.expires_at is not None
    return Claim(
        session_id="s",
        generation=1,
        delivery_id="d",
        owner=held.owner,
        epoch=held.epoch,
        incarnation=held.incarnation,
        expires_at=held.expires_at,
    )
