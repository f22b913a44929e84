#!/usr/bin/python3
"""Distributed training with PyTorch, started by torchrun on two hosts: one launch, one archive,
with the steps and phases of every worker.

    torchrun_test.py [unittest arguments]
"""
import concurrent.futures
import importlib.util
import sys
import unittest

import cluster
import h5py
from aon_test import BUILD, PYTHON, SKIPPED, TestCase, environment, ledger, run, wait_until
from cluster import AON, AON_RUN

HOSTS = 2
WORKERS = 2  # of each host
STEPS = 20
LATE = 3
TRAIN = cluster.HERE / "programs" / "train.py"
# Both flags of the log because the launcher of Debian's version cannot read its own defaults.
LOGS = ["-r", 1, "-t", 1]


class TorchRun(TestCase):
    def setUp(self):
        super().setUp()
        self.hosts = cluster.Hosts(HOSTS)
        self.hosts.__enter__()
        self.addCleanup(self.hosts.__exit__)
        self.output = self.hosts.folder / "job"

    def torchrun(self, host, *command):
        words = ["torchrun", "--nnodes", HOSTS, "--nproc_per_node", WORKERS,
                 "--rdzv_backend", "c10d", "--rdzv_endpoint", "n1:29411", "--rdzv_id", "train7",
                 *LOGS, "--log_dir", self.hosts.folder / f"log-{host}", "--no_python", *command]
        env = environment(PYTHONPATH=BUILD / "lib" / "aon" / "python", OMP_NUM_THREADS=1,
                          GLOO_SOCKET_IFNAME="eth0")
        return self.hosts.run(host, *words, env=env, timeout_s=200)

    def launch(self, *command):
        with concurrent.futures.ThreadPoolExecutor() as pool:
            runs = [pool.submit(self.torchrun, f"n{i + 1}", *command) for i in range(HOSTS)]
            return [one.result() for one in runs]

    def test_one_launch_of_all_workers(self):
        ended = self.launch(AON_RUN, "-o", self.output, PYTHON, TRAIN, STEPS, LATE)
        for done in ended:
            self.assert_exit(done)
        text = "".join(done.stdout for done in ended)
        for rank in range(HOSTS * WORKERS):
            self.assertIn(f"rank {rank} of 4: {STEPS} steps", text)
        wait_until(lambda: (self.output / "aon.json").exists(), 60, "the archive")
        document = ledger(self.output)
        self.assertTrue(document["job"]["complete"], document["job"])
        self.assertEqual(document["job"]["id"], "train7.0")
        self.assertEqual([r["rank"] for r in document["ranks"]], list(range(HOSTS * WORKERS)))
        self.assertEqual({r["node"] for r in document["ranks"]}, {"n1", "n2"})
        self.assert_law(document)
        with h5py.File(self.output / "profile.h5") as file:
            ranks = file["steps/rank"][:].tolist()
            names = [n.decode() for n in file["regions/name"][:]]
            is_forward = file["profile/region"][:] == names.index("forward")
            spent_ns = dict(zip(file["profile/rank"][is_forward].tolist(),
                                file["profile/inclusive_ns"][is_forward].tolist()))
        self.assertEqual({rank: ranks.count(rank) for rank in set(ranks)},
                         {rank: STEPS for rank in range(HOSTS * WORKERS)})
        self.assertEqual(max(spent_ns, key=spent_ns.get), LATE, spent_ns)
        self.assertGreater(spent_ns[LATE], STEPS * 30e6)
        said = run([AON, "info", self.output]).stdout
        self.assertRegex(said, rf"region forward takes .* on rank {LATE}, .* on the others")
        self.assertNotIn("computes", said, "who waits for whom is not known")
        self.assert_exit(run(["otf2-print", "--silent", "-Werror", self.output / "traces.otf2"]))


if __name__ == "__main__":
    cluster.require()
    if importlib.util.find_spec("torch") is None:
        print("skipped: PyTorch is missing: run scripts/setup")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
