#!/usr/bin/python3
"""Programs that go by which functions their MPI library has find the same ones as without us.

    lacking_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import unittest

import ring_file as rf
from mpi_test import PROGRAMS, MpiTest

from aon_test import MPI, mpirun  # noqa: E402  (mpi_test has set the path)

NEWER = {"openmpi": "MPI_Send_c", "mpich": "MPI_Status_get_tag"}[MPI]  # than the library


class Lacking(MpiTest):
    """programs/lacking.c"""

    def test_what_the_library_lacks_is_not_there(self):
        arguments = ["lacking", PROGRAMS / "liblacking_later.so"]
        plain = mpirun(1, PROGRAMS / arguments[0], *arguments[1:])
        self.assert_exit(plain)
        for who in ("program", "library"):
            for where in ("code", "data", "dlsym"):
                self.assertIn(f"{who}: {where}: {NEWER} is not there\n", plain.stdout)
                self.assertIn(f"{who}: {where}: MPI_Send is there\n", plain.stdout)
        (file,) = self.launch(1, *arguments).values()
        self.assertEqual(self.process.stdout.splitlines(), plain.stdout.splitlines())
        self.assertEqual(len(file.calls("MPI_Init")), 1)
        called_all_the_same = file.calls("MPI_Request_get_status_all")
        self.assertEqual([r.flags & rf.FAILED for r in called_all_the_same], 3 * [rf.FAILED])


if __name__ == "__main__":
    unittest.main()
