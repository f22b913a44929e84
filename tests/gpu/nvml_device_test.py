"""NVML and GPM on a real GPU: their values move between idle and busy as they must. Runs on any
machine with a GPU of NVIDIA; elsewhere it is skipped (77)."""
import unittest

from busy_run import BusyCase, skip_without_device


class Device(BusyCase):
    def test_works(self):
        self.assertNotEqual(self.state["state"], "off")

    def test_power_and_utilisation_follow_the_work(self):
        self.assertGreater(self.mean("nvml/power", self.busy),
                           1.3 * self.mean("nvml/power", self.idle))
        self.assertGreater(self.mean("nvml/utilisation", self.busy), 0.9)
        self.assertLess(self.mean("nvml/utilisation", self.idle), 0.1)

    def test_energy_is_power_times_time(self):
        time, energy = self.inside("nvml/energy", self.busy)
        watts = (energy[-1] - energy[0]) / ((time[-1] - time[0]) / 1e9)
        self.assertAlmostEqual(watts / self.mean("nvml/power", self.busy), 1, delta=0.15)

    def test_units_are_busy_when_the_kernel_is(self):
        if "gpm" not in self.file[f"series/{self.gpu}"]:
            self.skipTest("this GPU has no GPM (before Hopper), or no permission")
        self.assertGreater(self.mean("gpm/sm-active", self.busy), 0.8)
        self.assertGreater(self.mean("gpm/fp32-active", self.busy), 0.2)
        self.assertLess(self.mean("gpm/tensor-active", self.busy), 0.05)
        self.assertLess(self.mean("gpm/dram-active", self.busy), 0.1)
        self.assertLess(self.mean("gpm/sm-active", self.idle), 0.1)


if __name__ == "__main__":
    skip_without_device()
    unittest.main(verbosity=2)
