#!/usr/bin/python3
"""Calls that MPI refuses, in programs that go on.

    refused_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import unittest

import ring_file as rf
from mpi_test import MpiTest


class Refused(MpiTest):
    """Calls that MPI refuses."""

    def test_errors_come_from_mpi_and_change_nothing(self):
        ranks = self.launch(1, "refused")
        self.assert_counts(ranks)
        (window,) = ranks[0].windows.values()
        self.assertTrue(window.is_freed)
        known = {1, 2}  # MPI_COMM_WORLD and MPI_COMM_SELF
        self.assertEqual({c.id for c in ranks[0].communicators.values()}, known)
        for record in ranks[0].records:
            if record.kind == rf.RMA:
                self.assertEqual(record.a32, window.id)


if __name__ == "__main__":
    unittest.main()
