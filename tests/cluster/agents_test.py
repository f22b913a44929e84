#!/usr/bin/python3
"""What the agents of one launch do together: one archive without a further step, told once; a lost
host delays it by a bounded time and is named; nothing is open to other users.

    agents_test.py [unittest arguments]
"""
import os
import pathlib
import signal
import stat
import subprocess
import unittest

import cluster
import readers
import shares_test
from aon_test import TestCase, environment, ledger, run, wait_until
from cluster import AON, AON_RUN, HEAT2D

HOSTS = 3
FOREVER = [HEAT2D, "--size", 64, "--steps", 100_000_000]


def share_elsewhere():
    """Process id of who does a share for the one that makes the archive, whichever node that is."""
    words = [b"finalize", b"--share"]
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if all(word in line for word in words):
            return int(folder.name)
    return None


class OnHosts(TestCase):
    """Hosts of the test, and a launch over them."""

    def setUp(self):
        super().setUp()
        self.hosts = cluster.Hosts(HOSTS)
        self.hosts.__enter__()
        self.addCleanup(self.hosts.__exit__)
        self.output = self.hosts.folder / "job"

    def start(self, *command):
        """mpirun in the background, ended with the test."""
        names = ",".join(f"n{i + 1}:1" for i in range(HOSTS))
        words = ["mpirun", "--mca", "plm_rsh_agent", cluster.RSH, "--host", names, "-x", "PATH",
                 "-x", "AON_ATTACH_MS", "-x", "AON_DEBUG_DIRECTORIES", "env",
                 "AON_SHARE_RECORDS=1", AON_RUN, "-o", self.output, *command]
        env = dict(environment(), AON_HOSTS=str(self.hosts.folder))
        process = subprocess.Popen(
            [str(w) for w in [cluster.HERE / "hosts.sh", "exec", self.hosts.folder, "n1", *words]],
            env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def lease(self, host):
        """Process id of the host's agent, as its lease says."""
        path = self.output / "agents" / f"{host}.lease"
        return int(path.read_text().split()[1]) if path.exists() else None

    def pings_of(self, host):
        path = self.output / "spool" / host / "definitions.aon"
        if not path.exists():
            return 0
        text = subprocess.run(["zstd", "-dc", path], capture_output=True, check=False).stdout
        return text.count(b"\0n1\0")


class Agents(OnHosts):
    def test_every_node_writes_its_own_share(self):
        """And the result says what one process says of the same spool."""
        words = [AON_RUN, "-o", self.output, HEAT2D, "--size", 400, "--steps", 200]
        done = self.hosts.mpirun(2, "env", "AON_SHARE_RECORDS=1", *words)
        self.assert_exit(done)
        document = ledger(self.output)
        self.assertEqual(document["assembly"]["warnings"], [])
        self.assertEqual(document["assembly"]["shares"], HOSTS)
        self.assertEqual(document["assembly"]["shares_replaced"], 0)
        names = {f"n{i + 1}.h5" for i in range(HOSTS)}
        self.assertEqual({p.name for p in (self.output / "series").iterdir()}, names)
        self.assertFalse(list(self.output.glob(".assemble-*")))
        self.assertFalse((self.output / "agents").exists(), "all nodes are in the archive")
        readers.many_nodes(self, self.output, document)
        by_all = shares_test.contents(self.output)
        self.assert_exit(run([AON, "finalize", self.output]))
        shares_test.assert_same(self, shares_test.contents(self.output), by_all)

    def test_archive_is_there_when_mpirun_returns_and_told_once(self):
        done = self.hosts.mpirun(2, AON_RUN, "-o", self.output, HEAT2D, "--size", 64, "--steps", 50)
        self.assert_exit(done)
        document = ledger(self.output)
        self.assertTrue(document["job"]["complete"], document["job"])
        self.assertEqual([r["rank"] for r in document["ranks"]], list(range(2 * HOSTS)))
        self.assertEqual(done.stderr.count("ranks on 3 nodes"), 1, done.stderr)
        self.assertFalse((self.output / "agents").exists(), "all nodes are in the archive")
        self.assert_law(document)

    def test_nothing_is_open_to_others(self):
        self.start(*FOREVER)
        address = self.output / "agents" / "n1.address"
        wait_until(lambda: self.pings_of("n2") > 0, what="exchanges of n2")
        self.assertEqual(stat.S_IMODE(address.stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(address.parent.stat().st_mode), 0o700)
        places = [line.split()[1:] for line in address.read_text().splitlines()[2:]]
        self.assertEqual([host for host, _ in places], ["10.77.0.1"], "nowhere but there")
        # Somebody without the token gets a challenge, and then nothing.
        said = self.hosts.run(
            "n2", "/usr/bin/python3", "-c",
            "import socket; s = socket.create_connection(('10.77.0.1', "
            f"{places[0][1]}), 5); s.sendall(b'x' * 400); s.settimeout(20)\n"
            "data = b''\n"
            "while True:\n"
            "    try: more = s.recv(4096)\n"
            "    except ConnectionResetError: break\n"
            "    if not more: break\n"
            "    data += more\n"
            "print(len(data))")
        self.assert_exit(said)
        self.assertLessEqual(int(said.stdout), 48)


class Faults(OnHosts):
    """A host or an agent that is lost, hangs, comes late or not at all."""

    def test_a_share_that_hangs_is_done_by_another(self):
        """After 20 s of silence; nobody waits for the one that hangs when the archive is there."""
        process = self.start(HEAT2D, "--size", 64, "--steps", 3000, "--tolerance", 0)
        share = wait_until(share_elsewhere, seconds=90, what="a share")
        os.kill(share, signal.SIGSTOP)
        self.assertEqual(process.wait(90), 0)  # not at the end of --wait
        assembly = ledger(self.output)["assembly"]
        told = (assembly["shares"], assembly["shares_replaced"])
        self.assertEqual(told, (HOSTS, 1), assembly["warnings"])
        self.assertEqual(assembly["warnings"], [])
        readers.many_nodes(self, self.output, ledger(self.output))
        wait_until(lambda: not shares_test.is_alive(share), what="end of who is not needed")

    def test_lost_host_is_named_and_the_rest_is_whole(self):
        self.start(*FOREVER)
        # What an agent has not written yet goes with its host.
        for host in ("n2", "n3"):
            wait_until(lambda name=host: self.pings_of(name) > 0, what=f"exchanges of {host}")
        agent = wait_until(lambda: self.lease("n3"), what="lease of n3")
        worker = self.hosts.run("n3", "pgrep", "-P", str(agent)).stdout.split()
        self.hosts.run("n3", "kill", "-KILL", str(agent), *worker)
        self.hosts.kill("n3")
        wait_until(lambda: (self.output / "aon.json").exists(), 60, "the archive of the others")
        job = ledger(self.output)["job"]
        self.assertFalse(job["complete"])
        self.assertEqual(job["lost_nodes"], ["n3"])
        self.assertIn("node n3 was lost", job["reason"])
        nodes = {r["node"] for r in ledger(self.output)["ranks"]}
        self.assertEqual(nodes, {"n1", "n2", "n3"})

    def test_a_host_whose_agent_hangs_is_named_and_whole_when_it_goes_on(self):
        """Its ranks end as ever; the others wait for it for a bounded time only."""
        process = self.start("--wait", 90, HEAT2D, "--size", 64, "--steps", 3000, "--tolerance", 0)
        wait_until(lambda: self.pings_of("n3") > 0, 60, "exchanges of n3")
        # Its keeper lives on, and sees it.
        hung = self.hosts.run("n3", "pgrep", "-P", self.lease("n3")).stdout.split()
        self.hosts.run("n3", "kill", "-STOP", *hung)
        self.assertEqual(process.wait(180), 0, "it hangs, and nothing else")
        wait_until(lambda: (self.output / "aon.json").exists(), 60, "the archive of the others")
        job = ledger(self.output)["job"]
        self.assertEqual((job["complete"], job["lost_nodes"]), (False, ["n3"]), job)
        self.assertIn("node n3 was lost", job["reason"])
        readers.otf2_print(self, self.output)
        self.hosts.run("n3", "kill", "-CONT", *hung)

        def whole():
            """By itself: what had been lost is back."""
            document = ledger(self.output)
            return document if document["job"]["complete"] else None

        document = wait_until(whole, 120, "the archive with n3")
        self.assertEqual([r["rank"] for r in document["ranks"]], list(range(HOSTS)))
        self.assertEqual(sum(r["lost"] for r in document["ranks"]), 0)
        self.assert_law(document)

    def test_a_host_without_an_agent_is_named(self):
        """Where none can start, its ranks run alone; one that comes late belongs to the rest."""
        script = self.hosts.folder / "start.sh"
        script.write_text(f"""case $(hostname) in
            n2) exec {HEAT2D} "$@" ;;
            n3) sleep 3 ;;
        esac
        exec {AON_RUN} -o {self.output} {HEAT2D} "$@"
        """, encoding="utf-8")
        words = ["--size", 64, "--steps", 200, "--tolerance", 0]
        done = self.hosts.mpirun(1, "sh", script, *words)
        self.assert_exit(done)
        document = ledger(self.output)
        known = [r["rank"] for r in document["ranks"] if r.get("state") != "no records"]
        self.assertEqual(known, [0, 2])
        self.assertEqual({r["node"] for r in document["ranks"]}, {"n1", None, "n3"})
        self.assertFalse(document["job"]["complete"], document["job"])
        self.assertEqual(document["job"]["incomplete_ranks"], [1])
        self.assertEqual(document["job"]["reason"], "rank 1: nothing was recorded")
        self.assertNotRegex(" ".join(document["findings"]), "rank 1 ", "nobody knows of it")
        self.assert_law(document)


if __name__ == "__main__":
    cluster.require()
    unittest.main(verbosity=2)
