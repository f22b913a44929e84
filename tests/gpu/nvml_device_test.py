"""NVML and GPM on a real GPU: their values move between idle and busy as they must. Runs on any
machine with a GPU of NVIDIA; elsewhere it is skipped (77)."""
import pathlib
import sys
import unittest

import h5py
import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from aon_test import BUILD, SKIPPED, TestCase, ledger, run  # noqa: E402

PROGRAM = BUILD / "bin" / "gpu_busy"
EDGE_NS = 1_500_000_000  # power is a mean over 1 s, and is read once a second


class Device(TestCase):
    @classmethod
    def setUpClass(cls):
        case = TestCase()
        case.setUp()
        cls.addClassCleanup(case.doCleanups)
        cls.output = case.folder / "job"
        process = run(["aon-run", "-o", cls.output, "--", PROGRAM, 6, 6, 6])
        case.assert_exit(process)
        case.assert_exit(run(["aon", "finalize", "--quiet", cls.output]))
        lines = [line.split() for line in process.stdout.splitlines()]
        times = [int(t) for name, t in lines if name in ("idle", "busy", "end")]
        cls.idle, cls.busy = times[0:2], times[1:3]
        cls.file = h5py.File(cls.output / "profile.h5")
        cls.addClassCleanup(cls.file.close)
        provider = ledger(cls.output)["nodes"][0]["providers"]["nvml"]
        print(provider)
        case.assertNotEqual(provider["state"], "off")
        # The one that was busy is the one whose energy grew most.
        gpus = [n for n in cls.file["series"] if n.startswith("gpu_") and "nvml" in
                cls.file["series"][n] and "energy" in cls.file["series"][n]["nvml"]]
        cls.gpu = max(gpus, key=lambda n: cls.file["series"][n]["nvml/energy"][-1])

    def mean(self, name, phase):
        group, _ = name.split("/")
        values = self.file[f"series/{self.gpu}/{name}"][:]
        time = self.file[f"series/{self.gpu}/{group}/time"][:]
        inside = (time > phase[0] + EDGE_NS) & (time < phase[1]) & ~numpy.isnan(values)
        self.assertTrue(inside.any(), name)
        result = float(values[inside].mean())
        print(f"{name}: {result:.4g}")
        return result

    def test_power_and_utilisation_follow_the_work(self):
        self.assertGreater(self.mean("nvml/power", self.busy),
                           1.3 * self.mean("nvml/power", self.idle))
        self.assertGreater(self.mean("nvml/utilisation", self.busy), 0.9)
        self.assertLess(self.mean("nvml/utilisation", self.idle), 0.1)

    def test_energy_is_power_times_time(self):
        time = self.file[f"series/{self.gpu}/nvml/time"][:]
        energy = self.file[f"series/{self.gpu}/nvml/energy"][:]
        inside = (time > self.busy[0] + EDGE_NS) & (time < self.busy[1]) & ~numpy.isnan(energy)
        seconds = (time[inside][-1] - time[inside][0]) / 1e9
        watts = (energy[inside][-1] - energy[inside][0]) / seconds
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
    if run([PROGRAM, 0, 0, 0]).returncode == SKIPPED:
        print("no GPU of NVIDIA here")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
