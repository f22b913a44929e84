"""NVTX's payload extension without a GPU, record by record.

    nvtx_payload_test.py loader|header [unittest arguments]     the tests' own, or NVIDIA's header
"""
import sys
import unittest

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
from nvtx_test import LIBAON_NVTX, NO_RANGE, bits

# Other extensions (ExtensionModule of plugins/nvtx/extension.h), and ours of some version.
OFFER = """
import ctypes, sys
class Module(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint16) for name in ("nvtx", "size", "id", "version")]
    _fields_ += [(name, ctypes.c_size_t) for name in ("count", "segments", "get", "types")]
library = ctypes.CDLL(sys.argv[1])
for id, version in ((4, 0x0102), (1, 0x0102), (2, int(sys.argv[2], 16))):
    module = Module(3, ctypes.sizeof(Module), id, version, 0, 0, 0, 0)
    assert library.InitializeInjectionNvtxExtension(ctypes.byref(module)) == 1
"""


class NvtxPayload(RingTestCase):
    program = None

    def said(self, case):
        done, (ring,) = self.rings(self.program, case, NVTX_INJECTION64_PATH=LIBAON_NVTX)
        self.assert_exit(done)
        return done.stdout, ring

    def test_a_pop_with_a_payload_ends_its_range(self):
        text, ring = self.said("nested")
        self.assertEqual(text, "static 1\nlevels 0 1 1 1 1 0 0 1 1 1 1 0 1\n")
        init, reduce, group = "NCCL:ncclCommInitRank", "NCCL:ncclAllReduce", "NCCL:ncclGroupEnd"
        once = f"{init}( {reduce}( ){reduce} {group}( ){group} ){init}"
        self.assertEqual(nesting(ring), f"{once} {once} ){NO_RANGE}")
        self.assertEqual({r.a32 for r in ring.of_kind("begin")}, {NO_VALUE})

    def test_messages_come_from_payloads(self):
        text, ring = self.said("messages")
        self.assertEqual(text, "levels" + " 0 0" * 4 + "\n")
        names = ["NCCL/kernels:handle", "NCCL:text", "NCCL:embedded", "NCCL:schema's name"]
        self.assertEqual(nesting(ring), " ".join(f"{name}( ){name}" for name in names))
        self.assertEqual([r.name for r in ring.of_kind("mark")], ["NCCL:text"])

    def test_a_payload_of_one_number_is_a_value(self):
        marks = [(r.name, r.a32, r.a64) for r in self.said("values")[1].of_kind("mark")]
        self.assertEqual(
            marks,
            [("NCCL:", REAL, bits(0.25)), ("NCCL:", UNSIGNED, 1 << 63),
             ("NCCL:", REAL, bits(0.5)), ("NCCL:mixed", SIGNED, 2**64 - 7),
             ("NCCL:kind", UNSIGNED, 5), ("NCCL:call", NO_VALUE, 0)],
        )  # fmt: skip

    def test_started_ranges_end_with_a_payload(self):
        first, second, first_end, second_end = self.said("started")[1].of_kind("mark")
        told = [(m.slot, m.name, m.a32) for m in (first, second, first_end, second_end)]
        self.assertEqual(
            told,
            [(1, "NCCL:first", RANGE_START), (1, "NCCL:", RANGE_START),
             (1, "NCCL:first", RANGE_END), (2, "NCCL:", RANGE_END)],
        )  # fmt: skip
        self.assertEqual(second.words[:2], (SIGNED, 2**64 - 4))
        self.assertEqual((first_end.a64, second_end.a64), (first.a64, second.a64))

    def test_odd_payloads_do_no_harm(self):
        text, ring = self.said("odd")
        self.assertEqual(text, "1 1 1\nlevels" + " 0 0" * 7 + "\n")
        names = ["", "of text", "of text", "of text", "", "", "none of three"]
        wanted = " ".join(f"NCCL:{name}( )NCCL:{name}" for name in names)
        self.assertEqual(nesting(ring), wanted)

    def test_schemas_that_are_not_read_are_told(self):
        for case in ("odd", "many"):
            state, name, reason, remedy = self.said(case)[1].providers[-1]
            self.assertEqual((state, name), (2, "nvtx"), case)
            self.assertIn("schemas of payloads beyond 1024", reason)
            self.assertIn("register each schema once", remedy)

    def test_schemas_that_are_read_are_not_told(self):
        for case in ("nested", "messages", "values"):
            self.assertEqual(self.said(case)[1].providers, [(1, "nvtx", "", "")], case)

    def test_other_extensions_do_nothing(self):
        text, ring = self.said("others")
        self.assertIn(text, ("", "0 1\n"))
        self.assertEqual(nesting(ring), "after( )after")
        self.assertEqual(ring.providers, [(1, "nvtx", "", "")])

    def test_an_extension_of_another_version_is_told(self):
        for version in ("0x0200", "0x0102"):
            ring = self.ring(PYTHON, "-c", OFFER, LIBAON_NVTX, version)
            told = ring.providers[-1]
            self.assertEqual(told[:2], (2, "nvtx"))
            self.assertIn("payload extension is not known", told[2])
            self.assertEqual(told[3], "build it with NVTX 3.2")

    def test_known_and_other_extensions_are_not_told(self):
        done, rings = self.rings(PYTHON, "-c", OFFER, LIBAON_NVTX, "0x0103")
        self.assert_exit(done)
        self.assertEqual([r.providers for r in rings if r.providers], [])

    def test_without_aon_the_program_is_as_ever(self):
        for case in ("nested", "messages", "values", "started", "odd", "others"):
            self.assert_exit(run([self.program, case], env=environment()))

    def test_no_range_stays_open_in_the_archive(self):
        output = self.folder / "job"
        self.assert_exit(run(["aon-run", "-o", output, self.program, "nested"]))
        document = ledger(output)
        self.assertTrue(document["job"]["complete"], document["job"])
        self.assertEqual(document["assembly"]["unbalanced_regions"], 1, "of the pop without a push")
        self.assertEqual(document["assembly"]["open_regions"], 0)
        self.assert_law(document)
        readers.otf2_print(self, output)
        self.assertEqual(
            readers.region_counts(output),
            {"NCCL:ncclCommInitRank": 2, "NCCL:ncclAllReduce": 2, "NCCL:ncclGroupEnd": 2},
        )


if __name__ == "__main__":
    NvtxPayload.program = BUILD / "bin" / f"annotate_nvtx_payload_{sys.argv.pop(1)}"
    if not NvtxPayload.program.exists():
        print("the payload extension of the NVTX header is not here")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
