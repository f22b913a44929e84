"""Several hosts and a Slurm cluster on one machine, for tests: see hosts.sh and slurm.sh.

    with Hosts(4, shared=[folder]) as hosts:
        hosts.run("n1", "hostname")
    with SlurmCluster(2, shared=[folder], settings=["TaskProlog=/..."]) as slurm:
        slurm.run("srun", "-N2", "hostname")

Leaving the block kills everything that was started in it. Where the machine does not allow it,
require() ends the test program as skipped, in one line with the remedy.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

from aon_test import (  # noqa: E402
    BUILD, SKIPPED, SOURCE, environment, run, skip_without_share, wait_until)

HERE = pathlib.Path(__file__).resolve().parent
RSH = HERE / "rsh.sh"
AON_RUN = BUILD / "bin" / "aon-run"
AON = BUILD / "bin" / "aon"
HEAT2D = BUILD / "bin" / "heat2d"
# Ranks that record until somebody ends them, and leave the cores to others.
ENDLESS = """
import time
from mpi4py import MPI
while True:
    for _ in range(200):
        MPI.COMM_WORLD.Barrier()
    time.sleep(0.02)
"""
NOT_READY = ("down", "drain", "fail", "unk", "err")


def _problem_of_hosts():
    for tool in ("unshare", "nsenter", "ip"):
        if shutil.which(tool) is None:
            return f"{tool} is missing: run scripts/setup"
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    kinds = ["--net", "--uts", "--ipc", "--mount", "--pid"]
    allowed = run(["unshare", *user, *kinds, "--fork", "true"])
    if allowed.returncode != 0:
        return "namespaces are not allowed here: run as root, in a container with --privileged"
    return None


def _problem_of_slurm():
    if os.geteuid() != 0:
        return "a Slurm cluster needs root, for slurmd starts jobs as their users"
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    for tool in ("slurmctld", "slurmd", "munged", "srun"):
        if shutil.which(tool, path=path) is None:
            return f"{tool} is missing: run scripts/setup"
    return None


def require(slurm=False):
    """Ends the test program as skipped where hosts (and Slurm) cannot be had."""
    skip_without_share()
    problem = _problem_of_hosts() or (_problem_of_slurm() if slurm else None)
    if problem:
        print(f"skipped: {problem}")
        sys.exit(SKIPPED)


class _Simulated:
    """A folder and a script that fills it; what they have in common."""

    script = None

    def __init__(self, count, shared=()):
        self.count = count
        self.shared = [str(path) for path in (*shared, SOURCE, BUILD)]
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="aon-cluster-"))
        self.folder.chmod(0o755)
        self.home = self.folder / "home"
        self.home.mkdir()

    def _call(self, action, *words, **more):
        env = dict(more.pop("env", None) or environment())
        env.setdefault("OMPI_MCA_mpi_yield_when_idle", "1")  # more ranks than cores
        # What is left of a daemon's output goes nowhere: it must not hold a pipe of ours.
        return run([HERE / self.script, action, self.folder, *words], env=env, **more)

    def _start(self, *words, env=None):
        log = self.folder / "up.log"
        with open(log, "w", encoding="utf-8") as out:
            done = subprocess.run(
                [HERE / self.script, "up", self.folder, str(self.count), *words],
                env=env or environment(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                timeout=60,
            )
        if done.returncode != 0:
            text = log.read_text(errors="replace")
            self.__exit__()
            raise AssertionError(f"the cluster did not start: {text}")

    def __enter__(self):
        self._start(*self.start_words())
        return self

    def start_words(self):
        return ()

    def __exit__(self, *_):
        self._call("down")
        if not os.environ.get("AON_KEEP"):
            shutil.rmtree(self.folder, ignore_errors=True)


class Hosts(_Simulated):
    """Hosts n1..nN and login, joined by a network."""

    script = "hosts.sh"

    def start_words(self):
        return self.shared

    def run(self, host, *command, env=None, **more):
        env = dict(env or environment(), AON_HOSTS=str(self.folder))
        if env.get("HOME") == os.environ.get("HOME"):
            env["HOME"] = str(self.home)  # agents meet there
        return self._call("exec", host, *command, env=env, **more)

    def kill(self, host):
        """Powers the host off."""
        return self._call("kill", host)

    def mpirun(self, ranks_per_host, *command, **more):
        """Open MPI's mpirun on n1 over rsh; the environment goes only where -x sends it."""
        names = ",".join(f"n{i + 1}:{ranks_per_host}" for i in range(self.count))
        sent = ["-x", "PATH", "-x", "AON_ATTACH_MS", "-x", "AON_DEBUG_DIRECTORIES"]
        words = ["mpirun", "--mca", "plm_rsh_agent", RSH, "--host", names, *sent, *command]
        return self.run("n1", *words, **more)

    def hydra(self, ranks_per_host, *command, **more):
        """MPICH's launcher on n1 over rsh."""
        names = ",".join(f"n{i + 1}" for i in range(self.count))
        words = ["mpiexec.hydra", "-launcher", "rsh", "-launcher-exec", RSH, "-hosts", names]
        total = ranks_per_host * self.count
        return self.run("n1", *words, "-ppn", ranks_per_host, "-n", total, *command, **more)


class SlurmCluster(_Simulated):
    """Nodes n1..nN under Slurm; commands run on the login node."""

    script = "slurm.sh"

    def __init__(self, count, shared=(), settings=()):
        super().__init__(count, shared)
        self.settings = settings

    def __enter__(self):
        env = environment(AON_HOSTS_SHARED=" ".join(self.shared))
        self._start(*self.settings, env=env)
        return self

    def run(self, *command, **more):
        return self._call("exec", *command, **more)

    def on_host(self, host, *command, **more):
        words = [HERE / "hosts.sh", "exec", self.folder / "hosts", host, *command]
        return run(words, **more)

    def power_off(self, host):
        """Kills everything on the host; its network is gone with it."""
        return run([HERE / "hosts.sh", "kill", self.folder / "hosts", host])

    def submit(self, script, *options, **more):
        """Id of a batch job that runs the text `script` as a shell script."""
        path = self.folder / f"job{len(list(self.folder.glob('job*.sh')))}.sh"
        path.write_text(f"#!/bin/bash\n{script}\n", encoding="utf-8")
        path.chmod(0o755)
        done = self.run("sbatch", "--parsable", *options, path, **more)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        return done.stdout.split(";")[0].strip()

    def state(self, job):
        """What slurmctld calls the job's state, and its exit code."""
        said = self.run("scontrol", "-o", "show", "job", job).stdout
        fields = dict(word.split("=", 1) for word in said.split() if "=" in word)
        return fields.get("JobState", ""), fields.get("ExitCode", "")

    def wait(self, job, seconds=120):
        """Waits for the job's end and returns its state and exit code."""
        going = ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "")

        def ended():
            state = self.state(job)
            return state if state[0] not in going else None

        return wait_until(ended, seconds, f"end of job {job}")

    def unready_nodes(self):
        """Names and states of nodes that Slurm has taken out of service."""
        said = self.run("sinfo", "-h", "-N", "-o", "%N %T %E").stdout.splitlines()
        return [line for line in said if line.split()[1].startswith(NOT_READY)]
