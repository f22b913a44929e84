"""PM sampling on a real GPU, from the agent's helper process: values move between idle and busy,
agree with GPM where that is, and leave the clocks alone or say what they do to them. Runs on any
machine with a GPU of NVIDIA, CUPTI and the permission; elsewhere it is skipped (77)."""
import sys
import unittest

import numpy
from busy_run import SKIPPED, BusyCase, skip_without_device


class Device(BusyCase):
    options = ("--gpu-counters", "core")
    provider = "gpu-counters"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if cls.state["state"] == "off":
            print(cls.state["reason"], cls.state["remedy"])
            sys.exit(SKIPPED)

    def test_units_are_busy_when_the_kernel_is(self):
        self.assertGreater(self.mean("counters/sm-active", self.busy), 0.8)
        self.assertGreater(self.mean("counters/issue-active", self.busy), 0.2)
        self.assertLess(self.mean("counters/tensor-active", self.busy), 0.05)
        self.assertLess(self.mean("counters/sm-active", self.idle), 0.1)

    def test_samples_are_ten_milliseconds_apart(self):
        times, _ = self.inside("counters/sm-active", self.busy)
        self.assertAlmostEqual(float(numpy.median(numpy.diff(times))) / 1e6, 10, delta=0.5)

    def test_agrees_with_gpm(self):
        if "gpm" not in self.file[f"series/{self.gpu}"]:
            self.skipTest("this GPU has no GPM")
        self.assertAlmostEqual(self.mean("counters/sm-active", self.busy),
                               self.mean("gpm/sm-active", self.busy), delta=0.05)

    def test_clock_is_that_of_nvml(self):
        for phase in (self.idle, self.busy):
            self.mean("nvml/clock-sm", phase)
        self.assertAlmostEqual(self.mean("counters/clock-gpc", self.busy) /
                               self.mean("nvml/clock-sm", self.busy), 1, delta=0.1)


if __name__ == "__main__":
    skip_without_device()
    unittest.main(verbosity=2)
