#!/usr/bin/python3
"""Many ranks on many hosts: 64 ranks over 8 hosts on whatever cores there are. Nothing is lost, and
every agent stays within its memory.

    scale_test.py [unittest arguments]
"""
import unittest

import cluster
from aon_test import TestCase, ledger, run
from cluster import AON, AON_RUN, HEAT2D

HOSTS, RANKS = 8, 8
NODE_BYTES = 96 << 20  # --node-memory for the rings, and the staging buffer
AGENT_BYTES = 128 << 20  # resident: code, the staging buffer, pages of rings that it has read


def many_ranks():
    """The ledger of a job with RANKS ranks on each of HOSTS hosts."""
    with cluster.Hosts(HOSTS) as hosts:
        output = hosts.folder / "job"
        done = hosts.mpirun(RANKS, AON_RUN, "--node-memory", "64MiB", "-o", output,
                            HEAT2D, "--size", 64, "--steps", 20)
        finished = run([AON, "finalize", "--quiet", output])
        if done.returncode != 0 or finished.returncode != 0:
            raise AssertionError(done.stderr + finished.stderr)
        return ledger(output)


class ManyRanks(TestCase):
    def test_64_ranks_over_8_hosts(self):
        document = many_ranks()
        self.assert_law(document)
        self.assertEqual([r["rank"] for r in document["ranks"]], list(range(HOSTS * RANKS)))
        self.assertEqual(sum(r["lost"] for r in document["ranks"]), 0)
        self.assertEqual(len(document["nodes"]), HOSTS)
        usage = document["budget"]
        self.assertLessEqual(usage["memory_bytes"], HOSTS * NODE_BYTES)
        self.assertLess(usage["agent_resident_bytes"], HOSTS * AGENT_BYTES)


if __name__ == "__main__":
    cluster.require()
    unittest.main()
