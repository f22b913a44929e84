"""A rank that the kernel kills because its control group is out of memory: the job ends as without
AON, whose agent lives in the same group, and what was recorded is readable."""
import contextlib
import os
import pathlib
import signal
import sys
import unittest

from fault_test import FaultCase, environment, ledger, run  # isort: skip
from aon_test import SKIPPED

LIMIT_BYTES = 320 << 20
EATER = """
from mpi4py import MPI
eaten = []
while True:
    MPI.COMM_WORLD.Barrier()
    if MPI.COMM_WORLD.rank == 1:
        eaten.append(bytearray(b"x" * (8 << 20)))
"""


class Group:
    """A control group for memory, of either version."""

    def __init__(self):
        roots = ((pathlib.Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", None),
                 (pathlib.Path("/sys/fs/cgroup"), "memory.max", "memory.swap.max"))
        self.folder = None
        for root, limit, swap in roots:
            folder = root / f"aon-test-{os.getpid()}"
            with contextlib.suppress(OSError):
                folder.mkdir()
                self.folder = folder
                (folder / limit).write_text(str(LIMIT_BYTES))
                if swap:
                    (folder / swap).write_text("0")
                return
            self.remove()
        raise unittest.SkipTest("no control group for memory can be made here: run as root")

    def remove(self):
        with contextlib.suppress(OSError):
            if self.folder is not None:
                self.folder.rmdir()
        self.folder = None


class OutOfMemory(FaultCase):
    def eat(self, *words):
        join = f"echo $$ > {self.group.folder}/cgroup.procs; exec \"$@\""
        return run(["bash", "-c", join, "bash", "mpirun", "-n", 2, *words, "/usr/bin/python3", "-c",
                    EATER], env=environment())

    def test_the_job_ends_as_without_us(self):
        self.group = Group()
        self.addCleanup(self.group.remove)
        plain = self.eat()
        self.assertEqual(plain.returncode, 128 + signal.SIGKILL, plain.stderr)
        process = self.eat("aon-run", "-o", self.output, "--")
        self.assertEqual(process.returncode, plain.returncode, process.stderr)
        document = self.finish()
        killed = self.rank_of(document, 1)
        self.assertEqual(killed["exit"]["signal"], signal.SIGKILL)
        self.assertGreater(killed["spooled"], 5)
        self.assertEqual(killed["lost"], 0)
        self.assertGreaterEqual(self.profile_count(1, "MPI_Barrier"), 5)
        self.assertEqual(len(ledger(self.output)["ranks"]), 2)


if __name__ == "__main__":
    try:
        Group().remove()
    except unittest.SkipTest as reason:
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)
    unittest.main()
