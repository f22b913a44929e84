"""aon/annotate.h in all that a program may do, record by record, and without AON."""
import json
import re
import struct
import unittest

from annotated import NO_VALUE, REAL, SIGNED, STEP, RingTestCase, nesting, readers
from aon_test import BUILD, PYTHON, environment, ledger, profile, run

CASES = BUILD / "bin" / "annotate_cases"
MAX_NAME = 1024


class Annotations(RingTestCase):
    def test_regions_steps_and_counters_are_recorded(self):
        ring = self.ring(CASES, "balanced")
        step = "step( outer( inner( )inner )outer )step"
        self.assertEqual(nesting(ring), " ".join([step] * 3))
        steps = [r for r in ring.of_kind("begin") if r.name == "step"]
        self.assertEqual([(r.a32, r.a64) for r in steps], [(STEP, 0), (STEP, 1), (STEP, 2)])
        self.assertEqual(ring.roles["step"], 10)
        self.assertEqual(ring.roles["outer"], 9)
        samples = ring.of_kind("sample")
        values = [struct.unpack("<d", struct.pack("<Q", r.a64))[0] for r in samples]
        self.assertEqual(values, [0.0, 0.5, 1.0])
        self.assertEqual({ring.metrics[r.id] for r in samples}, {("user::residual", "K")})
        self.assertEqual(ring.providers, [(1, "annotate", "", "")])

    def test_marks_carry_their_values(self):
        marks = self.ring(CASES, "balanced").of_kind("mark")
        real = struct.unpack("<Q", struct.pack("<d", 0.25))[0]
        self.assertEqual(
            [(r.name, r.a32, r.a64) for r in marks],
            [("plain", NO_VALUE, 0), ("whole", SIGNED, 2**64 - 5), ("real", REAL, real)],
        )

    def test_unbalanced_ones_are_recorded_as_they_come(self):
        ring = self.ring(CASES, "unbalanced")
        self.assertEqual(nesting(ring), "a( ) b( c( )a left open(")

    def test_a_signal_handler_may_annotate(self):
        ring = self.ring(CASES, "handler")
        self.assertEqual(nesting(ring), " ".join(["main( handler( )handler )main"] * 100))

    def test_a_forked_child_has_a_complete_stream_of_its_own(self):
        done, rings = self.rings(CASES, "fork")
        self.assert_exit(done)
        self.assertEqual(len(rings), 2)
        twice = "shared( own( )own )shared shared( own( )own )shared"
        self.assertEqual({nesting(r) for r in rings}, {twice, "shared( )shared " + twice})
        for ring in rings:
            self.assertEqual(set(ring.regions.values()), {"shared", "own"})

    def test_the_end_of_a_region_does_not_attach_a_child(self):
        ring = self.ring(CASES, "open_over_fork")
        self.assertEqual(nesting(ring), "open( )open")

    def test_a_name_of_a_mebibyte_is_cut(self):
        ring = self.ring(CASES, "long")
        ascii_name, accented = ring.regions.values()
        self.assertEqual(ascii_name, "x" * (MAX_NAME - 3) + "...")
        self.assertEqual(accented, "é" * ((MAX_NAME - 4) // 2) + "...")
        self.assertEqual(len(ring.of_kind("begin")), 2)
        ((name, unit),) = ring.metrics.values()
        self.assertTrue(name.startswith("user::é") and len(name.encode()) < MAX_NAME + 8)
        self.assertTrue(unit.startswith("é") and len(unit.encode()) < 64)

    def test_names_beyond_the_limit_share_one(self):
        ring = self.ring(CASES, "many")
        names = [r.name for r in ring.of_kind("begin")]
        self.assertEqual(len(names), 10000)
        self.assertEqual(names[:8191], [f"name {i}" for i in range(8191)])
        self.assertEqual(set(names[8191:]), {"(more names)"})

    def test_threads_share_names(self):
        ring = self.ring(CASES, "threads")
        self.assertEqual(len(ring.regions), 12)
        for slot in (1, 2):
            expected = [f"name {i % 10}( thread( )thread )name {i % 10}" for i in range(100)]
            self.assertEqual(nesting(ring, slot), " ".join(expected))

    def test_a_pause_leaves_everything_balanced(self):
        ring = self.ring(CASES, "paused")
        expected = "before( over the pause( )over the pause inside( )inside )before"
        self.assertEqual(nesting(ring), expected)
        self.assertEqual(ring.of_kind("mark"), [])

    def test_null_and_empty_names_do_no_harm(self):
        ring = self.ring(CASES, "odd")
        self.assertEqual(nesting(ring), "( )")
        self.assertEqual(list(ring.metrics.values()), [("user::x", "")])

    def test_asking_for_names_does_not_attach(self):
        done, rings = self.rings(CASES, "names")
        self.assert_exit(done)
        self.assertIn("aon is there", done.stdout)
        self.assertEqual(rings, [])

    def test_without_aon_nothing_happens(self):
        for case in ("balanced", "unbalanced", "handler", "fork", "long", "threads", "odd"):
            done = run([CASES, case], env=environment())
            self.assert_exit(done)
            self.assertIn("aon is not there", done.stdout)

    def test_switched_off_nothing_is_recorded(self):
        done, rings = self.rings(CASES, "balanced", AON_DISABLE=1)
        self.assert_exit(done)
        self.assertEqual(rings, [])

    def test_scopes_of_cpp_end_by_exceptions_too(self):
        ring = self.ring(BUILD / "bin" / "annotate_scoped")
        once = "step( named( work( )work )named )step"
        self.assertEqual(nesting(ring), " ".join([once] * 3))
        self.assertEqual([r.name for r in ring.of_kind("mark")], ["caught"])


class Archives(RingTestCase):
    """Jobs without MPI, under aon-run."""

    def job(self, case, name="job", **changes):
        output = self.folder / name
        self.done = run(["aon-run", "-o", output, CASES, case], env=environment(**changes))
        self.assert_exit(self.done)
        document = ledger(output)
        self.assertTrue(document["job"]["complete"], document["job"])
        self.assert_law(document)
        readers.otf2_print(self, output)
        readers.otf2_structure(self, output)
        return output, document

    def test_unbalanced_ones_are_closed_and_counted(self):
        output, document = self.job("unbalanced")
        self.assertEqual(document["assembly"]["unbalanced_regions"], 3)
        self.assertEqual(document["assembly"]["open_regions"], 1)
        counts = readers.region_counts(output)
        self.assertEqual(counts, {"a": 1, "b": 1, "c": 1, "left open": 1})

    def test_a_forked_child_is_a_process_of_its_own(self):
        output, document = self.job("fork")
        self.assertEqual(len([r for r in document["ranks"] if r["emitted"]]), 2)
        self.assertEqual(readers.region_counts(output), {"shared": 5, "own": 4})
        self.assertEqual(document["assembly"]["unbalanced_regions"], 0)

    def test_a_name_of_a_mebibyte_is_in_the_archive(self):
        output, _ = self.job("long")
        self.assertEqual(sorted(readers.region_counts(output).values()), [1, 1])

    def test_a_timer_may_annotate_in_the_middle_of_a_record(self):
        for name in "abcde":  # an agent that gets no core for too long loses some, and says so
            output, document = self.job("timer", name, AON_MEMORY="256MiB", AON_ATTACH_MS=10000)
            if sum(rank["lost"] for rank in document["ranks"]) == 0:
                break
        handled, count = map(int, re.match(r"handled (\d+) of (\d+)", self.done.stdout).groups())
        self.assertGreaterEqual(handled, 800)
        self.assertEqual(sum(rank["lost"] for rank in document["ranks"]), 0)
        self.assertEqual(document["assembly"]["unbalanced_regions"], 0)
        counts = readers.region_counts(output)
        self.assertEqual(counts.pop("main"), count)
        self.assertEqual(set(counts), {f"timer {i}" for i in range(500)})
        self.assertEqual(sum(counts.values()), handled)

    def test_the_rank_comes_from_the_launchers_environment(self):
        _, document = self.job("balanced", PMI_RANK=0, PMI_SIZE=1)
        self.assertEqual([r["rank"] for r in document["ranks"]], [0])

    def test_regions_and_mpi_nest_on_each_rank(self):
        output = self.folder / "job"
        heat2d = [BUILD / "bin" / "heat2d", "--size", 32, "--steps", 20, "--check", 10]
        self.assert_exit(profile(2, output, *heat2d))
        document = ledger(output)
        self.assert_law(document)
        self.assertTrue(document["assembly"]["communication_complete"])
        self.assertEqual(document["assembly"]["unbalanced_regions"], 0)
        for rank in document["ranks"]:
            self.assertEqual(rank["providers"]["annotate"]["emitted"], 2 * (3 * 20 + 2) + 2)
            self.assertEqual(rank["providers"]["mpi"]["state"], "on")
        counts = readers.region_counts(output)
        told = {name: counts.get(name) for name in ("step", "halo", "compute", "residual")}
        self.assertEqual(told, {"step": 40, "halo": 40, "compute": 40, "residual": 4})
        readers.otf2_print(self, output)
        readers.otf2_structure(self, output)

    def test_many_names(self):
        output, _ = self.job("many")
        self.assertEqual(readers.region_counts(output)["(more names)"], 10000 - 8191)


# Prints: regions entered in wrong places, Leaves that a loss cut by region, losses outside of main.
# What is inside of a region whose begin was lost stands in the one around it.
_NESTING_WITH_OTF2 = """
import collections, json, sys, otf2
INSIDE = {"main": [[]], "step": [["main"]], "inner": [["main", "step"], ["main"]],
          "behind": [["main"]], "farther": [["main"]]}
misplaced, cut, outside, stack = [], collections.Counter(), 0, []
with otf2.reader.open(sys.argv[1]) as trace:
    for location, event in trace.events:
        if isinstance(event, otf2.events.Enter):
            name = event.region.name
            if name.startswith("[lost"):
                outside += stack[:1] != ["main"]
            elif stack not in INSIDE[name]:
                misplaced.append(stack + [name])
            stack.append(name)
        elif isinstance(event, otf2.events.Leave):
            stack.pop()
            if any(a.name == "cut by a loss" for a in event.attributes or ()):
                cut[event.region.name] += 1
print(json.dumps([misplaced[:3], cut, outside]))
"""


class Holes(RingTestCase):
    """Regions whose begin or end was refused, for the ring was full."""

    def test_a_region_ends_where_the_loss_of_its_end_begins(self):
        output = self.folder / "job"
        done = run(["aon-run", "-o", output, "--memory", "256KiB", "--", CASES, "flood"],
                   env=environment())
        self.assert_exit(done)
        document = ledger(output)
        self.assert_law(document)
        self.assertGreater(document["ranks"][0]["lost"], 0)
        readers.otf2_print(self, output)
        readers.otf2_structure(self, output)
        told = run([PYTHON, "-c", _NESTING_WITH_OTF2, readers.archive(output)])
        self.assert_exit(told)
        misplaced, cut, losses_outside = json.loads(told.stdout)
        self.assertEqual(misplaced, [])
        self.assertEqual(losses_outside, 0)
        self.assertEqual(set(cut) - {"step", "inner"}, set())
        assembly = document["assembly"]
        self.assertGreater(assembly["cut_regions"], 0)
        self.assertGreaterEqual(assembly["cut_regions"], sum(cut.values()))
        self.assertEqual((assembly["unbalanced_regions"], assembly["open_regions"]), (0, 0))
        timed = readers.region_counts(output, "timed_count")
        counts = readers.region_counts(output)
        untimed = {name: counts[name] - timed[name] for name in counts}
        self.assertEqual({name: count for name, count in untimed.items() if count}, cut)


class Kinds(RingTestCase):
    """Each way to link a program, with AON and without it."""

    def check(self, name, regions, *arguments):
        program = BUILD / "bin" / f"annotate_{name}"
        plain = run([program, *arguments], env=environment())
        self.assert_exit(plain)
        self.assertEqual(plain.stdout, "0\n")
        ring = self.ring(program, *arguments)
        self.assertEqual(nesting(ring), regions)

    def test_position_independent(self):
        self.check("pie", "program( other file( )other file )program")

    def test_not_position_independent(self):
        self.check("no_pie", "program( other file( )other file )program")

    def test_sections_collected_and_optimised(self):
        self.check("lto", "program( other file( )other file )program")

    def test_as_cpp(self):
        self.check("cpp", "program( other file( )other file )program")

    def test_with_a_library(self):
        # Its first word to AON is about a region that the library asked for.
        regions = ("of the library( )of the library "
                   "program( other file( )other file library( )library )program")
        self.check("with_library", regions)

    def test_library_that_is_loaded_later(self):
        regions = "program( other file( )other file library( )library )program"
        self.check("loads_library", regions, BUILD / "lib" / "libannotate_library.so")

    def test_static(self):
        for name in ("static", "static_pie"):
            program = BUILD / "bin" / f"annotate_{name}"
            if not program.exists():
                self.skipTest("no static C library here")
            done, rings = self.rings(program)
            self.assert_exit(done)
            self.assertEqual((done.stdout, rings), ("0\n", []))


if __name__ == "__main__":
    unittest.main(verbosity=2)
