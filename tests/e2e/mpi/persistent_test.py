#!/usr/bin/python3
"""Every persistent collective of MPI-4, or of Open MPI 4 (programs/persistent.c): at each start it
is the operation that its blocking form is, with the same root and bytes.

    persistent_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import collections
import unittest

import ring_file as rf
from collectives_test import collective_bytes
from mpi_test import DOUBLE, MpiTest


class Persistent(MpiTest):
    def test_persistent_ones_move_their_bytes_at_each_start(self):
        ranks = self.launch(4, "persistent")
        self.assert_counts(ranks)
        for rank, file in ranks.items():
            told = {name: collections.Counter() for name in ("blocking", "persistent")}
            places = {file.communicator(name).id: name for name in told}
            for r in file.records:
                if r.kind != rf.COLLECTIVE or r.a32 not in places or r.name == "MPI_Comm_free":
                    continue
                root, operation = rf.pair(r.words[1])
                sent, received = r.a64 / DOUBLE, r.words[0] / DOUBLE
                told[places[r.a32]][operation, root, sent, received] += 1
            expected = collective_bytes(rank)
            self.assertEqual(sorted(key[2:] for key in told["blocking"].elements()),
                             sorted(expected.values()), f"rank {rank}")
            twice = told["blocking"] + told["blocking"]
            self.assertFalse(told["persistent"] - twice, f"rank {rank}")
            missing = [key[1:] for key in (twice - told["persistent"]).elements()]
            self.assertEqual(missing, [(3, *expected["scatter"])], f"rank {rank}")


if __name__ == "__main__":
    unittest.main()
