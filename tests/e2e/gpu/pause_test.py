"""CUPTI left to another profiler for a while: aon/gpu.h (all of GPU_PROGRAM_PAUSE goes by it), the
exported names, and Python."""
import h5py

from gpu_case import PROGRAM, GpuCase, gpu_environment, main, readers, text
from aon_test import BUILD, PYTHON, SOURCE, mpirun, run

MODULE = BUILD / "lib" / "aon" / "python"
EXAMPLE = SOURCE / "examples" / "annotated" / "gpu_pause.py"
STEPS = 5
PAUSED = "[GPU work not recorded: paused]"
YIELD = ("--cupti-mode", "yield")


class Programs(GpuCase):
    def assert_paused(self):
        """One kernel before the pause, 30 in it, 100 and those of a graph behind it."""
        self.assertIn("paused 1\nresumed 1\n", self.process.stdout)
        self.assert_all_kernels()
        self.assertEqual(self.counted[0]["kernels"], 101)
        found = readers.region_counts(self.output)
        self.assertNotIn("unseen", found)
        self.assertGreaterEqual(found[PAUSED], 1)

    def test_work_of_a_pause_is_an_interval_and_nothing_else(self):
        self.run_program(100, 1, ranks=1, options=YIELD, GPU_PROGRAM_PAUSE=30,
                         GPU_PROGRAM_PAUSE_MS=300)
        self.assert_paused()
        rows = {row["cause"]: row["total_ns"] for row in self.table("unrecorded")}
        self.assertEqual(set(rows), {PAUSED})
        self.assertGreater(rows[PAUSED], 300_000_000)
        self.assertLess(rows[PAUSED], 3_000_000_000)

    def test_the_names_of_the_library_do_the_same(self):
        self.run_program(100, 1, ranks=1, options=YIELD, GPU_PROGRAM_PAUSE=30,
                         GPU_PROGRAM_DLSYM=1)
        self.assert_paused()

    def test_without_aon_nothing_is_paused(self):
        done = mpirun(1, PROGRAM, 10, 1, env=gpu_environment(GPU_PROGRAM_PAUSE=3))
        self.assert_exit(done)
        self.assertIn("paused 0\n", done.stdout)

    def test_without_the_provider_nothing_is_paused(self):
        self.run_program(10, 1, ranks=1, options=("--without", "cupti"), GPU_PROGRAM_PAUSE=3)
        self.assertIn("paused 0\n", self.process.stdout)


class Python(GpuCase):
    def setUp(self):
        super().setUp()
        self.output = self.folder / "job"
        self.module = MODULE

    def python(self, *words, options=YIELD, **knobs):
        self.process = run(["aon-run", "-o", self.output, *options, PYTHON, "-B", *words],
                           env=gpu_environment(PYTHONPATH=self.module, **knobs))
        self.assert_exit(self.process)

    def set_count(self):
        return sum(row["count"] for row in self.table("copies") if "set" in row["kind"])

    def assert_one_step_is_paused(self):
        self.python(EXAMPLE)
        self.assertEqual(self.process.stdout, "CUPTI was free\n")
        self.assertEqual(self.set_count(), STEPS - 1)
        with h5py.File(self.output / "profile.h5") as file:
            causes = {text(cause) for cause in file["gpu/unrecorded/cause"][()]}
        self.assertEqual(causes, {PAUSED})
        self.assert_archive_is_clean()

    def test_the_example_leaves_out_one_step(self):
        if not list(MODULE.glob("aon/_aon*.so")):
            self.skipTest("the extension is not built here")
        self.assert_one_step_is_paused()

    def test_the_example_does_so_without_the_extension(self):
        self.module = self.folder / "module"
        (self.module / "aon").mkdir(parents=True)
        for name in ("__init__.py", "_fallback.py"):
            (self.module / "aon" / name).write_bytes((MODULE / "aon" / name).read_bytes())
        self.assert_one_step_is_paused()

    def test_in_another_mode_the_block_is_recorded(self):
        self.python(EXAMPLE, options=())
        self.assertEqual(self.process.stdout, "CUPTI was AON's\n")
        self.assertEqual(self.set_count(), STEPS)

    def test_without_aon_the_block_runs(self):
        done = run([PYTHON, "-B", EXAMPLE], env=gpu_environment(PYTHONPATH=MODULE))
        self.assert_exit(done)
        self.assertEqual(done.stdout, "CUPTI was AON's\n")

    def test_before_cuda_is_used_there_is_nothing_to_give_away(self):
        self.python("-c", "import aon; aon.mark('m'); print(aon.gpu_pause(), aon.gpu_resume())")
        self.assertEqual(self.process.stdout, "False False\n")

    def test_a_block_ends_by_an_exception_too(self):
        code = ("import sys; sys.path.insert(0, sys.argv[1])\n"
                "import aon, gpu_pause\ngpu = gpu_pause.Gpu()\ngpu.clear()\n"
                "try:\n  with aon.gpu_paused() as is_free:\n"
                "    assert is_free; gpu.clear(); 1 / 0\n"
                "except ZeroDivisionError:\n  gpu.clear()")  # fmt: skip
        self.python("-c", code, EXAMPLE.parent)
        self.assertEqual(self.set_count(), 2)

    def test_who_did_not_get_it_back_at_once_is_not_off(self):
        code = ("import sys; sys.path.insert(0, sys.argv[1])\n"
                "import aon, gpu_pause\ngpu = gpu_pause.Gpu()\ngpu.clear()\n"
                "results = [aon.gpu_pause()]\nfor _ in range(int(sys.argv[2])):\n"
                "  results.append(aon.gpu_resume())\ngpu.clear()\nprint(results)")  # fmt: skip
        for attempts, results, count in ((1, "[True, False]", 1), (2, "[True, False, True]", 2)):
            with self.subTest(attempts=attempts):
                self.output = self.folder / str(attempts)
                self.python("-c", code, EXAMPLE.parent, attempts,
                            FAKE_CUPTI_ERROR="cuptiSubscribe:2")
                self.assertEqual(self.process.stdout, results + "\n")
                self.assertEqual(self.set_count(), count)
                told = self.provider(rank=None)
                self.assertEqual(told["state"], "degraded", told)
                self.assertEqual("cuptiSubscribe" in told["reason"], attempts == 1, told)

    def test_other_threads_run_while_it_waits(self):
        """A flush takes 0.4 s; with the interpreter's lock held nobody would count."""
        code = ("import sys; sys.path.insert(0, sys.argv[1])\n"
                "import aon, gpu_pause, threading, time\ngpu = gpu_pause.Gpu()\ngpu.clear()\n"
                "times, ends = [], threading.Event()\n"
                "def count():\n  while not ends.wait(0.01): times.append(time.monotonic())\n"
                "thread = threading.Thread(target=count); thread.start()\n"
                "begin = time.monotonic(); done = aon.gpu_pause(); end = time.monotonic()\n"
                "ends.set(); thread.join()\n"
                "print(done, end - begin > 0.3, sum(begin + 0.1 < t < end for t in times) > 3)")
        self.python("-c", code, EXAMPLE.parent, FAKE_CUPTI_FLUSH_MS=400)
        self.assertEqual(self.process.stdout, "True True True\n")


if __name__ == "__main__":
    main()
