#!/usr/bin/python3
"""What goes wrong on a cluster where AON is switched on for every job: each job ends as it would
without AON, no node is taken out of service, and what was recorded can be read.

    slurm_faults_test.py [unittest arguments]
"""
import os
import pathlib
import pwd
import signal
import unittest

import cluster
import readers
from aon_test import PYTHON, environment, ledger, run, wait_until
from cluster import AON
from slurm_case import TEXT, WORDS, OnSlurm

# The second rank takes more memory than it may have, when both have recorded something.
HUNGRY = """
import time
from mpi4py import MPI
for _ in range(100):
    MPI.COMM_WORLD.Barrier()
time.sleep(1)
if MPI.COMM_WORLD.rank == 1:
    with open("{group}", "w") as group:
        group.write("0")
    taken = []
    while True:
        taken.append(b"x" * (16 << 20))
MPI.COMM_WORLD.Barrier()
"""


def removed(folder):
    try:
        folder.rmdir()
    except OSError:
        return False
    return True


class Broken(OnSlurm):
    """Installations that miss something. The job sees nothing of it."""

    def assert_as_without(self, *options):
        plain = self.srun("--mpi=pmix", "-n2", *options, *WORDS, AON_DISABLE="1")
        self.assert_exit(plain)
        done = self.srun("--mpi=pmix", "-n2", *options, *WORDS)
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
        self.assert_as_without("--uid=nobody")

    def test_a_full_disk(self):
        plain = self.srun("--mpi=pmix", "-n2", *WORDS, AON_DISABLE="1")
        for path in (self.place / "full", "/tmp/aon-0"):
            self.slurm.on_host("n1", "mkdir", "-p", "-m", "700", path)
            options = "size=4k,nr_inodes=1,mode=0700"
            done = self.slurm.on_host("n1", "mount", "-t", "tmpfs", "-o", options, "full", path)
            self.assert_exit(done)
            command = ["-w", "n1", "--mpi=pmix", "-n2", *WORDS]
            folder = self.place / "full"
            folder.mkdir(exist_ok=True)
            done = self.slurm.run("srun", *command, cwd=folder)
            left = self.slurm.on_host("n1", "find", path, "-mindepth", "1").stdout
            self.slurm.on_host("n1", "umount", path)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, plain.stdout, ""))
            self.assertEqual(left, "", "nothing half made")

    def test_a_disk_that_fills_up_while_it_records(self):
        folder = self.place / "small"
        folder.mkdir()
        mounted = self.slurm.on_host("n1", "mount", "-t", "tmpfs", "-o", "size=192k", "s", folder)
        self.assert_exit(mounted)
        self.addCleanup(self.slurm.on_host, "n1", "umount", "-l", folder)
        words = ["-w", "n1", "--mpi=pmix", "-n2", WORDS[0], "--size", 64, "--steps", 20000]
        words += ["--tolerance", 0]
        ends = {}
        for disabled in ("1", "0"):
            done = self.slurm.run("srun", *words, cwd=folder, env=environment(AON_DISABLE=disabled))
            ends[disabled] = (done.returncode, done.stdout, done.stderr)
        self.assertEqual(ends["0"], ends["1"])
        self.assertEqual(ends["0"][0], 0)
        # There is no room for an archive, which the agent finds out; what is there can be read
        # elsewhere.
        wait_until(lambda: self.slurm.on_host("n1", "pgrep", "-x", "aon-agent").returncode == 1,
                   what="the agent's end")
        self.assert_exit(self.slurm.on_host("n1", "sh", "-c", f"cp -a {folder}/aon-* {self.place}"))
        (output,) = self.place.glob("aon-*")
        self.assert_exit(run([cluster.AON, "finalize", "--quiet", output]))
        document = self.assert_ranks(output, range(2))
        self.assertGreater(sum(r["lost"] for r in document["ranks"]), 0)
        self.assertGreater(sum(r["spooled"] for r in document["ranks"]), 1000)


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

        def runs_again():
            """Slurm puts the start off by its credentials' time, at the end of the first run."""
            self.slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now")
            return len(list(self.place.glob("aon-*"))) == 2

        wait_until(runs_again, 90, f"a second run of {job}")
        self.slurm.run("scancel", job)
        self.assertEqual(self.slurm.wait(job)[0], "CANCELLED")
        for output in self.outputs(2):
            self.assert_ranks(output, range(2))

    def test_the_job_runs_out_of_time(self):
        self.place = self.limited_place
        self.assertEqual(self.slurm.wait(self.limited, 150)[0], "TIMEOUT")
        self.assert_readable()


    def test_the_job_ignores_the_signal_to_end(self):
        stubborn = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        program = self.place / "stubborn.py"
        program.write_text(stubborn + cluster.ENDLESS, encoding="utf-8")
        job, out = self.submit(f"srun --mpi=pmix {PYTHON} {program}", "-w", "n1")
        wait_until(lambda: self.spool_bytes() > 4096, 60, f"records of {job}, see {out}")
        self.slurm.run("scancel", job)
        self.assertEqual(self.slurm.wait(job)[0], "CANCELLED")
        document = self.assert_readable()
        self.assertEqual({r["exit"]["signal"] for r in document["ranks"]}, {signal.SIGKILL})

    def test_a_rank_runs_out_of_memory(self):
        document = self.out_of_memory(self.memory_group(), "srun --mpi=pmix {python} {program}")
        self.assertEqual(document["ranks"][1]["exit"]["signal"], signal.SIGKILL)

    def test_all_of_a_job_share_what_runs_out_of_memory(self):
        """The agent, too, is in the control group whose limit is reached."""
        group = self.memory_group(320 << 20)
        words = f"echo 0 >{group}; mpirun -n 2 {cluster.AON_RUN} {{python}} {{program}}"
        self.out_of_memory(group, words)

    def out_of_memory(self, group, words):
        """The ledger of a job whose end is as without AON, with what it recorded before."""
        program = self.place / "hungry.py"
        program.write_text(HUNGRY.format(group=group), encoding="utf-8")
        script = words.format(python=PYTHON, program=program)
        ends = {}
        for disabled in ("1", "0"):
            ends[disabled], text, _ = self.batch(script, "-w", "n1", AON_DISABLE=disabled)
            self.assertNotEqual(ends[disabled][0], "COMPLETED", text)
        self.assertEqual(ends["0"], ends["1"])
        document = self.assert_readable()
        for rank in document["ranks"]:
            self.assertGreaterEqual(rank["spooled"], 100)
        return document

    def memory_group(self, limit_bytes=128 << 20):
        """The file that puts a process into a control group with room for an interpreter."""
        for root, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
                            ("/sys/fs/cgroup", "memory.max")):
            folder = pathlib.Path(root) / f"aon-test-{os.getpid()}"
            try:
                folder.mkdir()
            except OSError:
                continue
            self.addCleanup(lambda: wait_until(lambda: removed(folder), 20, "an empty group"))
            if (folder / limit).exists():
                (folder / limit).write_text(str(limit_bytes))
                return folder / "cgroup.procs"
        self.skipTest("no control group for memory can be made here")
        return None


class PowerOff(OnSlurm):
    """A node of its own to lose, and a Slurm that soon knows of it."""

    lines = ("SlurmdTimeout=8", "Epilog=FOLDER/aon/share/aon/slurm/aon-epilog.sh")

    def assert_nodes_are_in_service(self):
        lost = [line.split()[0] for line in self.slurm.unready_nodes()]
        self.assertEqual(lost, ["n2"])

    def begin(self, name, **changes):
        """A job with a rank on each node."""
        folder = self.place / name
        folder.mkdir()
        program = folder / "endless.py"
        program.write_text(cluster.ENDLESS, encoding="utf-8")
        words = ["-N2", "-n2", "--ntasks-per-node=1", "--no-requeue", "-o", folder / "out"]
        env = environment(**changes)
        return self.slurm.submit(f"srun --mpi=pmix {PYTHON} {program}", *words, cwd=folder, env=env)

    def test_a_node_that_is_powered_off_costs_its_own_records_only(self):
        jobs = [self.begin("with"), self.begin("without", AON_DISABLE=1)]

        def is_under_way():
            parts = [list(self.place.glob(f"with/aon-*/spool/{n}/p*")) for n in ("n1", "n2")]
            sizes = [sum(f.stat().st_size for f in files) for files in parts]
            others = [self.processes_of(jobs[1], n).values() for n in ("n1", "n2")]
            return min(sizes) > 20000 and all("python3" in names for names in others)

        wait_until(is_under_way, 60, "both jobs on both nodes")
        self.assertEqual(list(self.place.glob("without/aon-*")), [])
        self.slurm.power_off("n2")
        ends = [self.slurm.wait(job, 120) for job in jobs]
        self.assertEqual(ends[0], ends[1])
        self.assertNotEqual(ends[0][0], "COMPLETED")
        (output,) = self.place.glob("with/aon-*")
        wait_until(lambda: self.is_finished(output), 90, f"the archive in {output}")
        document = ledger(output)
        self.assertEqual([r["rank"] for r in document["ranks"]], [0, 1])
        self.assertGreater(document["ranks"][0]["spooled"], 1000)
        self.assertFalse(document["job"]["complete"])
        self.assertEqual(document["job"]["lost_nodes"], ["n2"])
        readers.otf2_print(self, output)
        readers.otf2_structure(self, output)
        readers.otf2_messages(self, output)

    def is_finished(self, output):
        return run([cluster.AON, "finalize", "--quiet", output]).returncode == 0


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
        return environment(AON_NODE_DIR=prefix / "node")

    def test_a_canary_or_prolog_that_hangs_or_is_killed_drains_no_node(self):
        canary = self.copy_of_installation() / "bin" / "aon-canary"
        prolog = "$(ps -o ppid= -p $PPID)"
        for script in ("sleep 100 & sleep 100", "kill -KILL $$", f"kill -TERM {prolog}"):
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
        (output,) = self.place.glob("aon-*")

        def is_told():
            run([AON, "finalize", "--snapshot", "--quiet", output])
            providers = ledger(output)["nodes"][0]["providers"]
            return providers["network"]["state"] == "degraded"

        wait_until(is_told, 30, "the agent sees that the service has ended")
        self.slurm.run("scancel", job)
        self.slurm.wait(job)
        (output,) = self.outputs(1)
        providers = ledger(output)["nodes"][0]["providers"]
        self.assertIn("the node's service has ended", providers["network"]["reason"])

    def test_the_site_says_when_it_ends(self):
        wanted = self.slurm.folder / "site" / "node-service"
        self.assert_exit(self.srun("-w", "n1", "-n1", "true"))
        self.assertEqual(len(self.services()), 1)
        wanted.write_text("off\n")
        self.assert_exit(self.srun("-w", "n1", "-n1", "true"))
        self.assertEqual(self.services(), [])
        self.assert_exit(self.srun("-w", "n1", "-n1", "true"))
        wanted.write_text("")
        self.assert_exit(self.srun("-w", "n1", "-n1", "true"))
        self.assertEqual(len(self.services()), 1)


class Users(OnSlurm):
    """Two users on one node."""

    def test_jobs_of_two_users_on_one_node(self):
        jobs = {}
        meeting = self.place / "meeting"
        meeting.mkdir()
        meeting.chmod(0o777)
        # Neither goes on before the other is there.
        meet = f"""touch {meeting}/$SLURM_JOB_ID
            for i in $(seq 600); do [ "$(ls {meeting} | wc -l)" = 2 ] && break; sleep 0.1; done
            [ "$(ls {meeting} | wc -l)" = 2 ] || exit 9"""
        for user in ("nobody", "daemon"):
            folder = self.place / user
            folder.mkdir()
            os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
            words = ["-w", "n1", "-n", 2, "-o", folder / "out", f"--uid={user}", "-D", folder]
            env = environment(HOME=folder)
            script = f"{meet}\nsrun --mpi=pmix {TEXT}"
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
