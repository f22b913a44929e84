#!/usr/bin/python3
"""`aon level` in a job over two hosts: one wish, which the agent of each heeds by itself.

    level_test.py [unittest arguments]
"""
import re
import subprocess
import unittest

import cluster
import h5py
from aon_test import BUILD, TestCase, environment, ledger, wait_until
from cluster import AON, AON_RUN
from training_test import rows

FAKE = BUILD / "bin" / "fake_nccl"
HOSTS, RANKS_PER_HOST = 2, 2
ANSWER_S = 60


class Level(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hosts = cluster.Hosts(HOSTS)
        cls.hosts.__enter__()
        cls.addClassCleanup(cls.hosts.__exit__)

    def start(self, second_version):
        """Ranks that call NCCL until end(): of version 5 on n1, of another one on n2."""
        self.output = self.hosts.folder / self.id().rsplit(".", 1)[1]
        self.end_file = self.hosts.folder / f"{self.output.name}.end"
        words = ["mpirun", "--mca", "plm_rsh_agent", cluster.RSH]
        for host, version in (("n1", 5), ("n2", second_version)):
            words += [":"] if host != "n1" else []
            words += ["--host", f"{host}:{RANKS_PER_HOST}", "-n", RANKS_PER_HOST, "-x", "PATH",
                      "-x", "AON_ATTACH_MS", "-x", "AON_DEBUG_DIRECTORIES",
                      "env", f"FAKE_NCCL_UNTIL={self.end_file}", AON_RUN, "-o", self.output,
                      "--budget", 100, "--nccl-level", "api", "--",
                      FAKE, "busy", version, 1_000_000]  # fmt: skip
        env = dict(environment(), AON_HOSTS=str(self.hosts.folder))
        script = [cluster.HERE / "hosts.sh", "exec", self.hosts.folder, "n1"]
        self.job = subprocess.Popen([str(w) for w in script + words], env=env,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(self.job.wait)
        self.addCleanup(self.job.kill)
        self.until_shown("n1  ranks 0-1: api", "n2  ranks 2-3: api")

    def end(self):
        self.end_file.touch()
        self.assertEqual(self.job.wait(180), 0)
        self.assert_law(ledger(self.output))

    def level(self, *words, host="n2", code=0):
        done = self.hosts.run(host, AON, "level", self.output, *words)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def until_shown(self, *lines):
        """On the host that did not begin the job."""
        def look():
            shown[0] = self.hosts.run("n2", AON, "level", self.output).stdout
            return all(re.search(rf"^{line}$", shown[0], re.M) for line in lines)

        shown = [""]
        try:
            wait_until(look, ANSWER_S, "the levels")
        except AssertionError as error:
            raise AssertionError(f"{error}: {shown[0]}") from None

    def asked(self):
        asked = ledger(self.output)["budget"]["nccl_levels_asked"]
        return sorted((one["ranks"], one["asked"], one["from"], one["to"]) for one in asked)

    def test_agents_of_all_hosts_heed_what_was_asked_for_on_one(self):
        self.start(second_version=5)
        self.assertEqual(self.level("net", "--wait", ANSWER_S),
                         "n1  ranks 0-1: net\nn2  ranks 2-3: net\n")  # fmt: skip
        self.assertEqual(self.level("api", "--wait", ANSWER_S, host="n1"),
                         "n1  ranks 0-1: api\nn2  ranks 2-3: api\n")  # fmt: skip
        self.end()
        self.assertEqual(self.asked(), [("0-3", "api", "net", "api"), ("0-3", "net", "api", "net")])
        with h5py.File(self.output / "profile.h5") as file:
            proxies = rows(file, "nccl/proxy")
            timed = {rank: {o["flags"] for o in rows(file, "nccl/operations") if o["rank"] == rank}
                     for rank in range(4)}  # fmt: skip
        self.assertEqual({row["rank"] for row in proxies}, {0, 1, 2, 3})
        self.assertTrue(all(row["count"] > 0 for row in proxies))
        # Without times on the GPU, with them, and without again.
        self.assertEqual({rank: len(flags) for rank, flags in timed.items()},
                         dict.fromkeys(range(4), 2))

    def test_a_host_whose_nccl_cannot_be_given_it_is_told_by_name(self):
        self.start(second_version=7)
        text = self.level("gpu", "--wait", ANSWER_S, host="n1")
        self.assertRegex(text, r"^n1  ranks 0-1: gpu\n"
                               r"n2  ranks 2-3: api, not gpu: NCCL 2.31 and later ")  # fmt: skip
        self.end()
        self.assertEqual(self.asked(),
                         [("0-1", "gpu", "api", "gpu"), ("2-3", "gpu", "api", "api")])

    def test_a_host_whose_agent_does_not_answer_is_waited_for_and_heeds_it_later(self):
        self.start(second_version=5)
        keeper = int((self.output / "agents" / "n2.lease").read_text().split()[1])
        (worker,) = self.hosts.run("n2", "pgrep", "-P", keeper).stdout.split()
        self.hosts.run("n2", "kill", "-STOP", worker)
        try:
            text = self.level("net", "--wait", 2, host="n1")
            self.assertIn("n2  ranks 2-3: api; it has not answered yet\n", text)
            self.assertRegex(text, "[24] of 4 processes have not ")
            self.until_shown("n1  ranks 0-1: net", "n2  ranks 2-3: api; it has not answered yet")
        finally:
            self.hosts.run("n2", "kill", "-CONT", worker)
        self.until_shown("n1  ranks 0-1: net", "n2  ranks 2-3: net")
        self.end()
        self.assertEqual(self.asked(), [("0-3", "net", "api", "net")])


if __name__ == "__main__":
    cluster.require()
    unittest.main(verbosity=2)
