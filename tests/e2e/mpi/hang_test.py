#!/usr/bin/python3
"""Calls that do not return: `aon hang` names who did not arrive while the job runs, and the ledger
does when it was killed.

    hang_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import os
import pathlib
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from aon_test import BUILD, TestCase, environment, ledger, run, wait_until  # noqa: E402

PROGRAMS = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(".")


class Hang(TestCase):
    def start(self, late_ms):
        self.output = self.folder / "job"
        command = ["mpirun", "--oversubscribe", "-n", "3", BUILD / "bin" / "aon-run"]
        command += ["-o", self.output, "--hang", "1"]
        job = subprocess.Popen(
            [str(word) for word in [*command, "--", PROGRAMS / "hang", late_ms]],
            env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
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

    def hanging(self):
        """The lines, once both others are seen in the barrier."""
        return wait_until(
            lambda: (lines := self.lines()) and "  in MPI_Barrier: 0-1" in lines and lines, 60,
            "a hang",
        )  # fmt: skip

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
        os.kill(job.pid, signal.SIGTERM)
        self.assertNotEqual(job.wait(90), 0)
        wait_until(lambda: (self.output / "aon.json").exists(), 60, "the ledger")
        document = ledger(self.output)
        self.assert_law(document)
        self.assertRegex(
            document["findings"][0],
            r"^MPI_Barrier of MPI_COMM_WORLD never ended: rank 0-1 waited, "
            rf"rank 2 on \S+ \(pid {pid}\) did not arrive$",
        )
        self.assertIn("  in MPI_Barrier: 0-1", document["hangs"])


if __name__ == "__main__":
    unittest.main()
