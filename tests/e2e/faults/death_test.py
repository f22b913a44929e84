"""Processes that die or stop: the agent, its worker, a rank, the whole job at once."""
import contextlib
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import time
import unittest

from fault_test import FaultCase, agent_pids, environment, run, wait_until, worker_pids

import readers


def polls_two(pid):
    """Whether a process is in poll() of two descriptors, system call 7 of x86-64."""
    words = pathlib.Path(f"/proc/{pid}/syscall").read_text().split()
    return words[0] == "7" and int(words[2], 16) == 2


class AgentDeath(FaultCase):
    def keeper_and_worker(self):
        pids = agent_pids(self.output)
        return pids if len(pids) == 2 else None

    def run_loop(self, disturb):
        """Disturbs a program that goes on for a second after it."""
        process = self.start_job(2, *self.worker("until", 90))
        self.wait_for_calls(0)
        self.wait_for_calls(1)
        disturb()
        time.sleep(1)
        (self.counts / "end").touch()
        out, err = process.communicate(timeout=90)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(out.count("calls"), 2, out)
        return self.finish()

    def test_killed_worker_is_replaced_and_nothing_is_lost(self):
        def disturb():
            for _ in range(5):
                keeper, *workers = wait_until(
                    lambda: len(pids := agent_pids(self.output)) == 2 and pids,
                    what="keeper and worker")
                os.kill(workers[0], signal.SIGKILL)
                wait_until(lambda: workers[0] not in agent_pids(self.output), what="worker gone")
                self.assertIn(keeper, agent_pids(self.output))
                time.sleep(0.1)

        document = self.run_loop(disturb)
        for rank in (0, 1):
            self.assert_every_call(document, rank)
            self.assertEqual({loss["reason"] for loss in document["losses"]} - {"pool full"}, set())
        restarts = readers.markers(self, self.output)["agent restarted"]
        # One that was killed before it had taken anything has not told of the one before.
        self.assertIn(len(restarts), range(1, 6), restarts)
        for _, duration_ns, scope, text in restarts:
            self.assertLess(duration_ns, 30_000_000_000)
            self.assertEqual(scope, "SYSTEM_TREE_NODE:1")
            self.assertRegex(text, r"worker was killed; worker [2-6] went on")

    def test_keeper_that_can_start_no_worker_goes_on_trying(self):
        """It has no descriptors for a while, as others have no more processes."""
        def disturb():
            keeper, worker = wait_until(self.keeper_and_worker, what="keeper and worker")
            before = resource.prlimit(keeper, resource.RLIMIT_NOFILE)
            resource.prlimit(keeper, resource.RLIMIT_NOFILE, (3, before[1]))
            os.kill(worker, signal.SIGKILL)
            time.sleep(1)
            self.assertEqual(agent_pids(self.output), [keeper])
            resource.prlimit(keeper, resource.RLIMIT_NOFILE, before)
            wait_until(self.keeper_and_worker, what="another worker")

        document = self.run_loop(disturb)
        for rank in (0, 1):
            self.assert_every_call(document, rank)
        (log,) = self.output.glob("agent.*.log")
        self.assertEqual(log.read_text().count("no sockets for a worker"), 1)

    def test_killed_agent_leaves_the_program_alone(self):
        def disturb():
            # What neither of them has written yet goes with both: that there are ranks as well.
            wait_until(lambda: list(self.output.glob("spool/*/p*.aon")), what="records to be kept")
            for pid in agent_pids(self.output):
                os.kill(pid, signal.SIGKILL)

        self.run_loop(disturb)

    def test_killed_keeper_leaves_a_worker_that_finishes(self):
        def disturb():
            keeper, _ = wait_until(self.keeper_and_worker, what="keeper and worker")
            os.kill(keeper, signal.SIGKILL)

        document = self.run_loop(disturb)
        for rank in (0, 1):
            self.assert_every_call(document, rank)
        wait_until(lambda: not agent_pids(self.output), what="the agent's end")

    def test_process_that_starts_while_the_keeper_hangs_has_a_ring(self):
        go = self.counts / "go"
        script = 'until [ -e "$0" ]; do sleep 0.1; done; exec "$@"'
        command = ["sh", "-c", script, go, *self.worker("pace", 1)]
        process = self.start("aon-run", "-o", self.output, "--", *command)
        keeper, _ = wait_until(self.keeper_and_worker, what="keeper and worker")
        os.kill(keeper, signal.SIGSTOP)
        try:
            go.touch()
            self.wait_for_calls(0)
            wait_until(lambda: not worker_pids(self.counts), what="the program's end")
        finally:
            os.kill(keeper, signal.SIGCONT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        document = self.finish()
        self.assert_every_call(document, 0)
        self.assertNotIn("fallback", self.rank_of(document, 0))

    def test_agent_that_is_told_to_end_says_what_it_does_not_know(self):
        def disturb():
            os.kill(agent_pids(self.output)[0], signal.SIGTERM)
            wait_until(lambda: len(agent_pids(self.output)) < 2, what="the worker's end")

        document = self.run_loop(disturb)
        self.assertIn("rank 0: its end was not seen", document["job"]["reason"])
        (node,) = document["nodes"]
        self.assertIn("told to end (SIGTERM)", node["providers"]["recording"]["reason"])
        summary = run(["aon", "info", self.output]).stdout
        self.assertRegex(summary, r"records.*, what else there was is not known")

    def test_agent_that_is_told_to_end_with_its_ranks_sees_their_end(self):
        process = self.start_job(2, *self.worker("until", 90))
        self.wait_for_calls(0)
        self.wait_for_calls(1)
        for pid in [*agent_pids(self.output), *worker_pids(self.counts)]:
            os.kill(pid, signal.SIGTERM)
        process.communicate(timeout=60)
        document = self.finish()
        self.assertIn("rank 0: killed by signal 15", document["job"]["reason"])
        self.assertNotIn("recording", document["nodes"][0]["providers"])

    def test_removed_job_directory_does_not_keep_the_agent(self):
        process = self.start_job(2, *self.worker("pace", 2), options=["--wait", "5"])
        self.wait_for_calls(0)
        shutil.rmtree(self.output)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn(f"{self.output} was removed", err)
        wait_until(lambda: not agent_pids(self.output), what="the agent's end")
        self.assertFalse(self.output.exists())

    def test_stopped_agent_costs_records_but_no_time(self):
        def disturb():
            pids = agent_pids(self.output)
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            time.sleep(1.5)
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

        start = time.monotonic()
        document = self.run_loop(disturb)
        self.assertLess(time.monotonic() - start, 60)
        for rank in (0, 1):
            self.assert_every_call(document, rank)
        self.assert_markers_of_losses(document)

    def assert_markers_of_losses(self, document):
        losses = [loss for loss in document["losses"] if loss["reason"] == "pool full"]
        self.assertNotEqual(losses, [])
        told = readers.markers(self, self.output)["lost"]
        for loss in losses:
            counts = [int(re.search(r": ([\d ]+) records, pool full", text)[1].replace(" ", ""))
                      for _, _, scope, text in told if scope == f"LOCATION:{loss['location']}"]
            self.assertEqual(sum(counts), loss["count"], told)
        start_ns, end_ns = readers.trace_range(self, self.output)
        for time_ns, duration_ns, _, _ in told:
            self.assertTrue(start_ns <= time_ns <= time_ns + duration_ns <= end_ns)


class RankDeath(FaultCase):
    def test_killed_rank_is_complete_to_its_last_call(self):
        process = self.start_job(2, *self.worker("loop", 30))
        self.wait_for_calls(0)
        self.wait_for_calls(1)
        pid = worker_pids(self.counts)[-1]
        os.kill(pid, signal.SIGKILL)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 137)
        document = self.finish()
        for rank in (0, 1):
            self.assert_every_call(document, rank, killed=True)
        dead = [r for r in document["ranks"] if r["pid"] == pid]
        self.assertEqual(len(dead), 1)
        self.assertFalse(document["job"]["complete"])
        self.assertIn(dead[0]["rank"], document["job"]["incomplete_ranks"])

    def test_whole_job_killed_at_once(self):
        process = self.start_job(2, *self.worker("pace", 30), options=["--flush-ms", 50])
        self.wait_for_calls(0)
        self.wait_for_calls(1)
        time.sleep(0.5)
        flushed = [self.own_count(rank) for rank in (0, 1)]  # some flushes before the kill
        time.sleep(0.5)
        victims = [process.pid, *agent_pids(self.output), *worker_pids(self.counts)]
        for pid in victims:
            os.kill(pid, signal.SIGSTOP)
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):  # the death of its parent was quicker
                os.kill(pid, signal.SIGKILL)
        process.communicate(timeout=60)
        document = self.finish()
        self.assertFalse(document["job"]["complete"])
        for rank in (0, 1):
            self.assertGreaterEqual(self.profile_count(rank), flushed[rank])
            self.assertLessEqual(self.profile_count(rank), self.own_count(rank) + 1)

    def test_signal_and_exit_code_are_the_programs_own(self):
        for mode, number, code in (("exit", 3, 3), ("leave", 4, 4)):
            process = self.start_job(1, *self.worker(mode, number))
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, code)
        document = self.finish()
        self.assertEqual(self.rank_of(document, 0)["exit"], {"code": 3, "signal": 0})


class LastWord(FaultCase):
    """mpirun ends the aon-run that would have printed the summary: it says where the files are."""

    def assert_last_word(self, err):
        said = [line for line in err.splitlines() if "aon finalize" in line]
        self.assertEqual(len(said), 1, err)
        self.assertIn(str(self.output), said[0])

    def kill_rank(self, rank, *options):
        process = self.start_job(2, *self.worker("pace", 30), options=options)
        self.wait_for_calls(0)
        self.wait_for_calls(1)
        mark = f"OMPI_COMM_WORLD_RANK={rank}\0".encode()
        victim = next(pid for pid in worker_pids(self.counts)
                      if mark in pathlib.Path(f"/proc/{pid}/environ").read_bytes())
        os.kill(victim, signal.SIGKILL)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 137)
        return err

    def test_after_the_death_of_rank_0(self):
        self.assert_last_word(self.kill_rank(0))
        self.finish()

    def test_after_the_death_of_rank_1(self):
        self.assert_last_word(self.kill_rank(1))
        self.finish()

    def test_without_assembly(self):
        self.assert_last_word(self.kill_rank(0, "--no-assemble"))

    def test_after_a_rank_that_left(self):
        loop, leave = self.worker("pace", 30), self.worker("leave", 4)
        process = self.start("mpirun", "-n", 1, "aon-run", "-o", self.output, *loop,
                             ":", "-n", 1, "aon-run", "-o", self.output, *leave)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 4, err)
        self.assert_last_word(err)
        self.finish()

    def test_when_the_user_ends_the_wait(self):
        """The program is over, the files are not: SIGTERM ends the wait, not the exit code."""
        started, end = self.folder / "started", self.folder / "end"
        script = f"echo $$ > {started}; until [ -e {end} ]; do sleep 0.05; done"
        process = self.start("aon-run", "-o", self.output, "bash", "-c", script)
        program = wait_until(lambda: started.exists() and started.read_text().strip(),
                             what="the program's start")
        pids = wait_until(lambda: len(p := agent_pids(self.output)) == 2 and p, what="agent")
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        end.touch()
        wait_until(lambda: not pathlib.Path(f"/proc/{program}").exists(), what="its end")
        wait_until(lambda: polls_two(process.pid), what="aon-run waits for agent and signals")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=20)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        self.assertEqual(process.returncode, 0)
        self.assert_last_word(err)

    def test_nobody_reads_it(self):
        """A pipe that is full or closed does not hold the end up."""
        read_end, write_end = os.pipe()
        os.set_blocking(write_end, False)
        with self.assertRaises(BlockingIOError):
            while True:
                os.write(write_end, bytes(4096))
        os.set_blocking(write_end, True)
        command = ["aon-run", "-o", self.output, "--wait", "0", "bash", "-c", "sleep 0.5; exit 3"]
        process = subprocess.Popen([str(c) for c in command], env=environment(), stderr=write_end)
        self.assertEqual(process.wait(timeout=20), 3)
        os.close(write_end)
        os.close(read_end)


class OpenCall(FaultCase):
    def recv(self):
        import h5py

        with h5py.File(self.output / "profile.h5") as file:
            names = [n.decode() if isinstance(n, bytes) else n for n in file["regions/name"][:]]
            rows = file["profile"]
            wanted = [
                i for i in range(len(rows["rank"]))
                if rows["rank"][i] == 0 and names[rows["region"][i]] == "MPI_Recv"
            ]
            self.assertEqual(len(wanted), 1)
            return int(rows["count"][wanted[0]]), int(rows["max_ns"][wanted[0]])

    def test_rank_killed_in_a_receive_shows_it_open(self):
        process = self.start_job(2, *self.worker("recv", 60), options=["--hang", 2])
        self.wait_for_calls(0, at_least=1)
        wait_until(lambda: "MPI_Recv" in run(["aon", "hang", self.output]).stdout,
                   what="a call that is open for two seconds")
        mark = b"OMPI_COMM_WORLD_RANK=0\0"
        victim = next(pid for pid in worker_pids(self.counts)
                      if mark in pathlib.Path(f"/proc/{pid}/environ").read_bytes())
        os.kill(victim, signal.SIGKILL)
        process.communicate(timeout=60)
        document = self.finish()
        self.assertGreaterEqual(document["assembly"]["open_calls"], 1)
        count, longest_ns = self.recv()
        self.assertEqual(count, 2)
        self.assertGreater(longest_ns, 1_900_000_000)
        self.assertLess(longest_ns, 30_000_000_000)
        self.assert_markers_of_death(victim)
        readers.otf2_print(self, self.output)
        readers.otf2_structure(self, self.output)
        readers.vite(self, self.output, rank_count=2, message_count=1)

    def assert_markers_of_death(self, pid):
        """At the end of rank 0, which its call has not survived."""
        found = readers.markers(self, self.output)
        start_ns, end_ns = readers.trace_range(self, self.output)
        opened = [m for m in found["open at end"] if "Rank 0: MPI_Recv was open" in m[3]]
        self.assertEqual(len(opened), 1, found)
        time_ns, _, scope, text = opened[0]
        self.assertEqual(scope, "LOCATION:0")
        self.assertIn("killed by signal 9 (Killed)", text)
        self.assertGreater(time_ns - start_ns, 1_900_000_000)
        _, _, scope, text = next(m for m in found["incomplete process"] if f"pid {pid} " in m[3])
        self.assertEqual(scope, "LOCATION_GROUP:0")
        self.assertIn("MPI Rank 0: killed by signal 9", text)
        for category in found.values():
            for time_ns, duration_ns, _, _ in category:
                self.assertGreaterEqual(time_ns, start_ns)
                self.assertLessEqual(time_ns + duration_ns, end_ns)

    def test_long_receive_has_its_true_length(self):
        process = self.start_job(2, *self.worker("recv", 5))
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        self.finish()
        count, longest_ns = self.recv()
        self.assertEqual(count, 2)
        self.assertGreater(longest_ns, 4_900_000_000)
        self.assertLess(longest_ns, 8_000_000_000)


if __name__ == "__main__":
    unittest.main()
