"""The ledger says nothing that is not known: times, ends, cost and budget of jobs of which little
was seen."""
import datetime
import os
import unittest

from fault_test import BUILD, FaultCase, environment, run

EMITTER = BUILD / "bin" / "agent_emitter"


class Times(FaultCase):
    def test_job_in_which_nothing_was_recorded_has_the_times_of_its_agent(self):
        before = datetime.datetime.now(datetime.timezone.utc)
        self.assert_exit(run(["aon-run", "-o", self.output, "sleep", "0.5"]))
        after = datetime.datetime.now(datetime.timezone.utc)
        job = self.finish()["job"]
        start, end = (datetime.datetime.fromisoformat(job[k][:26] + "+00:00")
                      for k in ("start", "end"))
        self.assertLess(before, start)
        self.assertLess(end, after)
        self.assertGreater(end, start)
        self.assertTrue(job["complete"])


NUMBER = (int, float)
MAYBE_TEXT = (str, type(None))
MAYBE_NUMBER = (int, float, type(None))
THREAD = {"location": int, "tid": int, "emitted": int, "spooled": int, "lost": int}
PROVIDER = {"state": str, "reason": str, "remedy": str, "emitted": int, "lost": int}
# What architecture.md promises to tests outside of the project: at least these keys.
LEDGER = {
    "aon": {"version": str, "format": int},
    "job": {"id": str, "start": str, "end": str, "complete": bool, "incomplete_ranks": [int]},
    "ranks": [{
        "rank": MAYBE_NUMBER, "process": MAYBE_NUMBER, "world": MAYBE_NUMBER, "node": MAYBE_TEXT,
        "pid": MAYBE_NUMBER, "program": MAYBE_TEXT, "exit": {"code": MAYBE_NUMBER, "signal": int},
        "memory_bytes": int, "emitted": int, "spooled": int, "lost": int, "threads": [THREAD],
    }],
    "losses": [{"rank": MAYBE_NUMBER, "location": int, "reason": str, "count": int,
                "start_ns": int, "end_ns": int}],
    "overhead": {"percent": MAYBE_NUMBER, "app_cpu_s": NUMBER, "agent_cpu_s": NUMBER,
                 "method": str},
    "budget": {"percent": MAYBE_NUMBER, "memory_bytes": int, "disk_bytes": int,
               "disk_used_bytes": int},
    "clock": {"max_error_ns": NUMBER, "pairs": [{"nodes": [str], "error_ns": NUMBER}]},
}  # fmt: skip


class Schema(FaultCase):
    def check(self, value, schema, where="aon.json"):
        if isinstance(schema, dict):
            self.assertIsInstance(value, dict, where)
            for key, inner in schema.items():
                self.assertIn(key, value, where)
                self.check(value[key], inner, f"{where}: {key}")
        elif isinstance(schema, list):
            self.assertIsInstance(value, list, where)
            for number, one in enumerate(value):
                self.check(one, schema[0], f"{where}[{number}]")
        else:
            self.assertIsInstance(value, schema, where)

    def test_every_promised_key_is_there(self):
        """Of a job with losses and with a rank that was not recorded."""
        worker = self.worker("loop", 1)
        self.assert_exit(run(["mpirun", "-n", 1, "aon-run", "-o", self.output, "--disk", "1MiB",
                              *worker, ":", "-n", 1, *worker]))
        document = self.finish()
        self.check(document, LEDGER)
        recorded, missing = document["ranks"]
        self.assertGreater(len(document["losses"]), 0)
        self.assertGreater(len(recorded["threads"]), 0)
        for name, provider in recorded["providers"].items():
            self.check(provider, PROVIDER, name)
            self.assertIn(provider["state"], ("on", "off", "degraded"))
        self.assertEqual(recorded["exit"], {"code": 0, "signal": 0})
        self.assertEqual((recorded["rank"], recorded["world"]), (0, 2))
        self.assertEqual(missing["rank"], 1)
        for key in ("process", "world", "node", "pid", "program"):
            self.assertIsNone(missing[key], key)
        self.assertEqual(missing["exit"], {"code": None, "signal": 0})
        self.assertEqual((missing["memory_bytes"], missing["providers"]), (0, {}))
        self.assertEqual(document["job"]["incomplete_ranks"], [1])
        self.assertIn("exit", run(["aon", "info", self.output]).stdout)


class Definitions(FaultCase):
    COUNT = 6000
    SCRIPT = f"""
import os
from mpi4py import MPI
for _ in range({COUNT}):
    one = MPI.COMM_WORLD.Dup()
    one.Set_name(os.urandom(40).hex())
    one.Free()
"""

    def job(self, disk):
        self.assert_exit(run(["mpirun", "-n", 1, "aon-run", "-o", self.output, "--disk", disk,
                              "/usr/bin/python3", "-c", self.SCRIPT]))
        document = self.finish()
        (path,) = (self.output / "spool").rglob("definitions.aon")
        return document, path.stat().st_size

    def test_those_without_room_below_a_small_cap_are_counted(self):
        document, used = self.job("1MiB")
        lost = self.rank_of(document, 0)["lost_definitions"]
        self.assertEqual(lost["pool full"], 0)
        self.assertGreater(lost["disk"], 100)
        # Of each communicator: that it is there, its name, its end.
        self.assertLess(lost["disk"], 3 * self.COUNT + 100)
        self.assertTrue(any(text.startswith(f"{lost['disk']:,}".replace(",", " ") + " definitions")
                            and "--disk" in text for text in document["findings"]),
                        document["findings"])
        self.assertLess(used, (1 << 16) + (1 << 17), "a sixteenth, and what the agent says itself")

    def test_all_are_there_with_room(self):
        import h5py

        document, _ = self.job("1GiB")
        self.assertNotIn("lost_definitions", self.rank_of(document, 0))
        with h5py.File(self.output / "profile.h5") as file:
            self.assertGreaterEqual(len(file["communicators/name"]), self.COUNT)


class Ends(FaultCase):
    def emitter(self, *ending):
        # The agent runs by then: without one nobody sees the end.
        script = f"sleep 1; exec {EMITTER} 1 100 100 100 " + " ".join(ending)
        return run(["aon-run", "-o", self.output, "bash", "-c", script])

    def test_process_without_a_rank_that_was_killed(self):
        self.assertEqual(self.emitter("kill").returncode, -9)
        document = self.finish()
        (entry,) = document["ranks"]
        self.assertIsNone(entry["rank"])
        job = document["job"]
        self.assertFalse(job["complete"])
        self.assertEqual(job["incomplete_ranks"], [])
        (process,) = job["incomplete_processes"]
        self.assertEqual((process["node"], process["pid"]), (entry["node"], entry["pid"]))
        self.assertEqual(process["reason"], "killed by signal 9")
        self.assertIn(f"process {entry['pid']} on {entry['node']}: killed by signal 9",
                      job["reason"])
        said = run(["aon", "info", self.output]).stdout
        self.assertIn("killed by signal 9", said)

    def test_process_that_ended_well(self):
        self.assert_exit(self.emitter())
        job = self.finish()["job"]
        self.assertTrue(job["complete"])
        self.assertEqual((job["incomplete_ranks"], job["incomplete_processes"]), ([], []))
        self.assertNotIn("reason", job)

    def test_process_whose_end_nobody_could_see(self):
        self.output.mkdir(mode=0o700)
        env = environment(AON_OUTPUT=self.output)
        self.assert_exit(run([EMITTER, 1, 100, 100, 100], env=env))
        job = self.finish()["job"]
        self.assertFalse(job["complete"])
        self.assertEqual([p["reason"] for p in job["incomplete_processes"]],
                         ["its end was not seen"])

    def test_process_that_came_when_the_job_was_over(self):
        """It records into a file, of which those who ask are told."""
        self.assert_exit(self.emitter())
        self.assertEqual(len(self.finish()["ranks"]), 1)
        self.assertNotIn("not in it", run(["aon", "info", self.output]).stdout)
        self.assert_exit(run([EMITTER, 1, 100, 100, 100], env=environment(AON_OUTPUT=self.output)))
        said = run(["aon", "info", self.output]).stdout
        self.assertIn("not in it: the file of a process that found no agent; run: aon finalize "
                      f"{self.output}", said)
        self.assert_exit(run(["aon", "finalize", "-q", self.output]))
        self.assertNotIn("not in it", run(["aon", "info", self.output]).stdout)
        self.assertEqual(len(self.finish()["ranks"]), 2)

    def test_killed_rank_has_a_reason(self):
        run(["mpirun", "-n", 1, "aon-run", "-o", self.output, "bash", "-c",
             f"sleep 1; exec {EMITTER} 1 100 100 100 kill"])
        job = self.finish()["job"]
        self.assertEqual((job["incomplete_ranks"], job["incomplete_processes"]), ([0], []))
        self.assertEqual(job["reason"], "rank 0: killed by signal 9")


class Cost(FaultCase):
    def test_without_an_agent_nothing_is_claimed(self):
        self.output.mkdir(mode=0o700)
        env = environment(AON_OUTPUT=self.output, LD_PRELOAD=BUILD / "lib" / "libaon-mpi.so")
        self.assert_exit(run(self.worker("calls", 100), env=env))
        process = run(["aon", "finalize", self.output])
        self.assert_exit(process)
        document = self.finish()
        self.assertEqual(self.rank_of(document, 0)["emitted"], 102)
        self.assertIsNone(document["overhead"]["percent"])
        self.assertIn("agent", document["overhead"]["reason"])
        self.assertIsNone(document["budget"]["percent"])
        self.assertIn("overhead not measured: ", process.stdout)
        self.assertNotIn("budget 0 %", process.stdout)

    def test_job_in_which_nothing_was_recorded(self):
        self.assert_exit(run(["aon-run", "-o", self.output, "true"]))
        overhead = self.finish()["overhead"]
        self.assertIsNone(overhead["percent"])
        self.assertTrue(overhead["reason"])

    def test_what_was_measured_is_a_number(self):
        self.assert_exit(run(["mpirun", "-n", 1, "aon-run", "-o", self.output,
                              *self.worker("pace", 1)]))
        document = self.finish()
        self.assertGreater(document["overhead"]["percent"], 0)
        self.assertNotIn("reason", document["overhead"])
        self.assertEqual(document["budget"]["percent"], 1)


class Totals(FaultCase):
    def test_findings_and_summary_agree(self):
        self.assert_exit(run(["mpirun", "-n", 1, "aon-run", "-o", self.output, "--disk", "1MiB",
                              "--without", "sampling",  # of three findings the second is the calls
                              *self.worker("loop", 2)]))
        document = self.finish()
        count, lost = (sum(r[key] for r in document["ranks"]) for key in ("emitted", "lost"))
        self.assertGreater(lost, 1000)
        emitted, lost = (f"{number:,}".replace(",", " ") for number in (count, lost))
        self.assertTrue(document["findings"][0].startswith(f"{lost} of {emitted} records are lost"),
                        document["findings"])
        self.assertIn(f"{emitted} records, {lost} lost", run(["aon", "info", self.output]).stdout)
        self.assertRegex(" ".join(document["findings"]), r"in \d{1,3}( \d{3})+ known calls")


if __name__ == "__main__":
    os.umask(0o077)
    unittest.main()
