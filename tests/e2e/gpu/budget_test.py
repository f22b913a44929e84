"""What CUPTI may cost: more than --budget allows is not recorded, and that is told."""
import subprocess

import otf2
from gpu_case import PROGRAM, GpuCase, gpu_environment, main, readers
from aon_test import profile


class Budget(GpuCase):
    """More than --budget allows is not recorded, and that is told."""

    def run_dear_program(self, seconds=4, **knobs):
        self.run_program(10, 1, ranks=1, GPU_PROGRAM_SECONDS=seconds, AON_BUDGET=1,
                         FAKE_CUPTI_OVERHEAD=10_000_000, **knobs)

    def printed(self):
        return subprocess.run(["otf2-print", self.output / "traces.otf2"], capture_output=True,
                              text=True, check=True).stdout

    def test_what_is_too_dear_is_recorded_in_windows(self):
        self.run_dear_program(seconds=9)  # the second window is 6 s from the start
        self.assertEqual(self.provider()["state"], "degraded")
        self.assertIn("above --budget", self.provider()["reason"])
        # Where windows are too dear as well nothing is recorded in the end.
        self.assertRegex(self.provider()["reason"], "in one of 8|no work is recorded")
        self.assertIn("CUPTI: in windows", self.printed())
        self.assertIn("--budget", self.provider()["remedy"])
        recorded = self.kernel_counts()[0]
        self.assertGreater(recorded, 0)
        self.assertLess(recorded, self.counted[0]["kernels"])
        # Windows have the calls of their work.
        self.assertLess(self.table("use")[0]["unknown_launches"], recorded / 10)
        self.assertGreater(self.table("use")[0]["unrecorded_ns"], 100_000_000)
        self.assert_archive_is_clean()

    def test_time_without_records_is_an_interval_and_each_step_a_marker(self):
        self.run_dear_program()
        gaps = []
        with otf2.reader.open(str(self.output / "traces.otf2")) as trace:
            resolution = trace.timer_resolution
            for location, event in trace.events:
                if location.name == "GPU work not recorded":
                    gaps.append((event.time, event.region.name))
        # Leaving calls out would save too little.
        self.assertNotIn("[CUDA calls not recorded]", {name for _, name in gaps})
        times = [time for time, name in gaps if name == "[GPU work not recorded: above --budget]"]
        self.assertGreaterEqual(len(times), 2)
        # The last windows, or the program's end, may come at any time of it.
        unrecorded = sum(times[1::2]) - sum(times[0::2])
        self.assertGreater(unrecorded, resolution / 2)
        text = self.printed()
        self.assertIn("CUPTI: in windows", text)
        self.assertNotIn("CUPTI: without calls", text)
        told = [marker[3] for marker in readers.markers(self, self.output)["budget: CUPTI"]]
        self.assertRegex(told[0], r"MPI Rank 0, .*: CUPTI: in windows")
        self.assert_archive_is_clean()

    def test_the_cost_is_told_though_the_program_ends_without_saying_so(self):
        self.output = self.folder / "job"
        profile(1, self.output, PROGRAM, 100, 1, env=gpu_environment(
            GPU_PROGRAM_SECONDS=3, GPU_PROGRAM_END="0", AON_BUDGET=1,
            FAKE_CUPTI_OVERHEAD=10_000_000))  # fmt: skip
        self.assertRegex(self.provider()["reason"], r"CUPTI took about .* % .*an estimate")

    def test_what_is_cheap_is_recorded_whole(self):
        self.run_program(10, 1, ranks=1, GPU_PROGRAM_SECONDS=3, AON_BUDGET=100)
        self.assert_all_kernels()
        self.assertEqual(self.provider()["state"], "on", self.provider())

    def test_what_the_programs_thread_computes_is_no_cost(self):
        """Though it hands over the buffers that it has filled."""
        self.run_program(10, 1, ranks=1, GPU_PROGRAM_SECONDS=4, GPU_PROGRAM_BUSY=1, AON_BUDGET=25,
                         FAKE_CUPTI_INLINE=8192)
        self.assertEqual(self.provider()["state"], "on", self.provider())

    def test_what_our_thread_waits_in_a_flush_is_no_cost(self):
        """An H200 once took 96 ms, in which the program went on."""
        self.run_program(10, 1, ranks=1, GPU_PROGRAM_SECONDS=4, AON_BUDGET=10,
                         FAKE_CUPTI_FLUSH_MS=100)
        self.assertEqual(self.provider()["state"], "on", self.provider())

    def test_the_budget_of_the_command_line_counts(self):
        self.run_program(10, 1, ranks=1, GPU_PROGRAM_SECONDS=3, options=("--budget", "50"),
                         AON_BUDGET=1, FAKE_CUPTI_OVERHEAD=100_000)
        self.assertEqual(self.provider()["state"], "on", self.provider())

    def test_a_version_that_hangs_when_kinds_are_disabled_leaves_out_calls_only(self):
        self.run_dear_program(FAKE_CUPTI_VERSION=28)
        self.assertIn("calls of CUDA are left out", self.provider()["reason"])
        self.assertIn("cannot record less", self.provider()["reason"])
        self.assert_all_kernels()
        found = readers.region_counts(self.output)
        self.assertLess(found["cuLaunchKernel"], self.counted[0]["kernels"])
        self.assertNotIn("[GPU work not recorded: above --budget]", found)


if __name__ == "__main__":
    main()
