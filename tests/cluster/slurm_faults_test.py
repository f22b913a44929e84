#!/usr/bin/python3
"""What goes wrong on a cluster where AON is switched on for every job: each job ends as it would
without AON, no node is taken out of service, and what was recorded can be read.

    slurm_faults_test.py [unittest arguments]
"""
import os
import pwd
import time
import unittest

import cluster
from aon_test import PYTHON, ledger, run, wait_until
from slurm_case import TEXT, WORDS, OnSlurm


class Broken(OnSlurm):
    """Installations that miss something. The job sees nothing of it."""

    def assert_as_without(self):
        plain = self.srun("--mpi=pmix", "-n2", *WORDS, AON_DISABLE="1")
        self.assert_exit(plain)
        done = self.srun("--mpi=pmix", "-n2", *WORDS)
        self.assertEqual(
            (done.returncode, done.stdout, done.stderr), (0, plain.stdout, plain.stderr)
        )
        self.assert_nothing_recorded()

    def test_no_library(self):
        (self.copy_of_installation() / "lib" / "libaon-mpi.so").unlink()
        self.assert_as_without()

    def test_a_library_of_another_architecture_or_damaged(self):
        library = self.copy_of_installation() / "lib" / "libaon.so"
        text = bytearray(library.read_bytes())
        text[18:20] = (183).to_bytes(2, "little")  # e_machine: AArch64
        library.write_bytes(text)
        self.assert_as_without()
        library.write_bytes(b"no library")
        self.assert_as_without()

    def test_no_agent(self):
        (self.copy_of_installation() / "bin" / "aon-agent").unlink()
        self.assert_as_without()

    def test_a_helper_that_is_missing_hangs_or_dies(self):
        helper = self.copy_of_installation() / "bin" / "aon-task"
        helper.unlink()
        self.assert_as_without()
        for script in ("echo export HALF=1; sleep 100", "echo export HALF=1; kill -SEGV $$"):
            helper.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
            helper.chmod(0o755)
            done = self.srun("-n1", "sh", "-c", "echo $HALF.")
            self.assertEqual((done.returncode, done.stdout), (0, ".\n"))
        helper.chmod(0)
        self.assertEqual(self.srun("-n1", "sh", "-c", "echo $HALF.").stdout, ".\n")

    def test_an_unreadable_library_for_a_user(self):
        prefix = self.copy_of_installation()
        (prefix / "lib" / "libaon-mpi.so").chmod(0o600)
        done = self.srun("--uid=nobody", "-n1", "printenv", "LD_PRELOAD", HOME="/")
        self.assertEqual(done.stdout, "", done.stderr)

    def test_a_full_disk(self):
        for path in (self.place / "full", "/tmp/aon-0"):
            self.slurm.on_host("n1", "mkdir", "-p", "-m", "700", path)
            options = "size=4k,nr_inodes=1,mode=0700"
            done = self.slurm.on_host("n1", "mount", "-t", "tmpfs", "-o", options, "full", path)
            self.assert_exit(done)
            command = ["-w", "n1", "--mpi=pmix", "-n2", *WORDS]
            folder = self.place / "full"
            folder.mkdir(exist_ok=True)
            done = self.slurm.run("srun", *command, cwd=folder)
            self.slurm.on_host("n1", "umount", path)
            self.assertEqual((done.returncode, done.stderr), (0, ""))


class Killed(OnSlurm):
    """Jobs and agents that end before their time."""

    lines = ("Epilog=FOLDER/aon/share/aon/slurm/aon-epilog.sh",)

    @classmethod
    def setUpClass(cls):
        """Slurm looks at time limits twice a minute, and knows none below one: that job begins
        first and is looked at last."""
        super().setUpClass()
        cls.limited_place = cls.slurm.folder / "limited"
        cls.limited_place.mkdir()
        program = cls.limited_place / "endless.py"
        program.write_text(cluster.ENDLESS, encoding="utf-8")
        words = ["-n", 2, "-w", "n2", "-t", "0:01", "-o", "/dev/null"]
        script = f"srun --mpi=pmix {PYTHON} {program}"
        cls.limited = cls.slurm.submit(script, *words, cwd=cls.limited_place)

    def assert_readable(self):
        (output,) = self.outputs(1)
        return self.assert_ranks(output, range(2))

    def named(self, job, name):
        return [pid for pid, comm in self.processes_of(job).items() if comm.startswith(name)]

    def test_the_agent_is_killed(self):
        job = self.endless_job()
        agents = wait_until(lambda: self.named(job, "aon-agent"), 10, "agents")
        self.kill(agents)
        self.assertEqual(self.slurm.state(job)[0], "RUNNING")
        self.assertEqual(len(self.named(job, "python3")), 2)
        self.slurm.run("scancel", job)
        self.assertEqual(self.slurm.wait(job)[0], "CANCELLED")
        self.assert_readable()

    def test_the_job_is_cancelled(self):
        job = self.endless_job()
        self.slurm.run("scancel", job)
        self.assertEqual(self.slurm.wait(job)[0], "CANCELLED")
        document = self.assert_readable()
        self.assertTrue(all(r["exit"]["signal"] for r in document["ranks"]), document["ranks"])

    def test_everything_of_the_step_is_killed_at_once(self):
        job = self.endless_job()
        victims = [p for p, name in self.processes_of(job).items() if name[:3] in ("pyt", "aon")]
        self.kill(victims)
        self.assertEqual(self.slurm.wait(job)[0], "FAILED")
        archives = lambda: list(self.place.glob("aon-*/traces.otf2"))  # noqa: E731
        wait_until(archives, 30, "the archive that the Epilog makes")
        self.assert_readable()

    def test_an_output_elsewhere_is_finished_too(self):
        elsewhere = self.slurm.folder / "elsewhere"
        program = self.place / "endless.py"
        program.write_text(cluster.ENDLESS, encoding="utf-8")
        script = f"export AON_OUTPUT={elsewhere}/of-mine\nsrun --mpi=pmix {PYTHON} {program}"
        job, out = self.submit(script, "-w", "n1")

        def has_records():
            return [f for f in elsewhere.glob("*/spool/*/*") if f.stat().st_size > 4096]

        wait_until(has_records, 30, f"records of {job}, see {out}")
        self.kill([p for p, name in self.processes_of(job).items() if name[:3] in ("pyt", "aon")])
        self.assertEqual(self.slurm.wait(job)[0], "FAILED")
        wait_until(lambda: list(elsewhere.glob("*/traces.otf2")), 30, "the Epilog's archive")
        self.assert_ranks(elsewhere / "of-mine", range(2))

    def test_the_job_is_requeued(self):
        job = self.endless_job("--requeue")
        self.assert_exit(self.slurm.run("scontrol", "requeue", job))
        wait_until(lambda: self.slurm.state(job)[0] == "PENDING", 20, "the job to be requeued")
        self.slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now")
        wait_until(lambda: len(list(self.place.glob("aon-*"))) == 2, 40, "a second run")
        self.slurm.run("scancel", job)
        self.assertEqual(self.slurm.wait(job)[0], "CANCELLED")
        for output in self.outputs(2):
            self.assert_ranks(output, range(2))

    def test_the_job_runs_out_of_time(self):
        self.place = self.limited_place
        self.assertEqual(self.slurm.wait(self.limited, 150)[0], "TIMEOUT")
        self.assert_readable()


class Canary(OnSlurm):
    """The Prolog tries AON on a tiny program before the first job of a node."""

    lines = ("Prolog=FOLDER/prolog.sh", "PrologFlags=Alloc")

    @classmethod
    def prepare(cls, folder):
        """The Prolog of the installation in use, with a folder of its own for what is the node's"""
        prefix = folder / "aon"
        prolog = folder / "prolog.sh"
        script = f"AON_NODE_DIR={prefix}/node exec {prefix}/share/aon/slurm/aon-prolog.sh"
        prolog.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        prolog.chmod(0o755)

    def preload_after_prolog(self, prefix):
        """LD_PRELOAD of a task on n1."""
        words = ["-w", "n1", "-n1", "sh", "-c", "echo $LD_PRELOAD"]
        done = self.srun(*words, AON_NODE_DIR=prefix / "node")
        self.assert_exit(done)
        return done.stdout.strip()

    def test_a_canary_that_lives_changes_nothing_and_sings_once(self):
        prefix = self.copy_of_installation()
        self.assertIn("libaon", self.preload_after_prolog(prefix))
        self.assertFalse((prefix / "node" / "off").exists())
        first = (prefix / "node" / "canary").stat().st_mtime_ns
        self.assertIn("libaon", self.preload_after_prolog(prefix))
        self.assertEqual((prefix / "node" / "canary").stat().st_mtime_ns, first)
        self.assertEqual([p.name for p in (prefix / "node").iterdir()], ["canary"])

    def test_a_canary_that_dies_switches_aon_off_until_it_lives(self):
        prefix = self.copy_of_installation()
        agent = prefix / "bin" / "aon-agent"
        kept = agent.rename(agent.with_name("kept"))
        self.assertEqual(self.preload_after_prolog(prefix), "")
        reason = (prefix / "node" / "off").read_text()
        self.assertIn("aon-agent is not installed", reason)
        kept.rename(agent)
        again = run([prefix / "bin" / "aon-canary", "--again"], env=self.of_node(prefix))
        self.assert_exit(again)
        self.assertFalse((prefix / "node" / "off").exists())

    def of_node(self, prefix):
        return cluster.environment(AON_NODE_DIR=prefix / "node")

    def test_a_canary_that_hangs_or_is_killed_drains_no_node(self):
        canary = self.copy_of_installation() / "bin" / "aon-canary"
        for script in ("sleep 100 & sleep 100", "kill -KILL $$"):
            canary.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
            done = self.srun("-w", "n1", "-n1", "echo", "runs")
            self.assertEqual((done.returncode, done.stdout), (0, "runs\n"), done.stderr)
            self.assertEqual(self.slurm.unready_nodes(), [])


class Service(OnSlurm):
    """The Prolog starts the service of a node, where the site asks for it."""

    lines = ("Prolog=FOLDER/prolog.sh", "PrologFlags=Alloc")

    @classmethod
    def prepare(cls, folder):
        (folder / "site").mkdir()
        (folder / "site" / "node-service").touch()
        prolog = folder / "prolog.sh"
        own = f"AON_NODE_DIR={folder}/node AON_SITE_DIR={folder}/site"
        own += f" AON_NODE_SOCKET={folder}/$(hostname)-run/node.sock"
        script = f"{own} exec {folder}/aon/share/aon/slurm/aon-prolog.sh"
        prolog.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\nexport PATH\n{script}\n")
        prolog.chmod(0o755)

    def services(self):
        """Process ids of the services that there are."""
        socket = str(self.slurm.folder) + "/n"
        found = self.slurm.on_host("login", "pgrep", "-f", f"aon-node.*--socket {socket}")
        return found.stdout.split()

    def test_it_serves_the_jobs_of_the_node_and_outlives_them(self):
        socket = self.slurm.folder / "n1-run" / "node.sock"
        self.assert_exit(self.srun("-w", "n1", "-n1", "true"))
        first = self.services()
        self.assertEqual(len(first), 1)
        self.assertTrue(socket.exists())
        job = self.endless_job(AON_NODE_SOCKET=socket)
        self.assertEqual(self.services(), first, "one is enough")
        self.slurm.on_host("login", "kill", "-KILL", *first)
        time.sleep(2.5)  # the agent reads once a second
        self.slurm.run("scancel", job)
        self.slurm.wait(job)
        (output,) = self.outputs(1)
        providers = ledger(output)["nodes"][0]["providers"]
        self.assertIn("the node's service has ended", providers["network"]["reason"])


class Users(OnSlurm):
    """Two users on one node."""

    def test_jobs_of_two_users_on_one_node(self):
        jobs = {}
        for user in ("nobody", "daemon"):
            folder = self.place / user
            folder.mkdir()
            os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
            words = ["-w", "n1", "-n", 2, "-o", folder / "out", f"--uid={user}", "-D", folder]
            env = cluster.environment(HOME=folder)
            script = f"srun --mpi=pmix {TEXT}"
            jobs[user] = self.slurm.submit(script, *words, cwd=folder, env=env)
        for user, job in jobs.items():
            text = (self.place / user / "out").read_text
            self.assertEqual(self.slurm.wait(job), ("COMPLETED", "0:0"), text())
            self.place = self.slurm.folder / self.place.name / user
            (output,) = self.outputs(1)
            self.assertEqual(output.stat().st_mode & 0o777, 0o700)
            self.assertEqual(output.stat().st_uid, pwd.getpwnam(user).pw_uid)
            self.assert_ranks(output, range(2))
            self.place = self.place.parent


if __name__ == "__main__":
    cluster.require(slurm=True)
    unittest.main(verbosity=2)
