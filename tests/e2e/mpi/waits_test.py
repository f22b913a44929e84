#!/usr/bin/python3
"""Waiting time of a program whose ranks come late on purpose: /waits names who waited, in which
call, why and for how long.

    waits_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import collections
import pathlib
import re
import sys
import unittest

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import readers  # noqa: E402
from aon_test import MPI, PYTHON, TestCase, environment, ledger, profile, run  # noqa: E402

PROGRAMS = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(".")
SCENE_S = 0.4
LATE_S = SCENE_S / 2
NEIGHBOURS = "wait for neighbours"
COLLECTIVES = 32  # of programs/late.c: 20, and communicators made 5 times and freed 7 times
LEFT_OUT = 2  # MPI_Intercomm_create, by either group


_LAST_VALUES = """
import sys, otf2
last = {}
with otf2.reader.open(sys.argv[1]) as trace:
    for location, event in trace.events:
        if isinstance(event, otf2.events.Metric) and event.metric.members[0].name == "waiting time":
            assert event.values[0] >= last.get(location.name + location.group.name, 0)
            last[location.name + location.group.name] = event.values[0]
for name, value in sorted(last.items()):
    print(name, value, sep="\\t")
"""


class Waits(TestCase):
    def read_rows(self, output):
        """{(rank, region, kind): (count, seconds)} of /waits."""
        with h5py.File(output / "profile.h5") as file:
            waits = file["waits"]
            regions = file["regions/name"].asstr()[()]
            return {
                (int(rank), regions[region], kind): (int(count), wait_ns / 1e9)
                for rank, region, kind, count, wait_ns in zip(
                    waits["rank"][()], waits["region"][()], waits["kind"].asstr()[()],
                    waits["count"][()], waits["wait_ns"][()]
                )
            }  # fmt: skip

    def assert_expected(self, rows, expected, overslept_s):
        """Each of `expected`, (rank, region, kind), waited once per mention; and hardly others."""
        for key, times in collections.Counter(expected).items():
            count, wait_s = rows.pop(key, (0, 0))
            self.assertEqual(count, times, key)
            # A rank that itself begins late, on a loaded machine, waits less.
            self.assertGreater(wait_s, times * 0.25 * LATE_S, key)
            # Nor does anybody wait longer than the latest came late.
            self.assertLess(wait_s, times * (LATE_S + overslept_s + 0.1), key)
        # Whatever else the machine made them wait is less than what was planted in all.
        self.assertLess(sum(wait_s for _, wait_s in rows.values()), len(expected) * LATE_S, rows)

    def assert_same_in_archive(self, output):
        """The metric of each thread ends with what /waits has for it, but for waits below 1 us."""
        done = run([PYTHON, "-c", _LAST_VALUES, output / "traces.otf2"])
        self.assert_exit(done)
        told = [line.split("\t") for line in done.stdout.splitlines()]
        self.assertEqual([name for name, _ in told],
                         [f"Waiting time: Master threadMPI Rank {rank}" for rank in range(4)])
        with h5py.File(output / "profile.h5") as file:
            waits = file["waits"]
            for rank, (_, value) in enumerate(told):
                expected_s = int(waits["wait_ns"][waits["rank"][()] == rank].sum()) / 1e9
                self.assertAlmostEqual(float(value), expected_s, delta=20e-6)

    def assert_same_in_ledger(self, output):
        """The sums of each kind, and the finding on the largest."""
        document = ledger(output)
        told = document["waits"]
        counts = [told[name] for name in ("messages", "message_ends_left_out")]
        counts += [told[name] for name in ("collectives", "collectives_left_out")]
        self.assertEqual(counts, [5, 0, COLLECTIVES, LEFT_OUT])
        with h5py.File(output / "profile.h5") as file:
            kinds = file["waits/kind"].asstr()[()]
            for kind, value_s in told["seconds"].items():
                expected_s = int(file["waits/wait_ns"][()][kinds == kind].sum()) / 1e9
                self.assertAlmostEqual(value_s, expected_s, places=6)
        (finding,) = [f for f in document["findings"] if "late partners" in f]
        self.assertIn(max(told["seconds"], key=told["seconds"].get), finding)

    def assert_true_times(self, file, regions):
        """What the Allreduce took its last member, and its bandwidth by nccl-tests' formula."""
        times = {name: column[()] for name, column in file["true_times"].items()}
        (row,) = [i for i, r in enumerate(times["region"]) if regions[r] == "MPI_Allreduce"]
        self.assertEqual((times["count"][row], times["slow_count"][row]), (1, 0))
        self.assertEqual(times["bytes"][row], 4)
        self.assertLess(times["usual_ns"][row], LATE_S * 1e9)
        algbw = times["bytes"][row] / times["usual_ns"][row]
        self.assertAlmostEqual(times["algbw"][row] / algbw, 1)
        self.assertAlmostEqual(times["busbw"][row] / algbw, 2 * 3 / 4)

    def assert_latecomers(self, output):
        """/lateness: ranks 2 and 3 each came last once."""
        with h5py.File(output / "profile.h5") as file:
            table = {name: column[()] for name, column in file["lateness"].items()}
            regions = file["regions/name"].asstr()[()]
            self.assert_true_times(file, regions)
        self.assertEqual(int(table["wait_ns"].sum()), int(table["caused_ns"].sum()))
        caused_s = {}
        for name, late in (("MPI_Barrier", 2), ("MPI_Allreduce", 3)):
            rows = regions[table["region"]] == name
            by_rank = dict(zip(table["rank"][rows].tolist(), table["last_count"][rows].tolist()))
            self.assertEqual(by_rank, {rank: int(rank == late) for rank in range(4)}, name)
            caused_s[late] = int(table["caused_ns"][rows].sum()) / 1e9
            # Three ranks waited for it; see below for the quarter.
            self.assertGreater(caused_s[late], 3 * 0.25 * LATE_S, name)
    def assert_polled(self, output, overslept_s):
        """What was polled for is told apart, and by how much at most."""
        expected = {(1, "late sender")} | {(rank, "wait at barrier") for rank in (0, 1, 3)}
        with h5py.File(output / "profile.h5") as file:
            regions = file["regions/name"].asstr()[()]
            polled = {name: column[()] for name, column in file["polled"].items()}
            kinds = file["polled/kind"].asstr()[()]
        self.assertEqual({regions[region] for region in polled["region"]}, {"MPI_Test"})
        told = {(int(rank), kind): (int(count), at_most_ns / 1e9) for rank, kind, count, at_most_ns
                in zip(polled["rank"], kinds, polled["count"], polled["at_most_ns"])}  # fmt: skip
        for key in expected:
            count, at_most_s = told.pop(key)
            self.assertEqual(count, 1, key)
            self.assertGreater(at_most_s, 0.25 * LATE_S, key)
            self.assertLess(at_most_s, LATE_S + overslept_s + 0.1, key)
        self.assertLess(sum(at_most_s for _, at_most_s in told.values()), LATE_S, told)
        at_most_s = int(polled["at_most_ns"].sum()) / 1e9
        self.assertAlmostEqual(ledger(output)["waits"]["polled_seconds_at_most"], at_most_s, 6)

    def test_planted_lateness_is_found(self):
        output = self.folder / "job"
        process = profile(4, output, PROGRAMS / "late", int(SCENE_S * 1000), timeout_s=60)
        self.assert_exit(process)
        overslept_s = max(map(float, re.findall(r"overslept (\S+)", process.stdout)))
        self.assert_law(ledger(output))
        rows = self.read_rows(output)
        with h5py.File(output / "profile.h5") as file:
            waits = file["waits"]
            self.assertEqual(waits.attrs["messages"], 5)
            self.assertEqual(waits.attrs["unmatched_ends"], 0)
            self.assertEqual(waits.attrs["collectives"], COLLECTIVES)
            self.assertEqual(waits.attrs["collectives_left_out"], LEFT_OUT)
            self.assertEqual(int(waits["uncertain_ns"][()].sum()), 0, "one node has one clock")
            for name in ("wait_ns", "max_ns"):
                self.assertTrue((waits[name][()] <= 60e9).all())
        self.assert_same_in_ledger(output)
        self.assert_same_in_archive(output)
        self.assert_latecomers(output)
        self.assert_polled(output, overslept_s)
        readers.otf2_print(self, output)
        readers.otf2_structure(self, output)
        expected = [(1, "MPI_Recv", "late sender"), (2, "MPI_Ssend", "late receiver")]
        expected += [(0, "MPI_Waitall", "late sender"), (1, "MPI_Reduce", "early reduce")]
        expected += [(rank, "MPI_Barrier", "wait at barrier") for rank in (0, 1, 3)]
        expected += [(rank, "MPI_Allreduce", "wait at N x N") for rank in (0, 1, 2)]
        expected += [(rank, "MPI_Bcast", "late broadcast") for rank in (1, 2, 3)]
        expected += [(rank, "MPI_Scan", "early scan") for rank in (2, 3)]
        expected += [(rank, "MPI_Wait", "wait at N x N") for rank in (0, 1, 3)]
        expected += [(rank, "MPI_Neighbor_allgather", NEIGHBOURS) for rank in (1, 3, 1, 3)]
        expected += [(2, "MPI_Wait", NEIGHBOURS), (3, "MPI_Neighbor_alltoall", NEIGHBOURS)]
        expected += [(rank, "MPI_Wait", "wait at N x N") for rank in (0, 1, 2)]  # persistent
        expected += [(rank, "MPI_Wait", "wait at barrier") for rank in (0, 2, 3)]
        # Between two groups.
        expected += [(rank, "MPI_Barrier", "wait at barrier") for rank in (0, 1)]
        expected += [(rank, "MPI_Alltoall", "wait at N x N") for rank in (2, 3)]
        expected += [(rank, "MPI_Bcast", "late broadcast") for rank in (2, 3)]
        expected += [(2, "MPI_Gather", "early reduce")]
        expected += [(rank, "MPI_Waitall", "wait at barrier") for rank in (0, 1)]
        self.assert_expected(rows, expected, overslept_s)

    def test_making_using_and_freeing_together_is_waiting(self):
        """Communicators, windows and files."""
        output = self.folder / "job"
        # Open MPI has no windows where one process cannot write another's memory.
        env = environment(OMPI_MCA_btl_vader_single_copy_mechanism="emulated")
        process = profile(4, output, PROGRAMS / "late_objects", int(SCENE_S * 1000), self.folder,
                          timeout_s=60, env=env)  # fmt: skip
        self.assert_exit(process)
        overslept_s = max(map(float, re.findall(r"overslept (\S+)", process.stdout)))
        self.assert_law(ledger(output))
        with h5py.File(output / "profile.h5") as file:
            waits = file["waits"]
            # Open MPI's MPI_File_preallocate fails in a file that is written only.
            self.assertEqual(waits.attrs["collectives"], {"openmpi": 20, "mpich": 21}[MPI])
            self.assertEqual(waits.attrs["collectives_left_out"], 1, "MPI_Comm_create_group")
        self.assert_same_in_archive(output)
        readers.otf2_print(self, output)
        expected = [(rank, "MPI_Comm_dup", "wait at create") for rank in (0, 1, 3)]
        expected += [(rank, "MPI_Wait", "wait at create") for rank in (0, 2, 3)]
        expected += [(rank, "MPI_Win_create", "wait at create") for rank in (1, 2, 3)]
        expected += [(rank, "MPI_Win_fence", "wait at fence") for rank in (0, 1, 2)]
        expected += [(rank, "MPI_Win_free", "wait at free") for rank in (1, 2, 3)]
        expected += [(rank, "MPI_File_open", "wait at file") for rank in (0, 2, 3)]
        expected += [(rank, "MPI_File_write_at_all", "wait at file") for rank in (0, 1, 3)]
        expected += [(rank, "MPI_File_set_view", "wait at file") for rank in (0, 1, 2)]
        expected += [(rank, "MPI_File_set_size", "wait at file") for rank in (0, 1, 3)]
        if MPI == "mpich":  # Open MPI's do not wait
            expected += [(rank, "MPI_File_set_info", "wait at file") for rank in (1, 2, 3)]
            expected += [(rank, "MPI_File_preallocate", "wait at file") for rank in (0, 1, 2)]
            expected += [(rank, "MPI_Win_set_info", "wait at set_info") for rank in (0, 2, 3)]
        rows = self.read_rows(output)
        for rank in range(4):  # the fence before has no latecomer
            key = (rank, "MPI_Win_fence", "wait at fence")
            if key in rows:
                rows[key] = (1, rows[key][1])
        self.assert_expected(rows, expected, overslept_s)

    def test_latecomer_is_in_the_summary(self):
        """Where it is the only one: the last of three ranks comes to a barrier late."""
        output = self.folder / "job"
        process = profile(3, output, PROGRAMS / "hang", 1500, timeout_s=60)
        self.assert_exit(process)
        (finding,) = [f for f in ledger(output)["findings"] if "came last" in f]
        self.assertRegex(finding, r"^rank 2 on \S+ came last(, 1 time together with others,)? to "
                                  r"[12] of 2 collectives: ")  # fmt: skip
        self.assertRegex(finding, "the others waited .* of it in MPI_Barrier$")

    def test_latecomer_to_started_and_uneven_collectives_is_named(self):
        """Rank 2; and nobody where all have worked until long after it has started."""
        output = self.folder / "job"
        process = profile(4, output, PROGRAMS / "late_starts", int(SCENE_S * 1000), timeout_s=60)
        self.assert_exit(process)
        overslept_s = max(map(float, re.findall(r"overslept (\S+)", process.stdout)))
        with h5py.File(output / "profile.h5") as file:
            table = {name: column[()] for name, column in file["lateness"].items()}
            regions = file["regions/name"].asstr()[()]
            self.assertEqual(file["lateness"].attrs["operations_without_clocks"], 0)
        world = table["communicator"][regions[table["region"]] == "MPI_Alltoallv"]
        self.assertEqual(set(world.tolist()), {world[0]}, "of the ring nobody needs all others")
        told = {}
        for row, region in enumerate(regions[table["region"]]):
            where = region, bool(table["communicator"][row] == world[0])
            caused_s = int(table["caused_ns"][row]) / 1e9
            told.setdefault(where, {})[int(table["rank"][row])] = caused_s
            if where[1] and region != "MPI_Allgather":
                self.assertEqual(table["late_count"][row], int(table["rank"][row] == 2), where)
        for region in ("MPI_Iallreduce", "MPI_Alltoallv", "MPI_Alltoallv_init"):
            caused_s = told[region, True][2]
            self.assertGreater(caused_s, 3 * 0.25 * LATE_S, region)  # three ranks waited for it
            self.assertLess(caused_s, 3 * (LATE_S + overslept_s + 0.1), region)
        hidden = told["MPI_Iallreduce", False]
        self.assertEqual(len(hidden), 4)
        self.assertLess(sum(hidden.values()), 3 * overslept_s + 0.01)
        (finding,) = [f for f in ledger(output)["findings"] if "came last" in f]
        self.assertRegex(finding, "^rank 2 on .* the others waited .* of it in MPI_(Iallreduce|"
                                  "Alltoallv|Alltoallv_init)$")  # fmt: skip

    def test_matched_probes_that_take_nothing_out_hide_nothing(self):
        for case, messages in (("empty", 10), ("polled", 11), ("nobody", 10)):
            output = self.folder / case
            process = profile(2, output, PROGRAMS / "matched_probes", case, 20, timeout_s=60)
            self.assert_exit(process)
            with h5py.File(output / "profile.h5") as file:
                waits = file["waits"]
                self.assertEqual(waits.attrs["messages"], messages, case)
                self.assertEqual(waits.attrs["unmatched_ends"], 0, case)
                self.assertEqual(waits.attrs["collectives_left_out"], 0, case)

    def test_collectives_that_all_members_are_refused_hide_nothing(self):
        # Open MPI has no windows where one process cannot write another's memory.
        env = environment(OMPI_MCA_btl_vader_single_copy_mechanism="emulated")
        cases = (("alike", 5, 0, 0), ("alone", 0, 7, 2), ("made_alike", 5, 0, 0),
                 ("made_alone", 0, 6, 0), ("file_alike", 4, 0, 0), ("file_alone", 1, 4, 1),
                 # MPICH refuses two starts.
                 ("start_alike", 3, 0, 0), ("start_alone", 0, 4, 2 if MPI == "mpich" else 1))
        for case, collectives, left_out, unmatched in cases:
            output = self.folder / case
            process = profile(2, output, PROGRAMS / "refused", case, self.folder, timeout_s=60,
                              env=env)  # fmt: skip
            self.assert_exit(process)
            document = ledger(output)
            told = document["waits"]
            # Alone, the refused ones are collectives as well, of which the others know nothing.
            self.assertEqual(told["collectives"], collectives, case)
            self.assertEqual(told["collectives_left_out"], left_out, case)
            why = ["1 process had calls that failed"] if left_out else []
            self.assertEqual(told["left_out_because"], why, case)
            self.assertEqual(document["assembly"]["unmatched"], unmatched, case)
            self.assertEqual(document["assembly"]["communication_complete"], unmatched == 0, case)
            readers.otf2_structure(self, output)

    def test_as_many_neighbours_as_have_room_are_told(self):
        """1022 of them; one more, and the collective is left out and counted."""
        output = self.folder / "job"
        late_s = 0.2
        process = profile(3, output, PROGRAMS / "many_neighbours", int(late_s * 1000), timeout_s=60)
        self.assert_exit(process)
        with h5py.File(output / "profile.h5") as file:
            waits = file["waits"]
            self.assertEqual(waits.attrs["collectives"], 6, "with a barrier and creations")
            self.assertEqual(waits.attrs["collectives_left_out"], 1)
            told = {int(rank): (int(count), wait_ns / 1e9) for rank, kind, count, wait_ns in zip(
                waits["rank"][()], waits["kind"].asstr()[()], waits["count"][()],
                waits["wait_ns"][()]) if kind == NEIGHBOURS}  # fmt: skip
        for rank in (0, 2):
            self.assertEqual(told[rank][0], 1)
            self.assertGreater(told[rank][1], late_s / 4)
        readers.otf2_print(self, output)


if __name__ == "__main__":
    unittest.main()
