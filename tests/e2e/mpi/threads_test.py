#!/usr/bin/python3
"""MPI_THREAD_MULTIPLE: requests and communicators of threads that call at once.

    threads_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import collections
import unittest

import otf2

from mpi_test import PROGRAMS, MpiTest

import readers  # noqa: E402  (mpi_test has set the path)
from aon_test import ledger, profile


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

    def test_what_one_thread_begins_another_one_ends(self):
        output = self.folder / "job"
        self.assert_exit(profile(2, output, PROGRAMS / "handed_over", 10))
        document = ledger(output)
        self.assert_law(document)
        self.assertEqual(document["assembly"]["unmatched"], 0)
        self.assertTrue(document["assembly"]["communication_complete"])
        waits = document["waits"]
        self.assertEqual((waits["messages"], waits["message_ends_left_out"]), (2 * 2 * 10, 0))
        readers.otf2_structure(self, output)
        self.assertEqual(readers.otf2_messages(self, output), 2 * 2 * 10)
        begun, ended = collections.Counter(), collections.Counter()
        with otf2.reader.open(str(output / "traces.otf2")) as trace:
            for location, event in trace.events:
                if isinstance(event, otf2.events.NonBlockingCollectiveRequest):
                    begun[location.group._ref, event.request_id] += 1
                elif isinstance(event, otf2.events.NonBlockingCollectiveComplete):
                    ended[location.group._ref, event.request_id] += 1
                    self.assertEqual(event.root, 1)
                    self.assertEqual(event.size_received, 16)
        self.assertEqual(sum(begun.values()), 2 * 2 * 10)
        self.assertEqual(begun, ended)

    def test_communicators_that_threads_make_of_the_same_group(self):
        """Their order differs between the ranks: their tags tell which is which."""
        ranks = self.launch(2, "threads", 4, 20, "group")
        self.assert_counts(ranks)
        sent = self.assert_messages_match(ranks)
        self.assertEqual(sum(sent.values()), 4 * 20)


if __name__ == "__main__":
    unittest.main()
