#!/usr/bin/python3
"""MPI_THREAD_MULTIPLE: requests and communicators of threads that call at once.

    threads_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import unittest

from mpi_test import MpiTest


class Threads(MpiTest):
    """MPI_THREAD_MULTIPLE."""

    def test_requests_of_many_threads(self):
        ranks = self.launch(2, "threads", 4, 300)
        self.assert_counts(ranks)
        sent = self.assert_messages_match(ranks)
        self.assertEqual(sum(sent.values()), 2 * 4 * 300)
        for file in ranks.values():
            self.assertEqual(file.identities[0][3], 3)
            self.assertGreaterEqual(len({r.slot for r in file.records}), 2)


    def test_communicators_that_threads_make_of_the_same_group(self):
        """Their order differs between the ranks: their tags tell which is which."""
        ranks = self.launch(2, "threads", 4, 20, "group")
        self.assert_counts(ranks)
        sent = self.assert_messages_match(ranks)
        self.assertEqual(sum(sent.values()), 4 * 20)


if __name__ == "__main__":
    unittest.main()
