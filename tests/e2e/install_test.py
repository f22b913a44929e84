"""`cmake --install` lays out a tree that works wherever it is moved to."""
import shutil
import unittest

from aon_test import BUILD, TestCase, environment, ledger, run

EXPECTED = [
    "bin/aon-run",
    "bin/aon",
    "lib/libaon.so",
    "lib/libaon-mpi.so",
    "bin/aon-agent",
    "include/aon/annotate.h",
    "include/aon/annotate.hpp",
    "include/aon/provider.h",
    "lib/libaon-annotate.a",
    "lib/libaon-nvtx.so",
    "lib/aon/python/aon/__init__.py",
    "share/aon/fortran/aon.f90",
    "include/aon/record.h",
]


class Install(TestCase):
    def setUp(self):
        super().setUp()
        first = self.folder / "first"
        self.assert_exit(run(["cmake", "--install", BUILD, "--prefix", first]))
        self.prefix = self.folder / "moved, with a space"
        shutil.move(first, self.prefix)

    def test_the_layout_is_complete(self):
        missing = [name for name in EXPECTED if not (self.prefix / name).exists()]
        self.assertEqual(missing, [])

    def test_nothing_points_back_to_the_build_tree(self):
        for path in (self.prefix / "lib").rglob("*.so"):
            dynamic = run(["readelf", "-d", path]).stdout
            self.assertNotIn(str(BUILD), dynamic, path)

    def test_the_example_is_profiled_from_a_moved_tree(self):
        program = self.folder / "heat2d"
        shutil.copy(BUILD / "bin" / "heat2d", program)
        output = self.folder / "job"
        path = f"{self.prefix}/bin:{environment()['PATH'].split(':', 1)[1]}"
        command = ["mpirun", "-n", 2, "aon-run", "-o", output, program, "--size", 32, "--steps", 20]
        self.assert_exit(run(command, env=environment(PATH=path)))
        document = ledger(output)
        self.assertEqual(sorted(r["rank"] for r in document["ranks"]), [0, 1])
        self.assert_law(document)
        self.assertTrue((output / "traces.otf2").exists())
        self.assert_exit(run([self.prefix / "bin" / "aon", "info", output]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
