"""Work of GPUs that no record tells of: from when to when it may be missing, why, and what helps;
and records that tell less than they should. CUPTI is made up (tests/fake_cuda)."""
import collections
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import unittest

import otf2
from gpu_case import FAKES, PROGRAM, GpuCase, gpu_environment, main, readers
from aon_test import IS_SANITIZED, ledger, profile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "faults"))
from fault_test import agent_pids  # noqa: E402

NAME = "[GPU work not recorded: {}]"


class MissingCase(GpuCase):
    def gaps(self):
        """Seconds that are shown as not recorded, by cause."""
        result = collections.Counter()
        begin = {}
        with otf2.reader.open(str(self.output / "traces.otf2")) as trace:
            resolution = trace.timer_resolution
            for location, event in trace.events:
                if location.name != "GPU work not recorded":
                    continue
                if isinstance(event, otf2.events.Enter):
                    begin[event.region.name] = event.time
                elif isinstance(event, otf2.events.Leave):
                    name = event.region.name
                    result[name] += (event.time - begin[name]) / resolution
        return result

    def finding(self):
        found = [f for f in ledger(self.output)["findings"] if f.startswith("work of GPUs may be")]
        self.assertEqual(len(found), 1, ledger(self.output)["findings"])
        return found[0]

    def unrecorded(self):
        return {row["cause"]: row["total_ns"] for row in self.table("unrecorded")}


class Times(MissingCase):
    def test_what_cupti_keeps_is_a_time_without_records(self):
        """Its thread hands nothing over from then on, not even at the end."""
        self.run_program(10, 1, ranks=1, GPU_PROGRAM_SECONDS=3, FAKE_CUPTI_STUCK=300)
        self.assertEqual(self.provider()["state"], "degraded")
        self.assertRegex(self.provider()["reason"], r"did not hand over records of the last \d")
        self.assertGreater(self.gaps()[NAME.format("kept by CUPTI")], 1.5)
        self.assertGreater(self.unrecorded()[NAME.format("kept by CUPTI")], 1_500_000_000)
        self.assertIn("not handed over by CUPTI", self.finding())
        self.assert_archive_is_clean()

    def test_what_is_kept_for_long_is_told_while_it_is(self):
        self.output = self.folder / "job"
        profile(1, self.output, PROGRAM, 10, 1, env=gpu_environment(
            GPU_PROGRAM_SECONDS=7, FAKE_CUPTI_STUCK=1, GPU_PROGRAM_END="0"))
        self.assertRegex(self.provider()["reason"], r"CUPTI keeps records of the last \d+ s back")

    def test_a_kernel_that_runs_long_is_no_loss(self):
        self.run_program(1, 1, ranks=1, GPU_PROGRAM_DURATION_US=6_500_000)
        self.assertEqual(self.provider()["state"], "on", self.provider())
        self.assertFalse(self.gaps())
        self.assert_all_kernels()

    def test_what_our_thread_cannot_read_is_a_time_without_records(self):
        """It hangs in a call of CUPTI, and so the thread that exits has to tell."""
        self.run_program(10, 1, ranks=1, GPU_PROGRAM_SECONDS=3, FAKE_CUPTI_FLUSH_HANG=3)
        self.assertIn("ended before all records were read", self.provider()["reason"])
        unread_s = self.gaps()[NAME.format("not read")]
        self.assertGreater(unread_s, 1)
        self.assertLess(unread_s, 2.9, "the 2 s that AON waits are no time of the program")
        self.assertIn("not read when the program ended", self.finding())

    def test_a_rest_of_the_budget_is_told_when_our_thread_hangs(self):
        """Its interval is not yet told when the thread that exits has to. It may hold a window."""
        self.run_program(10, 1, ranks=1, GPU_PROGRAM_SECONDS=5, FAKE_CUPTI_FLUSH_HANG=8,
                         AON_BUDGET=1, FAKE_CUPTI_OVERHEAD=10_000_000)
        self.assertGreater(self.gaps()[NAME.format("above --budget")], 1)

    def test_what_comes_when_cupti_was_given_away_is_of_the_pause(self):
        """Only who has subscribed may read it, and it comes in the pause."""
        self.run_program(10, 1, ranks=1, GPU_PROGRAM_PAUSE=10, GPU_PROGRAM_PAUSE_MS=1500,
                         AON_CUPTI_MODE="yield", FAKE_CUPTI_VERSION=130300, FAKE_CUPTI_STUCK=1,
                         FAKE_CUPTI_STUCK_MS=700)
        self.assertEqual(set(self.unrecorded()), {NAME.format("paused")})
        self.assertRegex(self.provider()["reason"], r"\d bytes of records that CUPTI handed over "
                                                    "when it was given away")
        self.assertNotIn("--cupti-memory", self.provider()["remedy"])
        self.assertIn("AON_CUPTI_API=v1", self.provider()["remedy"])

    def test_flushes_at_the_end_are_no_time_of_the_program(self):
        """They take 1.2 s, in which CUPTI's own thread asks for a buffer."""
        self.run_program(10, 1, ranks=1, GPU_PROGRAM_SECONDS=2, FAKE_CUPTI_FLUSH_MS=400,
                         FAKE_CUPTI_DROP=10, FAKE_CUPTI_WORKER_ASKS=1)
        ends_s = {}
        with otf2.reader.open(str(self.output / "traces.otf2")) as trace:
            for location, event in trace.events:
                ends_s[location.name] = event.time / trace.timer_resolution
        late_s = ends_s["GPU work not recorded"] - ends_s["Master thread"]
        self.assertLess(late_s, 0.3, ends_s)

    def test_what_is_dropped_while_our_thread_stands_still_is_a_time_of_that_length(self):
        """Each flush takes 2 s, in which the program fills both buffers and more."""
        self.run_program(10, 1, ranks=1, GPU_PROGRAM_SECONDS=5, GPU_PROGRAM_BUSY=1,
                         AON_CUPTI_MEMORY=2, FAKE_CUPTI_FLUSH_MS=2000, AON_MEMORY="64MiB")
        self.assertGreater(self.gaps()[NAME.format("no buffer")], 1.5)
        self.assertLess(self.table("unrecorded")[0]["process_ns"], 5_200_000_000,
                        "the 2 s of a flush at the end are no time of the program")
        self.assertGreater(self.table("use")[0]["unrecorded_ns"], 500_000_000)

    def test_behind_a_fatal_error_nothing_is_recorded(self):
        self.run_program(10, 1, ranks=1, GPU_PROGRAM_SECONDS=2, FAKE_CUPTI_FATAL=100)
        self.assertGreater(self.gaps()[NAME.format("CUPTI stopped")], 0.7)
        self.assertIn("behind an error of CUPTI", self.finding())

    def test_what_a_fatal_error_leaves_with_cupti_is_of_that_error_alone(self):
        self.run_program(10, 1, ranks=1, GPU_PROGRAM_SECONDS=3, FAKE_CUPTI_FATAL=500,
                         FAKE_CUPTI_HOLD=1)
        self.assertEqual(set(self.unrecorded()), {NAME.format("CUPTI stopped")})
        self.assertGreater(self.unrecorded()[NAME.format("CUPTI stopped")], 1_500_000_000)
        self.assertNotIn("did not hand over", self.provider()["reason"])

    def test_causes_at_the_same_time_are_no_longer_than_the_run(self):
        self.run_program(10, 1, ranks=1, GPU_PROGRAM_SECONDS=6, AON_BUDGET=1,
                         FAKE_CUPTI_OVERHEAD=10_000_000, FAKE_CUPTI_DROP=10)
        rows = self.table("unrecorded")
        self.assertEqual(len(rows), 2)
        for row in rows:
            self.assertLess(row["process_ns"], sum(row["total_ns"] for row in rows) - 10**9)
        told_s = float(re.search(r"may be missing in ([\d.]+) s", self.finding()).group(1))
        self.assertAlmostEqual(told_s, rows[0]["process_ns"] / 1e9, delta=0.1)

    def test_a_cupti_that_hands_nothing_over_any_more_is_dead(self):
        """As behind cuptiFinalize(), which another client has called."""
        self.run_program(10, 1, ranks=1, GPU_PROGRAM_SECONDS=6,
                         FAKE_CUPTI_ERROR="cuptiActivityFlushAll:3+")
        self.assertEqual(self.provider()["state"], "degraded")
        self.assertIn("cuptiActivityFlushAll: error 999", self.provider()["reason"])
        self.assertGreater(self.gaps()[NAME.format("CUPTI stopped")], 3)
        self.assertIn("behind an error of CUPTI", self.finding())

    def test_what_cupti_drops_and_what_has_no_buffer_are_told_apart(self):
        self.run_program(10, 1, ranks=1, GPU_PROGRAM_SECONDS=2, FAKE_CUPTI_DROP=10)
        self.assertEqual(set(self.gaps()), {NAME.format("dropped by CUPTI")})
        self.assertIn("dropped by CUPTI (less work under way at a time)", self.finding())
        self.assertNotIn("--cupti-memory", self.provider()["remedy"])

    def test_a_full_pool_has_its_own_remedy(self):
        self.run_program(30_000, 1, ranks=1, AON_CUPTI_MEMORY=2, FAKE_CUPTI_HOLD=1,
                         AON_MEMORY="64MiB")
        self.assertEqual(set(self.gaps()), {NAME.format("no buffer")})
        self.assertIn("without a buffer for CUPTI (a larger --cupti-memory)", self.finding())

    def hold_agent_up(self, is_over):
        """Lets it work for a tenth of the time: a small ring is full on the fastest machine."""
        output = self.folder / "job"
        while not is_over.is_set() and len(agent_pids(output)) < 2:
            time.sleep(0.002)
        pids = agent_pids(output)
        while not is_over.is_set() and pids:
            for signal_number, seconds in ((signal.SIGSTOP, 0.2), (signal.SIGCONT, 0.02)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pids[-1], signal_number)
                is_over.wait(seconds)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def test_a_full_ring_has_its_own_remedy(self):
        is_over = threading.Event()
        brake = threading.Thread(target=self.hold_agent_up, args=[is_over])
        brake.start()
        try:
            self.run_program(30_000, 4, 1, ranks=1, AON_MEMORY="256KiB", AON_ATTACH_MS=5000)
        finally:
            is_over.set()
            brake.join()
        self.assertGreater(ledger(self.output)["ranks"][0]["lost"], 0)
        self.assertIn("lost in the ring (a larger --memory)", self.finding())

    def test_the_budgets_rests_have_their_own_remedy(self):
        self.run_program(10, 1, ranks=1, GPU_PROGRAM_SECONDS=5, AON_BUDGET=1,
                         FAKE_CUPTI_OVERHEAD=10_000_000)
        self.assertGreater(self.gaps()[NAME.format("above --budget")], 1)
        self.assertIn("above --budget (a larger --budget)", self.finding())

    @unittest.skipIf(IS_SANITIZED, "the sanitizer's runtime must come first in LD_PRELOAD")
    def test_without_records_no_level_is_gone_back_to(self):
        """30 s without a cost would be, if the kinds could be switched on. They pass in 3 s."""
        self.run_program(10, 1, ranks=1, GPU_PROGRAM_SECONDS=12, AON_BUDGET=1,
                         FAKE_CUPTI_OVERHEAD=10_000_000, FAKE_CUPTI_ERROR="cuptiActivityEnable:8+",
                         LD_PRELOAD=FAKES / "libfast-clock.so")
        self.assertIn("could not be switched on again", self.provider()["reason"])
        self.assertGreater(self.gaps()[NAME.format("CUPTI stopped")], 5)
        printed = subprocess.run(["otf2-print", self.output / "traces.otf2"], capture_output=True,
                                 text=True, check=True).stdout
        self.assertIn("CUPTI: in windows", printed)
        self.assertNotIn("CUPTI: all is recorded", printed)


class Windows(MissingCase):
    """Above --budget: the half seconds in which work is recorded."""

    def rests(self):
        """By rank the times without records, each from the end of a window to the next."""
        begin, result = {}, collections.defaultdict(list)
        with otf2.reader.open(str(self.output / "traces.otf2")) as trace:
            for location, event in trace.events:
                if location.name != "GPU work not recorded":
                    continue
                seconds = event.time / trace.timer_resolution
                if isinstance(event, otf2.events.Enter):
                    begin[location] = seconds
                    continue
                rests = result[location.group.name]
                if rests and begin[location] - rests[-1][1] < 0.1:  # it is told in pieces
                    rests[-1][1] = seconds
                else:
                    rests.append([begin[location], seconds])
        return result

    def test_are_the_same_times_on_ranks_that_start_apart(self):
        self.output = self.folder / "job"
        script = f"sleep $((2 * OMPI_COMM_WORLD_RANK)); exec {PROGRAM} 10 1"
        done = profile(2, self.output, "bash", "-c", script, env=gpu_environment(
            GPU_PROGRAM_SECONDS=13, AON_BUDGET=1, FAKE_CUPTI_OVERHEAD=60_000))
        self.assert_exit(done)
        # The last rest ends with the process, and so with no window.
        windows = [[end for _, end in rests[:-1]] for rests in self.rests().values()]
        self.assertEqual([len(w) > 1 for w in windows], [True, True], windows)
        shared = [t for t in windows[0] if windows[1][0] - 1 < t < windows[1][-1] + 1]
        self.assertGreaterEqual(len(shared), 2, windows)
        for time in shared:
            self.assertLess(min(abs(time - other) for other in windows[1]), 0.4, windows)


class Launches(MissingCase):
    def test_those_without_a_kernel_are_counted_and_leave_no_verdict(self):
        self.run_program(200, 1, ranks=1, GPU_PROGRAM_GRAPHLESS=1, FAKE_CUPTI_DROP=5)
        dropped = self.counted[0]["kernels"] - self.kernel_counts()[0]
        use = self.table("use")[0]
        self.assertGreater(dropped, 30)
        self.assertAlmostEqual(use["missing_launches"], dropped, delta=2)  # the first and the last
        self.assertEqual(use["bound"], "not recorded")
        self.assertRegex(self.finding(), r"; \d+ launches of a kernel have no kernel")

    def test_those_into_a_capture_are_none(self):
        """Of a graph that is never launched."""
        self.run_program(200, 1, ranks=1, GPU_PROGRAM_GRAPHLESS=1, GPU_PROGRAM_CAPTURES=50)
        self.assertEqual(readers.region_counts(self.output)["cuLaunchKernel"], 250)
        use = self.table("use")[0]
        self.assertEqual(use["missing_launches"], 0)
        self.assertNotEqual(use["bound"], "not recorded")
        self.assertNotIn("work of GPUs", " ".join(ledger(self.output)["findings"]))

    def test_an_end_in_vain_is_none_of_a_capture(self):
        """Neither of one that goes on nor of one whose begin was not seen."""
        self.run_program(200, 1, ranks=1, GPU_PROGRAM_GRAPHLESS=1, GPU_PROGRAM_CAPTURES=50,
                         GPU_PROGRAM_WRONG_ENDS=1, FAKE_CUPTI_DROP=5)
        self.assertEqual(readers.region_counts(self.output)["cuStreamEndCapture"], 101)
        dropped = self.counted[0]["kernels"] - self.kernel_counts()[0]
        self.assertGreater(dropped, 30)
        self.assertAlmostEqual(self.table("use")[0]["missing_launches"], dropped, delta=2)

    def test_those_behind_a_broken_capture_are_counted(self):
        """Its end fails, and yet it is one."""
        self.run_program(200, 1, ranks=1, GPU_PROGRAM_GRAPHLESS=1, GPU_PROGRAM_CAPTURES=50,
                         GPU_PROGRAM_BROKEN=1, FAKE_CUPTI_DROP=5)
        dropped = self.counted[0]["kernels"] - self.kernel_counts()[0]
        self.assertGreater(dropped, 30)
        self.assertAlmostEqual(self.table("use")[0]["missing_launches"], dropped, delta=2)

    def test_those_beside_captures_are_counted(self):
        """Also where graphs are launched."""
        self.run_program(200, 1, ranks=1, GPU_PROGRAM_GRAPHS=1, GPU_PROGRAM_CAPTURES=50,
                         FAKE_CUPTI_DROP=5)
        dropped = self.counted[0]["kernels"] - self.kernel_counts()[0]
        self.assertGreater(dropped, 30)
        self.assertAlmostEqual(self.table("use")[0]["missing_launches"], dropped, delta=2)

    def test_those_that_failed_are_none(self):
        self.run_program(200, 1, ranks=1, GPU_PROGRAM_GRAPHLESS=1, FAKE_CUPTI_FAILED=5)
        self.assertEqual(self.table("use")[0]["missing_launches"], 0)
        self.assertNotIn("work of GPUs", " ".join(ledger(self.output)["findings"]))


class Records(MissingCase):
    def test_kernels_without_a_name_are_told(self):
        self.run_program(100, 1, ranks=1, FAKE_CUPTI_NAMELESS=10)
        self.assertIn("kernels without a name", self.provider()["reason"])
        named = {row["name"]: row["count"] for row in self.table("kernels")}
        self.assertGreaterEqual(named["[CUDA kernel]"], 9)

    def test_more_names_than_have_room_are_told(self):
        self.run_program(10, 1, ranks=1, GPU_PROGRAM_NAMES=7000, AON_MEMORY="64MiB")
        self.assertIn("no room for the names of all kernels", self.provider()["reason"])
        self.assertEqual(sum(self.kernel_counts().values()), self.counted[0]["kernels"])

    def test_a_record_of_an_unknown_kind_costs_no_other(self):
        self.run_program(100, 1, ranks=1, FAKE_CUPTI_STRANGE=10)
        count = int(re.search(r"(\d+) of an unknown kind", self.provider()["reason"]).group(1))
        self.assertEqual(count, 10)
        self.assert_all_kernels()
        found = readers.region_counts(self.output)
        self.assertEqual(found["cuLaunchKernel"], self.counted[0]["kernels"])


if __name__ == "__main__":
    main(side_by_side=4)
