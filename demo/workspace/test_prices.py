import unittest

from prices import total


class Total(unittest.TestCase):
    def test_tax_comes_on_top_of_the_sum(self):
        self.assertEqual(total([10, 20], 0.2), 36.0)


if __name__ == "__main__":
    unittest.main()
