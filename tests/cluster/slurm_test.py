#!/usr/bin/python3
"""AON switched on by one line of slurm.conf, on a simulated cluster with two nodes: jobs end as they
do without it, no node is taken out of service, and what was recorded can be read afterwards.

    slurm_test.py [unittest arguments]
"""
import os
import pathlib
import pwd
import shutil
import time
import unittest

import cluster
from aon_test import BUILD, TestCase, ledger, run, wait_until
from cluster import AON, AON_RUN, HEAT2D

NODES = 2
INSTALLED = BUILD / "share" / "aon" / "slurm"
TASK_PROLOG = INSTALLED / "aon-taskprolog.sh"
SPANK = BUILD / "lib" / "aon" / "slurm" / "spank_aon.so"
WORDS = f"{HEAT2D} --size 64 --steps 50"
LINE = "heat2d"  # what its only line begins with
NO_STEP_YET = ".sh"


def settings(*more):
    lines = [f"TaskProlog={TASK_PROLOG}", "PrologEpilogTimeout=20", *more]
    if SPANK.exists():
        lines.append(f"plugin optional {SPANK}")
    return lines


class OnSlurm(TestCase):
    """A cluster of the class; each test has a folder that all nodes see."""

    lines = settings()

    @classmethod
    def setUpClass(cls):
        cls.slurm = cluster.SlurmCluster(NODES, settings=cls.lines)
        cls.slurm.__enter__()
        cls.addClassCleanup(cls.slurm.__exit__)

    def setUp(self):
        super().setUp()
        self.place = self.slurm.folder / self.id().rsplit(".", 1)[1]
        self.place.mkdir()
        self.place.chmod(0o777)
        self.addCleanup(lambda: self.assertEqual(self.slurm.unready_nodes(), []))

    def run_in_place(self, *command, **more):
        return self.slurm.run(*command, cwd=self.place, **more)

    def batch(self, script, *options):
        """Runs `script` as a batch job; returns state, exit code and output."""
        out = self.place / f"out{len(list(self.place.glob('out*')))}"
        job = self.slurm.submit(script, "-N", NODES, "-n", 4, "-o", out, *options, cwd=self.place)
        state, code = self.slurm.wait(job)
        return state, code, out.read_text(errors="replace"), job

    def outputs(self, count, place=None):
        """The job directories, once all agents have finished."""

        def done():
            found = sorted((place or self.place).glob("aon-*"))
            return found if len(found) == count else None

        found = wait_until(done, 20, f"{count} directories in {self.place}")
        for output in found:
            wait_until(lambda at=output: self.is_finished(at), 40, f"files of {output}")
        return found

    def is_finished(self, output):
        return run([AON, "finalize", output]).returncode != 3

    def assert_ranks(self, output, ranks, nodes=NODES):
        """Readable, with these ranks, from so many nodes."""
        self.assert_exit(run([AON, "finalize", output]))
        document = ledger(output)
        self.assertEqual([r["rank"] for r in document["ranks"]], list(ranks))
        self.assertEqual(len({r["node"] for r in document["ranks"]}), nodes)
        self.assert_law(document)
        self.assert_exit(run(["otf2-print", "--silent", "-Werror", output / "traces.otf2"]))
        return document


class Enabled(OnSlurm):
    """TaskProlog, nothing else: no aon-run in any command."""

    def test_srun_over_two_nodes_is_one_directory(self):
        plain = self.run_in_place("srun", "--mpi=pmix", "-N2", "-n4", *WORDS.split(),
                                  env=cluster.environment(AON_DISABLE="1"))
        self.assert_exit(plain)
        self.assertEqual(list(self.place.glob("aon-*")), [])
        done = self.run_in_place("srun", "--mpi=pmix", "-N2", "-n4", *WORDS.split())
        self.assert_exit(done)
        self.assertEqual((done.stdout, done.stderr), (plain.stdout, plain.stderr))
        (output,) = self.outputs(1)
        self.assert_ranks(output, range(4))

    def test_each_mpirun_of_a_batch_script_is_a_directory(self):
        state, code, text, _ = self.batch(f"mpirun {WORDS}\nmpirun -n 2 {WORDS}")
        self.assertEqual((state, code), ("COMPLETED", "0:0"), text)
        first, second = self.outputs(2)
        counts = sorted(len(ledger(o)["ranks"]) for o in (first, second) if self.finished(o))
        self.assertEqual(counts, [2, 4])

    def finished(self, output):
        self.assert_exit(run([AON, "finalize", output]))
        return True


if __name__ == "__main__":
    cluster.require(slurm=True)
    unittest.main(verbosity=2)
