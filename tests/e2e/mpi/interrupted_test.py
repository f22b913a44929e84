#!/usr/bin/python3
"""Calls that a signal interrupts, and processes that are killed inside one-sided communication and
calls on files: nothing is lost, and the archive says what was left open.

    interrupted_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import pathlib
import sys
import unittest

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import readers  # noqa: E402
from aon_test import (  # noqa: E402
    MPI, TestCase, environment, ledger, mpirun, open_mpi_windows, profile, wait_until,
)  # fmt: skip

PROGRAMS = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(".")
INTERRUPTED = PROGRAMS / "interrupted"
ENVIRONMENT = {"OMPI_MCA_osc": open_mpi_windows()} if MPI == "openmpi" else {}


class Interrupted(TestCase):
    def test_by_a_timer(self):
        output = self.folder / "job"
        env = environment(**ENVIRONMENT)
        process = profile(2, output, INTERRUPTED, "timer", self.folder / "file", env=env)
        self.assert_exit(process)
        document = ledger(output)
        self.assert_law(document)
        self.assertTrue(document["assembly"]["communication_complete"], document["assembly"])
        readers.otf2_print(self, output)
        readers.otf2_structure(self, output)
        with h5py.File(output / "profile.h5") as file:
            self.assertEqual(sorted(file["rma/puts"][()]), [1000, 1000])
            self.assertEqual(sorted(file["io/writes"][()]), [1000, 1000])
            self.assertEqual(sorted(file["messages/count"][()]), [1000, 1000])

    def test_by_death(self):
        env = environment(**ENVIRONMENT)
        for where in ("fence", "begun", "writing", "close"):
            output = self.folder / where
            plain = mpirun(2, INTERRUPTED, where, self.folder / "file", env=env)
            process = profile(2, output, INTERRUPTED, where, self.folder / "file", env=env)
            self.assertEqual(process.returncode, plain.returncode, process.stderr)
            wait_until((output / "aon.json").exists, what=where)
            document = ledger(output)
            self.assert_law(document)
            self.assertFalse(document["assembly"]["communication_complete"], where)
            self.assertEqual(document["job"]["incomplete_ranks"], [0, 1])
            readers.otf2_print(self, output)
            if where == "begun":
                self.assertEqual(document["assembly"]["open_io"], 2)
                self.assertEqual(document["assembly"]["open_transfers"], 2)


if __name__ == "__main__":
    unittest.main()
