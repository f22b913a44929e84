#!/usr/bin/python3
"""One-sided communication: the records, and then the archive and the profile, say what the program
says it did.

    one_sided_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import collections
import os
import unittest

import h5py
import otf2
import ring_file as rf
from mpi_test import PROGRAMS, MpiTest

import readers  # noqa: E402  (mpi_test has set the path)
from aon_test import MPI, TestCase, ledger, mpirun, open_mpi_windows, profile

# Without a choice Open MPI fails in MPI_Win_create.
os.environ["OMPI_MCA_osc"] = open_mpi_windows()

RANKS = 4
FLAVOURS = {"created": 0, "allocated": 1, "shared": 2, "dynamic": 3, "paused": 0}
PAUSED = {"MPI_Win_create", "MPI_Win_start", "MPI_Pcontrol"}
WRITES, READS = {"put"}, {"get"}
ATOMICS = {"accumulate", "get_accumulate", "fetch_and_op", "compare_and_swap"}
LANGUAGES = ("mpif", "mpi", "f08")


def told(folder, rank):
    """[(window, operation, target, bytes to it, bytes back)] as the program has it."""
    rows = []
    for line in (folder / f"told-{rank}.txt").read_text().splitlines():
        window, operation, *numbers = line.split()
        rows.append((window, operation, *map(int, numbers)))
    return rows


def world_rank(window, rank, target):
    """`created` counts backwards; the others are in the order of the world."""
    return RANKS - 1 - target if window == "created" else target


class OneSided(MpiTest):
    """The records of programs/one_sided.c."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        case = cls()
        case.setUp()
        cls.addClassCleanup(case.doCleanups)
        cls.ranks = case.launch(RANKS, "one_sided", case.folder)
        case.assert_counts(cls.ranks, apart=PAUSED)
        cls.told = {rank: told(case.folder, rank) for rank in range(RANKS)}

    def runTest(self):
        """For setUpClass: an object without a test of its own."""

    def test_every_call_is_there_with_target_and_bytes(self):
        for rank, file in self.ranks.items():
            self.assertEqual(file.one_sided(), self.told[rank], f"rank {rank}")

    def test_windows_are_the_same_for_all_members(self):
        seen = collections.defaultdict(set)
        for file in self.ranks.values():
            self.assertEqual({w.name: w.flavour for w in file.windows.values()}, FLAVOURS)
            for window in file.windows.values():
                self.assertTrue(window.is_freed)
                communicator = file.communicators[window.communicator]
                self.assertEqual(communicator.size, RANKS)
                seen[window.name].add((window.identity, communicator.identity))
        self.assertTrue(all(len(of_all) == 1 for of_all in seen.values()), seen)
        self.assertEqual(len(set.union(*seen.values())), len(FLAVOURS))

    def test_requests_are_completed_as_what_they_are(self):
        expected = [("put", 16), ("accumulate", 12), ("get", 0), ("get_accumulate", 16), ("put", 0)]
        for rank, file in self.ranks.items():
            window = next(w.id for w in file.windows.values() if w.name == "dynamic")
            seen = [
                (rf.RMA_OPERATIONS[r.tag], r.a64, r.peer)
                for r in file.completions()
                if r.a32 == window
            ]
            target = (rank + 1) % RANKS
            self.assertEqual(
                sorted(seen),
                sorted((op, sent, target if sent or op == "get" else rf.NO_PEER)
                       for op, sent in expected),
            )

    def test_groups_of_epochs_are_defined_once(self):
        for rank, file in self.ranks.items():
            after, before = ((rank + 1) % RANKS,), ((rank - 1) % RANKS,)
            groups = {"start": after, "complete": after}
            groups |= {"post": before, "wait": before, "test": before}
            epochs = [r for r in file.records if r.kind == rf.RMA and r.operation in groups]
            self.assertEqual(len(epochs), 8 + 3)
            for r in epochs:
                group = file.groups.get(r.words[2])
                is_unknown = (file.windows[r.a32].name, r.operation) == ("paused", "complete")
                self.assertEqual(group, None if is_unknown else groups[r.operation], r.operation)
            self.assertEqual(sorted(file.groups.values()), sorted([after, before]))

    def test_nothing_failed(self):
        for file in self.ranks.values():
            self.assertEqual([r for r in file.records if r.flags & rf.FAILED], [])


class OneSidedArchive(TestCase):
    """The same through the agent, as others read it."""

    @classmethod
    def setUpClass(cls):
        case = TestCase()
        case.setUp()
        cls.addClassCleanup(case.doCleanups)
        cls.output = case.folder / "job"
        case.assert_exit(profile(RANKS, cls.output, PROGRAMS / "one_sided", case.folder))
        cls.told = {rank: told(case.folder, rank) for rank in range(RANKS)}
        cls.events = collections.defaultdict(list)
        with otf2.reader.open(str(cls.output / "traces.otf2")) as trace:
            cls.windows = {window.name for window in trace.definitions.rma_wins}
            for location, event in trace.events:
                if type(event).__name__.startswith("Rma"):
                    cls.events[location.group._ref].append(event)

    def test_readers_have_nothing_to_say(self):
        readers.otf2_print(self, self.output)
        readers.otf2_structure(self, self.output)
        readers.hdf5(self, self.output)

    def test_a_request_that_shares_its_handle_is_complete_before_its_window_ends(self):
        output = self.folder / "job"
        process = profile(2, output, PROGRAMS / "shared_handles")
        self.assert_exit(process)
        if MPI == "openmpi":
            self.assertEqual(process.stdout, "shared\n")
        readers.otf2_print(self, output)
        readers.otf2_structure(self, output)
        self.assertEqual(ledger(output)["assembly"]["unmatched"], 0)

    def test_ledger(self):
        document = ledger(self.output)
        self.assert_law(document)
        self.assertEqual(document["losses"], [])
        assembly = document["assembly"]
        self.assertGreater(assembly["pauses"], 0)  # so nobody can know
        self.assertFalse(assembly["communication_complete"])
        self.assertEqual((assembly["unmatched"], assembly["open_transfers"]), (0, 0))

    def test_transfers_are_those_of_the_program(self):
        self.assertEqual(self.windows, set(FLAVOURS))
        for rank, events in self.events.items():
            seen = []
            for event in events:
                name = type(event).__name__
                if name == "RmaPut":
                    seen.append((event.win.name, "put", event.remote, event.bytes, 0))
                elif name == "RmaGet":
                    seen.append((event.win.name, "get", event.remote, 0, event.bytes))
                elif name == "RmaAtomic":
                    seen.append((event.win.name, "atomic", event.remote, event.bytes_sent,
                                 event.bytes_received))
            moved = [
                (window, "atomic" if operation in ATOMICS else operation, target, sent, received)
                for window, operation, target, sent, received in self.told[rank]
                if operation in WRITES | READS | ATOMICS and target >= 0
            ]
            self.assertEqual(seen, moved, f"rank {rank}")

    def test_synchronization_is_that_of_the_program(self):
        names = {"fence": "CollectiveEnd", "create": "WinCreate", "create_allocated": "WinCreate",
                 "free": "WinDestroy", "free_allocated": "WinDestroy", "sync": "Sync"}
        names |= dict.fromkeys(("start", "complete", "post", "wait", "test"), "GroupSync")
        names |= dict.fromkeys(("lock_exclusive", "lock_shared", "lock_all"), "AcquireLock")
        names |= dict.fromkeys(("unlock", "unlock_all"), "ReleaseLock")
        for rank, events in self.events.items():
            seen = [
                (event.win.name, type(event).__name__.removeprefix("Rma"))
                for event in events
                if type(event).__name__.removeprefix("Rma") in names.values()
                and not self.is_of_handle(event)
            ]
            expected = [(window, names[operation]) for window, operation, *_ in self.told[rank]
                        if operation in names]
            # One that was made in a pause begins with its first use, for readers.
            first = [window for window, _ in expected].index("paused")
            self.assertNotEqual(expected[first][1], "WinCreate")
            expected.insert(first, ("paused", "WinCreate"))
            self.assertEqual(seen, expected, f"rank {rank}")

    @staticmethod
    def is_of_handle(event):
        """A collective around the creation or the end of a window."""
        operation = str(getattr(event, "collective_op", ""))
        return "CREATE" in operation or "DESTROY" in operation

    def test_groups_are_world_ranks(self):
        for rank, events in self.events.items():
            groups = [[m.group._ref for m in e.group.members] for e in events
                      if type(e).__name__ == "RmaGroupSync"]
            after, before = [(rank + 1) % RANKS], [(rank - 1) % RANKS]
            started_in_a_pause = [before, list(range(RANKS)), before]
            self.assertEqual(groups, 2 * [before, after, after, before] + started_in_a_pause)

    def test_every_transfer_is_completed(self):
        for rank, events in self.events.items():
            open_ids, completed = set(), collections.Counter()
            for event in events:
                name = type(event).__name__
                if name in ("RmaPut", "RmaGet", "RmaAtomic"):
                    open_ids.add(event.matching_id)
                elif name.startswith("RmaOpComplete"):
                    completed[name.removeprefix("RmaOpComplete")] += 1
                    if name != "RmaOpCompleteBlocking":
                        open_ids.discard(event.matching_id)
            self.assertEqual(open_ids, set(), f"rank {rank}")
            self.assertEqual(completed["NonBlocking"], 4)
            self.assertEqual(completed["Blocking"], 2)

    def test_profile(self):
        expected = collections.Counter()
        for rank, rows in self.told.items():
            for window, operation, target, sent, received in rows:
                if operation not in WRITES | READS | ATOMICS or target < 0:
                    continue
                to = world_rank(window, rank, target)
                column = 1 if operation in ATOMICS else 0 if operation in WRITES else 2
                for place, value in ((column, 1), (3, sent), (4, received)):
                    expected[window, rank, to, place] += value
        seen = collections.Counter()
        with h5py.File(self.output / "profile.h5") as file:
            names = file["windows/name"].asstr()[()]
            self.assertEqual(dict(zip(names, file["windows/flavour"].asstr()[()])),
                             {"created": "create", "allocated": "allocate", "shared": "shared",
                              "dynamic": "dynamic", "paused": "create"})
            columns = ("puts", "atomics", "gets", "bytes_sent", "bytes_received")
            rma = {name: file["rma"][name][()] for name in ("origin", "window", "target", *columns)}
            for row, window in enumerate(rma["window"]):
                for place, column in enumerate(columns):
                    key = (names[window], int(rma["origin"][row]), int(rma["target"][row]), place)
                    seen[key] += int(rma[column][row])
        self.assertEqual(+seen, +expected)


class FortranWindows(MpiTest):
    """programs/fortran_windows.F90: handles are converted in all three languages."""

    COUNTER = "libfortran_count.so"
    EXPECTED = [
        ("made", "create", -1, 0, 0), ("made", "fence", -1, 0, 0), ("made", "put", "next", 40, 0),
        ("made", "fence", -1, 0, 0), ("made", "get", "next", 0, 24), ("made", "fence", -1, 0, 0),
        ("made", "lock_exclusive", "next", 0, 0), ("made", "accumulate", "next", 8, 0),
        ("made", "put", "next", 8, 0), ("made", "flush", "next", 0, 0),
        ("made", "get_accumulate", "next", 0, 8), ("made", "unlock", "next", 0, 0),
        ("made", "post", -1, 0, 0), ("made", "start", -1, 0, 0), ("made", "complete", -1, 0, 0),
        ("made", "wait", -1, 0, 0), ("made", "free", -1, 0, 0),
    ]  # fmt: skip

    def test_every_language(self):
        for language in LANGUAGES:
            with self.subTest(language=language):
                self.assert_exit(mpirun(2, PROGRAMS / f"fortran_windows_{language}"))
                ranks = self.launch(2, f"fortran_windows_{language}")
                for rank, file in ranks.items():
                    expected = [tuple(1 - rank if v == "next" else v for v in row)
                                for row in self.EXPECTED]
                    self.assertEqual(file.one_sided(), expected)
                    self.assertEqual([w.is_freed for w in file.windows.values()], [True])
                    self.assertEqual(list(file.groups.values()), [(1 - rank,)])
                    self.assertEqual([rf.RMA_OPERATIONS[r.tag] for r in file.completions()],
                                     ["put"])
                for path in self.folder.rglob("*.ring"):
                    path.unlink()


if __name__ == "__main__":
    unittest.main()
