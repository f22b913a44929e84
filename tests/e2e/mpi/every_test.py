#!/usr/bin/python3
"""Programs that call every function that has a wrapper, and check what each does, say and end the
same with and without us; the counts in profile.h5 are those of an independent counter behind us,
function by function and rank by rank.

    every_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import collections
import ctypes
import fnmatch
import pathlib
import re
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import h5py  # noqa: E402
import otf2  # noqa: E402

import readers  # noqa: E402
from aon_test import MPI, PYTHON, SOURCE, TestCase, environment, ledger, mpirun  # noqa: E402
from aon_test import counted_calls  # noqa: E402

sys.path.insert(0, str(SOURCE / "plugins" / "mpi"))

import fortran  # noqa: E402
import generate  # noqa: E402

PROGRAMS = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(".")
LIBRARY = {"openmpi": "libmpi.so.40", "mpich": "libmpich.so.12"}[MPI]
ROWS = {f.name: f for f in generate.read_table(SOURCE / "plugins" / "mpi" / "functions.table")}
RANKS = (0, 1)

# Functions that no program here calls, and why.
NOT_CALLED = {
    "openmpi": {},
    "mpich": {
        f"MPI_T_pvar_{name}": "the library has no variable, and a question about one is a crash"
        for name in ("get_info", "handle_alloc", "handle_free", "read", "write", "readreset")
    },
}[MPI]

NOT_CALLED_IN_FORTRAN = {
    "openmpi": {},
    "mpich": {"mpi_info_create_env_f08_": "does not come back"},
}[MPI]

# Regions for parts of a call.
PARTS = "MPI_*: *"


class EveryTest(TestCase):
    """Runs a program without us, then with us and a counter."""

    maxDiff = None

    COUNTER = "libpmpi_count.so"
    said_is_same = True

    def setUp(self):
        super().setUp()
        self.output = self.folder / "job"
        # Open MPI has windows in all flavours only where one process can write another's memory.
        self.more = {"OMPI_MCA_btl_vader_single_copy_mechanism": "emulated"}

    def launch(self, *command, prefix=()):
        env = environment(PMPI_COUNT=self.folder, **self.more)
        return mpirun(len(RANKS), *prefix, *command, env=env)

    def run_both(self, *command, code=0):
        """The process with us. It says and returns what the one without us does."""
        plain = self.launch(*command)
        self.assert_exit(plain, code)
        counter = PROGRAMS / self.COUNTER
        behind_us = ["sh", "-c", 'LD_PRELOAD=$LD_PRELOAD:$0 exec "$@"', counter]
        ours = self.launch(*command, prefix=["aon-run", "-o", self.output, "--", *behind_us])
        self.assert_exit(ours, code)
        if self.said_is_same:
            self.assertEqual(self.said(ours), self.said(plain))
        self.wait_for_files()
        return ours

    @staticmethod
    def said(process):
        """Its output; the launcher may mix what two ranks write."""
        return "".join(sorted(process.stdout))

    def wait_for_files(self):
        """After an abort the agent may outlive the launch."""
        deadline = time.monotonic() + 30
        while not (self.output / "aon.json").exists() or not ledger(self.output)["job"]["end"]:
            self.assertLess(time.monotonic(), deadline, "no ledger")
            time.sleep(0.05)
        self.assert_law(ledger(self.output))
        self.assertEqual(ledger(self.output)["losses"], [])

    def recorded(self):
        """{rank: {function: calls}} of profile.h5."""
        counts = collections.defaultdict(collections.Counter)
        with h5py.File(self.output / "profile.h5") as file:
            names = [name.decode() for name in file["regions/name"][()]]
            table = file["profile"]
            for rank, region, count in zip(table["rank"], table["region"], table["count"]):
                if not fnmatch.fnmatch(names[region], PARTS):
                    counts[int(rank)][names[region]] += int(count)
        return counts

    def assert_counts(self, counted):
        """Each rank's profile is what the counter told: {rank: {function: calls}}."""
        recorded = self.recorded()
        for rank, expected in counted.items():
            expected = collections.Counter(expected)
            names = {n for n in [*expected, *recorded[rank]] if n.startswith("MPI_")}
            different = {n: (expected[n], recorded[rank][n]) for n in sorted(names)}
            different = {n: pair for n, pair in different.items() if pair[0] != pair[1]}
            self.assertEqual(different, {}, f"rank {rank}: (counter, profile)")

    def read_counter(self, rank):
        """{symbol: calls}, as the counter wrote it. Calls from within a call, by a callback or by
        the library itself, are forwarded and not counted (call.h)."""
        rows = counted_calls(self.folder / f"rank-{rank}.txt")
        return {name: int(calls) - int(within) for name, calls, _, within in rows}


class C(EveryTest):
    """programs/every/*.c"""

    def test_every_function(self):
        called = set()
        for program in ["every", "every_large"] if MPI == "mpich" else ["every"]:
            called |= self.called_by(program)
        library = ctypes.CDLL(LIBRARY)
        there = {name for name in ROWS if hasattr(library, name)}
        called |= {"MPI_Init_thread", "MPI_Abort"}  # test_abort
        self.assertEqual(there - called, set(NOT_CALLED))

    # On each rank a broadcast that failed, and receives of which nobody knows what they got: one
    # freed while active, and two of MPI_Isendrecv where the library does not say. Open MPI can
    # spawn here: two collectives of rank 0 with processes of another world.
    UNMATCHED = {"openmpi": 2 + 2 + 2, "mpich": 2 + 6}[MPI]

    def refused_count(self):
        """Calls of MPI_File_set_atomicity that were refused on one rank alone: Open MPI 4.1 does so
        now and then."""
        failed = collections.defaultdict(list)
        with otf2.reader.open(str(self.output / "traces.otf2")) as trace:
            for location, event in trace.events:
                if (isinstance(event, otf2.events.Leave)
                        and event.region.name == "MPI_File_set_atomicity"):  # fmt: skip
                    attributes = event.attributes or {}
                    is_failed = any(a.name == "failed" and v for a, v in attributes.items())
                    failed[location].append(is_failed)
        return sum(sum(calls) == 1 for calls in zip(*failed.values()))

    def called_by(self, program):
        """The functions that it calls."""
        self.setUp()
        process = self.run_both(PROGRAMS / program, self.folder)
        self.assertEqual(self.said(process).strip(), "kkoo")
        symbols = {rank: self.read_counter(rank) for rank in RANKS}
        self.assert_counts({r: self.functions(s) for r, s in symbols.items()})
        assembly = ledger(self.output)["assembly"]
        self.assertEqual(assembly["unmatched"], self.UNMATCHED + self.refused_count())
        self.assertFalse(assembly["communication_complete"])
        readers.otf2_print(self, self.output)
        readers.otf2_structure(self, self.output)
        return set().union(*symbols.values())

    @staticmethod
    def functions(symbols):
        """{function: calls}: large-count forms under their plain names, as in the profile; without
        what left_alone.table names."""
        counts = collections.Counter()
        for name, calls in symbols.items():
            if name in ROWS:
                counts[ROWS[name].region] += calls
        return counts

    def test_abort(self):
        """Rank 1 aborts; MPI_Init_thread."""
        self.run_both(PROGRAMS / "every", self.folder, "abort", code=7)
        counted = self.read_counter(1)
        self.assertEqual({"MPI_Init_thread", "MPI_Abort"} - set(counted), set())
        self.assert_counts({1: counted})


class Private(C):
    """programs/every/*.c as a module of Python, whose MPI library no other module sees, as mpi4py's
    (a counter behind us would let all see it)."""

    LOADER = """
import ctypes, sys
words = [word.encode() for word in sys.argv[2:]]
main = ctypes.CDLL(sys.argv[1]).main
sys.exit(main(len(words), (ctypes.c_char_p * (len(words) + 1))(*words)))
"""

    def test_every_function(self):
        module, program = PROGRAMS / "libevery.so", PROGRAMS / "every"
        command = [PYTHON, "-c", self.LOADER, module, program, self.folder]
        process = self.launch(*command, prefix=["aon-run", "-o", self.output, "--"])
        self.assert_exit(process)
        self.assertEqual(self.said(process).strip(), "kkoo")
        self.wait_for_files()
        self.assertEqual(ledger(self.output)["assembly"]["unmatched"],
                         self.UNMATCHED + self.refused_count())
        readers.otf2_structure(self, self.output)
        library = ctypes.CDLL(LIBRARY)
        there = {row.region for name, row in ROWS.items() if hasattr(library, name)}
        called = set().union(*self.recorded().values()) | {"MPI_Init_thread", "MPI_Abort"}
        self.assertEqual(there - called, set(NOT_CALLED))

    test_abort = None


class Fortran(EveryTest):
    """programs/every_fortran in each language."""

    COUNTER = "libfortran_count.so"
    LANGUAGES = {"openmpi": ("mpif", "mpi", "f08"), "mpich": ("mpif", "f08")}[MPI]
    BY_NAME = {name.lower(): name for name in ROWS}
    LEFT_ALONE = "|".join(pattern for pattern in fortran.LEFT_ALONE if "f08ts" not in pattern)
    # Called by MPICH's Fortran itself, as any counter of C's functions sees.
    OF_THE_LIBRARY = ["MPI_File_f2c", "MPI_File_c2f"] if MPI == "mpich" else []

    def test_every_function(self):
        called = set()
        for language in self.LANGUAGES:
            with self.subTest(language=language):
                called |= self.called_by(f"every_{language}")
        called |= {"mpi_init_thread_", "mpi_init_thread_f08_"}  # test_abort
        called |= {"mpi_abort_", "mpi_abort_f08_"}
        self.assertEqual(self.symbols() - called, set(NOT_CALLED_IN_FORTRAN))

    def called_by(self, program):
        """The library's functions that it calls."""
        self.setUp()
        process = self.run_both(PROGRAMS / program, self.folder)
        self.assertEqual(self.said(process).strip(), "kkoo")
        readers.otf2_print(self, self.output)
        readers.otf2_structure(self, self.output)
        symbols = {rank: self.read_counter(rank) for rank in RANKS}
        own_calls = {name: self.recorded()[0][name] for name in self.OF_THE_LIBRARY}
        self.assert_counts({r: self.functions(s) | own_calls for r, s in symbols.items()})
        return set().union(*symbols.values())

    def test_abort(self):
        """Rank 1 aborts; MPI_Init_thread."""
        for language in ("mpif", "f08"):
            self.setUp()
            self.run_both(PROGRAMS / f"every_{language}", self.folder, "abort", code=7)
            expected = ["MPI_Init_thread", "MPI_Comm_rank", "MPI_Barrier", "MPI_Abort"]
            self.assert_counts({1: dict.fromkeys(expected, 1)})

    def read_counter(self, rank):
        lines = (self.folder / f"fortran-{rank}.txt").read_text().splitlines()
        return {symbol: int(calls) for symbol, calls in map(str.split, lines)}

    def functions(self, symbols):
        counts = collections.Counter()
        for symbol, calls in symbols.items():
            if not self.is_left_alone(symbol):
                counts[self.function(symbol)] += calls
        return counts

    def is_left_alone(self, symbol):
        """The C functions are mpi_f08's clock; under mpif.h they are called by the library's."""
        is_of_library = symbol.startswith("MPI_") and MPI == "mpich"
        plain = re.sub(r"(_f08(ts)?)?_$", "", symbol)
        return is_of_library or re.fullmatch(self.LEFT_ALONE, plain) is not None

    def function(self, symbol):
        """`mpi_send_f08ts_` -> `MPI_Send`"""
        return self.BY_NAME[re.sub(r"(_f08(ts)?(_large)?|_cptr|_f90)?_$", "", symbol.lower())]

    def symbols(self):
        """The Fortran functions that the library has."""
        text = subprocess.run(
            ["nm", "-D", "--defined-only", PROGRAMS / self.COUNTER],
            capture_output=True, check=True, text=True,
        ).stdout  # fmt: skip
        found = set(re.findall(r" T (mpi_\w+_)$", text, re.MULTILINE))
        through_c = {symbol for symbol in found if symbol.endswith("_f08ts_large_")}
        return {symbol for symbol in found - through_c if not self.is_left_alone(symbol)}


class Python(EveryTest):
    """programs/every_python, and what comes with mpi4py."""

    EVERY = SOURCE / "tests" / "e2e" / "mpi" / "programs" / "every_python" / "every.py"
    FUTURES = """
from mpi4py.futures import MPIPoolExecutor
if __name__ == "__main__":
    with MPIPoolExecutor() as executor:
        print(sum(executor.map(abs, range(-40, 0))))
"""

    def assert_same_counts(self):
        """Returns the functions that were called; every message has its two ends."""
        self.assertEqual(ledger(self.output)["assembly"]["unmatched"], 0)
        symbols = {rank: self.read_counter(rank) for rank in RANKS}
        self.assert_counts(symbols)
        return set().union(*symbols.values())

    def test_every_function(self):
        process = self.run_both(PYTHON, "-B", self.EVERY, self.folder)
        self.assertEqual(self.said(process).strip(), "kkoo")
        readers.otf2_print(self, self.output)
        readers.otf2_structure(self, self.output)
        called = self.assert_same_counts()
        called |= {"MPI_Init", "MPI_Abort"}  # test_abort
        self.assertEqual((self.of_mpi4py() & set(ROWS)) - called, set())

    def test_abort(self):
        self.run_both(PYTHON, "-B", self.EVERY, self.folder, "abort", code=7)
        counted = self.read_counter(1)
        self.assertEqual({"MPI_Init", "MPI_Abort"} - set(counted), set())
        self.assert_counts({1: counted})

    @staticmethod
    def of_mpi4py():
        """The functions of MPI that it can call."""
        (module,) = pathlib.Path("/usr/lib/python3/dist-packages/mpi4py").glob("MPI.*.so")
        text = subprocess.run(["nm", "-Du", module], capture_output=True, check=True, text=True)
        return set(re.findall(r" U (MPI_\w+)$", text.stdout, re.MULTILINE))

    def test_hello_world(self):
        process = self.run_both(PYTHON, "-m", "mpi4py.bench", "helloworld")
        self.assertEqual(process.stdout.count("Hello, World!"), len(RANKS))
        self.assert_same_counts()

    def test_ring(self):
        """What it prints is a time."""
        self.said_is_same = False
        self.run_both(PYTHON, "-m", "mpi4py.bench", "ringtest", "-n", "1000", "-l", "10")
        self.assertIn("MPI_Send", self.assert_same_counts())

    def test_futures(self):
        program = self.folder / "pool.py"
        program.write_text(self.FUTURES)
        process = self.run_both(PYTHON, "-m", "mpi4py.futures", program)
        self.assertEqual(process.stdout.split(), ["820"])
        self.assert_same_counts()


if __name__ == "__main__":
    unittest.main()
