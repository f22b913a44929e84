#!/usr/bin/python3
"""Requests whose handles come back while the recording is paused: none is taken for another one.
What is prepared meanwhile and started later has its message.

    paused_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import unittest

import ring_file as rf
from mpi_test import MpiTest


class Paused(MpiTest):
    """programs/paused.c"""

    def receives(self, program, *arguments):
        """(tags that rank 1 began to receive, tags of the ends that were told)."""
        ranks = self.launch(2, program, *arguments, is_whole=False)
        self.matched = [(r.a32, r.tag) for r in ranks[1].calls("MPI_Mrecv")]
        self.io = [(r.name, r.bytes_asked) for r in ranks[1].io() if "_all_" in r.name]
        begun = [r.tag for r in ranks[1].records
                 if r.kind == rf.MESSAGE and r.flags & rf.NONBLOCKING]  # fmt: skip
        return begun, [r.tag for r in ranks[1].completions()]

    def test_no_end_is_told_of_a_request_that_ended_unseen(self):
        begun, ended = self.receives("paused", self.folder / "file.bin")
        self.assertIn("8 of 8 handles came back", self.process.stdout)
        self.assertEqual(begun, [*range(7), 56, 7])
        self.assertEqual(ended, [56, 7])
        self.assertEqual(self.io, [("MPI_File_write_all_begin", 4)])
        self.assertEqual(self.matched, [(0, 9)], "nobody knows where it was probed")


class FortranPaused(Paused):
    """programs/fortran_paused.F90"""

    COUNTER = "libfortran_count.so"

    def test_no_end_is_told_of_a_request_that_ended_unseen(self):
        for language in ("mpif", "mpi", "f08"):
            begun, ended = self.receives(f"fortran_paused_{language}")
            self.assertEqual((begun, ended), ([1, 3, 4], [4]), language)
            for path in self.folder.rglob("*.ring"):
                path.unlink()


if __name__ == "__main__":
    unittest.main()
