"""NVML and GPM on a real GPU: their values move between idle and busy as they must. Runs on any
machine with a GPU of NVIDIA; elsewhere it is skipped (77)."""
from busy_run import BusyCase
from device import need_gpm, skip_without_device
from aon_test import main


class Device(BusyCase):
    def test_power_and_utilisation_follow_the_work(self):
        self.assertGreater(self.mean("nvml/power", "busy"),
                           1.3 * self.mean("nvml/power", "idle"))
        self.assertGreater(self.mean("nvml/utilisation", "busy"), 0.9)
        self.assertLess(self.mean("nvml/utilisation", "idle"), 0.1)

    def test_energy_is_power_times_time(self):
        time, energy = self.inside("nvml/energy", "busy")
        watts = (energy[-1] - energy[0]) / ((time[-1] - time[0]) / 1e9)
        self.assertAlmostEqual(watts / self.mean("nvml/power", "busy"), 1, delta=0.15)

    def test_units_are_busy_when_the_kernel_is(self):
        if not self.has("gpm"):
            need_gpm(self.state, self.capability)
        self.assertGreater(self.mean("gpm/sm-active", "busy"), 0.8)
        self.assertGreater(self.mean("gpm/fp32-active", "busy"), 0.2)
        self.assertLess(self.mean("gpm/tensor-active", "busy"), 0.05)
        self.assertLess(self.mean("gpm/dram-active", "busy"), 0.1)
        self.assertLess(self.mean("gpm/sm-active", "idle"), 0.1)


if __name__ == "__main__":
    skip_without_device()
    main()
