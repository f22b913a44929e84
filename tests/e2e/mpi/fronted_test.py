#!/usr/bin/python3
"""Programs whose calls of MPI go past the library: an MPI tool that is linked into them calls by
PMPI names, or they look the functions up in MPI's own library. The ledger says so.

    fronted_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import readers  # noqa: E402
from aon_test import TestCase, ledger, profile  # noqa: E402

PROGRAMS = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(".")

PAST_US = ("MPI was initialised by a call that went past libaon-mpi.so, and such calls are not "
           "recorded: the program looks the functions up in MPI's own library (dlsym(), "
           "RTLD_DEEPBIND), or calls them by PMPI names")
REMEDY = "call them by MPI_ names, or look them up by dlsym(RTLD_DEFAULT, name)"


class Fronted(TestCase):
    def run_program(self, name, *arguments):
        output = self.folder / "job"
        self.process = profile(2, output, PROGRAMS / name, *arguments)
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

    def test_functions_that_are_looked_up_where_nothing_else_is_recorded(self):
        self.assertEqual(self.run_program("by_handle", "bare")["ranks"], [])
        self.assertIn("nothing was recorded: ", self.process.stderr)
        self.assertIn("looks MPI's functions up in MPI's own library", self.process.stderr)

    def test_some_functions_that_are_looked_up_in_the_library(self):
        document = self.run_program("by_handle", "some")
        for rank in document["ranks"]:
            told = rank["providers"]["mpi"]
            self.assertEqual((told["state"], told["reason"]), ("degraded", PAST_US))
            self.assertEqual(told["remedy"], REMEDY)
        self.assertFalse(document["assembly"]["communication_complete"])


if __name__ == "__main__":
    unittest.main()
