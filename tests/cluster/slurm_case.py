"""What the tests of AON under Slurm share: a cluster with two nodes that has AON switched on by its
TaskProlog, from an installation that a test may exchange for a broken one."""
import cluster
from aon_test import (
    BUILD, PYTHON, TestCase, build_for_others, copy_installation, environment, ledger, run,
    wait_until,
)  # fmt: skip
from cluster import AON, ENDLESS

NODES = 2
SPANK = BUILD / "lib" / "aon" / "slurm" / "spank_aon.so"
INSTALLED = build_for_others(more=["bin/heat2d"])
WORDS = [str(INSTALLED / "bin" / "heat2d"), "--size", "64", "--steps", "50"]
TEXT = " ".join(WORDS)


class OnSlurm(TestCase):
    """The cluster of a test class; each test has a folder of its own that all nodes see."""

    lines = ()  # more of slurm.conf; FOLDER stands for the cluster's folder

    @classmethod
    def setUpClass(cls):
        cls.slurm = cluster.SlurmCluster(NODES, shared=[INSTALLED])
        folder = str(cls.slurm.folder)
        cls.installed = cls.slurm.folder / "aon"
        cls.installed.symlink_to(INSTALLED)
        lines = ["TaskProlog=FOLDER/aon/share/aon/slurm/aon-taskprolog.sh", *cls.lines]
        if SPANK.exists():
            lines.append(f"plugin optional {SPANK}")
        cls.prepare(cls.slurm.folder)
        cls.slurm.settings = [line.replace("FOLDER", folder) for line in lines]
        cls.slurm.__enter__()
        cls.addClassCleanup(cls.slurm.__exit__)

    @classmethod
    def prepare(cls, folder):
        """Puts files into the cluster's folder before it starts."""

    def setUp(self):
        super().setUp()
        self.place = self.slurm.folder / self.id().rsplit(".", 1)[1][:60]
        self.place.mkdir()
        self.place.chmod(0o777)
        self.addCleanup(self.assert_nodes_are_in_service)

    def assert_nodes_are_in_service(self):
        self.assertEqual(self.slurm.unready_nodes(), [])

    def use(self, prefix):
        """Lets the TaskProlog be that of another installation until the test's end."""
        self._point_to(prefix)
        self.addCleanup(self._point_to, INSTALLED)

    def _point_to(self, prefix):
        fresh = self.slurm.folder / "fresh"
        fresh.symlink_to(prefix)
        fresh.replace(self.installed)

    def copy_of_installation(self):
        prefix = copy_installation(self.place / "prefix")
        self.use(prefix)
        return prefix

    def srun(self, *words, **changes):
        """srun in the test's folder; `changes` of the environment."""
        return self.slurm.run("srun", *words, cwd=self.place, env=environment(**changes))

    def batch(self, script, *options, **changes):
        """Runs `script` as a batch job; returns what became of it and its output."""
        job, out = self.submit(script, *options, **changes)
        end = self.slurm.wait(job)
        return end, out.read_text(errors="replace"), job

    def endless_job(self, *options, **changes):
        """Id of a job with two ranks on n1, which has begun to record."""
        program = self.place / "endless.py"
        program.write_text(ENDLESS, encoding="utf-8")
        before = self.spool_bytes()
        job, out = self.submit(f"srun --mpi=pmix {PYTHON} {program}", "-w", "n1", *options,
                               **changes)
        wait_until(lambda: self.spool_bytes() > before + 4096, 30, f"records of {job}, see {out}")
        return job

    def spool_bytes(self):
        files = self.place.glob("aon-*/spool/*/*")
        return sum(f.stat().st_size for f in files if f.is_file())

    def submit(self, script, *options, **changes):
        out = self.place / f"out{len(list(self.place.glob('out*')))}"
        words = ["-n", 2, "-o", out, *options]
        env = environment(**changes)
        return self.slurm.submit(script, *words, cwd=self.place, env=env), out

    def outputs(self, count):
        """The job directories, once all agents have finished."""

        def found():
            dirs = sorted(self.place.glob("aon-*"))
            return dirs if len(dirs) == count else None

        dirs = wait_until(found, 20, f"{count} directories in {self.place}")
        for output in dirs:
            self.assert_exit(self.finalize(output))
        return dirs

    def finalize(self, output):
        """What `aon finalize` says, once nobody else is at it: an agent, or the Epilog."""

        def done():
            process = run([AON, "finalize", output])
            return process if process.returncode != 3 else None

        return wait_until(done, 60, f"end of {output}")

    def assert_nothing_recorded(self):
        self.assertEqual(list(self.place.glob("aon-*")), [])

    def assert_ranks(self, output, ranks, nodes=1):
        """Readable, with these ranks, from so many nodes."""
        self.assert_exit(self.finalize(output))
        document = ledger(output)
        self.assertEqual([r["rank"] for r in document["ranks"]], list(ranks))
        self.assertEqual(len({r["node"] for r in document["ranks"]}), nodes)
        self.assert_law(document)
        self.assert_exit(run(["otf2-print", "--silent", "-Werror", output / "traces.otf2"]))
        return document

    def processes_of(self, job, host="n1"):
        """{pid: name} of the job's processes, as their environment tells; pids of the cluster."""
        script = (
            f"for p in $(grep -lszx SLURM_JOB_ID={job} /proc/[0-9]*/environ | cut -d/ -f3); do"
            " echo $p $(cat /proc/$p/comm); done"
        )
        lines = self.slurm.on_host(host, "sh", "-c", script).stdout.splitlines()
        return dict(line.split(" ", 1) for line in lines if " " in line)

    def kill(self, pids):
        self.slurm.on_host("n1", "kill", "-KILL", *pids)
