"""Sampling where something is missing: the program runs as without it, and the ledger says what is
missing and what would help."""
import errno
import os
import pathlib
import signal
import subprocess

from sampling import HOT, NO_PERF, UNBOUNDED, Samples, skip_without_perf

import aon_test
from aon_test import environment, ledger, run, wait_until

NOT_ALLOWED = 77


class Faults(aon_test.TestCase):
    def sampling_state(self, output):
        return ledger(output)["ranks"][0]["providers"].get("sampling")

    def test_perf_refused_by_seccomp(self):
        output = self.folder / "out"
        done = run([NO_PERF, "mpirun", "-n", 1, "aon-run", "-o", output, HOT, 200])
        self.assert_exit(done)
        self.assertIn("working", done.stdout)
        document = ledger(output)
        self.assert_law(document)
        node = document["nodes"][0]["providers"]["sampling"]
        self.assertEqual(node["state"], "off")
        self.assertIn("perf_event_open is forbidden", node["reason"])
        self.assertNotEqual(node["remedy"], "")
        self.assertIn("sampling", done.stderr)

    def without_perf(self, **how):
        """A run with counters under no_perf; providers of the node and of the rank."""
        output = self.folder / "out"
        command = [NO_PERF, "mpirun", "-n", 1, "aon-run", "-o", output, "--events", "cycles"]
        done = run([*command, HOT, 200], env=environment(**how))
        if done.returncode == NOT_ALLOWED:
            self.skipTest("this machine lets us make no mount namespace")
        self.assert_exit(done)
        self.assertIn("working", done.stdout)
        document = ledger(output)
        self.assert_law(document)
        return document["nodes"][0]["providers"], document["ranks"][0]["providers"]

    def check_paranoid(self, level):
        node, rank = self.without_perf(NO_PERF_ERROR=errno.EACCES, NO_PERF_PARANOID=level)
        self.assertEqual(node["sampling"]["state"], "off")
        self.assertEqual(node["sampling"]["reason"], f"kernel.perf_event_paranoid is {level}")
        self.assertIn("sysctl kernel.perf_event_paranoid=2", node["sampling"]["remedy"])
        self.assertEqual(rank["counters"]["state"], "off")
        self.assertIn("kernel.perf_event_paranoid", rank["counters"]["reason"])
        self.assertEqual(rank["counters"]["remedy"], "sysctl kernel.perf_event_paranoid=2")

    def test_perf_event_paranoid_3(self):
        self.check_paranoid(3)

    def test_perf_event_paranoid_4(self):
        self.check_paranoid(4)

    def test_kernel_without_perf(self):
        node, rank = self.without_perf(NO_PERF_ERROR=errno.ENOSYS)
        self.assertEqual(node["sampling"]["state"], "off")
        self.assertIn("no perf_event_open", node["sampling"]["reason"])
        self.assertIn("no perf_event_open", rank["counters"]["reason"])

    def test_few_descriptors_and_many_threads(self):
        """The agent keeps some for its own work; the threads it could not watch are counted."""
        output = self.folder / "out"
        done = run(
            ["bash", "-c", 'ulimit -n 128; exec "$@"', "-", "mpirun", "-n", "1", "aon-run", "-o"]
            + [str(output), *UNBOUNDED, str(HOT), "20", "256"]
        )
        self.assert_exit(done)
        document = ledger(output)
        self.assert_law(document)
        self.assertTrue(document["job"]["complete"])
        state = self.sampling_state(output)
        self.assertEqual(state["state"], "degraded", state)
        self.assertIn("threads are not sampled", state["reason"])
        self.assertIn("ulimit -n", state["remedy"])

    def test_samples_survive_the_death_of_the_program(self):
        output = self.folder / "out"
        command = ["mpirun", "-n", "1", "aon-run", "-o", output, *UNBOUNDED]
        command += [HOT, "1", "1", "forever"]
        process = subprocess.Popen(
            [str(c) for c in command],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        try:
            self.assertEqual(process.stdout.readline(), "working\n")
            find = ["pgrep", "-s", process.pid, "-x", "sampling_hot"]
            pid = int(wait_until(lambda: run(find).stdout).split()[0])

            def cpu_ticks():
                fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
                return int(fields[11]) + int(fields[12])

            enough = cpu_ticks() + os.sysconf("SC_CLK_TCK")
            wait_until(lambda: cpu_ticks() > enough, seconds=60, what="one second of CPU time")
            os.kill(pid, signal.SIGKILL)
            process.wait(timeout=60)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            process.stdout.close()
        wait_until((output / "aon.json").exists, seconds=60, what="the archive")
        document = ledger(output)
        self.assert_law(document)
        self.assertEqual(document["ranks"][0]["exit"]["signal"], 9)
        self.assertGreater(Samples(output).by_function()["hot"], 20)


if __name__ == "__main__":
    skip_without_perf()
    aon_test.main()
