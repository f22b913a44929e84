#!/usr/bin/python3
"""What others leave where AON works on a cluster, and what is left of a crash of ours: each job
ends as it would without AON.

    slurm_foreign_test.py [unittest arguments]
"""
import pwd
import unittest

import cluster
from aon_test import BUILD, run, wait_until
from slurm_case import SPANK, WORDS, OnSlurm

FAULT = BUILD / "bin" / "fault_in_aon"
NOBODY = pwd.getpwnam("nobody").pw_uid


class Places(OnSlurm):
    """What others have put where AON puts its own."""

    def test_a_folder_for_sockets_that_is_somebody_elses(self):
        """The job runs as without AON, and nothing is put into what is there."""
        place = f"/tmp/aon-{NOBODY}"
        theirs = "/tmp/theirs"
        made = self.slurm.on_host("n1", "install", "-d", "-o", "daemon", "-m", "777", theirs)
        self.assert_exit(made)
        makes = (f"install -d -o daemon -m 777 {place}", f"ln -s {theirs} {place}",
                 f"touch {place}; chown daemon {place}", f"install -d -o nobody -m 777 {place}",
                 f"ln -s /nowhere {place}")
        words = ["-w", "n1", "--uid=nobody", "--mpi=pmix", "-n2", *WORDS]
        plain = self.srun(*words, AON_DISABLE="1")
        self.assert_exit(plain)
        for make in makes:
            made = self.slurm.on_host("n1", "sh", "-ec", f"rm -rf {place}; {make}")
            self.assert_exit(made)
            before = self.slurm.on_host("n1", "stat", "-c", "%U %a %F", place).stdout
            done = self.srun(*words)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, plain.stdout, ""))
            after = self.slurm.on_host("n1", "stat", "-c", "%U %a %F", place).stdout
            self.assertEqual(after, before, make)
            found = self.slurm.on_host("n1", "find", f"{place}/", theirs, "-mindepth", "1").stdout
            self.assertEqual(found, "", make)


class Plugins(OnSlurm):
    """Lines of plugstack.conf that cannot be loaded, and are optional ones."""

    lines = ("plugin optional FOLDER/missing.so", "plugin optional FOLDER/foreign.so",
             "plugin optional FOLDER/other_version.so")

    @classmethod
    def prepare(cls, folder):
        (folder / "foreign.so").write_bytes(b"no library")
        if not SPANK.exists():
            return
        said = run(["nm", "-D", SPANK]).stdout.splitlines()
        (at,) = [int(line.split()[0], 16) for line in said if line.endswith(" plugin_version")]
        text = bytearray(SPANK.read_bytes())
        version = int.from_bytes(text[at:at + 4], "little")
        assert version >> 16 in range(20, 40), "it is the version, in a segment without an offset"
        text[at:at + 4] = (version - (1 << 16)).to_bytes(4, "little")
        (folder / "other_version.so").write_bytes(text)

    def test_jobs_run_and_are_recorded_without_them(self):
        done = self.srun("--mpi=pmix", "-n2", *WORDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        if SPANK.exists():
            self.assertRegex(done.stderr, "(?i)incompatible.*other_version|other_version.*version")
        (output,) = self.outputs(1)
        self.assert_ranks(output, range(2))


class Crashes(OnSlurm):
    """A program that dies in AON's own code does so once."""

    def test_it_is_left_alone_from_then_on(self):
        home = self.place / "home"
        home.mkdir()
        words = ["-w", "n1", "--mpi=pmix", "-n1", FAULT]
        died = self.srun(*words, "die", HOME=home)
        self.assertNotEqual(died.returncode, 0)
        avoided = home / ".config" / "aon" / "avoid"
        wait_until(avoided.exists, 30, "the list of programs to be left alone")
        before = sorted(self.place.glob("aon-*"))
        plain = self.srun(*words, HOME=home, AON_DISABLE="1")
        done = self.srun(*words, HOME=home)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, plain.stdout, ""))
        (output,) = set(self.place.glob("aon-*")) - set(before)
        self.assert_exit(self.finalize(output))
        said = (output / "summary.txt").read_text()
        self.assertRegex(said, f"nothing was recorded: left alone.*{FAULT}.*aon avoid --remove")
        self.assert_exit(self.srun("-w", "n1", "--mpi=pmix", "-n2", *WORDS, HOME=home))
        (other,) = set(self.place.glob("aon-*")) - {*before, output}
        self.assert_ranks(other, range(2))


if __name__ == "__main__":
    cluster.require(slurm=True)
    unittest.main(verbosity=2)
