"""Real MPI programs under aon-run: the program does what it does without us, and everybody's
readers read what we wrote.

    program_test.py heat2d|ring|lmp|hpcc|pw.x [unittest arguments]
"""
import dataclasses
import re
import shutil
import sys
import unittest

import readers
from aon_test import (
    BUILD,
    MPI,
    MPI_COMPILER,
    PYTHON,
    SOURCE,
    TestCase,
    counted_calls,
    environment,
    ledger,
    mpirun,
    profile,
    run,
)

HEAT2D = {"openmpi": "heat2d", "mpich": "heat2d_mpich"}[MPI]
PROGRAMS = SOURCE / "tests" / "e2e" / "programs"


@dataclasses.dataclass
class Program:
    """One program and how its output is compared: lines that match `volatile` hold times, unless
    they match `results`."""

    rank_count: int
    command: list
    inputs: list = dataclasses.field(default_factory=list)
    result_file: str = ""
    volatile: str = r"(?!)"
    results: str = r"(?!)"
    chance: str = r"(?!)"  # lines that a program prints or not, as its measurements go
    is_fortran: bool = False


CASES = {
    "heat2d": Program(4, [BUILD / "bin" / HEAT2D, "--size", "64", "--steps", "40"]),
    "ring": Program(
        4,
        [PYTHON, "-m", "mpi4py.bench", "ringtest", "-n", "64", "-l", "20"],
        volatile=r"time for .*loops",
    ),
    "lmp": Program(
        2,
        ["lmp", "-in", "in.lj", "-log", "none"],
        inputs=["in.lj"],
        volatile=r"seconds|Loop time|Performance|CPU use|wall time"
        r"|^(Pair|Neigh|Comm|Output|Modify|Other) ",
    ),
    "hpcc": Program(
        2,
        ["hpcc"],
        inputs=["hpccinf.txt"],
        result_file="hpccoutf.txt",
        volatile=r".",  # nearly every number is a time, a rate or drawn at random
        results=r"^\|\|Ax-b|errors in|tests (completed|skipped)|^(Success|CommWorldProcs|DGEMM_N"
        r"|HPL_(?!Tflops|time)\w+|PTRANS_(residual|n|nb|nprow|npcol)|(MPI)?FFT_(N|maxErr|Procs)"
        r"|MPIRandomAccess_\w*(N|Errors|ErrorsFraction|ExeUpdates)|STREAM_VectorSize|sizeof_\w+)=",
        # Its clock's grain, and times of CPU that come out as 0.
        chance=r"^MPI_Wtime granularity is ok|^Use MPI_Wtick for estimation|^CPU\s",
    ),
    "pw.x": Program(
        2,
        ["pw.x", "-in", "si.scf.in"],
        inputs=["si.scf.in"],
        volatile=r"CPU|secs|starts on|terminated on",
        is_fortran=True,
    ),
}


class Profiled(TestCase):
    """One run without and one with AON, shared by all tests of the class."""

    program = None

    @classmethod
    def setUpClass(cls):
        case = TestCase()
        case.setUp()
        cls.addClassCleanup(case.doCleanups)
        cls.shared = case.folder
        cls.plain = cls._run("plain", lambda cwd, *a: mpirun(*a, cwd=cwd))
        cls.output = cls.shared / "job"
        cls.counts = cls.shared / "counts"
        cls.counts.mkdir()
        behind = ":".join(map(str, [f"LD_PRELOAD={BUILD}/lib/libaon-mpi.so", *cls._counters()]))
        env = environment(PMPI_COUNT=cls.counts, AON_MEMORY="64MiB")
        cls.profiled = cls._run(
            "profiled",
            lambda cwd, n, *command: profile(
                n, cls.output, "env", behind, *command, cwd=cwd, env=env
            ),
        )

    @classmethod
    def _run(cls, name, start):
        cwd = cls.shared / name
        cwd.mkdir()
        for file in cls.program.inputs:
            shutil.copy(PROGRAMS / file, cwd)
        return start(cwd, cls.program.rank_count, *cls.program.command)

    @classmethod
    def _counters(cls):
        """Independent counters of MPI calls. They call PMPI_..., so they must stand behind AON."""
        result = [cls._build_counter("make_counter.py", lambda source: [MPI_COMPILER, source])]
        if cls.program.is_fortran:
            program = shutil.which(cls.program.command[0])
            maker = "make_fortran_counter.py"
            result.append(cls._build_counter(maker, lambda source: [source, program]))
        return result

    @classmethod
    def _build_counter(cls, name, arguments):
        source = (cls.shared / name).with_suffix(".c")
        library = source.with_suffix(".so")
        maker = SOURCE / "tests" / "e2e" / "mpi" / name
        case = TestCase()
        case.assert_exit(run([PYTHON, maker, *arguments(source)]))
        flags = ["-shared", "-fPIC", "-O1", "-w"]
        case.assert_exit(run([MPI_COMPILER, *flags, source, "-o", library]))
        return library

    def result(self, name, process):
        """What the program said; in lines that hold times every number is one #."""
        text = process.stdout
        if self.program.result_file:
            text += (self.shared / name / self.program.result_file).read_text()
        lines = []
        for line in text.splitlines():
            if re.search(self.program.chance, line):
                continue
            is_result = re.search(self.program.results, line)
            if re.search(self.program.volatile, line) and not is_result:
                line = re.sub(r"[-+]?\d[\d.:e+-]*", "#", line)
                line = re.sub(r"#( #)+", "#", " ".join(line.split()))
            lines.append(line)
        return lines

    def test_the_program_does_what_it_does_without_us(self):
        self.assert_exit(self.plain)
        self.assert_exit(self.profiled)
        expected = self.result("plain", self.plain)
        self.assertTrue(expected)
        self.assertEqual(self.result("profiled", self.profiled), expected)

    def test_the_ledger_is_complete_and_balances(self):
        document = ledger(self.output)
        self.assertTrue(document["job"]["complete"])
        self.assertEqual(document["job"]["incomplete_ranks"], [])
        ranks = [r["rank"] for r in document["ranks"] if r["rank"] is not None]
        self.assertEqual(sorted(ranks), list(range(self.program.rank_count)))
        for rank in document["ranks"]:
            self.assertEqual(rank["exit"], {"code": 0, "signal": 0})
        self.assert_law(document)
        self.assertTrue(document["assembly"]["communication_complete"])
        self.assertEqual(document["assembly"]["unmatched"], 0)

    def test_otf2_print_has_nothing_to_say(self):
        readers.otf2_print(self, self.output)

    def test_nesting_time_order_and_messages_are_right(self):
        readers.otf2_structure(self, self.output)

    def test_vite_draws_every_rank_and_every_message(self):
        message_count = readers.otf2_messages(self, self.output)
        self.assertGreater(message_count, 0)
        readers.vite(self, self.output, self.program.rank_count, message_count)

    def test_h5py_and_xarray_open_the_profile(self):
        readers.hdf5(self, self.output)

    def test_counts_equal_an_independent_counters(self):
        independent = self.independent_counts()
        self.assertGreater(sum(independent.values()), 0)
        counts = readers.region_counts(self.output).items()
        # Parts of a call have regions of their own: "MPI_Startall: one request".
        ours = {n: count for n, count in counts if n.startswith("MPI_") and ": " not in n}
        self.assertEqual(ours, independent)

    def independent_counts(self):
        """{call: count} over all ranks, from the counters' lines `NAME CALLS BYTES` and, of
        Fortran, `mpi_name_ CALLS`."""
        total = {}
        for file in self.counts.iterdir():
            for name, count, *_ in counted_calls(file):
                if name.startswith("mpi_"):
                    name = "MPI_" + name[4:].rstrip("_").capitalize()
                name = name.removesuffix("_c")  # large counts stand under their plain names
                total[name] = total.get(name, 0) + int(count)
        return {name: count for name, count in total.items() if count > 0}


if __name__ == "__main__":
    Profiled.program = CASES[sys.argv.pop(1)]
    unittest.main(verbosity=2)
