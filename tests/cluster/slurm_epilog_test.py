#!/usr/bin/python3
"""The Epilog on a cluster: whatever goes wrong in it, the job's result is as without AON and its
node stays in service; and the line that says who used AON.

    slurm_epilog_test.py [unittest arguments]
"""
import socket
import unittest

import cluster
from aon_test import wait_until
from slurm_case import OnSlurm

# A job whose agents left a directory behind that is not finished.
SCRIPT = "mkdir -p aon-$SLURM_JOB_ID.0/spool; echo runs"


class Epilog(OnSlurm):
    lines = ("Epilog=FOLDER/aon/share/aon/slurm/aon-epilog.sh", "EpilogMsgTime=0")

    def setUp(self):
        super().setUp()
        self.addCleanup(self.assert_as_ever)

    def assert_as_ever(self):
        """The next job, too, runs beside no other, so it has waited for the Epilog of the last."""
        end, text, _ = self.batch(SCRIPT, "-w", "n1", "-n", 4)
        self.assertEqual((end, text), (("COMPLETED", "0:0"), "runs\n"))
        self.assertEqual(self.slurm.unready_nodes(), [])

    def test_a_finish_that_hangs_or_is_killed_or_kills(self):
        aon = self.copy_of_installation() / "bin" / "aon"
        epilog = "pkill -TERM -f aon-epilog.sh"
        for script in ("sleep 100 & sleep 100", "kill -KILL 0", "kill -KILL $PPID", epilog,
                       "exit 1"):
            asked = self.place / "asked"
            aon.write_text(f"#!/bin/sh\ntouch {asked}\n{script}\n", encoding="utf-8")
            self.assert_as_ever()
            wait_until(asked.exists, what="aon finalize to be called")
            asked.unlink()
            self.slurm.on_host("n1", "pkill", "-KILL", "-f", "sleep 100")

    def test_parts_that_are_missing(self):
        prefix = self.copy_of_installation()
        (prefix / "bin" / "aon").unlink()
        self.assert_as_ever()
        finish = prefix / "share" / "aon" / "slurm" / "aon-finish.sh"
        finish.chmod(0)
        self.assert_as_ever()
        finish.unlink()
        self.assert_as_ever()

    def test_a_folder_that_is_gone_or_closed(self):
        folder = self.place / "gone"
        for script in ("chmod 0", "cd /; rm -rf"):
            folder.mkdir(exist_ok=True)
            words = ["-w", "n1", "-n", 4, "-o", "/dev/null"]
            job = self.slurm.submit(f"{script} $SLURM_SUBMIT_DIR", *words, cwd=folder)
            self.assertEqual(self.slurm.wait(job), ("COMPLETED", "0:0"))
            self.assertEqual(self.slurm.unready_nodes(), [])

    def test_who_used_it_is_in_the_log_of_the_system(self):
        """The real logger, and what listens where a system's log does."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
            log.bind(str(self.slurm.folder / "log.sock"))
            (self.slurm.folder / "log.sock").chmod(0o666)
            make = f"test ! -e /dev/log && ln -s {self.slurm.folder}/log.sock /dev/log"
            link = self.slurm.on_host("n1", "sh", "-c", make)
            if link.returncode != 0:
                self.skipTest("this machine has a log of its own")
            self.addCleanup(self.slurm.on_host, "n1", "rm", "-f", "/dev/log")
            log.settimeout(60)
            _, _, job = self.batch(SCRIPT, "-w", "n1", "-n", 4)
            expected = f"aon: job={job} user=root directories=1"
            while expected not in log.recv(4096).decode():  # others use it, too
                pass


if __name__ == "__main__":
    cluster.require(slurm=True)
    unittest.main(verbosity=2)
