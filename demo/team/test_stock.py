"""The rules of the warehouse."""

import unittest

from stock import Stock


class StockTest(unittest.TestCase):
    def test_what_was_put_can_be_taken(self) -> None:
        stock = Stock()
        stock.put("nails", 5)
        stock.take("nails", 3)
        self.assertEqual(stock.count("nails"), 2)

    def test_what_is_not_there_cannot_be_taken(self) -> None:
        stock = Stock()
        stock.put("nails", 1)
        with self.assertRaises(ValueError):
            stock.take("nails", 2)
        self.assertEqual(stock.count("nails"), 1)


if __name__ == "__main__":
    unittest.main()
