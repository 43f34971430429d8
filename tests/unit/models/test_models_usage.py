"""What a request costs (coordination 14.2)."""

import pytest

from callboard.models.base import Price
from callboard.models.usage import priced, unreported
from callboard_rpc.common import Usage

PRICE = Price(input=2.0, output=10.0, cache_read=0.5, cache_write=2.5, currency="EUR")


def usage(**counts: int | float | None) -> Usage:
    return Usage(requests=1, **counts)  # pyright: ignore[reportArgumentType]


def test_each_kind_of_token_has_its_price() -> None:
    counted = usage(
        input_tokens=1_000_000,
        output_tokens=200_000,
        cache_read_tokens=300_000,
        cache_write_tokens=100_000,
    )
    found = priced(counted, PRICE)
    assert found.cost == pytest.approx(0.6 * 2 + 0.2 * 10 + 0.3 * 0.5 + 0.1 * 2.5)
    assert (found.currency, found.partial) == ("EUR", False)


def test_what_the_provider_reported_is_never_replaced() -> None:
    reported = usage(input_tokens=5, cost=0.5)
    assert priced(reported, PRICE) is reported


def test_no_price_is_no_cost() -> None:
    counted = usage(input_tokens=5)
    assert priced(counted, None) is counted


def test_an_unknown_price_of_something_used_makes_it_partial() -> None:
    found = priced(
        usage(input_tokens=1_000_000, output_tokens=1, cache_read_tokens=0), Price(input=2.0)
    )
    assert (found.cost, found.partial) == (2.0, True)


def test_an_unknown_count_makes_it_partial() -> None:
    found = priced(usage(input_tokens=1_000_000), Price(input=2.0, output=10.0))
    assert (found.cost, found.partial) == (2.0, True)


def test_a_cache_with_a_price_but_no_count_makes_it_partial() -> None:
    found = priced(usage(input_tokens=1_000_000, output_tokens=0), PRICE)
    assert (found.cost, found.partial) == (2.0, True)


def test_nothing_read_from_the_cache_needs_no_price() -> None:
    found = priced(
        usage(input_tokens=1_000_000, output_tokens=0, cache_read_tokens=0, cache_write_tokens=0),
        Price(input=2.0, output=1.0),
    )
    assert (found.cost, found.partial) == (2.0, False)


def test_nothing_known_is_no_cost_at_all() -> None:
    found = priced(unreported(), PRICE)
    assert (found.cost, found.partial) == (None, True)


def test_more_read_than_sent_is_not_a_refund() -> None:
    found = priced(usage(input_tokens=1, output_tokens=0, cache_read_tokens=1_000_000), PRICE)
    assert found.cost == pytest.approx(0.5)
