#!/usr/bin/python3
"""Programs that go by which functions their MPI library has find the same ones as without us.

    lacking_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import pathlib
import sys
import unittest

import ring_file as rf
from mpi_test import PROGRAMS, MpiTest

from aon_test import BUILD, MPI, environment, mpirun, run  # noqa: E402  (mpi_test has set the path)

LATER = PROGRAMS / "liblacking_later.so"
SCRIPT = pathlib.Path(__file__).parent / "programs" / "lacking.py"
LIBRARY = {"openmpi": "libmpi.so.40", "mpich": "libmpich.so.12"}[MPI]
NEWER = {  # than the library; MPICH's handles are numbers, which macros convert
    "openmpi": {"MPI_Send_c", "MPI_Status_get_tag", "MPI_Session_init", "MPI_Parrived"},
    "mpich": {"MPI_Comm_c2f", "MPI_Status_get_tag", "MPIX_Barrier_init"},
}[MPI]


class Lacking(MpiTest):
    """programs/lacking.c"""

    COUNTER = None  # is linked to MPI

    def assert_said(self, process, who, places):
        for place in places:
            self.assertIn(f"{who}: {place}: MPI_Send is there\n", process.stdout)
            for name in NEWER:
                self.assertIn(f"{who}: {place}: {name} is not there\n", process.stdout)

    def test_linked_to_the_library(self):
        arguments = ["lacking", LATER]
        plain = mpirun(1, PROGRAMS / arguments[0], *arguments[1:])
        self.assert_exit(plain)
        self.assert_said(plain, "program", ["dlsym"])
        self.assert_said(plain, "library", ["code", "data"])
        (file,) = self.launch(1, *arguments).values()
        self.assertEqual(self.process.stdout.splitlines(), plain.stdout.splitlines())
        self.assertEqual(len(file.calls("MPI_Init")), 1)
        called_all_the_same = file.calls("MPI_Request_get_status_all")
        self.assertEqual([r.flags & rf.FAILED for r in called_all_the_same], 3 * [rf.FAILED])

    def test_library_is_loaded_later(self):
        arguments = [sys.executable, SCRIPT, LATER]
        plain = mpirun(1, *arguments)
        self.assert_exit(plain)
        self.assertIn("MPI is there at first: False\n", plain.stdout)
        self.assert_said(plain, "library", ["code", "data"])
        (file,) = self.launch(1, *arguments).values()
        self.assertEqual(self.process.stdout.splitlines(), plain.stdout.splitlines())
        self.assertEqual(len(file.calls("MPI_Send")), 3)
        self.assertEqual(len(file.calls("MPI_Irecv")), 3)
        self.assertEqual([r.flags & rf.FAILED for r in file.calls("MPI_Send")], 3 * [0])

    def test_library_is_loaded_by_a_forked_child(self):
        command = [sys.executable, SCRIPT, LATER, "child"]
        preload = str(BUILD / "lib" / "libaon-mpi.so")
        variables = environment(LD_PRELOAD=preload, AON_OUTPUT=str(self.folder))
        process = run(command, env=variables)
        self.assert_exit(process)
        self.assert_said(process, "library", ["code", "data"])
        self.assertEqual(process.stdout, run(command, env=environment()).stdout)

    def test_looked_up_before_the_first_call(self):
        """The first time it may seem to be there; null with nothing to say of it kills Python."""
        for name in sorted(NEWER):
            preload = str(BUILD / "lib" / "libaon-mpi.so")
            variables = environment(LD_PRELOAD=preload, AON_OUTPUT=str(self.folder))
            process = run([sys.executable, SCRIPT, LIBRARY, name], env=variables)
            self.assert_exit(process)
            self.assertIn("looked up: True False\n", process.stdout, name)

    def test_looked_up_by_the_child_of_a_process_with_threads(self):
        """One of these may have had ld.so's lock."""
        preload = str(BUILD / "lib" / "libaon-mpi.so")
        variables = environment(LD_PRELOAD=preload, AON_OUTPUT=str(self.folder))
        command = [PROGRAMS / "lacking_fork", LIBRARY, min(NEWER)]
        process = run(command, env=variables, timeout_s=150)
        self.assert_exit(process)
        self.assertEqual(process.stdout, "10 children ended\n")


if __name__ == "__main__":
    unittest.main()
