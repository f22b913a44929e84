#!/usr/bin/python3
"""Launches by MPICH's mpiexec.hydra, which gives a process its rank (PMI_RANK, PMI_SIZE) and a
socket (PMI_FD), and nothing that names the launch: each launch leaves one directory of its own, and
the program ends as it does without us.

    hydra_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import os
import pathlib
import re
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "sampling"))

import readers  # noqa: E402
from aon_test import MPI_LAUNCHER, TestCase, environment, ledger, run  # noqa: E402
from sampling import UNBOUNDED, Samples  # noqa: E402

PROGRAMS = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(".")


class Hydra(TestCase):
    """Directories by their default names, in a folder of the test's own."""

    def launch(self, *words, **more):
        return run([MPI_LAUNCHER, *words], cwd=self.folder, **more)

    def outputs(self, count):
        """The job directories, in the order of their launches."""
        found = sorted(self.folder.glob("aon-*"), key=lambda p: p.stat().st_ctime_ns)
        self.assertEqual(len(found), count, found)
        return found

    def finished(self, output):
        """The ledger, once the agent is done: it may outlive a launch that failed."""
        deadline = time.monotonic() + 30
        while not (output / "aon.json").exists() or not ledger(output)["job"]["end"]:
            self.assertLess(time.monotonic(), deadline, "no ledger")
            time.sleep(0.05)
        return ledger(output)

    def assert_ranks(self, output, count):
        document = self.finished(output)
        self.assertTrue(document["job"]["complete"])
        self.assertEqual([r["rank"] for r in document["ranks"]], list(range(count)))
        self.assertEqual({r["world"] for r in document["ranks"]}, {count})
        self.assert_law(document)
        return document

    def test_one_launch_is_one_directory(self):
        for count in (1, 4):
            self.assert_exit(self.launch("-n", count, "aon-run", PROGRAMS / "requests", 20))
        one, four = sorted(self.outputs(2), key=lambda o: len(self.finished(o)["ranks"]))
        self.assert_ranks(one, 1)
        self.assert_ranks(four, 4)
        readers.otf2_print(self, four)
        readers.otf2_structure(self, four)

    def test_more_ranks_than_cpus_are_sampled_once_their_sessions_have_begun(self):
        count = len(os.sched_getaffinity(0)) + 1
        slow = [f"LD_PRELOAD={PROGRAMS / 'libslow_session.so'}",
                "ASAN_OPTIONS=verify_asan_link_order=0"]  # of a sanitized aon-run
        self.assert_exit(self.launch("-n", count, "env", *slow, "aon-run", *UNBOUNDED,
                                     "--sampling", 997, PROGRAMS / "session_start", timeout_s=60))
        (output,) = self.outputs(1)
        sampling = self.assert_ranks(output, count)["nodes"][0]["providers"]["sampling"]
        if sampling["state"] == "off":
            self.skipTest(sampling["reason"])
        functions = Samples(output).by_function()
        self.assertGreater(functions["compute"], 100)
        self.assertEqual(functions["start_up"], 0)

    def test_a_port_that_comes_again_is_another_launch(self):
        """As behind firewalls: one port for all launches, one after the other."""
        port = 20000 + os.getpid() % 10000  # below those that the system hands out
        env = environment(MPIEXEC_PORT_RANGE=f"{port}:{port}")
        for _ in range(2):
            words = ["-n", 2, "aon-run", "--no-assemble", PROGRAMS / "requests", 20]
            self.assert_exit(self.launch(*words, env=env))
        first, second = self.outputs(2)
        self.assertEqual(second.name, first.name + ".1")
        for output in (first, second):
            self.assert_exit(run(["aon", "finalize", output]))
            self.assert_ranks(output, 2)

    def test_a_program_has_no_children_but_its_own(self):
        """One that waits for all its children would wait for the agent, and the agent for it."""
        wait_for_all = (
            "import os, sys\n"
            "for _ in range(3):\n"
            "    if os.fork() == 0: os._exit(0)\n"
            "count = 0\n"
            "while True:\n"
            "    try: os.wait()\n"
            "    except ChildProcessError: break\n"
            "    count += 1\n"
            "sys.exit(40 + count)\n"
        )
        for words in (["aon-run", "-o", "waits"], ["aon-run", "-o", "no_wait", "--wait", 0]):
            process = self.launch("-n", 1, *words, sys.executable, "-c", wait_for_all)
            self.assertEqual(process.returncode, 43, process.stderr)

    def test_several_programs_are_one_launch(self):
        first = ["-n", 2, "aon-run", PROGRAMS / "requests", 20]
        second = ["-n", 1, "env", "AS=another", "aon-run", PROGRAMS / "requests", 20]
        self.assert_exit(self.launch(*first, ":", *second))
        (output,) = self.outputs(1)
        self.assert_ranks(output, 3)

    def test_archives_of_what_mpi_4_adds(self):
        for case in ("large", "partitioned", "persistent", "communicators", "sessions"):
            output, document, _ = self.archive(case)
            self.assertTrue(document["assembly"]["communication_complete"], case)
            readers.otf2_structure(self, output)

    def test_an_archive_says_that_messages_are_missing(self):
        """MPICH 4.0 does not say what an MPI_Isendrecv received."""
        output, document, process = self.archive("isendrecv")
        told_count = sum(int(n) for n in re.findall(r"(\d+) told", process.stdout))
        self.assertEqual(document["assembly"]["unmatched"], 8 - told_count)
        self.assertEqual(document["assembly"]["communication_complete"], told_count == 8)
        readers.otf2_structure(self, output)

    def archive(self, case):
        """(directory, ledger, process) of the program mpi4 with a case of its own."""
        output = self.folder / case
        process = self.launch("-n", 2, "aon-run", "-o", case, PROGRAMS / "mpi4", case)
        self.assert_exit(process)
        readers.otf2_print(self, output)
        return output, self.assert_ranks(output, 2), process

    def test_exit_codes_are_the_programs(self):
        """One rank where none calls MPI_Abort: hydra kills the others of a rank that has failed,
        and whose code it then gives is a matter of time."""
        for case, count in (("abort", 2), ("no_finalize", 1)):
            plain = self.launch("-n", count, PROGRAMS / "life", case)
            ours = self.launch("-n", count, "aon-run", "-o", case, "--", PROGRAMS / "life", case)
            # On a busy machine hydra may lose the code of a rank that did not finalize, with and
            # without AON: then it gives 1.
            codes = {"abort": (7,), "no_finalize": (3, 1)}[case]
            for process in (plain, ours):
                self.assertIn(process.returncode, codes, process.stderr)
            document = self.finished(self.folder / case)
            self.assertEqual({r["rank"] for r in document["ranks"]}, set(range(count)))
            self.assert_law(document)

    def test_a_rank_of_several_that_fails_ends_the_launch_as_without_us(self):
        """Hydra's code is a matter of time with some programs: ours is one that it gives anyhow."""
        for case in ("dies", "leaves"):
            ours = self.launch("-n", 2, "aon-run", "-o", case, "--", PROGRAMS / "life", case)
            codes = set()
            for _ in range(20):
                codes.add(self.launch("-n", 2, PROGRAMS / "life", case).returncode)
                if ours.returncode in codes:
                    break
            self.assertIn(ours.returncode, codes, ours.stderr)
            document = self.finished(self.folder / case)
            self.assertEqual({r["rank"] for r in document["ranks"]}, {0, 1})
            self.assert_law(document)

    def test_the_launch_ends_when_the_files_are_there(self):
        """Also with a code of the program's own, and of a program that is none of MPI's."""
        for name, code, words in (("mpi", 0, [PROGRAMS / "requests", 20]),
                                  ("code", 5, [PROGRAMS / "life", "code"]),
                                  ("other", 0, ["sleep", 0.1])):
            process = self.launch("-n", 2, "aon-run", "-o", name, *words)
            self.assertEqual(process.returncode, code, process.stderr)
            self.assertTrue((self.folder / name / "aon.json").exists(), name)
            self.assertIn(f"aon: {self.folder / name}: ", process.stderr)

    def test_nothing_is_written_into_a_standard_error_of_the_programs_own(self):
        """The summary is for what aon-run was started with, not for data under its number."""
        self.assert_exit(self.launch("-n", 3, "aon-run", "-o", "log", PROGRAMS / "life", "own_log"))
        script = 'exec "$0" 20 > out.$PMI_RANK 2> error.$PMI_RANK'
        self.assert_exit(self.launch("-n", 3, "aon-run", "-o", "shell", "sh", "-c", script,
                                     PROGRAMS / "requests"))
        self.assert_ranks(self.folder / "log", 3)
        self.assert_ranks(self.folder / "shell", 3)
        for rank in range(3):
            self.assertEqual((self.folder / f"log.{rank}").read_text(), f"log of rank {rank}\n")
            self.assertEqual((self.folder / f"error.{rank}").read_text(), "")

    def test_the_wait_begins_when_the_program_ends(self):
        process = self.launch("-n", 2, "aon-run", "-o", "long", "--wait", 8, "sleep", 10)
        self.assert_exit(process)
        self.assertTrue((self.folder / "long" / "aon.json").exists())
        self.assertIn(f"aon: {self.folder / 'long'}: ", process.stderr)


if __name__ == "__main__":
    unittest.main()
