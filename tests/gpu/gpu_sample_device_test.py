"""A CUDA C++ program with the static runtime, compiled by nvcc on the machine: kernels, graphs and
copies as the program counted them, and its result. Skipped (77) without a GPU or nvcc."""
import shutil
import sys

import h5py
from device import HERE, find, gpu_environment, kernels, need, numbers, skip_without_device
from aon_test import SKIPPED, TestCase, ledger, main, run

STEPS = 50
NVCC_PLACES = ("/usr/local/cuda*/bin",)


def nvcc():
    return shutil.which("nvcc") or find(("nvcc",), NVCC_PLACES)


class Sample(TestCase):
    @classmethod
    def setUpClass(cls):
        case = TestCase()
        case.setUp()
        cls.addClassCleanup(case.doCleanups)
        program, cls.output = case.folder / "sample", case.folder / "job"
        case.assert_exit(run([nvcc(), "-O2", "-arch=native", "-o", program, HERE / "sample.cu"]))
        plain = run([program, STEPS])
        case.assert_exit(plain)
        recorded = run(["aon-run", "-o", cls.output, "--budget", "100", "--", program, STEPS],
                       env=gpu_environment())
        case.assert_exit(recorded)
        cls.outputs = plain.stdout, recorded.stdout
        case.assert_exit(run(["aon", "finalize", "--quiet", cls.output]))
        cls.told = numbers(recorded.stdout)
        cls.ledger = ledger(cls.output)
        need("cupti", cls.ledger["ranks"][0]["providers"]["cupti"])

    def test_the_program_says_the_same(self):
        self.assertEqual(*self.outputs)

    def test_kernels_are_as_many_as_were_launched(self):
        counts = {name: count for name, (count, _) in kernels(self.output).items()}
        space = "(anonymous namespace)::"
        self.assertEqual(counts, {
            f"{space}axpy(float*, float const*, float)": self.told["axpy"],
            f"void {space}fill<float>(float*, float)": self.told["fill"],
        })

    def test_graphs_are_as_many_as_were_launched(self):
        with h5py.File(self.output / "profile.h5") as file:
            self.assertEqual(int(file["gpu/graphs/count"][:].sum()), self.told["graphs"])

    def test_copies_are_there_with_their_bytes(self):
        with h5py.File(self.output / "profile.h5") as file:
            kinds = file["gpu/copies/kind"].asstr()[:]
            table = zip(kinds, file["gpu/copies/count"][:], file["gpu/copies/bytes"][:])
            copies = [(int(c), int(b)) for kind, c, b in table if "memcpy" in kind]
        self.assertEqual(tuple(map(sum, zip(*copies))), (self.told["copies"], self.told["bytes"]))

    def test_nothing_is_lost(self):
        self.assertEqual(self.ledger["ranks"][0]["lost"], 0)
        self.assert_law(self.ledger)


if __name__ == "__main__":
    skip_without_device()
    if nvcc() is None:
        print("skipped: no nvcc")
        sys.exit(SKIPPED)
    main()
