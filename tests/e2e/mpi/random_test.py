#!/usr/bin/python3
"""Random but correct MPI programs (programs/random), each with an account of its own of what it
does: calls, messages, collectives, one-sided transfers and files are in the archive and in the
profile, all and once; and the program does what it does without us.

    random_test.py PROGRAMS_FOLDER [unittest arguments]

AON_RANDOM_SEEDS="FIRST END" runs others than the fixed ones.
"""
import collections
import fnmatch
import os
import pathlib
import sys
import unittest

import h5py
import random_account as ra

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import readers  # noqa: E402
from aon_test import MPI, SOURCE, TestCase, environment, ledger, mpirun  # noqa: E402
from aon_test import open_mpi_windows  # noqa: E402

sys.path.insert(0, str(SOURCE / "plugins" / "mpi"))

import generate  # noqa: E402

PROGRAMS = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(".")
os.environ["OMPI_MCA_osc"] = open_mpi_windows()
PARTS = "MPI_*: *"  # regions for parts of a call
TABLE = SOURCE / "plugins" / "mpi" / "functions.table"
KINDS = {f.name: f.kind for f in generate.read_table(TABLE)}
# Open MPI's one-sided communication is not for threads that call at once.
THREADS_WITHOUT = ["-window", "-file"] if MPI == "openmpi" else []


def seeds(first, end):
    chosen = os.environ.get("AON_RANDOM_SEEDS")
    return range(*map(int, chosen.split())) if chosen else range(first, end)


class RandomTest(TestCase):
    """Runs a program without us and with us, and compares."""

    maxDiff = 4000

    def record(self, rank_count, options, *arguments):
        self.setUp()
        self.output = self.folder / "job"
        command = [PROGRAMS / "random", self.folder, *arguments]
        plain = mpirun(rank_count, *command, env=environment(), timeout_s=60)
        self.assert_exit(plain)
        ours = mpirun(rank_count, "aon-run", "-o", self.output, *options, "--", *command,
                      env=environment(), timeout_s=120)
        self.assert_exit(ours)
        # The launcher may mix what two ranks write.
        self.assertEqual(sorted(ours.stdout), sorted(plain.stdout))
        self.account = ra.Account(self.folder, rank_count)
        readers.otf2_print(self, self.output)
        readers.otf2_structure(self, self.output)

    def check(self, rank_count, *arguments):
        self.record(rank_count, ["--memory", "64M"], *arguments)
        self.assert_ledger()
        self.assert_profile(rank_count)
        self.assert_archive()

    def check_scarce(self, rank_count, reason, options, *arguments):
        """Less room than the program needs: what is there is right, and what is not is counted.
        Returns how many records are lost."""
        self.record(rank_count, options, *arguments)
        document = ledger(self.output)
        self.assert_law(document)
        self.assertLessEqual({loss["reason"] for loss in document["losses"]}, {reason})
        lost = collections.Counter({r["rank"]: r["lost"] for r in document["ranks"]})
        for rank, counts in enumerate(self.region_counts(rank_count)):
            told = self.account.calls[rank]
            self.assertEqual(counts - told, collections.Counter(), f"rank {rank}: too many")
            self.assertLessEqual((told - counts).total(), lost[rank], f"rank {rank}")
            counted = {n for n in told if n in KINDS and KINDS[n] == "count"}
            self.assertEqual({n: counts[n] for n in counted}, {n: told[n] for n in counted})
        told, archive = self.account.messages, ra.Archive(self.output)
        for found in (archive.sends, archive.receives):
            self.assertEqual(ra.total(found) - ra.total(told), collections.Counter())
        return lost.total()

    def region_counts(self, rank_count):
        """How often each rank called each function, as the profile has it."""
        with h5py.File(self.output / "profile.h5") as file:
            names = [name.decode() for name in file["regions/name"][()]]
            rows = ra.columns(file, "profile")
        counts = [collections.Counter() for _ in range(rank_count)]
        for rank, region, count in zip(rows["rank"], rows["region"], rows["count"]):
            if not fnmatch.fnmatch(names[region], PARTS) and names[region].startswith("MPI_"):
                counts[rank][names[region]] += int(count)
        return counts

    def assert_ledger(self):
        document = ledger(self.output)
        self.assert_law(document)
        self.assertEqual(document["losses"], [])
        states = [rank["providers"]["mpi"] for rank in document["ranks"]]
        self.assertEqual([s for s in states if s["state"] != "on"], [])
        assembly = document["assembly"]
        self.assertEqual(assembly["warnings"], [])
        self.assertEqual(assembly["unmatched"], self.account.unmatched, "unmatched")
        self.assertEqual((assembly["open_io"], assembly["unmatched_io"]), (0, 0))
        self.assertEqual(assembly["open_transfers"], 0)

    def assert_profile(self, rank_count):
        with h5py.File(self.output / "profile.h5") as file:
            names = [name.decode() for name in file["regions/name"][()]]
            rows, waits = ra.columns(file, "profile"), ra.columns(file, "waits")
        times = collections.Counter()
        for rank, region, time in zip(rows["rank"], rows["region"], rows["inclusive_ns"]):
            times[int(rank), int(region)] += int(time)
        for rank, counts in enumerate(self.region_counts(rank_count)):
            told = self.account.calls[rank]
            different = {n: (told[n], counts[n]) for n in {*told, *counts} if told[n] != counts[n]}
            self.assertEqual(different, {}, f"rank {rank}: (program, profile)")
        waited = collections.Counter()
        for rank, region, time in zip(waits["rank"], waits["region"], waits["wait_ns"]):
            waited[int(rank), int(region)] += int(time)
        for (rank, region), time in waited.items():
            self.assertLessEqual(time, times[rank, region], names[region])
        self.assertEqual(ra.message_sums(self.output),
                         ra.told_message_sums(self.account.messages))
        self.assertEqual(ra.table_sums(self.output, "rma", ("window", "origin", "target"), ra.RMA),
                         ra.told_sums(self.account.rma))
        self.assertEqual(ra.table_sums(self.output, "io", ("file", "rank"), ra.IO),
                         ra.told_sums(self.account.io))

    def assert_archive(self):
        archive = ra.Archive(self.output)
        self.assert_same(ra.by_communicator(archive.sends, archive.collectives),
                         ra.by_communicator(self.account.messages, self.account.collectives))
        if self.account.unmatched == 0:
            self.assertEqual(archive.receives, archive.sends)

    def assert_same(self, seen, told):
        for what, more in (("only in the archive", seen - told), ("only told", told - seen)):
            for messages, collectives in more:
                print(what, sorted(messages)[:20], sorted(collectives)[:40], sep="\n  ",
                      file=sys.stderr)
        self.assertTrue(seen == told)


class Random(RandomTest):
    def test_one_thread(self):
        for seed in seeds(0, 2):
            with self.subTest(seed=seed):
                self.check(2 + seed % 4, seed, 60)

    def test_threads(self):
        for seed in seeds(100, 101):
            with self.subTest(seed=seed):
                self.check(2 + seed % 2, seed, 30, "threads", 2 + seed % 2, *THREADS_WITHOUT)

    def test_pauses(self):
        """Among what this one does is MPI_Comm_create_group of a part."""
        for seed in seeds(201, 202):
            with self.subTest(seed=seed):
                self.check(2 + seed % 3, seed, 60, "pause")

    def test_persistent_collectives_and_partitioned_messages(self):
        """Open MPI 4 has the first as MPIX_, and not the second."""
        for seed in seeds(500, 502):
            with self.subTest(seed=seed):
                steps = ["persistent", "partitioned", "collective", "make", "free"]
                self.check(2 + seed % 2, seed, 60, *steps)

    def test_little_memory(self):
        """Whether something is lost is the agent's pace."""
        for seed in seeds(300, 301):
            with self.subTest(seed=seed):
                options = ["--memory", "256K"]
                self.check_scarce(2, "pool full", options, seed, 30, "burst", 20_000)

    def test_little_disk(self):
        for seed in seeds(400, 401):
            with self.subTest(seed=seed):
                options = ["--memory", "64M", "--disk", "1M"]
                lost = self.check_scarce(2, "evicted by cap", options, seed, 30, "burst", 100_000)
                self.assertGreater(lost, 0)


if __name__ == "__main__":
    unittest.main()
