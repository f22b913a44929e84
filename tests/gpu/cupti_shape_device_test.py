"""The made-up CUPTI (tests/fake_cuda) beside the CUPTI of this machine's GPU: both record the same
program, and what their buffers hold, times apart, is held together (shapes.py). A difference is a
fault of the made-up one, by which all other tests here go. Runs on any machine with a GPU of NVIDIA
and CUPTI 13.0, whose records' lengths are known; what it lacks is skipped by its name (77).
"""
import unittest

import shapes
from device import BUSY, gpu_environment, need, skip_without_device
from aon_test import BUILD, TestCase, ledger, main, run

KNOWN = 1300  # hundreds of CUPTI's version


class Shapes(TestCase):
    def test_the_made_up_cupti_tells_as_this_device_does(self):
        output, kept = self.folder / "job", self.folder / "kept"
        words = ["aon-run", "-o", output, "--budget", "100", "--record-fixture", kept, "--", BUSY,
                 *shapes.PLAN]  # fmt: skip
        self.assert_exit(run(words, env=gpu_environment()))
        need("cupti", ledger(output)["ranks"][0]["providers"]["cupti"])
        [file] = kept.iterdir()
        real = file.read_bytes()
        if shapes.version(real) // 100 != KNOWN:
            raise unittest.SkipTest(f"records of CUPTI {shapes.version(real)} are not known")
        made = shapes.record(self.folder / "made", BUILD / "lib" / "fake_cuda")
        shapes.assert_alike(self, shapes.Shape(made), shapes.Shape(real))


if __name__ == "__main__":
    skip_without_device()
    main()
