"""Providers of the agent that do not come back from a call, and a worker that cannot end: the job's
end waits for them no longer than it says, all else is written, and the ledger names who hung."""
import ctypes
import os
import signal
import time

from fault_test import (
    BUILD, FaultCase, agent_pids, environment, ledger, main, run, wait_until,
)  # fmt: skip

PROVIDER = BUILD / "tests" / "e2e" / "faults" / "libhanging_provider.so"
WAIT_S = 10  # that the end of a job has for its providers
# What else an end takes here, on a busy machine; less than the --wait of aon-run.
MORE_S = 20
PTRACE_CONT, PTRACE_SEIZE, PTRACE_O_TRACEEXIT = 7, 0x4206, 0x40
WALL = 0x40000000  # __WALL of waitpid(2)


class HeldCase(FaultCase):
    def end_of(self, process, longest_s):
        """The ledger of a job whose program ends now, and which takes no longer than that."""
        begin = time.monotonic()
        _, said = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, said)
        self.assertLess(time.monotonic() - begin, longest_s, said)
        document = ledger(self.output)
        self.assert_law(document)
        self.assertTrue(document["job"]["complete"], document["job"])
        self.assertEqual(self.rank_of(document, 0)["exit"], {"code": 0, "signal": 0})
        self.assertEqual(self.profile_count(0), self.own_count(0))
        return document


class Hanging(HeldCase):
    def start_hanging(self, function, seconds, **how):
        return self.start_job(1, *self.worker("pace", seconds),
                              options=["--providers", f"mpi,{PROVIDER}"],
                              env=environment(HANG_IN=function, **how))

    def state(self, document):
        """What the ledger says of the provider."""
        return document["nodes"][0]["providers"].get("hanging", {})

    def test_stop_that_hangs_holds_the_end_for_ten_seconds(self):
        process = self.start_hanging("stop", 1)
        state = self.state(self.end_of(process, 1 + WAIT_S + MORE_S))
        self.assertEqual(state["state"], "degraded")
        self.assertIn("stop() had not returned at the end of the job", state["reason"])
        self.assertIn("--without hanging", state["remedy"])
        wait_until(lambda: not agent_pids(self.output), what="the agent's end")

    def test_start_that_hangs_holds_the_end_for_ten_seconds(self):
        process = self.start_hanging("start", 1)
        state = self.state(self.end_of(process, 1 + WAIT_S + MORE_S))
        self.assertIn("start() had not returned at the end of the job", state["reason"])

    def test_tick_that_hangs_is_told_while_the_job_runs(self):
        process = self.start_hanging("tick", 25)

        def told():
            run(["aon", "finalize", "--quiet", "--snapshot", self.output])
            document = ledger(self.output) if (self.output / "aon.json").exists() else {}
            return document and self.state(document).get("reason")

        self.wait_for_calls(0)
        reason = wait_until(told, seconds=24, what="word of the provider")
        self.assertIn("tick() has not returned for 10 s", reason)
        self.assertIsNone(process.poll())
        state = self.state(self.end_of(process, 25 + MORE_S))
        self.assertIn("tick() had not returned at the end of the job", state["reason"])

    def test_tick_that_is_late_is_said_to_have_returned(self):
        process = self.start_hanging("tick", 25, HANG_S="17")
        state = self.state(self.end_of(process, 25 + MORE_S))
        self.assertEqual(state["state"], "degraded")
        self.assertIn("tick() took more than 10 s", state["reason"])
        self.assertNotIn("return", state["reason"])

    def test_what_the_agent_knows_meanwhile_is_told(self):
        process = self.start_hanging("tick", 15)
        self.wait_for_calls(0)
        os.kill(agent_pids(self.output)[0], signal.SIGTERM)
        wait_until(lambda: not agent_pids(self.output), seconds=60, what="the agent's end")
        node = ledger(self.output)["nodes"][0]
        self.assertIn("told to end (SIGTERM)", node["providers"]["recording"]["reason"])
        self.assertIn("tick() had not returned", node["providers"]["hanging"]["reason"])
        process.communicate(timeout=60)


class WorkerThatCannotEnd(HeldCase):
    def test_keeper_goes_on_without_it(self):
        """Traced, it stops in its exit, as one does of which a thread hangs in a driver."""
        process = self.start_job(1, *self.worker("pace", 2))
        _, worker = wait_until(lambda: len(pids := agent_pids(self.output)) == 2 and pids,
                               what="keeper and worker")
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.ptrace(PTRACE_SEIZE, worker, None, ctypes.c_long(PTRACE_O_TRACEEXIT)) != 0:
            self.skipTest(f"ptrace: {os.strerror(ctypes.get_errno())}")
        self.end_of(process, 2 + MORE_S)
        wait_until(lambda: agent_pids(self.output) == [worker],
                   what="the keeper's end, while its worker is still there")
        os.waitpid(worker, WALL)
        libc.ptrace(PTRACE_CONT, worker, None, None)
        os.waitpid(worker, WALL)


if __name__ == "__main__":
    main()
