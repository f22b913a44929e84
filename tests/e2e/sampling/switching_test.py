"""A program whose context switches make the kernel's counting and sampling dearer than the budget:
it is counted from /proc, threads that switch are left, and all that is told."""
import h5py

from sampling import SWITCHING, Samples, skip_without_perf

import aon_test
from aon_test import ledger, profile


class Switching(aon_test.TestCase):
    def setUp(self):
        super().setUp()
        self.output = self.folder / "out"

    def counts(self, name):
        with h5py.File(self.output / "profile.h5") as file:
            return file[f"series/rank_0/perf/{name}"][:]

    def run_switching(self, *options):
        done = profile(1, self.output, SWITCHING, 6, options=options)
        self.assert_exit(done)
        document = ledger(self.output)
        providers = document["ranks"][0]["providers"]
        switches = int(done.stdout.split("switches ")[1].split()[0])
        self.computed_s = float(done.stdout.split("computed ")[1].split()[0])
        return document, providers["perf"], providers["sampling"], switches

    def test_what_costs_is_given_up(self):
        document, perf, sampling, switches = self.run_switching("--budget", "1")
        self.assertEqual(perf["state"], "degraded")
        self.assertIn("counted from /proc once a second", perf["reason"])
        self.assertIn("a larger --budget", perf["remedy"])
        self.assertEqual(sampling["state"], "degraded")
        self.assertIn("watching their context switches", sampling["reason"])
        # The thread that computes is sampled to the end, at 97 Hz. Of 9 s these are 2.
        count = Samples(self.output).by_function()["compute"]
        self.assertGreater(count, 97 * self.computed_s * 2 / 9)
        # What was counted goes on where the kernel's counting ended. The threads' last second is
        # not in it: they end before the next look.
        counts = self.counts("context-switches")
        self.assertTrue((counts[1:] >= counts[:-1]).all(), counts)
        self.assertGreater(counts[-1], 0.6 * switches)
        self.assertLess(counts[-1], 1.1 * switches + 1000)
        # Two threads paid some microsecond for each of the switches that were watched.
        self.assertGreater(document["overhead"]["app_cpu_s"], 0.01)
        self.assertGreater(document["budget"]["mode_changes"], 0)

    def test_within_the_budget_nothing_is_given_up(self):
        document, perf, sampling, switches = self.run_switching("--budget", "100")
        self.assertNotIn("/proc", perf["reason"])
        self.assertNotIn("watching", sampling["reason"])
        counts = self.counts("context-switches")
        self.assertGreater(counts[-1], 0.9 * switches)
        # Each switch is charged, with a microsecond at least.
        self.assertGreater(document["overhead"]["app_cpu_s"], 0.8e-6 * switches)


if __name__ == "__main__":
    skip_without_perf()
    aon_test.unittest.main()
