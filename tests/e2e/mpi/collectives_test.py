#!/usr/bin/python3
"""Operation, root and bytes of every collective (programs/collectives.c).

    collectives_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import unittest

import ring_file as rf
from mpi_test import DOUBLE, MpiTest

ONE_WAY = ("one way", "one way, weighted", "one way, told by its starts")


def collective_bytes(rank, count=3, ranks=4):
    """{name: (sent, received)} of programs/collectives.c, as Score-P counts."""
    own, total = rank + 1, sum(range(1, ranks + 1))
    each = count * ranks

    def root(wanted, value):
        return value if rank == wanted else 0

    return {
        "barrier": (0, 0),
        "bcast": (root(1, each), count),
        "gather": (count, root(2, each)),
        "gatherv": (own, root(2, total)),
        "scatter": (root(3, each), count),
        "scatterv": (root(3, total), own),
        "allgather": (each, each),
        "allgatherv": (own * ranks, total),
        "alltoall": (each, each),
        "alltoallv": (2 * ranks, 2 * ranks),
        "alltoallw": (2 * ranks, 2 * ranks),
        "allreduce": (each, each),
        "reduce": (count, root(0, each)),
        "reduce_scatter": (total, own * ranks),
        "reduce_scatter_block": (each, each),
        "scan": ((ranks - rank) * count, (rank + 1) * count),
        "exscan": ((ranks - rank - 1) * count, rank * count),
        "neighbor_allgather": (2 * count, 2 * count),
        "neighbor_allgatherv": (4, 4),
        "neighbor_alltoall": (2 * count, 2 * count),
        "neighbor_alltoallv": (4, 4),
        "neighbor_alltoallw": (4, 4),
    }


def neighbor_bytes(rank, count=3):
    """{communicator: {name: (sent, received)}}: only neighbours that there are count."""
    line = (rank > 0) + (rank < 3)
    star = 3 if rank == 0 else 1
    return {
        "line": {
            "allgather": (line * count, line * count),
            "allgatherv": (line * 2, line * 2),
            "alltoallv": ((rank > 0) * 1 + (rank < 3) * 2, (rank > 0) * 2 + (rank < 3) * 1),
            "alltoallw": (line * 2, line * 2),
        },
        "grid": {"alltoall": (3 * count, 3 * count)},
        "graph": {
            "allgather": (star * count, star * count),
            "allgatherv": (star * 2, star * 2),
            "alltoallw": (star * 2, star * 2),
        },
    } | dict.fromkeys(ONE_WAY, {
        "allgather": ((3 - rank) * count, rank * count),
        "allgatherv": ((3 - rank) * 2, rank * 2),
        "alltoallv": ((3 - rank) * 2, rank * 2),
    })  # fmt: skip


def between_bytes(rank, count=3):
    """{name: (sent, received)} of one process that talks to three."""
    others = 3 if rank == 0 else 1

    def at(wanted, value):
        return value if rank == wanted else 0

    lone, three = rank == 0, rank != 0
    each = others * count
    mine = 6 if lone else rank
    return {
        "Barrier": (0, 0),
        "Bcast": (at(0, each), three * count),
        "Gather": (lone * count, at(2, count)),
        "Gatherv": (three * mine, at(0, 6)),
        "Scatter": (at(0, each), three * count),
        "Scatterv": (at(0, 6), three * mine),
        "Allgather": (each, each),
        "Allgatherv": (others * mine, 6),
        "Alltoall": (each, each),
        "Alltoallv": (others * 2, others * 2),
        "Alltoallw": (others * 2, others * 2),
        "Allreduce": (each, each),
        "Reduce": (lone * count, at(2, count)),
        "Reduce_scatter": (6, others * mine),
        "Reduce_scatter_block": (3, others * (3 if lone else 1)),
    }


class Collectives(MpiTest):
    """Operation, root and bytes of every collective."""

    APART = ("in place", "line", "grid", "graph", *ONE_WAY, "between")

    def told(self, file, name):
        """{function: (sent, received)} in doubles, on one communicator."""
        place = file.communicator(name).id
        return {r.name: (r.a64 / DOUBLE, r.words[0] / DOUBLE) for r in file.records
                if r.kind == rf.COLLECTIVE and r.a32 == place and r.name != "MPI_Comm_free"}

    def test_only_neighbors_that_there_are_count(self):
        ranks = self.launch(4, "collectives")
        for rank, file in ranks.items():
            for name, expected in neighbor_bytes(rank).items():
                expected = {f"MPI_Neighbor_{call}": both for call, both in expected.items()}
                self.assertEqual(self.told(file, name), expected, f"rank {rank}: {name}")

    def test_between_groups_the_others_count(self):
        ranks = self.launch(4, "collectives")
        for rank, file in ranks.items():
            told = self.told(file, "between")
            expected = {f"MPI_{call}": both for call, both in between_bytes(rank).items()}
            self.assertEqual(told, expected, f"rank {rank}")

    def test_bytes_and_roots(self):
        ranks = self.launch(4, "collectives")
        self.assert_counts(ranks)
        roots = {"bcast": 1, "gather": 2, "gatherv": 2, "scatter": 3, "scatterv": 3, "reduce": 0}
        for rank, file in ranks.items():
            apart = {file.communicator(name).id for name in self.APART}
            for name, expected in collective_bytes(rank).items():
                blocking, not_blocking = (
                    [r for r in file.calls(form) if r.a32 not in apart]
                    for form in ("MPI_" + name.capitalize(), "MPI_I" + name))
                self.assertEqual((len(blocking), len(not_blocking)), (1, 1), name)
                for r in blocking + not_blocking:
                    told = (r.a64 / DOUBLE, r.words[0] / DOUBLE)
                    self.assertEqual(told, expected, f"rank {rank}: {r.name}")
                    self.assertEqual(rf.pair(r.words[1])[0], roots.get(name, -1), r.name)

    def test_in_place_excludes_oneself(self):
        ranks = self.launch(4, "collectives")
        for rank, file in ranks.items():
            told = self.told(file, "in place")
            is_root, own = rank == 2, rank + 1
            self.assertEqual(told["MPI_Allreduce"], (9, 9))
            self.assertEqual(told["MPI_Alltoall"], (9, 9))
            self.assertEqual(told["MPI_Alltoallv"], (6, 6))
            self.assertEqual(told["MPI_Alltoallw"], (6, 6))
            self.assertEqual(told["MPI_Gather"], (0, 9) if is_root else (3, 0))
            self.assertEqual(told["MPI_Gatherv"], (0, 10 - own) if is_root else (own, 0))
            self.assertEqual(told["MPI_Scatter"], (9, 0) if is_root else (0, 3))
            self.assertEqual(told["MPI_Scatterv"], (10 - own, 0) if is_root else (0, own))
            self.assertEqual(told["MPI_Allgatherv"], (3 * own, 10 - own))
            self.assertEqual(told["MPI_Reduce"], (0, 9) if is_root else (3, 0))
            self.assertEqual(told["MPI_Reduce_scatter"], (10 - own, 3 * own))
            self.assertEqual(told["MPI_Reduce_scatter_block"], (9, 9))
            self.assertEqual(told["MPI_Scan"], ((3 - rank) * 3, rank * 3))


if __name__ == "__main__":
    unittest.main()
