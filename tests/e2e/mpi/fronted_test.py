#!/usr/bin/python3
"""Programs with an MPI tool linked into them: its calls by PMPI names cannot be seen, which the
ledger says.

    fronted_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import readers  # noqa: E402
from aon_test import TestCase, ledger, profile  # noqa: E402

PROGRAMS = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(".")


class Fronted(TestCase):
    def run_program(self, name):
        output = self.folder / "job"
        self.process = profile(2, output, PROGRAMS / name)
        self.assert_exit(self.process)
        document = ledger(output)
        self.assert_law(document)
        return document

    def test_a_function_of_the_programs_own(self):
        document = self.run_program("fronted")
        for rank in document["ranks"]:
            told = rank["providers"]["mpi"]
            self.assertEqual(told["state"], "degraded")
            self.assertEqual(
                told["reason"],
                "the program, or a library in front, has 1 MPI functions of its own (MPI_Send): "
                "what they call by PMPI names is not recorded")
            self.assertEqual(told["remedy"], "load the tool by LD_PRELOAD instead")
        self.assertFalse(document["assembly"]["communication_complete"])
        readers.otf2_print(self, self.folder / "job")
        readers.otf2_structure(self, self.folder / "job")

    def test_all_functions_of_the_programs_own(self):
        document = self.run_program("fronted_all")
        (node,) = document["nodes"]
        told = node["providers"]["mpi"]
        self.assertEqual(told["state"], "off")
        self.assertEqual(told["reason"],
                         f"{PROGRAMS / 'fronted_all'} has MPI_Init of its own, as of a tool that "
                         "is linked into it: its calls go on by PMPI names")
        self.assertEqual(told["remedy"], "load the tool by LD_PRELOAD")
        self.assertIn(f"nothing was recorded: mpi is off: {told['reason']}", self.process.stderr)


if __name__ == "__main__":
    unittest.main()
