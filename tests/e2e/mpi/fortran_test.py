#!/usr/bin/python3
"""Fortran programs: mpif.h, `use mpi` and `use mpi_f08` say the same, the trace says what the
program did, and each call is recorded once and forwarded under the name it was called by.

    fortran_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import os
import pathlib
import re
import shutil
import sys
import tempfile
import unittest
import unittest.mock

import ring_file as rf
from collectives_test import collective_bytes
from mpi_test import DOUBLE, PROGRAMS, MpiTest

import readers  # noqa: E402  (mpi_test has set the path)
from aon_test import ledger, mpirun, profile

LANGUAGES = ("mpif", "mpi", "f08")
MANY = 20


class FortranTest(MpiTest):
    """One program in all three languages. Each is run once for all tests of a class, which look at
    different things in the same files."""

    COUNTER = "libfortran_count.so"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.place = pathlib.Path(tempfile.mkdtemp(prefix="aon-test-"))
        cls.launched = {}
        if not os.environ.get("AON_KEEP"):
            cls.addClassCleanup(shutil.rmtree, cls.place)

    def setUp(self):
        super().setUp()
        self.own_folder = self.folder

    def counter(self, rank):
        """{C name: (calls, None)} of the counter behind us; names are spelled as in `language`."""
        counts = {}
        for line in (self.folder / f"fortran-{rank}.txt").read_text().splitlines():
            symbol, calls = line.split()
            if not symbol.startswith("MPI_W"):  # mpi_f08 takes the clock from C
                self.assertEqual("_f08" in symbol, self.language == "f08", symbol)
            name = re.sub(r"(_f08|_f08ts|_cptr|_f90)?_$", "", symbol).split("_", 1)[1]
            counts["MPI_" + name[0].upper() + name[1:]] = (int(calls), None)
        return counts

    def launch_each(self, rank_count, program, *arguments):
        """Ring files of the program in each language; it says the same as without us."""
        for self.language in LANGUAGES:
            name = f"{program}_{self.language}"
            key = name, *arguments
            if key in self.launched:
                self.folder, ranks = self.launched[key]
            else:
                self.folder = pathlib.Path(tempfile.mkdtemp(dir=self.place))
                ranks = self.compared(rank_count, name, *arguments)
                self.launched[key] = self.folder, ranks
            yield ranks
        self.folder = self.own_folder

    def compared(self, rank_count, name, *arguments):
        plain = mpirun(rank_count, PROGRAMS / name, *arguments)
        self.assert_exit(plain)
        ranks = self.launch(rank_count, name, *arguments)
        said, expected = self.process.stdout, plain.stdout
        self.assertEqual(sorted(said.splitlines()), sorted(expected.splitlines()), name)
        return ranks


class Messages(FortranTest):
    """programs/fortran_messages.F90"""

    def test_every_message_and_its_completion(self):
        for ranks in self.launch_each(2, "fortran_messages"):
            self.assert_counts(ranks)
            sent = self.assert_messages_match(ranks)
            world = ranks[0].communicator("MPI_COMM_WORLD").identity
            times = {5: MANY, 6: MANY, 7: MANY, 8: MANY, 9: MANY, 10: MANY, 13: 6, 14: 3}
            tags = [*range(1, 19), 20, 21]
            expected = {(world, 0, 1, t, t * DOUBLE): times.get(t, 1) for t in tags}
            expected |= {(world, 1, 0, t, t * DOUBLE): 1 for t in (11, 12)}
            self.assertEqual(dict(sent), expected)

    def test_cancelled_and_to_nobody(self):
        for ranks in self.launch_each(2, "fortran_messages"):
            for file in ranks.values():
                cancelled = [r.tag for r in file.completions() if r.flags & rf.CANCELLED]
                self.assertEqual(cancelled, [99])
                nobody = [(r.tag, r.a64) for r in file.calls("MPI_Send") if r.peer < 0]
                self.assertEqual(nobody, [(98, 0)])

    def test_identity_of_the_process(self):
        for ranks in self.launch_each(2, "fortran_messages"):
            for rank, file in ranks.items():
                self.assertEqual([i[:3] for i in file.identities], [(rank, 2, 0), (rank, 2, 1)])
                self.assertEqual(file.providers, [(1, "mpi", "", "")])


class Groups(FortranTest):
    """programs/fortran_groups.F90"""

    SIZES = {
        "a copy": 4, "line": 2, "grid": 4, "row": 2, "later": 4, "remote": 4, "merged": 4,
        "in place": 4, "sink": 4,
    }  # fmt: skip
    PAUSED = {"MPI_Barrier": 1, "MPI_Allreduce": 1}

    def each(self):
        yield from self.launch_each(4, "fortran_groups", self.place / "file.bin")

    def test_calls_are_counted_once(self):
        for ranks in self.each():
            for name, calls in self.PAUSED.items():
                for rank, file in ranks.items():
                    expected = self.counter(rank)[name][0] - calls
                    self.assertEqual(len(file.calls(name)), expected, name)
            self.assert_counts(ranks, apart={*self.PAUSED})

    def test_names_and_members(self):
        for ranks in self.each():
            for name, size in self.SIZES.items():
                own = [f.communicator(name) for f in ranks.values()]
                self.assertEqual({c.size for c in own}, {size}, name)
                self.assertTrue(all(c.is_freed for c in own), name)
                self.assertEqual(len({c.identity for c in own}), 4 // size, name)
            self.assert_messages_match(ranks)

    def test_bytes_and_roots(self):
        roots = {"bcast": 1, "gather": 2, "gatherv": 2, "scatter": 3, "reduce": 0}
        names = [*roots, "allgather", "allgatherv", "alltoall", "alltoallw", "allreduce"]
        names += ["reduce_scatter", "scan", "exscan"]
        for ranks in self.each():
            for rank, file in ranks.items():
                told = collective_bytes(rank)
                for name in names:
                    calls = file.calls("MPI_" + name.capitalize()) + file.calls("MPI_I" + name)
                    seen = [r for r in calls if r.a32 == 1]
                    self.assertGreaterEqual(len(seen), 1, name)
                    for r in seen:
                        sizes = (r.a64 / DOUBLE, r.words[0] / DOUBLE)
                        self.assertEqual(sizes, told[name], f"rank {rank}: {r.name}")
                        self.assertEqual(rf.pair(r.words[1])[0], roots.get(name, -1), r.name)

    def test_files_have_names_offsets_and_bytes(self):
        for ranks in self.each():
            identities = set()
            for rank, file in ranks.items():
                told = [(r.operation, r.offset, r.bytes_asked, r.a64) if r.kind == rf.IO
                        else ("done", r.a64) for r in file.io()]
                place = 24 * rank
                self.assertEqual(told, [
                    ("open", None, 7, 0), ("write", place, 24, 24), ("sync", None, 0, 0),
                    ("sync", None, 0, 0), ("read", place, 8, 8), ("set_view", place, 0, 0),
                    ("seek", place + 8, 8, 0), ("read", place + 8, 16, 0), ("done", 16),
                    ("close", None, 0, 0)])  # fmt: skip
                (opened,) = file.files.values()
                self.assertEqual((opened.name, opened.communicator, opened.is_closed),
                                 (str(self.place / "file.bin"), 1, True))
                identities.add(opened.identity)
            self.assertEqual(len(identities), 1)

    def test_a_file_has_all_of_its_name(self):
        """ROMIO, in either library: OMPIO writes behind the end of a buffer of its own."""
        path = f"{self.place}/{'./' * 800}file.bin"
        with unittest.mock.patch.dict(os.environ, OMPI_MCA_io="romio321"):
            for ranks in self.launch_each(4, "fortran_groups", path):
                names = {f.name for file in ranks.values() for f in file.files.values()}
                self.assertEqual(names, {path})

    def test_in_place_excludes_oneself(self):
        for ranks in self.each():
            for rank, file in ranks.items():
                place = file.communicator("in place").id
                sizes = {
                    r.name: (r.a64 / DOUBLE, r.words[0] / DOUBLE)
                    for r in file.records
                    if r.kind == rf.COLLECTIVE and r.a32 == place
                }
                self.assertEqual(sizes["MPI_Allreduce"], (9, 9))
                self.assertEqual(sizes["MPI_Gather"], (0, 9) if rank == 2 else (3, 0))

    def test_an_array_that_is_not_allocated_is_not_in_place(self):
        for ranks in self.each():
            for rank, file in ranks.items():
                sink = file.communicator("sink").id
                (call,) = [r for r in file.calls("MPI_Alltoallv") if r.a32 == sink]
                sizes = (call.a64 / DOUBLE, call.words[0] / DOUBLE)
                self.assertEqual(sizes, (0, 6) if rank == 0 else (2, 0))

    def test_an_error_is_seen_with_and_without_ierror(self):
        for ranks in self.each():
            for file in ranks.values():
                failed = [r.name for r in file.records if r.is_call and r.flags & rf.FAILED]
                self.assertEqual(failed, ["MPI_Send", "MPI_Send"])


class Layers(MpiTest):
    """A tool behind us that turns calls from Fortran into calls of C, which come to us again."""

    COUNTER = "libfortran_tool.so"

    def test_a_call_is_counted_and_recorded_once(self):
        ranks = self.launch(4, "fortran_groups_mpif", self.folder / "file.bin")
        for file in ranks.values():
            self.assertEqual(len(file.calls("MPI_Send")), 2)
            self.assertEqual(file.counters()["MPI_Comm_rank"], 1)
            self.assertEqual(len(file.calls("MPI_Comm_dup")), 3)
            self.assertEqual(len(file.communicators), 2 + len(Groups.SIZES))


class Spellings(MpiTest):
    """programs/spellings.c: names of four compilers, of which one is here."""

    COUNTER = "libfortran_count.so"

    def test_each_is_recorded(self):
        (file,) = self.launch(1, "spellings").values()
        self.assertEqual(sorted(r.tag for r in file.calls("MPI_Send")), [1, 2, 3, 4])
        self.assertEqual(len(file.calls("MPI_Barrier")), 4)
        self.assertEqual(len(file.completions()), 4)


class Languages(MpiTest):
    """programs/languages.c: C and Fortran share requests and communicators."""

    COUNTER = "libfortran_count.so"
    BEGUN = 32

    def setUp(self):
        super().setUp()
        (self.file,) = self.launch(1, "languages").values()

    def test_each_request_ends_as_what_it_began(self):
        begun = {r.request: r.tag for r in self.file.records
                 if r.is_call and r.flags & rf.NONBLOCKING}  # fmt: skip
        ended = {r.request: r.tag for r in self.file.completions()}
        self.assertEqual(len(begun), self.BEGUN)
        others = {number: (begun[number], tag) for number, tag in ended.items()
                  if tag != begun[number]}  # fmt: skip
        (freed,) = self.file.calls("MPI_Request_free")[1:]  # of this one nobody knows what it got
        number, (_, tag) = others.popitem()
        self.assertEqual((others, tag), ({}, -1))
        (end,) = [r for r in self.file.completions() if r.request == number]
        self.assertTrue(freed.start <= end.start <= freed.end)

    def test_a_number_that_comes_back_is_another_communicators(self):
        copies = [c.id for c in self.file.communicators.values() if c.parent != 0]
        self.assertEqual(len(copies), 6)
        received = {r.tag: r.a32 for r in self.file.calls("MPI_Irecv") if r.a32 in copies}
        self.assertEqual(list(received.values()), copies)
        sent = {r.tag: r.a32 for r in self.file.calls("MPI_Send") if r.tag in received}
        self.assertEqual(sent, received)


class Archive(FortranTest):
    """What the agent makes of it."""

    def test_all_messages_match_in_the_archive(self):
        for self.language in LANGUAGES:
            with self.subTest(language=self.language):
                output = self.folder / self.language
                program = PROGRAMS / f"fortran_messages_{self.language}"
                self.assert_exit(profile(2, output, program))
                document = ledger(output)
                self.assert_law(document)
                self.assertEqual(document["losses"], [])
                readers.otf2_print(self, output)
                readers.otf2_structure(self, output)
                self.assertGreater(readers.otf2_messages(self, output), 0)


if __name__ == "__main__":
    unittest.main()
