"""Prices of a small shop."""


def total(prices, tax):
    """What a customer pays for `prices`, with `tax` (0.2 is 20 %) on top."""
    return sum(price for price in prices) * tax
