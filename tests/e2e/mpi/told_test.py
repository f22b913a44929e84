#!/usr/bin/python3
"""Requests whose end the program learned by MPI_Request_get_status: each ends once, with what came.

    told_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import unittest

import ring_file as rf
from mpi_test import MPI, MpiTest

INT = 4


class Told(MpiTest):
    """programs/told.c"""

    def setUp(self):
        super().setUp()
        self.ranks = self.launch(2, "told", self.folder / "file.bin")

    def test_a_receive_that_is_freed_then_has_its_sender_and_bytes(self):
        ends = [(r.peer, r.tag, r.a64) for r in self.ranks[1].completions()]
        self.assertEqual(ends[:3], [(0, tag, tag * INT) for tag in (1, 2, 3)])
        # Of one that was freed before anybody asked, nobody knows.
        self.assertEqual(len(ends), 4)
        self.assertEqual(ends[3][0], rf.ANY_PEER)

    def test_a_send_that_is_freed_then_has_ended(self):
        (end,) = self.ranks[0].completions()
        self.assertEqual((end.tag, end.a64), (5, 5 * INT))
        self.assertEqual(end.flags & (rf.CANCELLED | rf.FAILED), 0)

    @unittest.skipIf(MPI == "mpich", "MPICH never says that a file's is complete")
    def test_a_write_that_is_freed_then_has_its_bytes(self):
        for file in self.ranks.values():
            ends = [(r.a64, r.flags & rf.CANCELLED) for r in file.io() if r.kind == rf.COMPLETION]
            self.assertEqual(ends, [(INT, 0)])


if __name__ == "__main__":
    unittest.main()
