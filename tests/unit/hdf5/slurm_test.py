"""Exports the sample for Slurm, also that of two shares, and reads it with sh5util."""
import csv
import os
import subprocess
import sys
import tempfile
import unittest

import h5py

SAMPLE = sys.argv.pop(1)
SLURM_CONF = """ClusterName=aon
SlurmctldHost=localhost
SlurmUser=root
AuthType=auth/none
CryptoType=crypto/none
AcctGatherProfileType=acct_gather_profile/hdf5
NodeName=localhost CPUs=1
PartitionName=p Nodes=localhost
"""


class Slurm(unittest.TestCase):
    OPTIONS = []

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="aon-slurm-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        with open(self.path("slurm.conf"), "w", encoding="utf-8") as conf:
            conf.write(SLURM_CONF)
        with open(self.path("acct_gather.conf"), "w", encoding="utf-8") as conf:
            conf.write(f"ProfileHDF5Dir={self.folder}\n")

    def path(self, name):
        return os.path.join(self.folder, name)

    def export(self):
        subprocess.run([SAMPLE, *self.OPTIONS, self.path("profile.h5")], check=True, timeout=60)
        subprocess.run([SAMPLE, "--slurm", self.folder, self.path("slurm.h5")], check=True,
                       timeout=60)

    def sh5util(self, *options):
        environment = dict(os.environ, SLURM_CONF=self.path("slurm.conf"))
        out = subprocess.run(["sh5util", "-j", "1", "-s", "Tasks", "-i", self.path("slurm.h5"),
                              *options], env=environment, capture_output=True, text=True,
                             timeout=60)
        self.assertEqual(out.returncode, 0, out.stderr)
        return out.stdout

    def test_sh5util_lists_the_fields(self):
        self.export()
        self.assertEqual(self.sh5util("-L").split(),
                         ["ElapsedTime", "EpochTime", "CPUUtilization", "CPUTime", "Cycles"])

    def test_sh5util_extracts_one_row_per_second_and_rank(self):
        self.export()
        self.sh5util("-E", "-l", "Node:TimeSeries", "-o", self.path("series.csv"))
        with open(self.path("series.csv"), encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 3 * 5)
        self.assertEqual({(row["Node"], row["Series"]) for row in rows},
                         {("node0", "0"), ("node0", "1"), ("node1", "2")})
        self.assertEqual(float(rows[2]["CPUUtilization"]), 90.0)
        self.assertEqual(float(rows[2]["Cycles"]), 10e6)
        self.assertEqual(rows[2]["EpochTime"], "1763700002")

    def test_the_first_second_is_no_busier_than_the_others(self):
        """Where the first sample has what was spent since the process was followed."""
        subprocess.run([SAMPLE, *self.OPTIONS, self.path("profile.h5")], check=True, timeout=60)
        with h5py.File(self.path("profile.h5"), "r") as file:
            holder = file["series/rank_0/perf"].file.filename
            place = file["series/rank_0/perf"].name
        with h5py.File(holder, "a") as file:
            file[place]["task-clock"][:] += 0.09e9
        subprocess.run([SAMPLE, "--slurm", self.folder, self.path("slurm.h5")], check=True,
                       timeout=60)
        with h5py.File(self.path("slurm.h5"), "r") as file:
            row = file["Steps/0/Nodes/node0/Tasks/0"][0]
        self.assertAlmostEqual(row["CPUUtilization"], 90.0)
        self.assertAlmostEqual(row["CPUTime"], 0.9)

    def test_sh5util_sums_up(self):
        self.export()
        self.sh5util("-E", "-l", "Node:Totals", "-o", self.path("totals.csv"))
        with open(self.path("totals.csv"), encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([float(row["Sum_CPUTime"]) for row in rows], [4.41] * 3)

    def test_says_what_is_missing(self):
        out = subprocess.run([SAMPLE, "--slurm", self.folder, self.path("slurm.h5")],
                             capture_output=True, text=True, timeout=60)
        self.assertEqual(out.returncode, 1)
        self.assertIn("profile.h5", out.stderr)
        self.assertFalse(os.path.exists(self.path("slurm.h5")))


class Tasks:
    """Which tasks the series of nodes are of."""

    setUp = Slurm.setUp
    path = Slurm.path
    export = Slurm.export
    sh5util = Slurm.sh5util

    def test_has_these_tasks(self):
        self.export()
        self.sh5util("-E", "-l", "Node:TimeSeries", "-o", self.path("series.csv"))
        with open(self.path("series.csv"), encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual({(row["Node"], row["Series"]) for row in rows}, self.TASKS)


class SlurmOfOthers(unittest.TestCase):
    """A file whose columns are not those of one table."""

    def said_of(self, change):
        with tempfile.TemporaryDirectory(prefix="aon-slurm-") as folder:
            profile = os.path.join(folder, "profile.h5")
            subprocess.run([SAMPLE, profile], check=True, timeout=60)
            with h5py.File(profile, "a") as file:
                change(file)
            command = [SAMPLE, "--slurm", folder, os.path.join(folder, "slurm.h5")]
            out = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual(out.returncode, 1, out.stderr)
        return out.stderr

    def test_short_columns_are_refused(self):
        def of_ranks(file):
            del file["ranks/node"]
            file["ranks/node"] = [0]

        def of_series(file):
            perf = file["series/rank_0/perf"]
            name, mode = next((n, d.attrs["mode"]) for n, d in perf.items() if "mode" in d.attrs)
            del perf[name]
            perf[name] = [1.0]
            perf[name].attrs["mode"] = mode

        self.assertIn("ranks: columns that do not belong together", self.said_of(of_ranks))
        self.assertIn("rank_0/perf: columns that do not belong", self.said_of(of_series))


class SlurmOfOneHost(Tasks, unittest.TestCase):
    """Two agents on one host, of containers: the ranks of all."""

    OPTIONS = ["--one-host"]
    TASKS = {("node0", "0"), ("node0", "1"), ("node0", "2")}


class SlurmWithoutRanks(Tasks, unittest.TestCase):
    """A job without MPI: its processes are its tasks."""

    OPTIONS = ["--no-ranks"]
    TASKS = {("node0", "0"), ("node0", "1"), ("node1", "2")}


class SlurmOfShares(Slurm):
    OPTIONS = ["--shares"]

    def test_says_which_file_of_a_share_is_missing(self):
        subprocess.run([SAMPLE, "--shares", self.path("profile.h5")], check=True, timeout=60)
        os.remove(self.path("series/node1.h5"))
        out = subprocess.run([SAMPLE, "--slurm", self.folder, self.path("slurm.h5")],
                             capture_output=True, text=True, timeout=60)
        self.assertEqual(out.returncode, 1)
        self.assertIn("series/node1.h5", out.stderr)
        self.assertEqual(len(out.stderr.splitlines()), 1, out.stderr)
        self.assertFalse(os.path.exists(self.path("slurm.h5")))


if __name__ == "__main__":
    unittest.main()
