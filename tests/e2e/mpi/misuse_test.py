#!/usr/bin/python3
"""Programs that break MPI's rules, that spawn others, that run with another tool or with the
launcher of another library: exit code, output and the library's own words are those of a run
without AON, and the ledger balances.

    misuse_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import h5py  # noqa: E402

import readers  # noqa: E402
from aon_test import (  # noqa: E402
    BUILD, IS_SANITIZED, MPI, TestCase, environment, ledger, mpirun, profile, run, wait_until,
)  # fmt: skip

PROGRAMS = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(".")
MISUSE = PROGRAMS / "misuse"


def finished(output):
    """The ledger; a launcher that kills what is left of a job leaves the files to the agent."""
    path = output / "aon.json"
    wait_until(path.exists, what=str(path))
    return ledger(output)


def functions_named(text):
    """The MPI functions that a library's messages name, MPICH's its own way; AON's own lines do not
    count."""
    lines = [line for line in text.splitlines() if not line.startswith(("aon:", "aon-run:"))]
    found = re.findall(r"\b(?:MPI|internal)_([A-Z][a-z]\w+)", "\n".join(lines))
    return {f"MPI_{name}" for name in found}


def of_the_program(stdout):
    """Its lines, without the banner that hydra prints when it was in time to see how it ended."""
    marks = ("=", "YOUR APPLICATION TERMINATED", "This typically refers", "Please see the FAQ")
    return sorted(line for line in stdout.splitlines() if line and not line.startswith(marks))


class Rules(TestCase):
    """Each case runs once without and once with AON; with one rank where the launcher would kill
    another one, whose word it then is a matter of time."""

    def compare(self, case, *functions, rank_count=1):
        """Returns the job's ledger. Whether a launcher prints the last words of a process that it
        ends, and gives its exit code or the one of MPI_Abort, is a matter of time with and without
        AON; which `functions` they can name, and that it is no success, is not."""
        plain = mpirun(rank_count, MISUSE, case)
        output = self.folder / case
        profiled = profile(rank_count, output, MISUSE, case)
        self.assertEqual(of_the_program(profiled.stdout), of_the_program(plain.stdout))
        for process in (plain, profiled):
            self.assertEqual(process.returncode != 0, bool(functions), process.stderr)
            said = functions_named(process.stderr + process.stdout)
            self.assertLessEqual(said, set(functions), process.stderr)
        self.assert_is_named(profiled, output, case, functions)
        document = finished(output)
        self.assert_law(document)
        return document

    def assert_is_named(self, process, output, case, functions):
        """Of several runs in which the library has something to say, one is printed."""
        for again in range(10):
            if not functions or functions_named(process.stderr + process.stdout):
                return
            process = profile(1, f"{output}.again{again}", MISUSE, case)
        self.fail(f"{case}: nobody names {functions}")

    def test_calls_before_init(self):
        self.compare("before_init", "MPI_Send")
        self.compare("rank_before_init", "MPI_Comm_rank")

    def test_calls_after_finalize(self):
        self.compare("after_finalize", "MPI_Barrier")
        self.compare("rank_after_finalize", "MPI_Comm_rank")

    def test_init_twice(self):
        self.compare("init_twice", "MPI_Init")

    def test_invalid_arguments(self):
        functions = {"peer": "MPI_Send", "type": "MPI_Allreduce", "request": "MPI_Start",
                     "window": "MPI_Put"}
        for name, function in functions.items():
            document = self.compare(f"wrong_{name}", function, "MPI_Op", "MPI_Request", "MPI_Win")
            self.assertFalse(document["job"]["complete"])

    def test_an_error_that_the_program_takes(self):
        self.assertTrue(self.compare("wrong_group")["job"]["complete"])

    def test_a_call_that_an_error_handler_leaves(self):
        """It is counted, as one without a length, and hides none of those that follow."""
        output = self.folder / "left"
        self.assertTrue(self.compare("left")["job"]["complete"])
        with h5py.File(output / "profile.h5") as file:
            names = file["regions/name"].asstr()[()]
            table = {names[region]: (count, longest) for region, count, longest in zip(
                file["profile/region"], file["profile/count"], file["profile/max_ns"])}
        self.assertEqual(table["MPI_Send"], (1, 0))
        self.assertEqual(table["MPI_Allreduce"][0], 100)

    @unittest.skipUnless(MPI == "openmpi", "MPICH dies of the first, and waits in the second")
    def test_what_was_not_told_is_not_claimed(self):
        """Of these nobody knows whether a message came, or was sent."""
        for case in ("truncate", "cancel_and_free"):
            assembly = self.compare(case)["assembly"]
            self.assertFalse(assembly["communication_complete"], case)
            self.assertEqual(assembly["unmatched"], 1, case)
            readers.otf2_print(self, self.folder / case)

    def test_receives_that_failed_when_they_were_waited_for_are_not_claimed(self):
        output = self.folder / "job"
        self.assert_exit(profile(2, output, PROGRAMS / "life", "failing_requests"))
        assembly = ledger(output)["assembly"]
        self.assertFalse(assembly["communication_complete"])
        self.assertEqual(assembly["unmatched"], 2 * 7)
        readers.otf2_print(self, output)
        readers.otf2_structure(self, output)

    def test_what_a_pause_hides_is_not_claimed(self):
        output = self.folder / "pauses"
        self.assert_exit(profile(2, output, PROGRAMS / "life", "pauses"))
        assembly = ledger(output)["assembly"]
        self.assertGreater(assembly["pauses"], 0)
        self.assertFalse(assembly["communication_complete"])

    def test_what_was_refused_did_not_start(self):
        assembly = self.compare("start_all_but_one")["assembly"]
        self.assertTrue(assembly["communication_complete"])
        self.assertEqual(assembly["unmatched"], 0)
        readers.otf2_structure(self, self.folder / "start_all_but_one")

    def test_freed_handles(self):
        """Nobody but the program asks for them, so its error handler hears as often as without us.
        Open MPI ends in a freed communicator, and still has what a freed type was."""
        self.compare("freed_comm", "MPI_Barrier")
        self.compare("hear_freed_comm", *["MPI_Barrier"] * (MPI == "openmpi"))
        self.compare("freed_type", *["MPI_Send"] * (MPI == "mpich"))
        self.compare("hear_freed_type")

    def test_abort_on_one_rank(self):
        for command in ([], ["aon-run", "-o", self.folder / "job", "--"]):
            self.assert_exit(mpirun(2, *command, MISUSE, "abort"), 7)
        document = finished(self.folder / "job")
        self.assert_law(document)
        self.assertEqual(document["job"]["incomplete_ranks"], [0, 1])

    def test_end_without_finalize(self):
        for command in ([], ["aon-run", "-o", self.folder / "job", "--"]):
            process = mpirun(1, *command, MISUSE, "no_finalize")
            self.assertEqual(process.returncode, {"openmpi": 1, "mpich": 0}[MPI], process.stderr)
        document = finished(self.folder / "job")
        self.assert_law(document)
        self.assertEqual(document["job"]["incomplete_ranks"], [0])

    def test_leaked_requests_and_communicators(self):
        output = self.folder / "job"
        self.assert_exit(profile(2, output, MISUSE, "leak"))
        document = ledger(output)
        self.assert_law(document)
        self.assertTrue(document["job"]["complete"])
        for rank in document["ranks"]:
            self.assertEqual(rank["lost"], 0)
            self.assertGreaterEqual(rank["emitted"], 3000 + 50)
            self.assertEqual(rank["providers"]["mpi"]["state"], "on")


class Spawn(TestCase):
    """Processes that the program starts itself."""

    def setUp(self):
        super().setUp()
        if mpirun(2, MISUSE, "spawn").returncode != 0:
            self.skipTest("this MPI library cannot spawn processes here, without AON either")

    def test_children_that_are_not_under_aon(self):
        output = self.folder / "job"
        self.assert_exit(profile(2, output, MISUSE, "spawn"))
        document = ledger(output)
        self.assert_law(document)
        self.assertEqual([rank["rank"] for rank in document["ranks"]], [0, 1])
        (finding,) = [f for f in document["findings"] if "spawned" in f]
        self.assertIn("aon-run", finding)
        self.assert_other_worlds(output)

    def assert_other_worlds(self, output):
        """What goes to another world is left out, counted, and the archive is a valid one."""
        assembly = ledger(output)["assembly"]
        self.assertFalse(assembly["communication_complete"])
        self.assertGreaterEqual(assembly["unmatched"], 2 + 1, "Allreduce on each, one message")
        readers.otf2_print(self, output)
        readers.otf2_structure(self, output)
        with h5py.File(output / "profile.h5") as file:
            kinds = file["communicators/kind"].asstr()[()]
            sizes = file["communicators/size"][()]
            first_members = file["communicators/first_member"][()]
            members = file["communicators/members/world_rank"][()]
        rows = [i for i, kind in enumerate(kinds) if kind.endswith(" of several worlds")]
        expected = [f"{kind} of several worlds" for kind in ("inter", "intra")]
        self.assertEqual(sorted(kinds[rows]), expected)
        for row in rows:
            first = int(first_members[row])
            self.assertEqual(sizes[row], 2)
            self.assertEqual(sorted(members[first : first + 2]), [0, 1])

    def test_children_under_aon_are_a_launch_of_their_own(self):
        output = self.folder / "job"
        self.assert_exit(profile(2, output, MISUSE, "spawn", "under-aon", output))
        self.assert_law(ledger(output))
        self.assert_other_worlds(output)
        children = finished(self.folder / "job.1")
        self.assert_law(children)
        self.assertEqual([rank["rank"] for rank in children["ranks"]], [0, 1])
        self.assertTrue(children["job"]["complete"])
        self.assert_other_worlds(self.folder / "job.1")


@unittest.skipIf(IS_SANITIZED, "the sanitizer of aon-run wants to be the first library")
class OtherTools(TestCase):
    """A PMPI tool of the user's in LD_PRELOAD sees every call, before us and behind us."""

    def counts(self):
        lines = (self.folder / "rank-0.txt").read_text().splitlines()
        told = {name: int(calls) for name, calls, *_ in map(str.split, lines)}
        return {name: calls for name, calls in told.items() if calls}

    def test_it_stands_where_the_user_put_it(self):
        tool = PROGRAMS / "libpmpi_count.so"
        ours = BUILD / "lib" / "libaon-mpi.so"
        env = environment(PMPI_COUNT=self.folder, LD_PRELOAD=tool)
        self.assert_exit(mpirun(2, MISUSE, "plain", env=env))
        expected = self.counts()
        self.assertEqual(expected["MPI_Barrier"], 1)
        self.assertEqual(expected["region:7:11"], 1)
        preloads = {"given": tool, "named": tool.name, "before": f"{tool}:{ours}",
                    "behind": f"{ours}:{tool}"}
        for name, preload in preloads.items():
            output = self.folder / name
            env = environment(PMPI_COUNT=self.folder, LD_PRELOAD=preload, LD_LIBRARY_PATH=PROGRAMS)
            self.assert_exit(profile(2, output, MISUSE, "plain", env=env))
            self.assertEqual(self.counts(), expected, name)
            document = ledger(output)
            self.assert_law(document)
            self.assertEqual(document["ranks"][0]["providers"]["mpi"]["state"], "on")
            self.assertGreater(document["ranks"][0]["emitted"], 0)


@unittest.skipUnless(MPI == "mpich", "one direction is enough")
class MixedLibraries(TestCase):
    """A program of one library under the launcher of the other: each process is a world of its own,
    which is a common mistake in a PATH with both. It must be seen, not silent."""

    def test_every_process_says_that_it_is_rank_0_of_1(self):
        command = ["mpirun", "-n", 2]
        plain = run([*command, MISUSE, "plain"])
        output = self.folder / "job"
        profiled = run([*command, "aon-run", "-o", output, "--", MISUSE, "plain"])
        self.assertEqual(profiled.returncode, plain.returncode, profiled.stderr)
        self.assertEqual(profiled.stdout, plain.stdout)
        document = ledger(output)
        self.assert_law(document)
        self.assertTrue(any("another MPI library" in f for f in document["findings"]), document)


if __name__ == "__main__":
    unittest.main()
