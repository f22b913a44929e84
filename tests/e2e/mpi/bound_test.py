#!/usr/bin/python3
"""Python without mpi4py, which Debian has for one MPI library alone: programs/bound.py calls MPI
through a binding that brings its MPI library along where nobody else sees it. The records are what
the program says that it did, call by call.

    bound_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import collections
import sys
import unittest

import ring_file as rf
from mpi_test import PROGRAMS, MpiTest

from aon_test import BUILD, MPI_LAUNCHER, PYTHON, SOURCE, environment, ledger, mpirun, run

sys.path.insert(0, str(SOURCE / "plugins" / "mpi"))

import generate  # noqa: E402
import templates  # noqa: E402

PROGRAM = SOURCE / "tests" / "e2e" / "mpi" / "programs" / "bound.py"
ROWS = {f.name: f for f in generate.read_table(SOURCE / "plugins" / "mpi" / "functions.table")}
CREATE, DESTROY = 17, 18  # CollectiveOperation


def facts(record):
    """As the program says them."""
    if record.flags & rf.FAILED:
        return ("failed",)
    if record.kind in (rf.MESSAGE, rf.EXCHANGE):
        return (record.peer, record.tag, record.a64)
    if record.kind == rf.COLLECTIVE:
        root, operation = rf.pair(record.words[1])
        return () if operation in (CREATE, DESTROY) else (record.a64, record.words[0], root)
    if record.kind == rf.RMA and record.operation in ("put", "get", "accumulate"):
        return (record.peer, record.a64, record.words[1])
    if record.kind == rf.IO and record.operation in ("read", "write"):
        return (record.bytes_asked, record.a64, record.offset)
    return ()


def told(file):
    """Of calls that are recorded one by one, and of what they complete."""
    lines = []
    for record in file.records:
        if record.kind == rf.COMPLETION and record.id == rf.COLLECTIVE:
            lines.append(("done", record.a64, record.words[2], record.peer))
        elif record.kind == rf.COMPLETION:
            lines.append(("done", record.peer, record.tag, record.a64))
        elif record.is_call and not is_counted(record.name):
            lines.append((record.name, *facts(record)))
    return [" ".join(map(str, line)) for line in lines]


def is_counted(name):
    """Calls that are counted; some of them, or none, are recorded."""
    return name in ROWS and (ROWS[name].kind == "count" or ROWS[name].kind in templates.POLLS)


class Bound(MpiTest):
    """programs/bound.py"""

    maxDiff = None

    def setUp(self):
        super().setUp()
        # Open MPI has windows only where one process can write another's memory.
        self.env = environment(OMPI_MCA_btl_vader_single_copy_mechanism="emulated")
        self.program = [PYTHON, "-B", PROGRAM, PROGRAMS / "libbinding.so", self.folder]

    def test_the_records_are_what_the_program_says(self):
        """Without a counter behind us, which would show the MPI library to all modules."""
        ours = [f"AON_OUTPUT={self.folder}", "AON_MEMORY=64M"]
        ours += [f"LD_PRELOAD={BUILD / 'lib' / 'libaon-mpi.so'}"]
        process = run([MPI_LAUNCHER, "-n", 2, "env", *ours, *self.program], env=self.env,
                      timeout_s=60)  # fmt: skip
        self.assert_exit(process)
        self.assertEqual(process.stdout.count("ok"), 2)
        ranks = rf.read_all(self.folder)
        self.assertEqual(sorted(ranks), [0, 1])
        self.assert_messages_match(ranks)
        for rank, file in ranks.items():
            self.assert_whole(file)
            said = (self.folder / f"said-{rank}").read_text().splitlines()
            one_by_one = [line for line in said if not is_counted(line.split()[0])]
            self.assertEqual(told(file), one_by_one)
            counted = collections.Counter(line.split()[0] for line in said)
            counted = {name: n for name, n in counted.items() if is_counted(name)}
            self.assertEqual({n: c for n, c in file.counters().items() if is_counted(n)}, counted)
            self.assertIn("of Python", [c.name for c in file.communicators.values()])
            for known in (file.windows, file.files):
                self.assertEqual(len(known), 1)

    def test_the_program_does_the_same_with_an_agent(self):
        plain = mpirun(2, *self.program, env=self.env)
        self.assert_exit(plain)
        output = self.folder / "job"
        process = mpirun(2, "aon-run", "-o", output, "--", *self.program, env=self.env)
        self.assert_exit(process)
        self.assertEqual([p.stdout.count("ok") for p in (plain, process)], [2, 2])
        document = ledger(output)
        self.assert_law(document)
        self.assertEqual(document["losses"], [])
        self.assertTrue(document["assembly"]["communication_complete"])


if __name__ == "__main__":
    unittest.main()
