"""The verdict on a row of a benchmark: what passes, fails, and cannot be decided."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

from aon_bench import LOOKS, Row, interleaved, percent_gate  # noqa: E402


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


class Pairs(unittest.TestCase):
    def looks(self, decide_at):
        asked = []

        def decided(pairs):
            asked.append(len(pairs))
            return len(pairs) >= decide_at

        pairs = interleaved(lambda: 2, lambda: 1, decided)
        self.assertEqual(set(pairs), {(2, 1)})
        return len(pairs), asked

    def test_it_is_asked_only_after_some_numbers_of_pairs(self):
        self.assertEqual(self.looks(9), (LOOKS[1], list(LOOKS[:2])))
        self.assertEqual(self.looks(1000), (LOOKS[-1], list(LOOKS)))

    def test_a_ratio_is_told_with_what_it_is_of(self):
        row = percent_gate("x", lambda: 3.0, lambda: 2.0, 1.0, 5, unit="s")
        self.assertIn("3 over 2 s: 1.5000", row.note)


if __name__ == "__main__":
    unittest.main()
