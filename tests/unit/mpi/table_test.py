#!/usr/bin/python3
"""Compares functions.table with the <mpi.h> of the MPI compiler: every function is there, with the
same arguments, and what handles.h says of Open MPI is what its header says.

    AON_TEST_MPI=openmpi|mpich table_test.py
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PLUGIN = ROOT / "plugins" / "mpi"
sys.path[:0] = [str(PLUGIN), str(ROOT / "tests" / "e2e")]

import generate  # noqa: E402
from aon_test import MPI_COMPILER  # noqa: E402

# Predefined callbacks and macros: values, not calls.
NOT_CALLS = re.compile(r"MPI_(\w+_)?(NULL_)?(COPY|DELETE|DUP)_FN|MPI_CONVERSION_FN_NULL")

CONSTANTS = """\
#include <mpi.h>
#include <stddef.h>
_Static_assert(sizeof(MPI_Status) == 24 && sizeof(MPI_Request) == 8, "");
_Static_assert(offsetof(MPI_Status, MPI_SOURCE) == 0 && offsetof(MPI_Status, MPI_TAG) == 4, "");
_Static_assert(offsetof(MPI_Status, MPI_ERROR) == 8 && offsetof(MPI_Status, _cancelled) == 12, "");
_Static_assert(offsetof(MPI_Status, _ucount) == 16, "");
_Static_assert(MPI_ANY_SOURCE == -1 && MPI_ANY_TAG == -1 && MPI_PROC_NULL == -2, "");
_Static_assert(MPI_ROOT == -4 && MPI_UNDEFINED == -32766 && MPI_SUCCESS == 0, "");
_Static_assert(MPI_ERR_OTHER == 16 && MPI_ERR_IN_STATUS == 18 && MPI_ERR_PENDING == 19, "");
_Static_assert(MPI_CART == 1 && MPI_GRAPH == 2 && MPI_DIST_GRAPH == 3, "");
_Static_assert(MPI_THREAD_MULTIPLE == 3, "");
static int g_check[MPI_IN_PLACE == (void*)1 && MPI_STATUS_IGNORE == (void*)0 ? 1 : -1];
int main(void) { return g_check[0]; }
"""


def compile_text(text):
    """What the compiler says of a C source; empty when it takes it."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "check.c")
        path.write_text(text)
        command = [MPI_COMPILER, "-w", "-fsyntax-only", "-Werror=implicit", str(path)]
        return subprocess.run(command, capture_output=True, text=True).stderr


class Table(unittest.TestCase):
    """functions.table."""

    functions = generate.read_table(PLUGIN / "functions.table")

    def test_prototypes_are_those_of_the_header(self):
        """A second declaration with other types is an error of the compiler."""
        text = "#include <mpi.h>\ntypedef MPI_Comm_errhandler_function MPI_Handler_function;\n"
        for function in self.functions:  # functions that MPI-3 removed are macros now
            text += f"#undef {function.name}\n{function.prototype};\n"
        self.assertEqual(compile_text(text), "")

    def test_no_function_is_missing(self):
        header = subprocess.run(
            [MPI_COMPILER, "-E", "-P", "-x", "c", "-"],
            input="#include <mpi.h>\n",
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        declared = set(re.findall(r"\b(MPI_\w+)\s*\(", header))
        functions = {n for n in declared if "P" + n in header and not NOT_CALLS.fullmatch(n)}
        self.assertEqual(functions - {f.name for f in self.functions}, set())

    def test_constants_of_open_mpi(self):
        self.assertEqual(compile_text(CONSTANTS), "")

    def test_a_wrong_row_is_refused(self):
        for row in ("span int MPI_X(void)", "send: int MPI_X(int count)", "span: int MPI_X(int)"):
            with self.assertRaises(generate.TableError):
                generate.shapes.pieces(generate.parse_row(row, {}, 0))


if __name__ == "__main__":
    unittest.main()
