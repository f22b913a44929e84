#!/usr/bin/python3
"""Persistent requests that get another handle when they are started (programs/replaced.c): each
start is a message, and complete.

    replaced_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import collections
import re
import unittest

import ring_file as rf
from mpi_test import MPI, MpiTest


class Replaced(MpiTest):
    def assert_sends(self, file, expected):
        """Messages by tag; that each of them is complete launch() has looked at."""
        sends = [r for r in file.records if r.kind == rf.MESSAGE and r.flags & rf.NONBLOCKING]
        self.assertEqual(collections.Counter(r.tag for r in sends), expected)
        self.assertEqual({r.a64 for r in sends if r.tag == 4}, {10000})
        self.assertEqual({r.a64 for r in sends if r.tag != 4}, {70000})

    def test_each_start_of_a_request_that_changes_its_handle_is_a_message(self):
        ranks = self.launch(2, "replaced")
        changed = int(re.search(r"(\d+) handles were changed", self.process.stdout)[1])
        if MPI == "openmpi":
            self.assertGreater(changed, 4 + 2 * 4 + 40 * 4)
        self.assert_sends(ranks[0], {1: 5, 2: 5, 3: 5, 4: 200, 5: 2, 6: 2})
        sent, received = self.messages(ranks)
        unseen = received - sent
        self.assertEqual(sent - received, {})
        self.assertEqual({key[3]: count for key, count in unseen.items()}, {5: 1, 6: 1})


class FortranReplaced(MpiTest):
    """programs/fortran_replaced.F90"""

    COUNTER = "libfortran_count.so"

    def test_each_start_is_a_message(self):
        for language in ("mpif", "mpi", "f08"):
            ranks = self.launch(2, f"fortran_replaced_{language}")
            sends = [r for r in ranks[0].records
                     if r.kind == rf.MESSAGE and r.flags & rf.NONBLOCKING]  # fmt: skip
            started = collections.Counter(r.tag for r in sends)
            self.assertEqual(started, {1: 5, 2: 5, 3: 5}, language)
            self.assert_messages_match(ranks)
            for path in self.folder.rglob("*.ring"):
                path.unlink()


if __name__ == "__main__":
    unittest.main()
