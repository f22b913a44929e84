#!/usr/bin/python3
"""Programs that run without libdl and libpthread, as those of MPICH or without threads do before
glibc 2.34: what is preloaded finds none of their functions. Here it looks for them by names that
nobody has.

    without_libdl_test.py WithoutLibdl|WithMpi [unittest arguments]
"""
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "annotate"))

import annotated  # noqa: E402
import aon_test  # noqa: E402
from aon_test import BUILD, ledger  # noqa: E402

ELSEWHERE = re.compile(r"(dl|pthread_)\w+$")  # those that are weak: abi.libc


def take_away(library):
    """Makes the file look for other names; returns those that it had."""
    symbols = subprocess.run(["readelf", "--dyn-syms", "-W", library], check=True,
                             capture_output=True, text=True).stdout  # fmt: skip
    weak = re.findall(r" WEAK +DEFAULT +UND (\w+)", symbols)
    names = [name for name in weak if ELSEWHERE.match(name)]
    content = library.read_bytes()
    for name in names:
        content = content.replace(b"\0%b\0" % name.encode(), b"\0x%b\0" % name[1:].encode())
    library.write_bytes(content)
    return names


class OwnInstallation(annotated.RingTestCase):
    """An installation whose libraries find nothing of libdl and libpthread."""

    TAKEN = {"libaon.so": {"dladdr", "pthread_getcpuclockid", "pthread_key_create",
                           "pthread_setspecific"},
             "libaon-mpi.so": {"dladdr1", "dlopen", "dlsym"}}  # fmt: skip

    def setUp(self):
        super().setUp()
        self.prefix = aon_test.copy_installation(self.folder / "prefix")
        for name, taken in self.TAKEN.items():
            self.assertEqual(set(take_away(self.prefix / "lib" / name)), taken)


class WithoutLibdl(OwnInstallation):
    """Annotated programs."""

    def test_a_program_is_recorded(self):
        preload = self.prefix / "lib" / "libaon.so"
        program = BUILD / "bin" / "annotate_cases"
        ring = self.ring(program, "balanced", LD_PRELOAD=preload)
        step = "step( outer( inner( )inner )outer )step"
        self.assertEqual(annotated.nesting(ring), " ".join([step] * 3))
        _, rings = self.rings(program, "fork", LD_PRELOAD=preload)
        self.assertEqual(len(rings), 2)

    def test_the_first_thread_of_a_program_that_has_others_later(self):
        ring = self.ring(BUILD / "bin" / "annotate_cases", "threads",
                         LD_PRELOAD=self.prefix / "lib" / "libaon.so")
        self.assertEqual({record.slot for record in ring.of_kind("begin")}, {1})
        (told,) = [p for p in ring.providers if p[1] == "threads"]
        self.assertIn("threads beside the first are not recorded", told[2])


class WithMpi(OwnInstallation):
    """Programs of the MPI library of AON_TEST_MPI."""

    def profile(self, *words):
        """(process, ledger) of two ranks."""
        output = self.folder / "job"
        aon_run = self.prefix / "bin" / "aon-run"
        done = aon_test.mpirun(2, aon_run, "-o", output, "--", *words)
        self.assert_exit(done)
        document = ledger(output)
        self.assert_law(document)
        self.assertEqual([rank["rank"] for rank in document["ranks"]], [0, 1])
        return done, document

    def test_calls_are_recorded(self):
        program = {"openmpi": "heat2d", "mpich": "heat2d_mpich"}[aon_test.MPI]
        words = [BUILD / "bin" / program, "--size", 64, "--steps", 50]
        plain = aon_test.mpirun(2, *words)
        done, document = self.profile(*words)
        self.assertEqual(done.stdout, plain.stdout)
        for rank in document["ranks"]:
            self.assertEqual(rank["providers"]["mpi"]["state"], "on", rank["providers"]["mpi"])
            self.assertGreater(rank["emitted"], 200)

    def test_who_calls_is_told_apart(self):
        """By the file of the caller: the library itself, or a callback of the program."""
        _, document = self.profile(BUILD / "tests" / "e2e" / "mpi" / aon_test.MPI / "callbacks")
        mpi = document["ranks"][0]["providers"]["mpi"]
        self.assertEqual(mpi["state"], "degraded")
        self.assertIn("2 sends, receives and collectives were called inside other MPI calls",
                      mpi["reason"])


if __name__ == "__main__":
    unittest.main()
