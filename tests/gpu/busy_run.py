"""A run of gpu_busy under aon-run on a real GPU, shared by the tests of this folder: when each of
its phases was, and means of series in them."""
import unittest

import h5py
import numpy
from device import BUSY, gpu_environment, need, numbers
from aon_test import TestCase, ledger, run

EDGE_NS = 1_500_000_000  # power is a mean over 1 s, and is read once a second


def phases_of(text):
    """[(name, begin ns, end ns)] that gpu_busy printed."""
    lines = [line.split() for line in text.splitlines()]
    words = ("idle", "busy", "copy", "transfer", "matrix", "end")
    begins = [(line[0], int(line[1])) for line in lines if line[0] in words]
    return [(name, begin, after) for (name, begin), (_, after) in zip(begins, begins[1:])]


class BusyCase(TestCase):
    """`options` of aon-run, the `provider` that the tests are about, and what the GPU does."""

    options = ()
    provider = "nvml"
    plan = ("idle:6", "busy:6", "idle:6")

    @classmethod
    def setUpClass(cls):
        case = TestCase()
        case.setUp()
        cls.addClassCleanup(case.doCleanups)
        output = case.folder / "job"
        process = run(["aon-run", "-o", output, *cls.options, "--", BUSY, *cls.plan],
                      env=gpu_environment())
        case.assert_exit(process)
        case.assert_exit(run(["aon", "finalize", "--quiet", output]))
        cls.capability = numbers(process.stdout)["capability"]
        cls.phases = {}  # the first of each name
        for name, begin, end in phases_of(process.stdout):
            cls.phases.setdefault(name, (begin, end))
        providers = ledger(output)["nodes"][0]["providers"]
        cls.nvml, cls.state = providers["nvml"], providers[cls.provider]
        need("nvml", cls.nvml)
        need(cls.provider, cls.state)
        cls.file = h5py.File(output / "profile.h5")
        cls.addClassCleanup(cls.file.close)
        # The GPU that was busy is the one whose energy grew most.
        gpus = [n for n in cls.file["series"] if n.startswith("gpu_") and "nvml" in
                cls.file["series"][n] and "energy" in cls.file["series"][n]["nvml"]]
        case.assertTrue(gpus, "no GPU has energy in profile.h5")
        cls.gpu = max(gpus, key=lambda n: cls.file["series"][n]["nvml/energy"][-1])

    def has(self, name):
        return name in self.file[f"series/{self.gpu}"]

    def need_metric(self, name):
        """Skips where the provider says that this GPU, or this virtual machine, has not `name`."""
        group, metric = name.split("/")
        if self.has(name):
            return
        told = self.state["reason"]
        if group == "counters" and metric in told.partition(" has no ")[2].split(";")[0].split(","):
            raise unittest.SkipTest(f"{self.provider}: {told}")
        self.fail(f"no {name} of {self.gpu}: {told}")

    def inside(self, name, phase):
        """Times and values of the series between the edges of a phase."""
        self.assertTrue(self.has(name), f"no {name} of {self.gpu}")
        group, _ = name.split("/")
        values = self.file[f"series/{self.gpu}/{name}"][:]
        time = self.file[f"series/{self.gpu}/{group}/time"][:]
        begin, end = self.phases[phase]
        chosen = (time > begin + EDGE_NS) & (time < end) & ~numpy.isnan(values)
        self.assertTrue(chosen.any(), name)
        return time[chosen], values[chosen]

    def mean(self, name, phase):
        result = float(self.inside(name, phase)[1].mean())
        print(f"{name}: {result:.4g} {phase}")
        return result
