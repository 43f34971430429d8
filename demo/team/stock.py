"""What is in the warehouse."""


class Stock:
    """Counts of items by name."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def put(self, item: str, count: int) -> None:
        """Adds `count` of an item."""
        self._counts[item] = self.count(item) + count

    def take(self, item: str, count: int) -> None:
        """Takes `count` of an item."""
        self._counts[item] = self.count(item) - count

    def count(self, item: str) -> int:
        """How many there are."""
        return self._counts.get(item, 0)
