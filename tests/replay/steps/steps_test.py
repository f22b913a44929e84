"""Steps of a recorded run: LAMMPS (Lennard-Jones, 100 timesteps, 2 ranks) on a quiet machine.

Its calls within a timestep look alike, so what tells them apart is the computing between them,
which a busy machine blurs: a recording is the same each time. Record it anew with

    aon-run -o OUT --providers mpi --sampling 0 --budget 100 -- lmp -in tests/e2e/programs/in.lj

and keep OUT/spool without topology.xml and node.*.aon.
"""
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "e2e"))

import aon_test
from aon_test import ledger, run

HERE = pathlib.Path(__file__).resolve().parent


class Recorded(aon_test.TestCase):
    def test_lammps_has_its_timesteps(self):
        job = self.folder / "lammps"
        shutil.copytree(HERE / "lammps", job)
        self.assert_exit(run(["aon", "finalize", job]))
        document = ledger(job)
        self.assert_law(document)
        steps = document["steps"]
        self.assertEqual(steps["source"], "detected")
        self.assertEqual((steps["count"], steps["ranks"], steps["agreement"]), (100, 2, 1))
        self.assertEqual(steps["steps_of_all_ranks"], 200)
        self.assertEqual(len(steps["loops"]), 1)
        self.assertGreater(steps["confidence"], 0.8)
        self.assertGreater(steps["coverage"], 0.9)


if __name__ == "__main__":
    aon_test.unittest.main(verbosity=2)
