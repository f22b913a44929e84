"""A run of gpu_busy under aon-run on a real GPU, shared by the tests of this folder: when it was
idle and busy, and means of series in these phases."""
import pathlib
import sys

import h5py
import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from aon_test import BUILD, SKIPPED, TestCase, ledger, run  # noqa: E402

PROGRAM = BUILD / "bin" / "gpu_busy"
EDGE_NS = 1_500_000_000  # power is a mean over 1 s, and is read once a second


class BusyCase(TestCase):
    """`options` of aon-run and the `provider` that the tests are about."""

    options = ()
    provider = "nvml"

    @classmethod
    def setUpClass(cls):
        case = TestCase()
        case.setUp()
        cls.addClassCleanup(case.doCleanups)
        output = case.folder / "job"
        process = run(["aon-run", "-o", output, *cls.options, "--", PROGRAM, 6, 6, 6])
        case.assert_exit(process)
        case.assert_exit(run(["aon", "finalize", "--quiet", output]))
        lines = [line.split() for line in process.stdout.splitlines()]
        times = [int(words[1]) for words in lines if words[0] in ("idle", "busy", "end")]
        cls.idle, cls.busy = times[0:2], times[1:3]
        cls.file = h5py.File(output / "profile.h5")
        cls.addClassCleanup(cls.file.close)
        cls.state = ledger(output)["nodes"][0]["providers"][cls.provider]
        print(cls.state)
        # The GPU that was busy is the one whose energy grew most.
        gpus = [n for n in cls.file["series"] if n.startswith("gpu_") and "nvml" in
                cls.file["series"][n] and "energy" in cls.file["series"][n]["nvml"]]
        cls.gpu = max(gpus, key=lambda n: cls.file["series"][n]["nvml/energy"][-1], default=None)

    def inside(self, name, phase):
        """Times and values of the series between the edges of a phase."""
        group, _ = name.split("/")
        values = self.file[f"series/{self.gpu}/{name}"][:]
        time = self.file[f"series/{self.gpu}/{group}/time"][:]
        chosen = (time > phase[0] + EDGE_NS) & (time < phase[1]) & ~numpy.isnan(values)
        self.assertTrue(chosen.any(), name)
        return time[chosen], values[chosen]

    def mean(self, name, phase):
        result = float(self.inside(name, phase)[1].mean())
        print(f"{name}: {result:.4g} {'busy' if phase is self.busy else 'idle'}")
        return result


def skip_without_device():
    if run([PROGRAM, 0, 0, 0]).returncode == SKIPPED:
        print("no GPU of NVIDIA here")
        sys.exit(SKIPPED)
