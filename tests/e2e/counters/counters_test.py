"""Hardware counters at the borders of calls (--events): on a machine without a PMU the line in the
ledger and what the agent counts; with the PMU that the test program brings, the sums in profile.h5
and the metrics in the archive, number by number."""
import collections
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import h5py
import otf2

import readers
from aon_test import BUILD, TestCase, environment, ledger, profile, run

PROGRAM = BUILD / "bin" / "counters_program"
HEAT = BUILD / "bin" / "heat2d"
HARDWARE = "cycles,instructions"
CALLS = 50
PER_READING = 7
WORK = 1000
NO_BUDGET = ("--budget", "100", "--sampling", "0")


def rows(output):
    """{(location, region name or "", counter): (count, inexact, inclusive, exclusive)}"""
    result = {}
    with h5py.File(pathlib.Path(output) / "profile.h5") as file:
        if "counters" not in file:
            return {}
        names = [name.decode() for name in file["regions/name"]]
        table = {name: column[()] for name, column in file["counters"].items()}
        for i, counter in enumerate(table["counter"]):
            region = int(table["region"][i])
            name = names[region] if region >= 0 else ""
            key = (int(table["location"][i]), name, counter.decode())
            sums = ("count", "inexact_count", "inclusive", "exclusive")
            result[key] = tuple(int(table[column][i]) for column in sums)
    return result


def has_pmu():
    """What `aon doctor` says of hardware events."""
    said = run(["aon", "doctor"]).stdout
    return any("hardware events" in line and "can be counted" in line for line in said.splitlines())


class Names(TestCase):
    def test_unknown_ones_stop_before_the_program(self):
        trace = self.folder / "started"
        done = run(["aon-run", "--events", "cycles,instuctions", "touch", trace])
        self.assert_exit(done, 2)
        self.assertIn("'instuctions' is no event of this machine", done.stderr)
        self.assertIn("instructions", done.stderr.split("near it:")[1])
        self.assertFalse(trace.exists())

    def test_come_from_the_environment_and_a_file_too(self):
        done = run(["aon-run", "true"], env=environment(AON_EVENTS="nonsense"))
        self.assert_exit(done, 2)
        self.assertIn("'nonsense'", done.stderr)
        config = self.folder / "aon.toml"
        config.write_text('events = "cycels"\n')
        done = run(["aon-run", "true"], env=environment(AON_CONFIG=config))
        self.assert_exit(done, 2)
        self.assertIn("near it: cycles", done.stderr)


class WithoutPmu(TestCase):
    """The real kernel of this machine."""

    def test_the_program_runs_and_the_ledger_says_what_is_missing(self):
        if has_pmu():
            self.skipTest("this machine has a PMU")
        output = self.folder / "out"
        heat = [HEAT, "--size", "256", "--steps", "10000"]  # longer than a busy agent takes to come
        done = profile(1, output, *heat, options=["--events", HARDWARE])
        self.assert_exit(done)
        document = ledger(output)
        self.assert_law(document)
        providers = document["ranks"][0]["providers"]
        self.assertEqual(providers["counters"]["state"], "off")
        self.assertIn("no PMU", providers["counters"]["reason"])
        self.assertIn("virtual PMU", providers["counters"]["remedy"])
        self.assertEqual(providers["perf"]["state"], "degraded")
        self.assertIn("not counted: cycles, instructions", providers["perf"]["reason"])
        self.assertEqual(rows(output), {})
        readers.otf2_print(self, output)

    def test_software_events_are_counted_by_the_agent(self):
        output = self.folder / "out"
        options = ["--events", "page-faults,task-clock,cgroup-switches"]
        # Half a second: what had ended before a busy agent came could not be counted any more.
        done = profile(1, output, HEAT, "--size", "256", "--steps", "10000", options=options)
        self.assert_exit(done)
        providers = ledger(output)["ranks"][0]["providers"]
        if providers["perf"]["state"] == "off":
            self.skipTest(f"perf: {providers['perf']['reason']}")
        self.assertNotIn("counters", providers)
        found = {}
        with h5py.File(output / "profile.h5") as file:
            file.visit(lambda name: found.update({name.rsplit("/", 1)[-1]: name}))
            self.assertIn("cgroup-switches", found, providers["perf"])
            self.assertIn("page-faults", found)
            self.assertGreater(float(file[found["task-clock"]][-1]), 0)
        self.assertNotIn("cycles", found)

    def test_nothing_is_different_without_the_option(self):
        output = self.folder / "out"
        self.assert_exit(profile(1, output, PROGRAM, "rdpmc", CALLS))
        self.assertNotIn("counters", ledger(output)["ranks"][0]["providers"])
        self.assertEqual(rows(output), {})


class MadePmu(TestCase):
    def profiled(self, mode, events=HARDWARE):
        output = self.folder / "out"
        options = ["--events", events, *NO_BUDGET]
        done = profile(1, output, PROGRAM, mode, CALLS, options=options)
        self.assert_exit(done)
        self.assertIn("done", done.stdout)
        document = ledger(output)
        self.assert_law(document)
        return output, document["ranks"][0]["providers"]["counters"]

    def test_sums_of_regions_are_exact(self):
        output, provider = self.profiled("rdpmc")
        self.assertEqual(provider["state"], "on", provider)
        self.assertEqual(provider["lost"], 0)
        table = rows(output)
        barriers = {k: v for k, v in table.items() if k[1] == "MPI_Barrier"}
        self.assertEqual(len(barriers), 4)  # two threads, two counters
        for key, row in barriers.items():
            added = CALLS * PER_READING
            self.assertEqual(row, (CALLS, 0, added, added), key)
        # Of the second thread: all of its work lies between its calls.
        second = {k[2]: v for k, v in table.items() if k[1] == "" and k[0] >> 32 == 1}
        for factor, counter in enumerate(HARDWARE.split(","), 1):
            calls, _, added, _ = second[counter]
            self.assertEqual(calls, CALLS)
            # The first event attaches the thread before its call is read.
            self.assertEqual(added, CALLS * (PER_READING + WORK * factor))
        self.assertEqual(provider["emitted"], sum(
            row[0] for key, row in table.items() if key[1] and key[2] == "cycles"))

    def test_regions_of_the_program_have_sums_too(self):
        output, provider = self.profiled("phases")
        self.assertEqual(provider["state"], "on", provider)
        table = {key[1:]: row for key, row in rows(output).items()}
        for factor, counter in enumerate(HARDWARE.split(","), 1):
            work = WORK * factor
            # A part is from one reading to the next. A phase holds a call (two readings), a part
            # (two) and its own end, and work twice.
            part = CALLS * (work + PER_READING)
            phase = CALLS * (2 * work + 5 * PER_READING)
            barrier = CALLS * PER_READING
            self.assertEqual(table["part", counter], (CALLS, 0, part, part))
            own = phase - part - barrier
            self.assertEqual(table["phase", counter], (CALLS, 0, phase, own))
            self.assertEqual(table["MPI_Barrier", counter], (CALLS, 0, barrier, barrier))
        readers.otf2_print(self, output)
        readers.otf2_structure(self, output)

    def test_the_archive_has_the_metric_before_every_enter_and_leave(self):
        output, _ = self.profiled("rdpmc", "cycles,instructions,branches,cache-misses,page-faults")
        readers.otf2_print(self, output)
        readers.otf2_structure(self, output)
        before = collections.defaultdict(lambda: None)
        last = collections.defaultdict(lambda: (0,) * 4)
        borders = 0
        with otf2.reader.open(str(output / "traces.otf2")) as trace:
            metrics = trace.definitions.metrics
            self.assertEqual([m.name for m in metrics[0].members],
                             ["cycles", "instructions", "branches", "cache-misses"])
            for location, event in trace.events:
                if location.type != otf2.LocationType.CPU_THREAD:
                    continue
                if isinstance(event, otf2.events.Metric):
                    values = tuple(event.values)
                    self.assertTrue(all(a <= b for a, b in zip(last[location.name], values)))
                    last[location.name] = values
                    before[location.name] = event.time
                    continue
                if isinstance(event, (otf2.events.Enter, otf2.events.Leave)):
                    borders += 1
                    self.assertEqual(before[location.name], event.time)
                    before[location.name] = None
        self.assertGreater(borders, 4 * CALLS)
        self.assertEqual(max(values[3] for values in last.values()) > 4 * WORK * CALLS, True)
        readers.hdf5(self, output)

    def test_calls_without_the_pmu_are_in_no_sum(self):
        output, provider = self.profiled("off")
        self.assertEqual(provider["state"], "degraded", provider)
        self.assertIn("took turns", provider["reason"])
        for key, row in rows(output).items():
            if key[1] == "MPI_Barrier":
                # From the first call that is off on: each reading of the second half.
                self.assertEqual(row[:2], (CALLS // 2, CALLS // 2), key)
                self.assertEqual(row[2], CALLS // 2 * PER_READING, key)

    def test_refusals_are_told_with_a_remedy(self):
        for mode, reason, remedy in (
            ("refused", "kernel.perf_event_paranoid", "sysctl kernel.perf_event_paranoid=2"),
            ("not_allowed", "rdpmc", "echo 1 > /sys/bus/event_source/devices/cpu/rdpmc"),
        ):
            with self.subTest(mode):
                self.folder = self.folder / mode
                output, provider = self.profiled(mode)
                self.assertEqual(provider["state"], "off")
                self.assertIn(reason, provider["reason"])
                self.assertEqual(provider["remedy"], remedy)
                self.assertEqual(rows(output), {})


if __name__ == "__main__":
    unittest.main(verbosity=2)
