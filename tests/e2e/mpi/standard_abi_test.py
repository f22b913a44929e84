#!/usr/bin/python3
"""A program of MPI 5's ABI over a made-up library: its messages have the bytes that only the
library can tell, and requests that share a handle are each completed.

    standard_abi_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import collections
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import otf2  # noqa: E402

import readers  # noqa: E402
from aon_test import TestCase, environment, ledger, run  # noqa: E402

PROGRAMS = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(".")
MESSAGES = 100
AT_ONCE = 3
INT, DOUBLE = 4, 8
EXCHANGED = [("copy", i, INT * (1 + i % 4)) for i in range(MESSAGES)]
SENT_AT_ONCE = [("copy", 200, INT)] * AT_ONCE
CALLS = {"MPI_Irecv": MESSAGES + 2, "MPI_Isend": MESSAGES + AT_ONCE, "MPI_Waitall": MESSAGES + 1,
         "MPI_Wait": 1, "MPI_Send": 1, "MPI_Recv": 2 + AT_ONCE,
         "MPI_Comm_dup": 1, "MPI_Comm_set_name": 1, "MPI_Cancel": 1,
         "MPI_Comm_free": 1, "MPI_Barrier": 1, "MPI_Allreduce": 2, "MPI_Init_thread": 1,
         "MPI_Finalize": 1}


class StandardAbi(TestCase):
    def setUp(self):
        super().setUp()
        self.output = self.folder / "job"
        env = environment(PMI_RANK=0, PMI_SIZE=1)
        self.assert_exit(run(["aon-run", "-o", self.output, PROGRAMS / "standard_abi"], env=env))
        self.document = ledger(self.output)
        self.assert_law(self.document)
        self.events = collections.defaultdict(list)
        with otf2.reader.open(str(self.output / "traces.otf2")) as trace:
            for _, event in trace.events:
                self.events[type(event).__name__].append(event)

    def told(self, kind):
        return [(e.communicator.name, e.msg_tag, e.msg_length) for e in self.events[kind]]

    def test_messages_have_the_bytes_that_were_moved(self):
        self.assertEqual(self.told("MpiIsend"), EXCHANGED + SENT_AT_ONCE)
        self.assertEqual(self.told("MpiIrecv"), EXCHANGED)
        self.assertEqual(self.told("MpiSend"), [("MPI_COMM_SELF", 7, 3 * DOUBLE)])
        self.assertEqual(self.told("MpiRecv"), SENT_AT_ONCE + [("MPI_COMM_SELF", 7, 3 * DOUBLE)])
        # The one from nobody makes no event.
        self.assertEqual(len(self.events["MpiRequestCancelled"]), 1)

    def test_each_request_is_completed(self):
        self.assertEqual(len(self.events["MpiIsendComplete"]), MESSAGES + AT_ONCE)

    def test_collectives_know_what_is_in_place(self):
        """In place nothing goes to oneself."""
        ends = self.events["MpiCollectiveEnd"]
        reductions = [e for e in ends if str(e.collective_op).endswith("ALLREDUCE")]
        self.assertEqual([e.communicator.name for e in reductions], ["copy"] * 2)
        self.assertEqual([e.size_sent for e in reductions], [3 * DOUBLE, 0])

    def test_each_call_is_counted(self):
        found = readers.region_counts(self.output)
        self.assertEqual({name: found.get(name) for name in CALLS}, CALLS)
        readers.otf2_print(self, self.output)
        readers.otf2_structure(self, self.output)

    def test_nothing_is_missing(self):
        (rank,) = self.document["ranks"]
        self.assertEqual(rank["providers"]["mpi"]["state"], "on")
        self.assertEqual(rank["lost"], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
