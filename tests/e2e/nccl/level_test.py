"""`aon level`: NCCL's level of a job that runs, as its user asks for it."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

import h5py
from job_test import rows, table
from nccl_records import BUILD, FAKE, TIMED, PluginTestCase, ledger, run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "faults"))
from fault_test import agent_pids  # noqa: E402

from aon_test import environment, wait_until  # noqa: E402

AON = BUILD / "bin" / "aon"
AON_RUN = BUILD / "bin" / "aon-run"


class Level(PluginTestCase):
    def setUp(self):
        super().setUp()
        self.output = self.folder / "job"
        self.end_file = self.folder / "end"

    def start(self, *versions, level="api", options=("--budget", 100), command=None):
        """A job of one rank per version of NCCL, which goes on until end()."""
        words = ["mpirun", "--oversubscribe"]
        for version in versions:
            words += [":"] if len(words) > 2 else []
            words += ["-n", 1, "-x", "FAKE_NCCL_UNTIL", AON_RUN, "-o", self.output, *options,
                      "--nccl-level", level, "--",
                      *(command or (FAKE, "busy", version, 1000000))]  # fmt: skip
        self.job = subprocess.Popen(
            [str(word) for word in words], env=environment(FAKE_NCCL_UNTIL=self.end_file),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        self.addCleanup(self.end)

    def end(self):
        """Lets the job end, and waits until its archive is there."""
        self.end_file.touch()
        try:
            self.assertEqual(self.job.wait(90), 0)
        finally:
            if self.job.poll() is None:
                os.killpg(self.job.pid, signal.SIGKILL)
                self.job.wait()

    def level(self, *words, code=0):
        wait = () if "--wait" in words else ("--wait", "60")
        done = run([AON, "level", *words, *wait])
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stdout + done.stderr

    def until_shown(self, pattern):
        """What `aon level DIR` says, once that is there."""
        seen = [""]

        def look():
            seen[0] = run([AON, "level", self.output]).stdout
            return re.search(pattern, seen[0], re.M) and seen[0]

        try:
            return wait_until(look, 40, pattern)
        except AssertionError as error:
            raise AssertionError(f"{error}: {seen[0]}") from None

    def operations(self):
        with h5py.File(self.output / "profile.h5") as file:
            proxies = rows(table(file, "nccl/proxy")) if "nccl/proxy" in file else []
            return sorted(rows(table(file, "nccl/operations")), key=lambda o: o["call"]), proxies

    def asked(self):
        document = ledger(self.output)
        self.assert_law(document)
        return [
            (one["asked"], one["from"], one["to"], one["ranks"], one["processes"])
            for one in document["budget"]["nccl_levels_asked"]
        ]

    def test_rises_and_falls_while_the_program_runs(self):
        self.start(5)
        text = self.until_shown(r"^\S+  rank 0: api$")
        self.assertIn("nothing was asked for: the level is that of the launch", text)
        self.assertRegex(self.level(self.output, "net"), r"^\S+  rank 0: net\n$")
        self.assertRegex(self.level(self.output),
                         r"^asked for: net, since .*Z\n\S+  rank 0: net\n$")  # fmt: skip
        time.sleep(1)
        self.assertRegex(self.level(self.output, "api"), r"^\S+  rank 0: api\n$")
        time.sleep(1)
        self.end()
        told, proxies = self.operations()
        flags = [o["flags"] for o in told]
        first, last = flags.index(TIMED), len(flags) - flags[::-1].index(TIMED)
        self.assertEqual(set(flags[:first] + flags[last:]), {0})
        self.assertEqual(set(flags[first:last]), {TIMED})
        # The group that raised the level tells no channel.
        self.assertAlmostEqual(sum(p["count"] for p in proxies), 4 * (last - first), delta=8)
        self.assertEqual([o["call"] for o in told], list(range(len(told))))
        self.assertEqual(
            self.asked(), [("net", "api", "net", "0", 1), ("api", "net", "api", "0", 1)]
        )
        budget = ledger(self.output)["budget"]
        self.assertEqual((budget["nccl_level_changes"], budget["mode_changes"]), ([], 0))
        self.assertNotEqual(ledger(self.output)["ranks"][0]["providers"]["nccl"]["state"], "off")
        text = self.level(self.output)
        self.assertIn("the job is over; the levels that its processes had at the end:\n", text)
        self.assertRegex(text, r"\n\S+  rank 0: api\n")
        self.assertIn("the job is over; nobody is left to heed it",
                      self.level(self.output, "net", code=1))  # fmt: skip

    def test_falls_below_that_of_the_launch_and_rises_to_step(self):
        self.start(6, level="gpu")
        self.until_shown(r"^\S+  rank 0: gpu$")
        self.level(self.output, "api")
        self.level(self.output, "step")
        self.end()
        _, proxies = self.operations()
        self.assertGreater(sum(p["steps"] for p in proxies), 0)
        self.assertEqual([one[:3] for one in self.asked()],
                         [("api", "gpu", "api"), ("step", "api", "step")])  # fmt: skip

    def test_a_wish_that_a_later_one_replaced_is_told_as_that(self):
        self.start(5)
        self.until_shown(r"^\S+  rank 0: api$")
        agents = agent_pids(self.output)
        try:
            for pid in agents:
                os.kill(pid, signal.SIGSTOP)  # nobody answers
            first = subprocess.Popen([AON, "level", self.output, "step", "--wait", "60"],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(first.kill)
            wait_until((self.output / "nccl.level").exists, 20, "the wish")
            self.level(self.output, "net", "--wait", "0")
            told = "".join(first.communicate(timeout=30))
        finally:
            for pid in agents:
                os.kill(pid, signal.SIGCONT)
        self.assertEqual(first.returncode, 1, told)
        self.assertIn("a later aon level asked for net, not step", told)
        self.until_shown(r"^\S+  rank 0: net$")
        self.end()

    def test_the_budget_lowers_it_from_there(self):
        self.start(5, options=("--budget", "0.01"))
        self.until_shown(r"^\S+  rank 0: api$")
        self.level(self.output, "step")
        self.until_shown(r"^\S+  rank 0: (net|gpu|api), lowered by the budget$")
        self.end()
        self.assertEqual(self.asked(), [("step", "api", "step", "0", 1)])
        changes = ledger(self.output)["budget"]["nccl_level_changes"]
        self.assertEqual((changes[0]["from"], changes[0]["to"]), ("step", "net"))

    def test_each_process_gets_what_its_nccl_can_be_given(self):
        self.start(5, 3, 7)
        self.until_shown(r"^\S+  ranks 0-2: api$")
        text = self.level(self.output, "gpu")
        self.assertRegex(text, r"(?m)^\S+  rank 0: gpu$")
        self.assertRegex(text, r"(?m)^\S+  rank 1: api, not gpu: NCCL before 2.27 ")
        self.assertRegex(text, r"(?m)^\S+  rank 2: api, not gpu: NCCL 2.31 and later ")
        self.end()
        self.assertEqual(sorted(one[2:] for one in self.asked()),
                         [("api", "1", 1), ("api", "2", 1), ("gpu", "0", 1)])  # fmt: skip
        reasons = [one["reason"] for one in ledger(self.output)["budget"]["nccl_levels_asked"]]
        self.assertEqual(sum("2.31" in reason for reason in reasons), 1)

    def test_channels_that_must_stay_stay(self):
        self.start(7, level="net")
        self.until_shown(r"^\S+  rank 0: net$")
        text = self.level(self.output, "api", code=1)
        self.assertRegex(text, r"(?m)^\S+  rank 0: gpu, not api: NCCL 2.31 and later does not ")
        self.assertIn("no process can be given api", text)
        self.assertRegex(self.level(self.output, "step"), r"^\S+  rank 0: step\n$")
        self.end()
        told, _ = self.operations()
        self.assertEqual({o["flags"] for o in told}, {TIMED})

    def test_an_agent_that_was_killed_meanwhile_heeds_it(self):
        self.start(5)
        self.until_shown(r"^\S+  rank 0: api$")
        _, worker = wait_until(lambda: len(agent_pids(self.output)) == 2
                               and agent_pids(self.output), what="keeper and worker")  # fmt: skip
        os.kill(worker, signal.SIGSTOP)
        self.assertRegex(self.level(self.output, "gpu", "--wait", "0"),
                         r"rank 0: api; it has not answered yet\n1 of 1 processes have not ")
        os.kill(worker, signal.SIGKILL)
        self.until_shown(r"^\S+  rank 0: gpu$")
        self.end()
        self.assertEqual(self.asked(), [("gpu", "api", "gpu", "0", 1)])

    def test_holds_for_processes_that_begin_later(self):
        script = f'while [ ! -e "$0" ]; do sleep 0.1; done; exec {FAKE} busy 5 1000000'
        go = self.folder / "go"
        self.start(5, command=("sh", "-c", script, go))
        wait_until(lambda: (self.output / "agents").exists(), what="the agent")
        wait_until(lambda: "live" in run([AON, "info", self.output]).stderr, what="a live job")
        self.assertEqual(self.level(self.output, "gpu"),
                         "no process uses NCCL yet; those that will are asked for gpu\n")
        go.touch()
        self.until_shown(r"^\S+  rank 0: gpu$")
        self.end()

    def refused(self, reason):
        """That a job in which NCCL is off says so, and takes no level."""
        self.until_shown(rf"^\S+  rank 0: off: {reason}")
        text = self.level(self.output, "net", code=1)
        self.assertIn("NCCL is not recorded in this job: nothing can be asked for", text)
        self.assertFalse((self.output / "nccl.level").exists())
        self.end()

    def test_a_job_that_was_launched_with_level_off_stays_there(self):
        self.start(5, level="off")
        self.refused("AON_NCCL_LEVEL is off")

    def test_a_job_without_the_plugin_has_no_level(self):
        self.start(5, options=("--without", "nccl"),
                   command=(BUILD / "bin" / "fault_worker", "until", self.folder, 90))  # fmt: skip
        self.refused(".*--without")

    def test_where_it_cannot_be_written_the_reason_is_told(self):
        self.start(5)
        self.until_shown(r"^\S+  rank 0: api$")
        (self.output / "nccl.level").mkdir()
        text = self.level(self.output, "net", code=1)
        self.assertRegex(text, r"aon level: \S+: cannot replace \S+/nccl.level: Is a directory")
        (self.output / "nccl.level").rmdir()
        self.level(self.output, "net")
        self.end()


class Refusals(PluginTestCase):
    """What needs no job that runs."""

    def test_wrong_words(self):
        for words, says in (
            ((self.folder, "much"), "'much' is no level: api, gpu, net or step"),
            ((self.folder, "off"), "off is a level of a launch"),
            ((self.folder,), "it is no job directory"),
            ((self.folder, "net"), "it is no job directory"),
            (("/none/at/all", "net"), "no such directory"),
            ((self.folder, "net", "--wait", "-1"), "--wait"),
        ):
            done = run([AON, "level", *words])
            self.assert_exit(done, 2)
            self.assertIn(says, done.stderr)
            self.assertRegex(done.stderr, "^aon level: ")
            self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_job_that_is_over(self):
        (self.folder / "spool").mkdir()
        done = run([AON, "level", self.folder, "net"])
        self.assert_exit(done, 1)
        self.assertIn("no agent is live: the job is over, or its agents have ended", done.stderr)
        self.assertFalse((self.folder / "nccl.level").exists())

    def test_nodes_whose_spool_is_on_their_own_disk_are_named_as_unknown(self):
        (self.folder / "spool").mkdir()
        for node in ("a", "z"):
            (self.folder / "spool" / node).symlink_to("/none/at/all")
        done = run([AON, "level", self.folder])
        self.assert_exit(done, 0)
        self.assertIn("of 2 nodes nothing is known here", done.stdout)
        self.assertNotIn("no process", done.stdout)


if __name__ == "__main__":
    unittest.main()
