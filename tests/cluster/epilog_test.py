#!/usr/bin/python3
"""What the Epilog starts, by itself, without a cluster: the line for the accounting, and which
directories are finished.

    epilog_test.py [unittest arguments]
"""
import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import unittest

import cluster  # noqa: F401  finds aon_test
from aon_test import SOURCE, TestCase, environment, run, wait_until

SCRIPT = SOURCE / "launcher" / "slurm" / "aon-finish.sh"
EPILOG = SCRIPT.with_name("aon-epilog.sh")
USER = pwd.getpwuid(os.geteuid()).pw_name


@unittest.skipUnless(os.geteuid() == 0, "runuser needs root")
class Epilog(TestCase):
    """With an `aon-finish.sh` that writes down what it is asked."""

    def started(self, **variables):
        """What aon-finish.sh is started with, a line each, once the Epilog has ended."""
        place = self.folder / "share" / "aon" / "slurm"
        place.mkdir(parents=True, exist_ok=True)
        script = place / EPILOG.name
        shutil.copy2(EPILOG, script)
        asked = self.folder / "asked"
        asked.write_text("")
        finish = place / "aon-finish.sh"
        finish.write_text(f'#!/bin/sh\necho "$*" >>{asked}\necho started\n', encoding="utf-8")
        finish.chmod(0o755)
        job = {"SLURM_JOB_USER": USER, "SLURM_JOB_WORK_DIR": "/work dir"}
        done = run([script], env=environment(**{**job, **variables}))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        return sorted(asked.read_text().splitlines())

    def test_a_job_is_finished_by_its_number(self):
        self.assertEqual(self.started(SLURM_JOB_ID="4711"), [f"{self.folder} 4711 /work dir"])
        self.assertEqual(self.started(SLURM_JOB_ID="4711; x"), [])

    def test_a_component_of_a_heterogeneous_job_finishes_what_its_leader_is_named_in(self):
        own = f"{self.folder} 4712 /work dir"
        leader = f"{self.folder} 4711 /work dir"
        both = self.started(SLURM_JOB_ID="4712", SLURM_HET_JOB_ID="4711")
        self.assertEqual(both, [leader, own])
        for odd in ("4712", "", "4711x", "../4711"):
            self.assertEqual(self.started(SLURM_JOB_ID="4712", SLURM_HET_JOB_ID=odd), [own], odd)


class Finish(TestCase):
    """With a `logger` and an `aon` that write down what they are asked."""

    def setUp(self):
        super().setUp()
        self.submitted = self.folder / "submitted"
        self.submitted.mkdir()
        (self.folder / "bin").mkdir()
        self.logged = self.folder / "logged"
        self.asked = self.folder / "asked"
        self.script("logger", f'echo "$*" >>{self.logged}')
        self.script("aon", f'echo "$*" >>{self.asked}')

    def script(self, name, text):
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)

    def start(self):
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        words = [SCRIPT, self.folder, "4711", self.submitted]
        process = subprocess.Popen(words, env=environment(PATH=path), start_new_session=True,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait, 20)
        self.addCleanup(self.end, process.pid)
        return process

    def end(self, session):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(session, signal.SIGKILL)

    def finish(self):
        self.assertEqual(self.start().wait(20), 0)
        return self.asked.read_text().splitlines() if self.asked.exists() else []

    def make(self, name, *files):
        folder = self.submitted / name
        folder.mkdir()
        for file in files:
            (folder / file).mkdir() if file == "agents" else (folder / file).touch()
        return folder

    def test_a_job_is_accounted_for_even_if_it_cannot_be_finished(self):
        self.make("aon-4711.0")
        self.make("aon-4711-1234")
        self.script("aon", f"touch {self.asked}; exec sleep 100")
        self.start()
        wait_until(self.asked.exists, what="aon finalize to hang")
        self.assertEqual(self.logged.read_text(), f"-t aon job=4711 user={USER} directories=2\n")

    def test_a_job_without_aon_is_not(self):
        self.make("aon-47110.0")
        self.assertEqual(self.finish(), [])
        self.assertFalse(self.logged.exists())

    def test_only_what_is_not_done_is_finished(self):
        self.make("aon-4711.0", "aon.json")
        late = self.make("aon-4711.1", "aon.json", "agents")
        none = self.make("aon-4711.2")
        asked = [f"finalize --if-needed {late}", f"finalize --if-needed {none}"]
        self.assertEqual(self.finish(), asked)
        self.assertIn("directories=3", self.logged.read_text())

    def test_what_another_node_has_done_meanwhile_is_not_looked_at_again(self):
        """Each look reads the whole spool, and all nodes of a job look."""
        folder = self.make("aon-4711.0")
        self.script("aon", f'echo "$*" >>{self.asked}; touch "$3/aon.json"; exit 3')
        self.assertEqual(self.finish(), [f"finalize --if-needed {folder}"])

    def test_links_and_directories_of_others_are_left_alone(self):
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        (self.submitted / "aon-4711.0").symlink_to(elsewhere)
        if os.geteuid() == 0:
            os.chown(self.make("aon-4711.1"), 65534, 65534)
        self.assertEqual(self.finish(), [])
        self.assertFalse(self.logged.exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
