"""NVTX programs without a GPU, record by record.

    nvtx_test.py loader|header [unittest arguments]     the tests' own NVTX, or NVIDIA's header
"""
import struct
import sys
import time
import unittest

import h5py

from annotated import (
    NO_VALUE,
    RANGE_END,
    RANGE_START,
    REAL,
    SIGNED,
    UNSIGNED,
    RingTestCase,
    nesting,
    readers,
)
from aon_test import BUILD, PYTHON, SKIPPED, environment, ledger, run

LIBAON_NVTX = BUILD / "lib" / "libaon-nvtx.so"
NVTX = 5  # Paradigm::kNvtx
MAX_NAME = 1024
NO_RANGE = "(no open NVTX range)"


def bits(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


class Nvtx(RingTestCase):
    program = None

    def nvtx(self, case):
        return self.ring(self.program, case, NVTX_INJECTION64_PATH=LIBAON_NVTX)

    def said(self, case):
        done, rings = self.rings(self.program, case, NVTX_INJECTION64_PATH=LIBAON_NVTX)
        self.assert_exit(done)
        return done.stdout, rings

    def test_ranges_nest_and_tell_their_level(self):
        text, (ring,) = self.said("ranges")
        self.assertEqual(text, "levels 0 1 1 1 1 1 1 0 1\n")
        inner = "inner 0( )inner 0 inner 1( )inner 1 wide é中( )wide é中"
        self.assertEqual(nesting(ring), f"outer( {inner} )outer ){NO_RANGE}")
        self.assertEqual([r.name for r in ring.of_kind("mark")], ["mark", "wide mark"])
        self.assertEqual(ring.providers, [(1, "nvtx", "", "")])
        self.assertEqual(set(ring.paradigms.values()), {NVTX})

    def test_domains_and_categories_are_part_of_the_name(self):
        text, (ring,) = self.said("domains")
        self.assertEqual(text, "same 1\n")
        a, b, c = "NCCL:AllReduce", "NCCL/kernels:AllReduce", "torch/8:AllReduce"
        d, e = "torch:forward", "torch/9:forward"
        self.assertEqual(nesting(ring), f"{a}( {b}( {c}( ){c} ){b} ){a} {d}( {e}( ){e} ){d}")

    def test_payloads_are_values(self):
        ring = self.nvtx("payloads")
        self.assertEqual(
            [(r.a32, r.a64) for r in ring.of_kind("mark")],
            [(UNSIGNED, 1 << 63), (SIGNED, 2**64 - 2), (REAL, bits(0.5)), (UNSIGNED, 3),
             (SIGNED, 2**64 - 3)],
        )  # fmt: skip
        self.assertEqual([(r.a32, r.a64) for r in ring.of_kind("begin")], [(REAL, bits(0.25))])

    def test_ranges_overlap_and_end_on_other_threads(self):
        marks = self.nvtx("overlapping").of_kind("mark")
        told = [(m.slot, m.name, m.a32) for m in marks]
        self.assertEqual(
            told,
            [(1, "first", RANGE_START), (1, "second", RANGE_START), (1, "first", RANGE_END),
             (2, "second", RANGE_END)],
        )  # fmt: skip
        first, second, first_end, second_end = marks
        self.assertEqual(second.words[:2], (SIGNED, 4))
        self.assertEqual((first_end.a64, second_end.a64), (first.a64, second.a64))
        self.assertEqual((first_end.words[0], second_end.words[0]), (first.start, second.start))

    def test_threads_and_resources_have_names(self):
        ring = self.nvtx("names")
        self.assertEqual(list(ring.thread_names.values()), ["solver"])
        marks = [(r.name, r.a32, r.a64) for r in ring.of_kind("mark")]
        self.assertEqual(marks, [("app:resource mutex", UNSIGNED, 0x1234)])

    def test_each_library_with_an_nvtx_is_heard(self):
        self.assertEqual(nesting(self.nvtx("libraries")), "program( library( )library )program")

    def test_a_forked_child_starts_with_nothing_pushed(self):
        text, rings = self.said("fork")
        self.assertEqual(text, "level 0\n")
        self.assertEqual([nesting(r) for r in rings], ["parent( )parent"] * 2)

    def test_interleaved_domains_are_recorded_as_they_come(self):
        self.assertEqual(nesting(self.nvtx("interleaved")), "a:x( b:x( )a:x )b:x")

    def test_deep_nesting_finds_back(self):
        ring = self.nvtx("deep")
        parts = nesting(ring).split()
        self.assertEqual(parts.count("level("), 100)
        self.assertEqual(parts.count(")level"), 100)
        self.assertEqual(parts[-2:], ["after(", ")after"])

    def test_null_and_long_names_do_no_harm(self):
        ring = self.nvtx("odd")
        self.assertEqual(nesting(ring), f"( ) ){NO_RANGE}")
        nothing, cut, in_domain = [r.name for r in ring.of_kind("mark")]
        self.assertEqual((nothing, cut), ("", "x" * (MAX_NAME - 3) + "..."))
        self.assertIn("x:x", in_domain)
        self.assertEqual(len(in_domain), MAX_NAME)
        self.assertEqual(ring.of_kind("mark")[0].a32, NO_VALUE)

    def test_an_nvtx_without_the_tables_is_told(self):
        code = "import ctypes, sys\n"
        code += "assert ctypes.CDLL(sys.argv[1]).InitializeInjectionNvtx2(None) == 0"
        told = self.ring(PYTHON, "-c", code, LIBAON_NVTX).providers[-1]
        self.assertEqual(told[:2], (2, "nvtx"))
        self.assertIn("NVTX without the tables of version 3", told[2])
        self.assertEqual(told[3], "build it with NVTX 3")

    def test_without_aon_the_program_is_as_ever(self):
        for case in ("ranges", "domains", "overlapping", "odd"):
            self.assert_exit(run([self.program, case], env=environment()))

    def test_the_users_own_tool_is_left_alone(self):
        output = self.folder / "job"
        env = environment(NVTX_INJECTION64_PATH="/nowhere/tool.so")
        self.assert_exit(run(["aon-run", "-o", output, self.program, "ranges"], env=env))
        self.assertFalse((output / "traces.otf2").exists() and self.nvtx_ranks(output))

    def nvtx_ranks(self, output):
        states = [r["providers"].get("nvtx", {}).get("state") for r in ledger(output)["ranks"]]
        return states.count("on")

    def test_a_job_of_nvtx_alone_gives_a_complete_archive(self):
        output = self.folder / "job"
        self.assert_exit(run(["aon-run", "-o", output, self.program, "overlapping"]))
        document = ledger(output)
        self.assertTrue(document["job"]["complete"], document["job"])
        (rank,) = document["ranks"]
        self.assertIsNone(rank["rank"])
        self.assertEqual(rank["providers"]["nvtx"]["state"], "on")
        self.assertEqual(rank["providers"]["nvtx"]["emitted"], 5, "one ends nothing")
        self.assertEqual(document["assembly"]["unbalanced_regions"], 1)
        self.assert_law(document)
        readers.otf2_print(self, output)
        self.assertEqual(readers.region_counts(output), {"first": 1, "second": 1})

    def test_ends_of_what_is_not_open_are_counted_and_no_ranges(self):
        output = self.folder / "job"
        begin = time.monotonic()
        self.assert_exit(run(["aon-run", "-o", output, self.program, "stray"]))
        seconds = time.monotonic() - begin
        document = ledger(output)
        self.assertEqual(document["assembly"]["unbalanced_regions"], 5)
        self.assert_law(document)
        self.assertEqual(readers.region_counts(output), {"pushed": 1, "started": 1})
        with h5py.File(output / "profile.h5") as file:
            self.assertLess(max(file["profile/inclusive_ns"][:]), seconds * 1e9)

    def test_more_open_ranges_than_are_followed_are_ranges(self):
        output = self.folder / "job"
        self.assert_exit(run(["aon-run", "-o", output, "--budget", 100, self.program, "many"]))
        document = ledger(output)
        self.assertEqual(document["assembly"]["unbalanced_regions"], 1)
        self.assertEqual(readers.region_counts(output), {"one of many": 10000})

    def test_thread_names_are_in_the_archive(self):
        output = self.folder / "job"
        self.assert_exit(run(["aon-run", "-o", output, self.program, "names"]))
        text = run(["otf2-print", "-G", readers.archive(output)]).stdout
        self.assertIn('"Master thread (solver)"', text)


if __name__ == "__main__":
    Nvtx.program = BUILD / "bin" / f"annotate_nvtx_{sys.argv.pop(1)}"
    if not Nvtx.program.exists():
        print("the NVTX header is not here")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
