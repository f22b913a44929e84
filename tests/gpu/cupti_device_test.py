"""CUPTI's activity on a real GPU: kernels are as many as the program says, copies are there with
their bytes, and what CUPTI delivered is kept as a fixture for tests/replay/cupti. Runs on any
machine with a GPU of NVIDIA and CUPTI; what it lacks is skipped by its name (77).

    AON_FIXTURE_OUT=DIR    the fixture is copied there: cut (tests/replay/cupti/cut.py) and checked
                           in as CHIP-VERSION.bin
"""
import os
import pathlib
import shutil

import h5py
from device import BUSY, gpu_environment, kernels, need, numbers, skip_without_device
from aon_test import TestCase, ledger, main, run

PLAN = ("busy:1", "copy:0.2", "transfer:0.2")


class Device(TestCase):
    @classmethod
    def setUpClass(cls):
        case = TestCase()
        case.setUp()
        cls.addClassCleanup(case.doCleanups)
        cls.output, cls.fixtures = case.folder / "job", case.folder / "fixtures"
        process = run(["aon-run", "-o", cls.output, "--budget", "100", "--record-fixture",
                       cls.fixtures, "--", BUSY, *PLAN], env=gpu_environment())
        case.assert_exit(process)
        case.assert_exit(run(["aon", "finalize", "--quiet", cls.output]))
        cls.told = numbers(process.stdout)
        need("cupti", ledger(cls.output)["ranks"][0]["providers"]["cupti"])
        cls.file = h5py.File(cls.output / "profile.h5")
        cls.addClassCleanup(cls.file.close)

    def test_every_kernel_is_there(self):
        counts = {name: count for name, (count, _) in kernels(self.output).items()}
        self.assertEqual(counts, {"spin": self.told["launched"]})

    def test_every_copy_is_there_with_its_bytes(self):
        kinds = self.file["gpu/copies/kind"].asstr()[:]
        counts, sizes = (self.file[f"gpu/copies/{c}"][:] for c in ("count", "bytes"))
        copies = {kind: (int(c), int(b)) for kind, c, b in zip(kinds, counts, sizes)
                  if "memcpy" in kind}
        self.assertEqual(set(copies), {"[CUDA memcpy DtoD]", "[CUDA memcpy HtoD]"})
        totals = tuple(map(sum, zip(*copies.values())))
        self.assertEqual(totals, (self.told["copied"], self.told["bytes"]))

    def test_the_device_is_known(self):
        self.assertTrue(self.file["gpu/devices/uuid"][0])
        self.assertTrue(self.file["gpu/devices/name"][0])

    def test_launches_are_known(self):
        self.assertEqual(int(self.file["gpu/use/unknown_launches"][0]), 0)

    def test_the_buffers_are_a_fixture(self):
        files = list(self.fixtures.iterdir())
        self.assertEqual(len(files), 1, files)
        self.assertEqual(files[0].read_bytes()[:8], b"AONCUPTI")
        if out := os.environ.get("AON_FIXTURE_OUT"):
            shutil.copy(files[0], pathlib.Path(out) / files[0].name)
            print("kept", pathlib.Path(out) / files[0].name)


if __name__ == "__main__":
    skip_without_device()
    main()
