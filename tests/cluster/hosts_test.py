#!/usr/bin/python3
"""One launch over several hosts, started over rsh: the job is as without AON, and its directory,
which all hosts share, holds every rank.

    hosts_test.py [unittest arguments]
"""
import concurrent.futures
import socket
import subprocess
import sys
import unittest

import cluster
import readers
from aon_test import MPI, PYTHON, TestCase, ledger, run, wait_until
from cluster import AON, AON_RUN, HEAT2D

# Ranks of MPICH never sleep while they wait, and two cores have room for two of them.
HOSTS, RANKS = {"openmpi": (4, 2), "mpich": (2, 1)}[MPI]
PROGRAM = {"openmpi": HEAT2D, "mpich": HEAT2D.with_name("heat2d_mpich")}[MPI]
WORDS = [PROGRAM, "--size", 64, "--steps", 50]


class OnHosts(TestCase):
    """Hosts of the class, and a launch over all of them."""

    @classmethod
    def setUpClass(cls):
        cls.hosts = cluster.Hosts(HOSTS)
        cls.hosts.__enter__()
        cls.addClassCleanup(cls.hosts.__exit__)

    def setUp(self):
        super().setUp()
        self.output = self.hosts.folder / self.id().rsplit(".", 1)[1]

    def launch(self, ranks_per_host, *command, **more):
        start = {"openmpi": self.hosts.mpirun, "mpich": self.hosts.hydra}[MPI]
        return start(ranks_per_host, *command, **more)

    def finalize(self):
        """The ledger, after everybody is done: there is one directory."""
        self.assertEqual(list(self.output.parent.glob(self.output.name + ".*")), [])
        self.assert_exit(run([AON, "finalize", self.output]))
        return ledger(self.output)


class Launches(OnHosts):
    """Launches that end by themselves."""

    def test_hosts_have_names_and_addresses_of_their_own(self):
        names = [self.hosts.run(f"n{i + 1}", "hostname").stdout.strip() for i in range(HOSTS)]
        self.assertEqual(names, [f"n{i + 1}" for i in range(HOSTS)])
        self.assertNotIn(socket.gethostname(), names)
        found = self.hosts.run("n2", "getent", "hosts", "n1")
        self.assertEqual(found.stdout.split(), ["10.77.0.1", "n1"])

    def test_a_launch_over_hosts_ends_as_without_and_holds_all_ranks(self):
        plain = self.launch_again(RANKS, *WORDS)
        self.assert_exit(plain)
        done = self.launch(RANKS, AON_RUN, "-o", self.output, *WORDS)
        self.assert_exit(done)
        self.assertEqual(done.stdout, plain.stdout)
        document = self.finalize()
        self.assertEqual([r["rank"] for r in document["ranks"]], list(range(RANKS * HOSTS)))
        nodes = {r["node"] for r in document["ranks"]}
        self.assertEqual(nodes, {f"n{i + 1}" for i in range(HOSTS)})
        self.assert_law(document)
        readers.many_nodes(self, self.output, document)

    def test_a_bad_end_is_the_same(self):
        # The pause is for hydra: it hangs, also without AON, in one of thirty launches when the
        # program of a host ends badly while another rank is still in MPI_Finalize, which takes more
        # than a second where the machine is busy.
        pause = "sleep 4" if MPI == "mpich" else "true"
        command = ["sh", "-c", f"{' '.join(map(str, WORDS))}; {pause}; exit 3"]
        plain = self.launch_again(1, *command)
        done = self.launch_again(1, AON_RUN, "-o", self.output, *command)
        self.assertEqual(done.returncode, plain.returncode, done.stderr)
        self.assertNotEqual(done.returncode, 0)

    def launch_again(self, *words):
        """Tried once more where hydra hangs."""
        if MPI == "mpich":
            try:
                return self.launch(*words, timeout_s=60)
            except subprocess.TimeoutExpired as error:
                print(f"hydra hung, tried again: {error}", file=sys.stderr)
        return self.launch(*words)


@unittest.skipIf(MPI != "openmpi", "mpi4py here is Open MPI's")
class PowerOff(OnHosts):
    """A host of its own to lose."""

    def test_a_host_that_is_powered_off_costs_its_own_records_only(self):
        program = self.hosts.folder / "endless.py"
        program.write_text(cluster.ENDLESS, encoding="utf-8")
        words = [AON_RUN, "-o", self.output, PYTHON, program]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            launch = pool.submit(self.launch, 1, *words)
            wait_until(self.all_hosts_record, 40, "records of all hosts")
            self.hosts.kill(f"n{HOSTS}")
            self.assertNotEqual(launch.result(60).returncode, 0)
        wait_until(lambda: run([AON, "finalize", self.output]).returncode == 0, 60, "the archive")
        ranks = {r["rank"]: r for r in ledger(self.output)["ranks"]}
        self.assertEqual(sorted(ranks), list(range(HOSTS)))
        for rank in range(HOSTS - 1):
            self.assertGreater(ranks[rank]["spooled"], 0)
        self.assert_exit(run(["otf2-print", "--silent", self.output / "traces.otf2"]))

    def all_hosts_record(self):
        folders = [self.output / "spool" / f"n{i + 1}" for i in range(HOSTS)]
        return all(sum(f.stat().st_size for f in d.glob("*")) > 20000 for d in folders)


if __name__ == "__main__":
    cluster.require()
    unittest.main(verbosity=2)
