#!/usr/bin/python3
"""16 ranks over 4 hosts of which one is at fault: late, behind a slow link, or not coming. The
summary, the tables of profile.h5 and `aon hang` each name it; of NCCL's operations and of MPI's.

    training_test.py [unittest arguments]
"""
import concurrent.futures
import unittest

import cluster
import h5py
import readers
from aon_test import BUILD, MPI, PYTHON, TestCase, ledger, run, wait_until
from cluster import AON, AON_RUN

FAKE = BUILD / "bin" / "fake_nccl"
HOSTS, RANKS_PER_HOST = 4, 4
RANKS = HOSTS * RANKS_PER_HOST
STEPS = 5
LATE_MS = 20
SLOW_RANK = """
import sys, time
from mpi4py import MPI
world = MPI.COMM_WORLD
for step in range(int(sys.argv[1])):
    if world.Get_rank() == int(sys.argv[2]):
        time.sleep(0.15)  # beside it, ranks without a core are late, too
    world.Barrier()
"""


def rows(file, name):
    """Rows of a table of profile.h5 as dictionaries."""
    group = file[name]
    columns = {key: group[key][()].tolist() for key in group if key != "row"}
    return [dict(zip(columns, values)) for values in zip(*columns.values())]


class OnHosts(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hosts = cluster.Hosts(HOSTS)
        cls.hosts.__enter__()
        cls.addClassCleanup(cls.hosts.__exit__)

    def setUp(self):
        super().setUp()
        self.output = self.hosts.folder / self.id().rsplit(".", 1)[1]

    def launch(self, *command, options=()):
        words = (AON_RUN, "-o", self.output, *options, "--", *command)
        return self.hosts.mpirun(RANKS_PER_HOST, *words)


class Training(OnHosts):
    def train(self, fault, steps=STEPS, level="gpu"):
        """The findings and all tables of a run with a fault, "NAME=VALUE"."""
        words = ("env", fault, FAKE, "train", 7, steps)
        self.assert_exit(self.launch(*words, options=("--nccl-level", level)))
        self.assert_exit(run([AON, "finalize", self.output]))
        document = ledger(self.output)
        self.assert_law(document)
        self.assertEqual(len(document["ranks"]), RANKS)
        return "\n".join(document["findings"])

    def test_a_late_rank_is_named(self):
        findings = self.train("FAKE_NCCL_LATE=6:0:host")
        named = (r"rank 6 on n2 came last to \d+ of \d+ operations of NCCL: the other GPUs waited "
                 r"\S+ m?s for it, .* in ncclAllReduce")  # fmt: skip
        self.assertRegex(findings, named)
        with h5py.File(self.output / "profile.h5") as file:
            names = [n.decode() for n in file["regions/name"][()]]
            nodes = [n.decode() for n in file["nodes/name"][()]]
            late = [r for r in rows(file, "nccl/lateness")
                    if names[r["region"]] == "ncclAllReduce"]  # fmt: skip
        self.assertEqual(sorted(r["rank"] for r in late), list(range(RANKS)))
        (worst,) = [r for r in late if r["last_count"] != 0]
        self.assertEqual((worst["rank"], nodes[worst["node"]]), (6, "n2"))
        self.assertEqual((worst["count"], worst["last_count"]), (STEPS, STEPS))
        planted_ns = (RANKS - 1) * STEPS * LATE_MS * 1_000_000
        self.assertAlmostEqual(worst["caused_ns"] / planted_ns, 1, places=1)

    def test_two_late_ranks_on_two_hosts_are_both_named(self):
        findings = self.train("FAKE_NCCL_LATE=6:0:host,13:0:host")
        named = (r"rank (6 on n2|13 on n4) came last together with others to \d+ of \d+ operations "
                 r"of NCCL: the other GPUs waited \S+ m?s for it \(its share\), .* in "
                 r"ncclAllReduce; .*its host was late, .*; as long for rank (6|13)")  # fmt: skip
        self.assertRegex(findings, named)  # where others use the CPUs, not of all of it
        with h5py.File(self.output / "profile.h5") as file:
            names = [n.decode() for n in file["regions/name"][()]]
            nodes = [n.decode() for n in file["nodes/name"][()]]
            late = [r for r in rows(file, "nccl/lateness")
                    if names[r["region"]] == "ncclAllReduce" and r["late_count"] != 0]  # fmt: skip
        told = sorted((r["rank"], nodes[r["node"]], r["late_count"], r["shared_count"])
                      for r in late)  # fmt: skip
        self.assertEqual(told, [(6, "n2", STEPS, STEPS), (13, "n4", STEPS, STEPS)])
        self.assertEqual(sum(r["last_count"] for r in late), STEPS)
        share_ns = (RANKS - 2) * STEPS * LATE_MS * 1_000_000 / 2
        for row in late:
            self.assertAlmostEqual(row["caused_ns"] / share_ns, 1, places=1)
            self.assertEqual(row["host_late_ns"] + row["gpu_late_ns"], row["caused_ns"])

    def test_a_slow_link_is_named(self):
        findings = self.train("FAKE_NCCL_LINK=9:0")
        self.assertRegex(findings, r"the link from rank 9 on n3 to rank 10 on n3 is slow")
        with h5py.File(self.output / "profile.h5") as file:
            links = rows(file, "nccl/links")
        self.assertEqual(len(links), RANKS)
        (slow,) = [r for r in links if r["ratio"] > 2]
        self.assertEqual((slow["source_rank"], slow["destination_rank"]), (9, 10))
        self.assertAlmostEqual(slow["ratio"], 20, delta=2)
        readers.otf2_print(self, self.output)
        readers.otf2_structure(self, self.output)
        readers.vite(self, self.output, RANKS, 0, "Rank")

    def test_a_link_between_hosts_that_holds_up_all_is_named(self):
        findings = self.train("FAKE_NCCL_NETWORK=7:3:link", level="step")
        named = (r"the network held up 2 operations of NCCL: their GPUs lost .* of it by sends "
                 r"from rank 7 on n2 to rank 8 on n3, in 2")  # fmt: skip
        self.assertRegex(findings, named)
        with h5py.File(self.output / "profile.h5") as file:
            late = [r for r in rows(file, "nccl/lateness") if r["network_late_count"] != 0]
        self.assertEqual([(r["rank"], r["network_late_count"], r["network_late_peer"])
                          for r in late], [(7, 2, 8)])  # fmt: skip
        planted_ns = RANKS * 2 * LATE_MS * 1_000_000
        self.assertAlmostEqual(late[0]["network_late_ns"] / planted_ns, 1, places=1)

    def test_a_gpu_that_does_not_take_what_came_is_named(self):
        """The sends to it wait for the network. It is the only one on its host."""
        words = ("env", "FAKE_NCCL_NETWORK=1:3:taker", FAKE, "train", 7, STEPS)
        launch = (AON_RUN, "-o", self.output, "--nccl-level", "step", "--", *words)
        self.assert_exit(self.hosts.mpirun(1, *launch))
        self.assert_exit(run([AON, "finalize", self.output]))
        self.assertRegex("\n".join(ledger(self.output)["findings"]),
                         r"GPUs that were in time but slow held up 2 operations of NCCL: all lost "
                         r".* of it by that of rank 2 on n3, in 2")  # fmt: skip
        with h5py.File(self.output / "profile.h5") as file:
            late = rows(file, "nccl/lateness")
        self.assertEqual([r for r in late if r["network_late_count"] != 0], [])
        (slow,) = [r for r in late if r["gpu_slow_count"] != 0]
        self.assertEqual((slow["rank"], slow["gpu_slow_count"]), (2, 2))
        planted_ns = HOSTS * 2 * LATE_MS * 1_000_000
        self.assertAlmostEqual(slow["gpu_slow_ns"] / planted_ns, 1, places=1)

    @unittest.skipIf(MPI != "openmpi", "mpi4py here is Open MPI's")
    def test_a_late_rank_of_an_mpi_program_is_named(self):
        program = self.hosts.folder / "slow_rank.py"
        program.write_text(SLOW_RANK, encoding="utf-8")
        self.assert_exit(self.launch(PYTHON, program, 20, 5))
        self.assert_exit(run([AON, "finalize", self.output]))
        document = ledger(self.output)
        named = r"rank 5 on n2 .*: the others wait(ed)? \d+(\.\d)? s (in all )?for it"
        self.assertRegex("\n".join(document["findings"]), named)
        with h5py.File(self.output / "profile.h5") as file:
            late = rows(file, "lateness")
        worst = max(late, key=lambda r: r["caused_ns"])
        self.assertEqual(worst["rank"], 5)
        self.assertGreater(worst["caused_ns"], 0.8 * sum(r["caused_ns"] for r in late))


class Hang(OnHosts):
    """Hosts of its own, to power off."""

    def test_who_does_not_come_is_named_while_all_others_wait(self):
        words = ("env", "FAKE_NCCL_HANG=13:1:skip", FAKE, "train", 7, 3)
        options = ("--nccl-level", "gpu", "--hang", "2")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            launch = pool.submit(self.launch, *words, options=options)
            try:
                text = wait_until(self.hanging, 120, "a hang")
            finally:
                for i in range(HOSTS):
                    self.hosts.kill(f"n{i + 1}")
                launch.result(120)
        self.assertRegex(text, r"ncclAllReduce 2 of world \(16 members, .* does not end")
        self.assertIn("in it: 0-12, 14-15\n", text)
        self.assertRegex(text, r"rank 13 on n4 \(pid \d+\) did not arrive")
        self.assertRegex(text, r"\n    13 stands in .*compute_for_ever")
        self.assert_exit(run([AON, "finalize", "--snapshot", self.output]))
        self.assertRegex(ledger(self.output)["findings"][0],
                         r"^ncclAllReduce 2 of world never ended: ranks 0-12, 14-15 are in it, "
                         r"rank 13 on n4 \(pid \d+\) did not arrive$")  # fmt: skip
        with h5py.File(self.output / "profile.h5") as file:
            bit = list(file["nccl/operations"].attrs["flags"]).index("in flight")
            kept = [r["rank"] for r in rows(file, "nccl/operations") if r["flags"] >> bit & 1]
        self.assertEqual(sorted(kept), [r for r in range(RANKS) if r != 13])

    def hanging(self):
        done = self.hosts.run("n1", AON, "hang", self.output)
        wanted = ("in it: 0-12, 14-15\n", "13 stands in")
        return all(words in done.stdout for words in wanted) and done.stdout


if __name__ == "__main__":
    cluster.require()
    unittest.main(verbosity=2)
