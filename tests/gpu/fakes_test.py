"""The scripts for a machine with a GPU over the made-up driver and CUPTI (tests/fake_cuda), as far
as these go: tests pass there, a test that must fail does, benches have all their rows, and without
any driver all are skipped."""
import pathlib
import sys
import tempfile
import unittest

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from aon_test import BUILD, SKIPPED, SOURCE, environment, run  # noqa: E402

import shapes  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
BENCH = SOURCE / "tests" / "bench" / "gpu" / "bench.py"
FAKES = BUILD / "lib" / "fake_cuda"
DEVICE_TESTS = sorted(HERE.glob("*_device_test.py"))


def run_script(path, *words, **knobs):
    knobs = {"LD_LIBRARY_PATH": FAKES, "FAKE_CUDA_DURATION_US": 500, **knobs}
    variables = environment(AON_BUILD=BUILD, AON_SOURCE=SOURCE, **knobs)
    return run([sys.executable, path, *words], env=variables, timeout_s=250)


class Fakes(unittest.TestCase):
    def assert_exit(self, done, code):
        self.assertEqual(done.returncode, code, done.stdout[-3000:] + done.stderr[-3000:])

    def test_activity_and_its_times_pass(self):
        for part in ("cupti", "gpu_graphs", "gpu_times"):
            self.assert_exit(run_script(HERE / f"{part}_device_test.py"), 0)

    def test_the_made_up_cupti_tells_as_a_device_does(self):
        """Beside the buffers of an H200: what a reader of CUPTI could see, times apart."""
        real = (SOURCE / "tests/replay/cupti/h200-130001.bin").read_bytes()
        with tempfile.TemporaryDirectory() as folder:
            made = shapes.record(folder, FAKES)
        shapes.assert_alike(self, shapes.Shape(made), shapes.Shape(real))

    def test_what_a_device_tells_otherwise_fails(self):
        path = HERE / "cupti_shape_device_test.py"
        self.assert_exit(run_script(path), 0)
        done = run_script(path, FAKE_CUPTI_WORKER_ASKS=1)
        self.assert_exit(done, 1)
        self.assertIn("FAIL: test_the_made_up_cupti_tells_as_this_device_does", done.stderr)

    def test_another_client_of_cupti_skips(self):
        done = run_script(HERE / "cupti_device_test.py", FAKE_CUPTI_BUSY="nsys")
        self.assert_exit(done, SKIPPED)
        self.assertIn("another client holds CUPTI: nsys", done.stdout)

    def test_an_error_of_cupti_fails(self):
        done = run_script(HERE / "cupti_device_test.py", FAKE_CUPTI_ERROR="cuptiSubscribe:1")
        self.assert_exit(done, 1)
        self.assertIn("cuptiSubscribe: error", done.stderr)

    def test_lost_kernels_fail(self):
        done = run_script(HERE / "gpu_times_device_test.py", FAKE_CUPTI_DROP=50)
        self.assert_exit(done, 1)
        self.assertIn("FAIL: test_kernels_take_as_long_as_events_say", done.stderr)

    def test_benches_have_all_their_rows(self):
        words = ("--rounds", 2, "--seconds", 0.3, "launches", "loop", "graphs", "subscription",
                 "attached")
        done = run_script(BENCH, *words, FAKE_CUDA_DURATION_US=1)
        self.assert_exit(done, 0)
        self.assertEqual(done.stdout.count("BENCH-ROW "), 14, done.stdout)

    def test_a_plugin_in_the_toggle_records_as_alone(self):
        for version in (4, 5, 6, 7):
            with self.subTest(version), tempfile.TemporaryDirectory() as folder:
                plugins = BUILD / "lib"
                words = ["aon-run", "-o", f"{folder}/job", "--", "env",
                         f"NCCL_PROFILER_PLUGIN={plugins}/fake_nccl/libnccl-profiler-toggle.so",
                         f"AON_TOGGLED_PLUGIN={plugins}/libnccl-profiler-aon.so",
                         BUILD / "bin" / "fake_nccl", "allreduce", version, 50]  # fmt: skip
                self.assert_exit(run(words, env=environment(OMPI_COMM_WORLD_SIZE=2)), 0)
                with h5py.File(f"{folder}/job/profile.h5") as file:
                    self.assertEqual(file["nccl/histograms/count"][:].sum(), 50)

    def test_without_a_driver_all_are_skipped(self):
        for path in [*DEVICE_TESTS, BENCH]:
            with self.subTest(path.name):
                done = run_script(path, LD_LIBRARY_PATH=None)
                self.assert_exit(done, SKIPPED)
                self.assertIn("skipped: no ", done.stdout)


if __name__ == "__main__":
    if run([BUILD / "bin" / "gpu_busy"]).returncode != SKIPPED:
        print("skipped: this machine has a GPU")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
