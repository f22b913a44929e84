#!/usr/bin/python3
"""Programs in containers, as far as bind mounts reach: mount namespaces of their own, as those of
Apptainer, but made by bubblewrap.

    container_test.py [unittest arguments]
"""
import re
import shutil
import subprocess
import sys
import threading
import unittest

import aon_test
from aon_test import BUILD, SKIPPED, TestCase, ledger, run

# Open MPI's ranks meet in /dev/shm and /tmp; with other process ids they do not find each other.
BARE = ["bwrap", "--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc"]
OWN_PIDS = ["unshare", "--pid", "--fork", "--mount-proc"]
HEAT2D = [BUILD / "bin" / "heat2d", "--size", 64, "--steps", 50]


class Containers(TestCase):
    def setUp(self):
        super().setUp()
        self.output = self.folder / "job"
        self.beside = {}  # of ranks that run() runs at the same time
        # What was built may be below /tmp, too.
        self.own_tmp = ["--tmpfs", "/tmp", "--bind", self.folder, self.folder,
                        "--ro-bind", BUILD, BUILD]  # fmt: skip

    def assert_whole(self, done):
        self.assert_exit(done)
        document = ledger(self.output)
        self.assertTrue(document["job"]["complete"], document["job"])
        self.assertEqual([r["rank"] for r in document["ranks"]], [0, 1])
        self.assertTrue(all(r["emitted"] > 200 for r in document["ranks"]))
        self.assert_law(document)
        return document

    def test_all_of_it_in_one(self):
        apart = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--hostname", "box"]
        own_dev = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        done = run([*own_dev, *apart, *self.own_tmp, aon_test.MPI_LAUNCHER, "-n", 2, "aon-run",
                    "-o", self.output, "--", *HEAT2D])
        document = self.assert_whole(done)
        self.assertEqual({r["node"] for r in document["ranks"]}, {"box"})

    def test_ranks_in_containers_that_share_tmp(self):
        done = aon_test.profile(2, self.output, *BARE, "--bind", "/tmp", "/tmp", *HEAT2D)
        document = self.assert_whole(done)
        self.assertTrue(all(r["providers"]["mpi"]["state"] == "on" for r in document["ranks"]))

    def test_ranks_that_see_no_agent_record_into_the_job_directory(self):
        done = aon_test.profile(2, self.output, *BARE, *self.own_tmp, *HEAT2D)
        self.assert_whole(done)

    def test_ranks_with_an_agent_each(self):
        done = run([aon_test.MPI_LAUNCHER, "-n", 2, *BARE, *self.own_tmp, "aon-run",
                    "-o", self.output, "--", *HEAT2D])  # fmt: skip
        self.assert_whole(done)

    def test_launches_from_outside_of_a_pid_namespace_have_a_directory_each(self):
        for _ in range(2):
            rank = aon_test.environment(PMI_RANK="0")
            self.assert_exit(run([*OWN_PIDS, "aon-run", "--", "true"], env=rank, cwd=self.folder))
        self.assertEqual(len(list(self.folder.glob("aon-*"))), 2)

    def test_ranks_with_the_same_pid_in_namespaces_of_their_own_share_an_agent(self):
        """As by srun and `apptainer exec --pid`: Slurm's variables name the launch."""
        program = "echo 300 >/proc/sys/kernel/ns_last_pid; annotate_cases beside & wait $!"
        ranks = []
        for rank in range(2):
            env = aon_test.environment(
                SLURM_JOB_ID=self.folder.name, SLURM_STEP_ID=0, SLURM_PROCID=rank,
                SLURM_STEP_NUM_TASKS=2, SLURM_STEP_TASKS_PER_NODE=2, SLURM_NODEID=0,
                MINE=self.folder / f"beside-{rank}", OTHER=self.folder / f"beside-{1 - rank}",
            )  # fmt: skip
            words = [*OWN_PIDS, "aon-run", "-o", self.output, "--", "sh", "-c", program]
            ranks.append(threading.Thread(target=self.run_beside, args=(rank, words, env)))
        for thread in ranks:
            thread.start()
        for thread in ranks:
            thread.join()
        for done in self.beside.values():
            self.assert_exit(done)
        document = ledger(self.output)
        self.assertEqual([r["pid"] for r in document["ranks"]], [301, 301], document["ranks"])
        self.assert_law(document)
        for rank in document["ranks"]:
            told = re.search(r"^(\d+) marks$", self.beside[rank["rank"]].stdout, re.MULTILINE)
            self.assertEqual((rank["emitted"], rank["lost"]), (int(told[1]), 0), rank)
        seen = [r for r in document["ranks"] if "recording" not in r["providers"]]
        others = [r for r in document["ranks"] if "recording" in r["providers"]]
        self.assertEqual((len(seen), len(others)), (1, 1), document["ranks"])
        self.assertEqual(seen[0]["exit"]["code"], 0, seen)
        self.assertIsNone(others[0]["exit"]["code"], others)
        self.assertIn("PID namespace", others[0]["providers"]["recording"]["reason"])
        self.assertNotIn("perf", others[0]["providers"])

    def run_beside(self, rank, words, env):
        self.beside[rank] = run(words, env=env)

    def test_ranks_that_see_nothing_of_ours_run_as_ever(self):
        plain = run([*BARE, "--tmpfs", "/tmp", *HEAT2D])
        done = run(["aon-run", "-o", self.output, "--", *BARE, "--tmpfs", "/tmp", *HEAT2D])
        self.assertEqual((done.returncode, done.stdout), (plain.returncode, plain.stdout))
        self.assertIn("nothing was recorded", done.stderr)
        self.assertIn("container", done.stderr)


if __name__ == "__main__":
    if shutil.which("bwrap") is None:
        print("skipped: bwrap is missing: run scripts/setup")
        sys.exit(SKIPPED)
    if subprocess.run([*BARE, "true"], check=False).returncode != 0:
        print("skipped: namespaces are not allowed here: run as root, or in a privileged container")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
