#!/usr/bin/python3
"""Launches by MPICH's mpiexec.hydra, which gives a process its rank (PMI_RANK, PMI_SIZE) and a
socket (PMI_FD), and nothing that names the launch: each launch leaves one directory of its own, and
the program ends as it does without us.

    hydra_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import pathlib
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import readers  # noqa: E402
from aon_test import MPI_LAUNCHER, TestCase, ledger, run  # noqa: E402

PROGRAMS = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(".")


class Hydra(TestCase):
    """Directories by their default names, in a folder of the test's own."""

    def launch(self, *words, **more):
        return run([MPI_LAUNCHER, *words], cwd=self.folder, **more)

    def outputs(self, count):
        """The job directories, in the order of their launches."""
        found = sorted(self.folder.glob("aon-*"), key=lambda p: p.stat().st_ctime_ns)
        self.assertEqual(len(found), count, found)
        return found

    def finished(self, output):
        """The ledger, once the agent is done: it may outlive a launch that failed."""
        deadline = time.monotonic() + 30
        while not (output / "aon.json").exists() or not ledger(output)["job"]["end"]:
            self.assertLess(time.monotonic(), deadline, "no ledger")
            time.sleep(0.05)
        return ledger(output)

    def assert_ranks(self, output, count):
        document = self.finished(output)
        self.assertTrue(document["job"]["complete"])
        self.assertEqual([r["rank"] for r in document["ranks"]], list(range(count)))
        self.assertEqual({r["world"] for r in document["ranks"]}, {count})
        self.assert_law(document)
        return document

    def test_one_launch_is_one_directory(self):
        for count in (1, 4):
            self.assert_exit(self.launch("-n", count, "aon-run", PROGRAMS / "requests", 20))
        one, four = sorted(self.outputs(2), key=lambda o: len(self.finished(o)["ranks"]))
        self.assert_ranks(one, 1)
        self.assert_ranks(four, 4)
        readers.otf2_print(self, four)
        readers.otf2_structure(self, four)

    def test_several_programs_are_one_launch(self):
        first = ["-n", 2, "aon-run", PROGRAMS / "requests", 20]
        second = ["-n", 1, "env", "AS=another", "aon-run", PROGRAMS / "requests", 20]
        self.assert_exit(self.launch(*first, ":", *second))
        (output,) = self.outputs(1)
        self.assert_ranks(output, 3)

    def test_archives_of_what_mpi_4_adds(self):
        for case in ("large", "isendrecv", "partitioned", "persistent", "communicators", "sessions"):
            output = self.folder / case
            self.assert_exit(self.launch("-n", 2, "aon-run", "-o", case, PROGRAMS / "mpi4", case))
            self.assert_ranks(output, 2)
            readers.otf2_print(self, output)
            if case != "isendrecv":  # what MPICH 4.0 does not say of it leaves sends without receives
                readers.otf2_structure(self, output)

    def test_exit_codes_are_the_programs(self):
        for case in ("abort", "no_finalize"):
            plain = self.launch("-n", 2, PROGRAMS / "life", case)
            ours = self.launch("-n", 2, "aon-run", "-o", case, "--", PROGRAMS / "life", case)
            self.assertEqual(ours.returncode, plain.returncode, ours.stderr)
            document = self.finished(self.folder / case)
            self.assertEqual({r["rank"] for r in document["ranks"]}, {0, 1})
            self.assert_law(document)


if __name__ == "__main__":
    unittest.main()
