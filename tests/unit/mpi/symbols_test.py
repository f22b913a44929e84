#!/usr/bin/python3
"""What libaon-mpi.so promises to the program it is preloaded into: it needs libaon.so and libc
alone, calls no MPI function by name, no __tls_get_addr, and exports every function of its table.

    symbols_test.py libaon-mpi.so
"""
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "plugins" / "mpi"))

import fortran  # noqa: E402
import generate  # noqa: E402

LIBRARY = sys.argv.pop(1)


def lines(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n")


class Symbols(unittest.TestCase):
    """The dynamic section and symbols of the library."""

    def test_needs_libaon_and_libc_alone(self):
        needed = re.findall(r"\(NEEDED\).*\[(.+)\]", "\n".join(lines("readelf", "-dW", LIBRARY)))
        self.assertEqual(sorted(needed), ["libaon.so", "libc.so.6"])

    def test_finds_libaon_beside_itself_and_nowhere_else(self):
        dynamic = "\n".join(lines("readelf", "-dW", LIBRARY))
        path = re.findall(r"\(R(?:UN)?PATH\).*\[(.*)\]", dynamic)
        self.assertEqual(path, ["$ORIGIN"])

    def test_imports_neither_mpi_nor_dynamic_tls(self):
        undefined = re.findall(r" U (\w+)", "\n".join(lines("nm", "-D", LIBRARY)))
        bad = [u for u in undefined if u.startswith(("MPI_", "PMPI_", "ompi_", "__tls_get_addr"))]
        self.assertEqual(bad, [])

    def test_exports_every_function_of_the_table_and_nothing_else(self):
        text = "\n".join(lines("nm", "-D", "--defined-only", LIBRARY))
        exported = set(re.findall(r" [TDBRVW] (\w+)", text))
        table = generate.read_table(ROOT / "plugins" / "mpi" / "functions.table")
        names = {f.name for f in table + generate.drafts(table)}
        names |= {n for f in table for n in fortran.exported(f)}
        self.assertEqual(exported, names)


if __name__ == "__main__":
    unittest.main()
