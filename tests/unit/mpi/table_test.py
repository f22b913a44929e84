#!/usr/bin/python3
"""Compares functions.table with the <mpi.h> of an MPI compiler: every function is there, with the
same arguments, or in left_alone.table; and what open_mpi.cpp says of Open MPI is what its header
says.

    AON_TEST_MPI=openmpi|mpich table_test.py
"""
import fnmatch
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
import templates  # noqa: E402
from aon_test import MPI, MPI_COMPILER  # noqa: E402

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
_Static_assert(MPI_MODE_RDONLY == 2 && MPI_MODE_WRONLY == 4 && MPI_MODE_RDWR == 8, "");
_Static_assert(MPI_MODE_CREATE == 1 && MPI_MODE_EXCL == 64 && MPI_MODE_APPEND == 128, "");
_Static_assert(MPI_MODE_DELETE_ON_CLOSE == 16 && MPI_MODE_UNIQUE_OPEN == 32, "");
_Static_assert(MPI_MODE_SEQUENTIAL == 256 && sizeof(MPI_File) == 8, "");
_Static_assert(MPI_SEEK_CUR == 602 && MPI_SEEK_END == 604, "");
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


def preprocess(*options):
    command = [MPI_COMPILER, "-E", *options, "-x", "c", "-"]
    text = "#include <mpi.h>\n"
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def functions_of_the_header():
    header = preprocess("-P")
    declared = set(re.findall(r"\b(MPI_\w+)\s*\(", header))
    return {n for n in declared if f"P{n}(" in header and not NOT_CALLS.fullmatch(n)}


def functions_of_the_library():
    """What the installed library defines. Elsewhere than where Debian has it: {}"""
    name = {"openmpi": "libmpi.so.40", "mpich": "libmpich.so.12"}[MPI]
    for folder in pathlib.Path("/usr/lib").glob("*-linux-gnu"):
        if not (folder / name).exists():
            continue
        command = ["nm", "-D", "--defined-only", str(folder / name)]
        symbols = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return set(re.findall(r" (MPIX?_\w+)$", symbols, re.M))
    return set()


def left_alone():
    """{pattern: reason}"""
    lines = (PLUGIN / "left_alone.table").read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines if line and not line.startswith("#"))


class Table(unittest.TestCase):
    """functions.table and left_alone.table."""

    functions = generate.read_table(PLUGIN / "functions.table")
    header = functions_of_the_header()
    macros = set(re.findall(r"^#define (MPI_\w+)", preprocess("-dM"), re.M))

    def test_prototypes_are_those_of_the_header(self):
        """A second declaration with other types is an error of the compiler. What the library does
        not have is left out; it may lack the types as well. What is const differs between
        versions of the standard (MPI_Pready_list), and nothing depends on it."""
        text = "#define const\n#include <mpi.h>\n"
        text += "typedef MPI_Comm_errhandler_function MPI_Handler_function;\n"
        rows = [f for f in self.functions if f.name in self.header | self.macros]
        for function in rows:  # functions that MPI-3 removed are macros now
            text += f"#undef {function.name}\n{function.prototype};\n"
        self.assertEqual(compile_text(text), "")
        self.assertGreater(len(rows), 390)

    def test_no_function_is_missing(self):
        patterns = left_alone()
        missing = self.header - {f.name for f in self.functions}
        excused = {n for n in missing if any(fnmatch.fnmatchcase(n, p) for p in patterns)}
        self.assertEqual(missing - excused, set())
        self.assertLessEqual(len(excused), len(self.header) / 20)

    def test_what_the_library_lacks_is_optional(self):
        there = functions_of_the_library()
        if not there:
            self.skipTest("the library lies elsewhere")
        every = self.functions + generate.drafts(self.functions)
        self.assertGreater(len(there), 400)
        lacking = {f.name for f in every if f.name not in there}
        self.assertGreater(len(lacking), 50)
        self.assertEqual(lacking - {f.name for f in every if f.is_optional}, set())

    def test_what_is_left_alone_has_a_reason_and_no_wrapper(self):
        for pattern, reason in left_alone().items():
            self.assertGreater(len(reason), 20, pattern)
            self.assertEqual(fnmatch.filter([f.name for f in self.functions], pattern), [])
            if MPI == "mpich":  # the one that has them
                self.assertNotEqual(fnmatch.filter(self.header, pattern), [], pattern)

    @unittest.skipUnless(MPI == "openmpi", "for MPICH: mpich_test.cpp")
    def test_constants_of_open_mpi(self):
        self.assertEqual(compile_text(CONSTANTS), "")

    def test_creations_with_others_are_those_of_the_waiting_time(self):
        """Whom they meet is not known (creates_with_others())."""
        kinds = {"create_group", "create_inter", "create_world"}
        text = (PLUGIN.parents[1] / "writers" / "profile" / "mpi_calls.h").read_text()
        body = text[text.index("creates_with_others") :]
        names = re.findall(r'"(MPI_\w+)"', body[: body.index("}\n\n")])
        self.assertEqual(set(names), {f.name for f in self.functions if f.kind in kinds})

    def test_creations_of_groups_end_before_we_look_at_them(self):
        """Their record names what was made, so it is written behind that."""
        made = [f for f in self.functions if f.kind == "create_group"]
        self.assertEqual(len(made), 2)
        for function in made:
            body = templates.body(function)
            recorded = body[body.index("begin_call") :]
            steps = ("real(", "now = ticks(w)", "add_communicator_of_members", "finish_creation_at")
            order = [recorded.index(text) for text in steps]
            self.assertEqual(order, sorted(order), function.name)

    def test_large_counts_share_the_call_site(self):
        sites = {f.name: f.site for f in self.functions}
        large = [f for f in self.functions if f.plain]
        self.assertGreater(len(large), 100)
        for function in large:
            self.assertEqual(function.site, sites[function.name.removesuffix("_c")])

    @unittest.skipUnless(MPI == "openmpi", "the library that has them")
    def test_drafts_are_those_of_open_mpi_4(self):
        """MPIX_x_init does what MPI_x_init does; its header has no others."""
        drafts = generate.drafts(self.functions)
        if "MPI_Barrier_init" in self.header:
            self.skipTest("this one has the standard's")
        header = preprocess("-P", "-include", "mpi-ext.h")
        self.assertEqual({f.name for f in drafts}, set(re.findall(r"\b(MPIX_\w+_init)\(", header)))
        text = "#include <mpi.h>\n#include <mpi-ext.h>\n"
        text += "".join(f"{function.prototype};\n" for function in drafts)
        self.assertEqual(compile_text(text), "")
        sites = {f.name: f.site for f in self.functions}
        for function in drafts:
            self.assertEqual(function.site, sites[function.name.replace("MPIX_", "MPI_")])
            self.assertTrue(generate.shapes.pieces(function))

    def test_a_wrong_row_is_refused(self):
        for row in (
            "span int MPI_X(void)",
            "send: int MPI_X(int count)",
            "span: int MPI_X(int)",
            "large: int MPI_X_c(MPI_Count count)",
        ):
            with self.assertRaises(generate.TableError):
                generate.shapes.pieces(generate.parse_row(row, {}))


if __name__ == "__main__":
    unittest.main()
