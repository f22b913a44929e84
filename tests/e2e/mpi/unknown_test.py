#!/usr/bin/python3
"""MPI libraries that the project does not know: their calls reach them as they were made, and the
ledger says why none is recorded.

    unknown_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from aon_test import BUILD, TestCase, environment, ledger, run  # noqa: E402

PROGRAMS = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(".")


class Unknown(TestCase):
    """One program, linked to the same functions under two names."""

    def provider_of(self, program):
        """The ledger's word on MPI after a run in which every call must reach the library."""
        output = self.folder / "job"
        env = environment(PMI_RANK=0, PMI_SIZE=1)
        process = run(["aon-run", "-o", output, PROGRAMS / program], env=env)
        self.assert_exit(process)
        document = ledger(output)
        self.assert_law(document)
        (rank,) = document["ranks"]
        self.assertEqual(rank["exit"], {"code": 0, "signal": 0})
        self.assertEqual(rank["emitted"], 0)
        return rank["providers"]["mpi"]

    def assert_not_standard(self, program, soname):
        provider = self.provider_of(program)
        self.assertEqual(provider["state"], "off")
        self.assertIn(f"{soname}, does not have version 1 of MPI's ABI", provider["reason"])
        self.assertIn("MPICH 3.1 or later (tested: 4)", provider["remedy"])

    def test_one_that_only_has_the_name_of_the_standard_abi(self):
        self.assert_not_standard("unknown_abi", "libmpi_abi.so.0")

    def test_one_of_that_name_that_ends_like_mpich(self):
        """As in MPICH 4.3."""
        self.assert_not_standard("unknown_abi_12", "libmpi_abi.so.12")

    def test_any_other(self):
        provider = self.provider_of("unknown_other")
        self.assertEqual(provider["state"], "off")
        self.assertIn("libmpi_other.so.0, is not known", provider["reason"])

    def test_none_at_all(self):
        """What asks a library that is not there whether it runs hears that it does not."""
        self.assert_exit(run([PROGRAMS / "no_library"]))
        preloaded = environment(LD_PRELOAD=BUILD / "lib" / "libaon-mpi.so")
        self.assert_exit(run([PROGRAMS / "no_library"], env=preloaded))

    def assert_unseen(self, program, reason):
        """A program that no library can look into: the summary and the ledger say so."""
        output = self.folder / "job"
        process = run(["aon-run", "-o", output, PROGRAMS / program])
        self.assert_exit(process)
        (node,) = ledger(output)["nodes"]
        provider = node["providers"]["mpi"]
        self.assertEqual(provider["state"], "off")
        self.assertEqual(provider["reason"], f"{PROGRAMS / program} {reason}")
        self.assertIn("shared MPI library", provider["remedy"])
        self.assertIn(f"nothing was recorded: mpi is off: {provider['reason']}", process.stderr)

    def test_a_program_with_mpi_inside(self):
        self.assert_unseen(
            "unknown_inside", "is linked with a static MPI library: its calls stay inside it"
        )

    def test_a_static_program(self):
        self.assert_unseen(
            "unknown_static", "is linked statically: no library can be loaded into it"
        )

    def test_a_static_program_beside_another(self):
        output = self.folder / "job"
        one = ["-n", 1, "aon-run", "-o", output]
        both = [*one, PROGRAMS / "unknown_other", ":", *one, PROGRAMS / "unknown_static"]
        process = run(["mpirun", *both])
        self.assert_exit(process)
        provider = ledger(output)["nodes"][0]["providers"]["mpi"]
        self.assertEqual(provider["state"], "degraded")
        self.assertIn("not collected: mpi degraded on node", process.stderr)


if __name__ == "__main__":
    unittest.main()
