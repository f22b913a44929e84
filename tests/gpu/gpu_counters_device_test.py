"""PM sampling on a real GPU, from the agent's helper process: values move between idle and busy,
agree with GPM where that is, and leave the clocks alone or say what they do to them. Runs on any
machine with a GPU of NVIDIA, CUPTI and the permission; elsewhere it is skipped (77)."""
import numpy
from busy_run import BusyCase
from device import need_gpm, skip_without_device
from aon_test import main


class Device(BusyCase):
    options = ("--gpu-counters", "core")
    provider = "gpu-counters"

    def test_units_are_busy_when_the_kernel_is(self):
        self.assertGreater(self.mean("counters/sm-active", "busy"), 0.8)
        self.assertGreater(self.mean("counters/issue-active", "busy"), 0.2)
        self.assertLess(self.mean("counters/tensor-active", "busy"), 0.05)
        self.assertLess(self.mean("counters/sm-active", "idle"), 0.1)

    def test_samples_are_ten_milliseconds_apart(self):
        times, _ = self.inside("counters/sm-active", "busy")
        self.assertAlmostEqual(float(numpy.median(numpy.diff(times))) / 1e6, 10, delta=0.5)

    def test_agrees_with_gpm(self):
        if not self.has("gpm"):
            need_gpm(self.nvml, self.capability)
        self.assertAlmostEqual(self.mean("counters/sm-active", "busy"),
                               self.mean("gpm/sm-active", "busy"), delta=0.05)

    def test_clock_is_that_of_nvml(self):
        self.need_metric("counters/clock-gpc")
        for phase in ("idle", "busy"):
            self.mean("nvml/clock-sm", phase)
        self.assertAlmostEqual(self.mean("counters/clock-gpc", "busy") /
                               self.mean("nvml/clock-sm", "busy"), 1, delta=0.1)


if __name__ == "__main__":
    skip_without_device()
    main()
