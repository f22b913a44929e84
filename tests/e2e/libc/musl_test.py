#!/usr/bin/python3
"""Programs of musl, as in containers of Alpine: what is preloaded ends none, changes nothing, and
records nothing.

    musl_test.py [unittest arguments]
"""
import pathlib
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from aon_test import BUILD, SKIPPED, SOURCE, TestCase, environment, ledger, run  # noqa: E402

COMPILER = "musl-gcc"
TASK_PROLOG = BUILD / "share" / "aon" / "slurm" / "aon-taskprolog.sh"
PROGRAMS = SOURCE / "tests" / "e2e"


class Musl(TestCase):
    """What a TaskProlog and aon-run put into the environment of such a program."""

    def compile(self, name, *words):
        words = ["-I", SOURCE / "core" / "include", "-I", SOURCE, *words]
        self.assert_exit(run([COMPILER, "-O1", "-o", self.folder / name, *words]))
        return self.folder / name

    def mpi_program(self):
        library = self.compile("libmpi_other.so", "-shared", "-fPIC",
                               PROGRAMS / "mpi" / "programs" / "unknown_library.c")
        return self.compile("mpi", PROGRAMS / "mpi" / "programs" / "unknown.c", library)

    def of_task_prolog(self):
        """The environment of a made-up job's task."""
        # pylint: disable=consider-using-with
        task = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(task.wait)
        self.addCleanup(task.send_signal, signal.SIGKILL)
        job = {"SLURM_JOB_ID": 7, "SLURM_STEP_ID": 0, "SLURM_TASK_PID": task.pid,
               "SLURM_SUBMIT_DIR": self.folder, "XDG_RUNTIME_DIR": self.folder,
               "HOME": self.folder}  # fmt: skip
        done = run([TASK_PROLOG], env=environment(**job))
        self.assert_exit(done)
        lines = [line.removeprefix("export ") for line in done.stdout.splitlines()
                 if line.startswith("export ")]
        exports = dict(line.split("=", 1) for line in lines)
        for library in ("libaon.so", "libaon-mpi.so"):
            self.assertIn(str(BUILD / "lib" / library), exports["LD_PRELOAD"].split(":"))
        return environment(**job, **exports)

    def assert_same(self, program):
        plain = run([program])
        self.assert_exit(plain)
        done = run([program], env=self.of_task_prolog())
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, plain.stdout, ""))
        return plain.stdout

    def test_below_a_task_prolog(self):
        said = self.assert_same(self.compile("task", PROGRAMS / "libc" / "programs" / "task.c"))
        self.assertEqual(said, "".join(f"hello of the {who}\n"
                                       for who in ("program", "thread", "child")))

    def test_each_call_of_mpi_reaches_the_library(self):
        self.assert_same(self.mpi_program())

    def test_below_aon_run(self):
        output = self.folder / "job"
        program = self.compile("task", PROGRAMS / "libc" / "programs" / "task.c")
        done = run(["aon-run", "-o", output, "--", program])
        self.assert_exit(done)
        self.assertEqual(done.stdout, run([program]).stdout)
        document = ledger(output)
        self.assertEqual(document["ranks"], [])
        (warning,) = document["assembly"]["warnings"]
        self.assertIn("1 process on", warning)
        self.assertIn("musl", warning)


if __name__ == "__main__":
    if shutil.which(COMPILER) is None:
        print(f"skipped: {COMPILER} is missing: run scripts/setup")
        sys.exit(SKIPPED)
    unittest.main()
