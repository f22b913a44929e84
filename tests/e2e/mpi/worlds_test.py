#!/usr/bin/python3
"""Several MPI programs one behind the other under one aon-run: each keeps its own world, its
messages stay within it, and the summary says how many there were.

    worlds_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import pathlib
import sys
import unittest

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import readers  # noqa: E402
from aon_test import TestCase, environment, ledger, run  # noqa: E402

PROGRAMS = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(".")


class Worlds(TestCase):
    def test_each_program_has_its_own(self):
        output = self.folder / "job"
        program = PROGRAMS / "requests"
        script = f"mpirun -n 2 {program} 20 && mpirun -n 3 {program} 20 && mpirun -n 2 {program} 20"
        self.assert_exit(run(["aon-run", "-o", output, "bash", "-c", script], env=environment()))
        document = ledger(output)
        self.assert_law(document)
        ranks = [entry["rank"] for entry in document["ranks"]]
        self.assertEqual(sorted(rank for rank in ranks if rank is not None), [0, 1, 2])
        self.assertTrue([f for f in document["findings"] if "3 MPI programs ran" in f],
                        document["findings"])
        with h5py.File(output / "profile.h5") as file:
            names, sizes = file["communicators/name"][:], file["communicators/size"][:]
            worlds = sorted(size for name, size in zip(names, sizes) if name == b"MPI_COMM_WORLD")
            pairs = set(zip(file["messages/source"][:], file["messages/destination"][:]))
            pids = file["ranks/pid"][:]
        self.assertEqual(worlds, [2, 2, 3])
        self.assertEqual(len(pids), 7)
        self.assertGreater(len(pairs), 3)
        # Of the largest one's ranks each partner is one, and the others have but each other.
        for source, destination in pairs:
            self.assertEqual(source < 3, destination < 3, pairs)
        partners = {row: {d for s, d in pairs if s == row} | {row} for row in range(3, 7)}
        self.assertEqual({len(group) for group in partners.values()}, {2}, partners)
        readers.otf2_print(self, output)


if __name__ == "__main__":
    unittest.main()
