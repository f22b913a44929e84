#!/usr/bin/python3
"""MPI-IO: every call on a file is recorded as what the program says it did, with file, offset and
bytes, and so it stands in the archive and in the profile.

    files_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import collections
import pathlib
import re
import sys
import unittest

import h5py
import ring_file as rf
from mpi_test import PROGRAMS, MpiTest

import readers  # noqa: E402  (mpi_test has set the path)
from aon_test import PYTHON, SOURCE, TestCase, ledger, profile, run

_LISTED = """
import sys, otf2
from otf2 import events as e
def is_io(event):
    return type(event).__name__.startswith("Io")
def name(value):
    return str(value).rpartition(".")[2]
def number(flags):
    return int(getattr(flags, "value", flags))
with otf2.reader.open(sys.argv[1]) as trace:
    for handle in trace.definitions.io_handles:
        print("handle", handle._ref, handle.file.name, handle.io_paradigm.identification,
              handle.comm.group.name if handle.comm else "")
    for location, event in trace.events:
        if not is_io(event):
            continue
        offset = [v for k, v in (event.attributes or {}).items() if k.name == "Offset"]
        words = [location.group._ref, type(event).__name__]
        if isinstance(event, e.IoOperationBegin):
            words += [name(event.mode), number(event.operation_flags), event.bytes_request,
                      *(offset or [-1]), event.handle._ref, event.matching_id]
        elif isinstance(event, e.IoOperationComplete):
            words += [event.bytes_result, event.handle._ref, event.matching_id]
        elif isinstance(event, (e.IoOperationIssued, e.IoOperationCancelled)):
            words += [event.handle._ref, event.matching_id]
        elif isinstance(event, e.IoSeek):
            words += [event.offset_request, event.offset_result]
        elif isinstance(event, e.IoDeleteFile):
            words += [event.file.name]
        elif isinstance(event, e.IoCreateHandle):
            words += [event.handle._ref, name(event.mode), number(event.creation_flags),
                      number(event.status_flags)]
        else:
            words += [event.handle._ref]
        print(*words)
"""


def said_by(folder, rank):
    """What the program said: (name, asked, moved, offset) of calls, ("done", moved)."""
    lines = []
    for line in (folder / f"said-{rank}").read_text().splitlines():
        kind, *words = line.split()
        if kind == "done":
            lines.append(("done", int(words[0])))
        else:
            asked, moved, offset = map(int, words[1:])
            lines.append((words[0], asked, moved, None if offset < 0 else offset))
    return lines


class Records(MpiTest):
    """The ring files."""

    def launch_files(self, *arguments):
        ranks = self.launch(2, "files", self.folder, *arguments)
        if "skipped:" in self.process.stderr:
            print(*sorted(set(re.findall("skipped:.*", self.process.stderr))), sep="\n")
        return ranks

    def test_each_call_is_what_the_program_says(self):
        self.assert_said(self.launch_files())

    def test_a_file_that_was_opened_while_paused_is_known(self):
        ranks = self.launch_files("paused")
        self.assert_said(ranks)
        self.assertEqual({f.identity for r in ranks.values() for f in r.files.values()},
                         {ranks[0].files[1].identity})

    def assert_said(self, ranks):
        for rank, file in ranks.items():
            told = []
            for r in file.io():
                if r.kind == rf.COMPLETION:
                    told.append(("done", r.a64))
                else:
                    told.append((r.name, r.bytes_asked, r.a64, r.offset))
            self.assertEqual(told, said_by(self.folder, rank))

    def test_calls_are_counted_once(self):
        """What the program calls; MPICH's own calls by MPI_ names are part of those."""
        text = (pathlib.Path(__file__).parent / "programs" / "files.c").read_text()
        ranks = self.launch_files()
        called = {name.removesuffix("_c") for name in re.findall(r"MPI_\w+", text)}
        table = (SOURCE / "plugins" / "mpi" / "functions.table").read_text()
        forms = re.findall(r"^(?:\w*transfer|\w+_split|seek|\w*file\w*|set_view).*(MPI_File_\w+)",
                           table, re.MULTILINE)
        self.assertEqual(set(forms) - called, set(), "each form of MPI-IO is called")
        self.assert_counts(ranks, apart=set(self.counter(0)) - called)
        for file in ranks.values():
            own = {r.name for r in file.records if r.is_call}
            self.assertEqual(own - called, set(), "questions of ours, or of a library to itself")

    def test_files_and_their_members(self):
        ranks = self.launch_files()
        for rank, file in ranks.items():
            opened = [f for f in file.files.values() if f.mode]
            self.assertEqual([(pathlib.Path(f.name).name, f.communicator, f.mode) for f in opened],
                             [("data", 1, 7), (f"own-{rank}", 2, 30)])
            self.assertTrue(all(f.is_closed for f in opened))
            deleted = [pathlib.Path(f.name).name for f in file.files.values() if not f.mode]
            self.assertEqual(deleted, ["data"] if rank == 0 else [])
        shared, own = ([f.identity for f in file.files.values()][:2] for file in ranks.values())
        self.assertEqual(shared[0], own[0])
        self.assertNotEqual(shared[1], own[1])

    def test_what_was_collective_and_what_failed(self):
        for file in self.launch_files().values():
            for r in file.io():
                if r.kind == rf.COMPLETION:
                    continue
                is_collective = re.search(
                    r"_all|_ordered|open|close|sync|preall|_set_", r.name)
                self.assertEqual(bool(r.io_flags & rf.IO_COLLECTIVE), bool(is_collective), r.name)
                is_shared = "_shared" in r.name or "_ordered" in r.name
                self.assertEqual(bool(r.io_flags & rf.IO_SHARED), is_shared, r.name)
                is_request = "_iread" in r.name or "_iwrite" in r.name
                self.assertEqual(bool(r.flags & rf.NONBLOCKING), is_request, r.name)
                self.assertEqual(r.operation == "read", "read" in r.name)
                self.assertEqual(r.operation == "write", "write" in r.name)
            failed = [r.name for r in file.records if r.flags & rf.FAILED]
            self.assertEqual(failed, ["MPI_File_open", "MPI_File_delete", "MPI_File_read_at"])
            numbers = [r.request for r in file.io() if r.kind == rf.IO
                       and not r.io_flags & rf.IO_SPLIT_END]
            self.assertEqual(len(numbers), len(set(numbers)))


class Archive(TestCase):
    """What the agent makes of it."""

    def run_files(self, *arguments):
        self.output = self.folder / "job"
        program = [PROGRAMS / "files", self.folder, *arguments]
        self.assert_exit(profile(2, self.output, *program, timeout_s=90))
        self.document = ledger(self.output)
        self.assert_law(self.document)
        self.assertEqual(self.document["losses"], [])

    def test_a_file_that_was_opened_while_paused_is_open_from_the_start(self):
        self.run_files("paused")
        readers.otf2_print(self, self.output)
        readers.otf2_structure(self, self.output)
        done = run(["otf2-print", "-G", self.output / "traces.otf2"])
        self.assertEqual(done.stdout.count("PRE_CREATED_HANDLE_STATE"), 1)

    def test_what_one_thread_begins_and_another_completes_is_whole(self):
        self.output = self.folder / "job"
        program = [PROGRAMS / "files_threads", self.folder / "data"]
        self.assert_exit(profile(1, self.output, *program, timeout_s=90))
        readers.otf2_print(self, self.output)
        readers.otf2_structure(self, self.output)
        assembly = ledger(self.output)["assembly"]
        self.assertEqual([assembly[k] for k in ("open_io", "unmatched_io", "unmatched")], [0] * 3)
        with h5py.File(self.output / "profile.h5") as file:
            self.assertEqual(file["io/writes"][()].tolist(), [300, 1])
            self.assertEqual(file["io/bytes_written"][()].tolist(), [300 * 64, 64])

    def test_events_are_what_the_program_says(self):
        self.run_files()
        readers.otf2_print(self, self.output)
        readers.otf2_structure(self, self.output)
        done = run([PYTHON, "-c", _LISTED, self.output / "traces.otf2"])
        self.assert_exit(done)
        lines = [line.split() for line in done.stdout.splitlines()]
        handles = [line[1:] for line in lines if line[0] == "handle"]
        self.assertEqual([pathlib.Path(h[1]).name for h in handles], ["data", "own-0", "own-1"])
        self.assertEqual({h[2] for h in handles}, {"MPI-IO"})
        assembly = self.document["assembly"]
        self.assertEqual((assembly["open_io"], assembly["unmatched_io"]), (0, 0))
        for rank in (0, 1):
            self.assert_rank([line[1:] for line in lines if line[0] == str(rank)], rank)

    def assert_rank(self, events, rank):
        """Begun transfers have the bytes asked for and the offset; all are complete, with the bytes
        moved."""
        said = [s for s in said_by(self.folder, rank) if s[0] == "done" or
                re.search("read|write|sync", s[0])]
        said.remove(("MPI_File_read_at", 32, 0, 0))  # failed
        expected = [(s[1], -1 if s[3] is None else s[3]) for s in said
                    if s[0] != "done" and not s[0].endswith("_end")]
        begun = [e[1:] for e in events if e[0] == "IoOperationBegin"]
        self.assertEqual([(int(b[2]), int(b[3])) for b in begun], expected)
        moved = [s[1] if s[0] == "done" else s[2] for s in said if s[0] == "done" or not
                 re.search("_i|_begin", s[0])]
        complete = [e[1:] for e in events if e[0] == "IoOperationComplete"]
        self.assertEqual([int(c[0]) for c in complete], moved)
        self.assertEqual(collections.Counter((b[4], b[5]) for b in begun),
                         collections.Counter((c[1], c[2]) for c in complete))
        issued = [e for e in events if e[0] == "IoOperationIssued"]
        self.assertEqual(len(issued), len([b for b in begun if int(b[1]) & 1]))
        modes = collections.Counter(b[0] for b in begun)
        self.assertEqual(modes["FLUSH"], 1)
        self.assertEqual(modes["READ"] + modes["WRITE"], len(begun) - 1)
        created = [e[2:] for e in events if e[0] == "IoCreateHandle"]
        self.assertEqual(created, [["READ_WRITE", "1", "0"], ["WRITE_ONLY", "9", "256"]])
        self.assertEqual(len([e for e in events if e[0] == "IoDestroyHandle"]), 2)
        deleted = [pathlib.Path(e[1]).name for e in events if e[0] == "IoDeleteFile"]
        self.assertEqual(deleted, [f"own-{rank}"] + ["data"] * (rank == 0))
        seeks = [(int(e[1]), int(e[2])) for e in events if e[0] == "IoSeek"]
        self.assertEqual(seeks, [(s[1], s[3]) for s in said_by(self.folder, rank)
                                 if "seek" in s[0]])

    def test_profile_sums_up(self):
        self.run_files()
        with h5py.File(self.output / "profile.h5") as file:
            names = [pathlib.Path(n).name for n in file["files/name"].asstr()[()]]
            self.assertEqual(names, ["data", "own-0", "own-1"])
            self.assertEqual(list(file["files/mode"].asstr()[()])[:2],
                             ["read write create", "write create exclusive delete_on_close"])
            io = {key: column[()] for key, column in file["io"].items()}
        rows = {(int(r), int(f)): i for i, (r, f) in enumerate(zip(io["rank"], io["file"]))}
        self.assertEqual(set(rows), {(0, 0), (0, 1), (1, 0), (1, 2), (0, -1)})
        for rank in (0, 1):
            said = [s for s in said_by(self.folder, rank) if s[0] != "done"]
            row = rows[(rank, 0)]
            said.remove(("MPI_File_read_at", 32, 0, 0))
            for word in ("read", "write"):
                calls = [s for s in said if word in s[0] and not s[0].endswith("_end")]
                self.assertEqual(io[word + "s"][row], len(calls))
                self.assertGreater(io[word + "_ns"][row], 0)
            written = sum(s[1] for s in said if "write" in s[0])
            self.assertEqual(io["bytes_written"][row], written)
            collective = [s for s in said if re.search("(read|write).*(_all|_ordered)", s[0])
                          and not s[0].endswith("_end")]
            self.assertEqual(io["collective_count"][row], len(collective))
            self.assertEqual(io["collective_bytes"][row], sum(s[1] for s in collective))
            self.assertGreater(io["other_ns"][row], 0)


if __name__ == "__main__":
    unittest.main()
