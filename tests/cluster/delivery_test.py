#!/usr/bin/python3
"""Nodes that share no job directory: the others bring their spools to rank 0's node, and its
archive is the same as with a shared one. Where they cannot, each keeps its own: nothing is lost.

    delivery_test.py [unittest arguments]
"""
import concurrent.futures
import subprocess
import time
import unittest

import cluster
from aon_test import BUILD, PYTHON, TestCase, environment, ledger, run, wait_until
from cluster import AON, AON_RUN, HEAT2D

HOSTS = 3
LOCAL = "/tmp/own/job"  # of each host: /tmp is its own
WORKER = BUILD / "bin" / "fault_worker"
RECORDS = BUILD / "bin" / "aon-canary-program"  # two regions, without MPI
# Long enough for the agents to find each other and compare their clocks.
BRIEF = """
import time
from mpi4py import MPI
for _ in range(200):
    MPI.COMM_WORLD.Barrier()
    time.sleep(0.02)
"""
FOREVER = [HEAT2D, "--size", 64, "--steps", 100_000_000]


class Delivery(TestCase):
    def setUp(self):
        super().setUp()
        self.hosts = cluster.Hosts(HOSTS)
        self.hosts.__enter__()
        self.addCleanup(self.hosts.__exit__)
        self.meeting = self.hosts.folder / "meeting"
        for i in range(HOSTS):
            self.job_of(f"n{i + 1}").parent.mkdir()

    def job_of(self, host):
        """The host's LOCAL, as seen from here."""
        return self.hosts.folder / host / LOCAL.removeprefix("/")

    def launch(self, *command, meeting=None, options=()):
        words = ["--rendezvous", meeting or self.meeting, *options, "--", *command]
        return self.hosts.mpirun(2, AON_RUN, "-o", LOCAL, *words)

    def start(self, *command):
        """mpirun in the background, ended with the test."""
        names = ",".join(f"n{i + 1}:1" for i in range(HOSTS))
        words = ["mpirun", "--mca", "plm_rsh_agent", cluster.RSH, "--host", names, "-x", "PATH",
                 "-x", "AON_ATTACH_MS", AON_RUN, "-o", LOCAL, "--rendezvous", self.meeting,
                 "--disk", "4MiB", *command]
        env = dict(environment(), AON_HOSTS=str(self.hosts.folder))
        process = subprocess.Popen(
            [str(w) for w in [cluster.HERE / "hosts.sh", "exec", self.hosts.folder, "n1", *words]],
            env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def assert_whole(self, document):
        self.assertTrue(document["job"]["complete"], document["job"])
        self.assertEqual([r["rank"] for r in document["ranks"]], list(range(2 * HOSTS)))
        self.assertEqual({r["node"] for r in document["ranks"]}, {"n1", "n2", "n3"})
        self.assert_law(document)

    def test_archive_of_rank_0_has_all_nodes(self):
        program = self.hosts.folder / "brief.py"
        program.write_text(BRIEF, encoding="utf-8")
        done = self.launch(PYTHON, program)
        self.assert_exit(done)
        document = ledger(self.job_of("n1"))
        self.assert_whole(document)
        self.assertEqual(done.stderr.count("ranks on 3 nodes"), 1, done.stderr)
        # Clocks are compared, too: agents found each other where they met.
        pairs = document["clock"]["pairs"]
        self.assertEqual({name for pair in pairs for name in pair["nodes"]}, {"n1", "n2", "n3"})
        self.assertLess(document["clock"]["max_error_ns"], 1_000_000)
        checked = run(["otf2-print", "--silent", self.job_of("n1") / "traces.otf2"])
        self.assert_exit(checked)

    def test_the_others_keep_a_note_and_no_copy(self):
        self.assert_exit(self.launch(HEAT2D, "--size", 64, "--steps", 50))
        for host in ("n2", "n3"):
            folder = self.job_of(host)
            self.assertEqual(list((folder / "spool" / host).iterdir()), [], host)
            self.assertFalse((folder / "traces.otf2").exists(), host)
            note = (folder / "delivered.txt").read_text()
            self.assertEqual(note, f"What {host} recorded is in n1:{LOCAL}\n")
            said = run([AON, "info", folder])
            self.assertIn(f"n1:{LOCAL}", said.stdout + said.stderr)
        wait_until(lambda: list(self.meeting.iterdir()) == [], 30, "end of the meeting")
        wait_until(lambda: not (self.job_of("n1") / "agents").exists(), 30, "end of the agents")

    def test_a_home_that_all_see_is_enough(self):
        done = self.hosts.mpirun(2, AON_RUN, "-o", LOCAL, HEAT2D, "--size", 64, "--steps", 50)
        self.assert_exit(done)
        self.assert_whole(ledger(self.job_of("n1")))
        launches = self.hosts.home / ".aon" / "launches"
        wait_until(lambda: list(launches.iterdir()) == [], 30, "end of the meeting")

    def test_programs_one_after_the_other_are_all_there(self):
        """Each has an agent of its own on its node: the first has gone when the next comes."""
        words = f"{AON_RUN} -o {LOCAL} --rendezvous {self.meeting} {RECORDS}"
        done = self.hosts.mpirun(1, "sh", "-c", f"{words}; sleep 5; {words}; true")
        self.assert_exit(done)

        def nodes():
            document = ledger(self.job_of("n1"))
            self.assert_law(document)
            found = [r["node"] for r in document["ranks"]]
            return {node: found.count(node) for node in set(found)}

        wait_until(lambda: nodes() == {"n1": 2, "n2": 2, "n3": 2}, 40, "both of all nodes")
        self.assertEqual({p.name for p in (self.job_of("n1") / "spool").iterdir()},
                         {"n1", "n2", "n2~2", "n3", "n3~2"})

    def test_without_a_place_to_meet_each_keeps_its_own(self):
        done = self.launch(HEAT2D, "--size", 64, "--steps", 50, meeting="off")
        self.assert_exit(done)
        own = [self.job_of(f"n{i + 1}") for i in range(HOSTS)]
        for folder in own:
            self.assertFalse(ledger(folder)["job"]["complete"])
        self.assert_exit(run([AON, "finalize", *own]))
        self.assert_whole(ledger(own[0]))

    def test_where_they_do_not_find_each_other_each_says_so(self):
        done = self.launch(HEAT2D, "--size", 64, "--steps", 50, meeting="/tmp/meeting")
        self.assert_exit(done)
        for host in ("n2", "n3"):
            said = (self.job_of(host) / f"agent.{host}.log").read_text()
            self.assertIn(f"the spool stays on {host}: no agent of rank 0's node was found", said)
            self.assertIn("aon finalize joins the directories", said)

    def test_not_assembled_the_spools_are_together(self):
        done = self.launch(HEAT2D, "--size", 64, "--steps", 50, options=["--no-assemble"])
        self.assert_exit(done)
        spools = self.job_of("n1") / "spool"
        wait_until(lambda: {p.name for p in spools.iterdir()} == {"n1", "n2", "n3"}, 30, "spools")
        wait_until(lambda: list(self.meeting.iterdir()) == [], 60, "end of the agents")
        self.assert_exit(run([AON, "finalize", self.job_of("n1")]))
        self.assert_whole(ledger(self.job_of("n1")))

    def test_a_receiver_that_is_busy_is_waited_for(self):
        """With the spools of hundreds of nodes, say, all of which end at once."""
        script = self.hosts.folder / "start.sh"
        script.write_text(f"""case $(hostname) in
            n1) mode=later ;;
            *) mode=early; sleep 4 ;;
        esac
        exec {AON_RUN} -o {LOCAL} --rendezvous {self.meeting} {WORKER} $mode {self.hosts.folder} 5
        """, encoding="utf-8")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            job = pool.submit(self.hosts.mpirun, 1, "sh", script)
            wait_until(lambda: list(self.meeting.glob("*/.receiver.address")), 20, "the receiver")
            receiver = self.hosts.run("n1", "pgrep", "-x", "aon-receiver").stdout.split()
            self.assertEqual(len(receiver), 1)
            self.hosts.run("n1", "kill", "-STOP", *receiver)
            time.sleep(14)  # the others have ended, and would not find each other
            self.hosts.run("n1", "kill", "-CONT", *receiver)
            (self.hosts.folder / "end").touch()
            done = job.result()
        self.assert_exit(done)
        document = ledger(self.job_of("n1"))
        self.assertTrue(document["job"]["complete"], document["job"])
        self.assertEqual({r["node"] for r in document["ranks"]}, {"n1", "n2", "n3"})
        self.assert_law(document)

    def test_a_long_assembly_is_waited_for(self):
        """Longer than --wait: the archive has what the others brought, and they are told so."""
        lease = self.job_of("n1") / "assemble.lease"
        marks = self.job_of("n1") / "agents"
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            job = pool.submit(self.launch, HEAT2D, "--size", 64, "--steps", 50)
            wait_until(lambda: (self.job_of("n1") / "spool" / "n3").exists(), 60, "spool of n3")
            lease.write_text("elsewhere 1 1 token\n")
            wait_until(lambda: len(list(marks.glob("*.done"))) == HOSTS, 60, "the marks")
            end = time.monotonic() + 32  # --wait is 25 s at the least
            while time.monotonic() < end:
                lease.touch()
                time.sleep(1)
            lease.unlink()
            done = job.result()
        self.assert_exit(done)
        self.assert_whole(ledger(self.job_of("n1")))
        for host in ("n2", "n3"):
            note = (self.job_of(host) / "delivered.txt").read_text()
            self.assertEqual(note, f"What {host} recorded is in n1:{LOCAL}\n")

    def test_a_lost_node_leaves_what_it_had_sent(self):
        self.start(*FOREVER)
        spool = self.job_of("n1") / "spool" / "n3"
        wait_until(lambda: record_bytes(spool) > 20_000, 60, "records of n3 on n1")
        agents = self.hosts.run("n3", "pgrep", "-x", "aon-agent").stdout.split()
        self.assertTrue(agents)
        self.hosts.kill("n3")
        wait_until(lambda: (self.job_of("n1") / "aon.json").exists(), 90, "the archive of the rest")
        document = ledger(self.job_of("n1"))
        self.assertEqual(document["job"]["lost_nodes"], ["n3"])
        self.assertFalse(document["job"]["complete"])
        by_node = {}
        for rank in document["ranks"]:
            by_node.setdefault(rank["node"], 0)
            by_node[rank["node"]] += rank["spooled"]
        self.assertEqual(set(by_node), {"n1", "n2", "n3"})
        self.assertGreater(by_node["n3"], 0)


def record_bytes(folder):
    """Of the segments of processes, without the parts that are on their way."""
    try:
        return sum(path.stat().st_size for path in folder.glob("p*.aon"))
    except FileNotFoundError:  # one that went just now
        return 0


if __name__ == "__main__":
    cluster.require()
    unittest.main(verbosity=2)
