#!/usr/bin/python3
"""Cartesian communicators: extents, rings and each rank's coordinates are those that MPI told the
program.

    topologies_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import h5py  # noqa: E402
import otf2  # noqa: E402

import readers  # noqa: E402
from aon_test import TestCase, profile  # noqa: E402

PROGRAMS = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(".")
RANKS = 6
LINE = re.compile(r"(.+) (\d+) (\d+): (.*) of (.*) periodic (.*)")
EXTENTS = {"grid": "3p x 2", "copy": "3p x 2", "even line": "3p", "odd line": "3p",
           "box": "1 x 2p x 2p"}


def numbers(text):
    return tuple(map(int, text.split()))


class Topologies(TestCase):
    def setUp(self):
        super().setUp()
        self.output = self.folder / "job"
        told = self.folder / "told"
        told.mkdir()
        self.assert_exit(profile(RANKS, self.output, PROGRAMS / "topologies", told))
        text = "".join((told / str(rank)).read_text() for rank in range(RANKS))
        lines = map(LINE.fullmatch, text.splitlines())
        self.told = {(name, int(world), int(rank)): (numbers(at), numbers(extents), numbers(rings))
                     for name, world, rank, at, extents, rings in (m.groups() for m in lines)}
        self.assertEqual(len(self.told), 3 * RANKS + 4, text)

    def test_otf2_has_what_mpi_told(self):
        readers.otf2_print(self, self.output)
        readers.otf2_structure(self, self.output)
        found = {}
        with otf2.reader.open(str(self.output / "traces.otf2")) as trace:
            shapes = {}
            for topology in trace.definitions.cart_topologies:
                rings = [d.cart_periodicity == otf2.CartPeriodicity.TRUE
                         for d in topology.dimensions]
                extents = tuple(d.size for d in topology.dimensions)
                shapes[topology] = (extents, tuple(map(int, rings)))
            for place in trace.definitions.cart_coordinates:
                topology = place.topology
                member = topology.communicator.group.members[place.rank]
                key = (topology.name, member.group._ref, place.rank)
                self.assertNotIn(key, found)
                found[key] = (tuple(place.coordinates), *shapes[topology])
        self.assertEqual(found, self.told)

    def test_hdf5_has_their_extents(self):
        with h5py.File(self.output / "profile.h5") as file:
            table = file["communicators"]
            rows = zip(table["name"][()], table["cartesian"][()])
            found = {name.decode(): extents.decode() for name, extents in rows}
        self.assertEqual({n: e for n, e in found.items() if e}, EXTENTS)
        self.assertEqual(found["MPI_COMM_WORLD"], "")


if __name__ == "__main__":
    unittest.main(verbosity=2)
