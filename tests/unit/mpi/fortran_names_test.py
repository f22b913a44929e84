#!/usr/bin/python3
"""Every Fortran function of the installed MPI libraries is wrapped, or listed as left alone with a
reason; and the same under all its spellings.

    fortran_names_test.py libaon-mpi.so MPIFORT...
"""
import gzip
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "plugins" / "mpi"))

import fortran  # noqa: E402
import generate  # noqa: E402

LIBRARY, *COMPILERS = sys.argv[1:]
# A procedure in a module of gfortran, with the numbers of its arguments.
PROCEDURE = re.compile(
    r"'(mpi_\w+?)(?:_f08)?(?:ts)?' '\w*' '[^']*' \d+ "
    r"\(\(PROCEDURE[^()]* EXTERNAL SUBROUTINE[^()]*\) \(\) \(UNKNOWN [^()]*\(\)\) \d+ \d+ "
    r"\(([\d ]*)\)"
)
PROGRAM = "use mpi_f08\ncall MPI_Init()\ncall MPI_Finalize()\nend program\n"


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def defined(*libraries):
    text = run("nm", "-D", "--defined-only", *libraries)
    return set(re.findall(r" [TW] (mpi_\w+_)$", text, re.MULTILINE))


def fortran_libraries(compiler):
    """The libraries that the compiler links a program of mpi_f08 with."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder, "a.f90"), pathlib.Path(folder, "a")
        source.write_text(PROGRAM)
        run(compiler, str(source), "-o", str(program))
        return re.findall(r"=> (\S*/libmpi\S+)", run("ldd", str(program)))


def argument_counts(compiler):
    """(name, number of arguments) of what the library's modules say."""
    folders = re.findall(r"-I(\S+)", run(compiler, "-show"))
    modules = {m for folder in folders for m in pathlib.Path(folder).glob("*.mod")}
    for module in modules:
        with gzip.open(module, "rt") as file:
            text = " ".join(file.read().split())
        for name, numbers in PROCEDURE.findall(text):
            yield name, len(numbers.split())


class FortranNames(unittest.TestCase):
    """The libraries' names against ours."""

    table = generate.read_table(ROOT / "plugins" / "mpi" / "functions.table")
    ours = {name for function in table for name in fortran.exported(function)}
    theirs = {compiler: defined(*fortran_libraries(compiler)) for compiler in COMPILERS}

    def test_every_function_is_wrapped_or_left_alone(self):
        for compiler, names in self.theirs.items():
            with self.subTest(compiler=compiler):
                self.assertGreater(len(names), 1000)
                missing = names - self.ours
                left = {n for n in missing if self.reason(n)}
                self.assertEqual(missing - left, set())

    @unittest.skipIf(len(COMPILERS) < 2, "of one library only")
    def test_left_alone_is_what_a_library_has(self):
        names = set().union(*self.theirs.values())
        for pattern in fortran.LEFT_ALONE:
            self.assertTrue(any(re.match(pattern, n) for n in names), pattern)

    def test_arguments_are_as_many_as_the_library_has(self):
        made = {f.name.lower(): f for f in self.table if not f.plain and f.kind != "by_hand"}
        for compiler in COMPILERS:
            compared = 0
            for name, count in argument_counts(compiler):
                if name not in made:
                    continue
                compared += 1
                own = len(fortran.arguments(made[name])) + 1
                self.assertEqual(own, count, f"{compiler} {name}")
            self.assertGreater(compared, 300, compiler)

    def test_all_spellings_are_one_function(self):
        text = run("nm", "-D", "--defined-only", LIBRARY)
        address = {name: at for at, name in re.findall(r"(\w+) [TW] (\w+)", text)}
        for function in filter(fortran.has_form, self.table):
            for _, name in fortran.families(function):
                at = {address[spelling] for spelling in fortran.spellings(name)}
                self.assertEqual(len(at), 1, name)

    @staticmethod
    def reason(name):
        plain = re.sub(r"(_f08)?__?$", "", name)
        return next((r for p, r in fortran.LEFT_ALONE.items() if re.fullmatch(p, plain)), "")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
