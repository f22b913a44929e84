"""CUPTI's activity on a real GPU: kernels are as many and as long as the program says, copies are
there with their bytes, and what CUPTI delivered is kept as a fixture for tests/replay/cupti. Runs
on any machine with a GPU of NVIDIA and CUPTI; elsewhere it is skipped (77).

    AON_FIXTURE_OUT=DIR    the fixture is copied there: check it in as DIR/CHIP-VERSION.bin
"""
import os
import pathlib
import shutil
import sys
import unittest

import h5py
from busy_run import PROGRAM, SKIPPED, TestCase, ledger, run, skip_without_device


class Device(TestCase):
    @classmethod
    def setUpClass(cls):
        case = TestCase()
        case.setUp()
        cls.addClassCleanup(case.doCleanups)
        output, cls.fixtures = case.folder / "job", case.folder / "fixtures"
        process = run(["aon-run", "-o", output, "--budget", "100", "--record-fixture",
                       cls.fixtures, "--", PROGRAM, 0, 1, 0])
        case.assert_exit(process)
        case.assert_exit(run(["aon", "finalize", "--quiet", output]))
        told = dict(line.split()[:2] for line in process.stdout.splitlines() if " " in line)
        cls.launched = int(told["launched"])
        cls.provider = ledger(output)["ranks"][0]["providers"]["cupti"]
        print(cls.provider)
        if cls.provider["state"] == "off":
            sys.exit(SKIPPED)
        cls.file = h5py.File(output / "profile.h5")
        cls.addClassCleanup(cls.file.close)

    def test_every_kernel_is_there(self):
        self.assertEqual(int(self.file["gpu/kernels/count"][:].sum()), self.launched)

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
    unittest.main(verbosity=2)
