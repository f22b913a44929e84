"""The verdict on a row of a benchmark: what passes, fails, and cannot be decided."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

from aon_bench import Row  # noqa: E402


class Verdicts(unittest.TestCase):
    def verdict(self, low, high, goal=1.0):
        return Row("row", (low + high) / 2, low, high, "%", goal).verdict

    def test_an_interval_below_the_goal_passes(self):
        self.assertEqual(self.verdict(0.2, 0.9), "pass")
        self.assertEqual(self.verdict(-0.3, 0.5), "pass")

    def test_an_interval_above_the_goal_fails(self):
        self.assertEqual(self.verdict(1.1, 1.5), "FAIL")

    def test_an_interval_that_holds_the_goal_is_undecided(self):
        self.assertEqual(self.verdict(0.6, 1.2), "undecided")

    def test_an_interval_wider_than_the_goal_is_undecided_wherever_it_lies(self):
        self.assertEqual(self.verdict(-3.0, 0.5), "undecided")
        self.assertEqual(self.verdict(2.0, 5.0), "undecided")

    def test_without_a_goal_nothing_is_judged(self):
        self.assertEqual(self.verdict(0.0, 9.0, None), "info")


if __name__ == "__main__":
    unittest.main()
