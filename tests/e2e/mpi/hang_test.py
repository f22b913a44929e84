#!/usr/bin/python3
"""Calls that do not return: `aon hang` names who did not arrive while the job runs, and the ledger
does when it was killed.

    hang_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from aon_test import BUILD, TestCase, environment, ledger, run, wait_until  # noqa: E402

PROGRAMS = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(".")


class Hang(TestCase):
    def start(self, what, hang_s=1, stdout=subprocess.DEVNULL):
        self.output = self.folder / "job"
        command = ["mpirun", "--oversubscribe", "-n", "3", BUILD / "bin" / "aon-run"]
        command += ["-o", self.output, "--hang", hang_s]
        job = subprocess.Popen(
            [str(word) for word in [*command, "--", PROGRAMS / "hang", what]],
            env=environment(), stdout=stdout, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        self.addCleanup(self.end, job)
        return job

    @staticmethod
    def end(job):
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
        job.wait()

    def lines(self):
        done = run([BUILD / "bin" / "aon", "hang", self.output])
        self.text = done.stdout
        lines = done.stdout.splitlines() if done.returncode == 0 else []
        return [line for line in lines if not line.startswith("    ")]  # those are stacks

    def ledger_of_killed(self, job):
        os.kill(job.pid, signal.SIGTERM)
        self.assertNotEqual(job.wait(90), 0)
        wait_until(lambda: (self.output / "aon.json").exists(), 60, "the ledger")
        document = ledger(self.output)
        self.assert_law(document)
        return document

    def hanging(self, call="MPI_Barrier"):
        """The lines, once both others are seen in the call."""
        return wait_until(
            lambda: (lines := self.lines()) and f"  in {call}: 0-1" in lines and lines, 60, "a hang"
        )

    def test_late_rank_is_named_while_the_job_runs(self):
        job = self.start(20000)
        lines = self.hanging()
        self.assertRegex(
            lines[0], r"^collective 2 of MPI_COMM_WORLD \(3 members\) does not end, for \d+ s$"
        )
        self.assertRegex(lines[2], r"^  rank 2 on \S+ \(pid \d+\) did not arrive: its last call ")
        self.assertEqual(len(lines), 3, lines)
        wait_until(lambda: self.lines() and self.text.count(" < main") >= 2, 30, "the stacks")
        # Through our wrapper, up to who called it.
        self.assertRegex(self.text, r"\n    (0-1 stand|[01] stands) in .*MPI_Barrier.* < main")
        self.assertRegex(self.text, r"\n    2 stands in .*nanosleep.* < main")
        self.assertEqual(job.wait(90), 0)
        # It came, so nothing hangs any more.
        self.assertEqual(self.lines(), ["no call was left open for longer than --hang says"])
        document = ledger(self.output)
        self.assert_law(document)
        self.assertEqual(document["hangs"], [])

    def test_ledger_of_a_killed_job_names_the_rank(self):
        job = self.start(-1)
        pid = int(self.hanging()[2].split("(pid ")[1].split(")")[0])
        document = self.ledger_of_killed(job)
        self.assertRegex(
            document["findings"][0],
            r"^MPI_Barrier of MPI_COMM_WORLD never ended: rank 0-1 waited, "
            rf"rank 2 on \S+ \(pid {pid}\) did not arrive$",
        )
        self.assertIn("  in MPI_Barrier: 0-1", document["hangs"])

    def test_rank_that_does_not_start_what_others_wait_for_is_named(self):
        job = self.start("request")
        lines = self.hanging("MPI_Wait of MPI_Ibarrier")
        self.assertRegex(lines[0], "^collective 2 of MPI_COMM_WORLD ")
        self.assertRegex(lines[2], r"^  rank 2 on \S+ \(pid \d+\) did not arrive: its last call ")
        document = self.ledger_of_killed(job)
        self.assertRegex(
            document["findings"][0],
            r"^MPI_Ibarrier of MPI_COMM_WORLD never ended: rank 0-1 waited, rank 2 on .* did not "
            "arrive$",
        )

    def first_finding_of(self, what, count):
        """Of a job that is killed when so many calls have been open for three seconds."""
        job = self.start(what)

        def are_open():
            seconds = [int(n) for line in self.lines() for n in re.findall(r" for (\d+) s", line)]
            return len(seconds) == count and min(seconds) >= 3

        wait_until(are_open, 60, f"{count} calls")
        document = self.ledger_of_killed(job)
        self.assertEqual(len([h for h in document["hangs"] if h.startswith("rank ")]), count)
        # Whoever mpirun ends may say so with an exit code.
        return [f for f in document["findings"] if " ended " not in f or "never ended" in f][0]

    def test_ring_of_sends_is_the_first_finding(self):
        self.assertRegex(
            self.first_finding_of("ring", 3),
            r"^3 ranks waited for each other in a ring for \d+ s: rank 0 for rank 1 in MPI_Ssend, "
            r"rank 1 for rank 2 in MPI_Ssend, rank 2 for rank 0 in MPI_Ssend$",
        )

    def test_rank_that_does_not_send_is_the_first_finding(self):
        self.assertRegex(
            self.first_finding_of("halo", 2),
            r"^MPI_Waitall never ended: rank 0-1 waited for rank 2 on \S+ \(pid \d+\) for \d+ s, "
            r"whose last call was over \d+ s before the end$",
        )

    def test_rank_that_does_not_come_to_the_init_is_the_first_finding(self):
        self.assertRegex(
            self.first_finding_of("init", 2),
            r"^MPI_Init never ended: rank 0-1 waited for \d+ s, rank 2 did not come to it, "
            r"or is not recorded$",
        )

    def test_short_call_of_a_killed_job_is_no_finding(self):
        """What a kill ends before it is open for as long as --hang says."""
        said = self.folder / "said"
        with open(said, "w") as file:
            job = self.start("ring", hang_s=60, stdout=file)
        wait_until(lambda: said.read_text().count("sends\n") == 3, 60, "all are in the ring")
        document = self.ledger_of_killed(job)
        self.assertGreaterEqual(document["assembly"]["open_calls"], 1)
        self.assertEqual(document["hangs"], [])
        self.assertEqual([f for f in document["findings"] if "waited" in f], [])


if __name__ == "__main__":
    unittest.main()
