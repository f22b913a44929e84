"""CUDA graphs that are made and launched while less is recorded, or nothing. The launch of one that
was made while graphs were not recorded as one ends the program where they are then, and so does one
where CUPTI was given away and taken back: CUPTI of CUDA 13.0 does that on an H100, and the made-up
one does it, too."""
import shutil

from gpu_case import GpuCase, main

DEAR = {"AON_BUDGET": 1, "FAKE_CUPTI_OVERHEAD": 10_000_000, "GPU_PROGRAM_SECONDS": 9}
SUBSCRIBERS = 130300  # the first version with several


class Graphs(GpuCase):
    def run_graphs(self, **knobs):
        shutil.rmtree(self.folder / "job", ignore_errors=True)
        self.run_program(10, 1, ranks=1, GPU_PROGRAM_GRAPHS=1, **knobs)

    def graph_count(self):
        return sum(row["count"] for row in self.table("graphs"))

    def test_are_recorded_in_the_rests_of_the_budget_too(self):
        for version in (130001, SUBSCRIBERS):
            with self.subTest(version):
                self.run_graphs(**DEAR, FAKE_CUPTI_VERSION=version)
                self.assertRegex(self.provider()["reason"], "in one of 8|no work is recorded")
                self.assertLess(self.kernel_counts()[0], self.counted[0]["kernels"])
                self.assertEqual(self.graph_count(), self.counted[0]["graphs"])
                self.assert_archive_is_clean()

    def test_of_which_each_kernel_is_recorded_stay_so_under_the_budget(self):
        self.run_graphs(**DEAR, AON_CUPTI_GRAPH="node")
        self.assertRegex(self.provider()["reason"], "in one of 8|no work is recorded")
        self.assertEqual(self.graph_count(), 0)

    def test_are_not_recorded_behind_a_pause(self):
        for version in (130001, SUBSCRIBERS):
            with self.subTest(version):
                self.run_graphs(GPU_PROGRAM_PAUSE=30, AON_CUPTI_MODE="yield",
                                FAKE_CUPTI_VERSION=version)  # fmt: skip
                self.assertIn("paused 1\nresumed 0\n", self.process.stdout)
                self.assertIn("paused by the program, and work behind that is not recorded",
                              self.provider()["reason"])
                self.assertEqual(self.graph_count(), 2)
                self.assertEqual(sum(self.kernel_counts().values()), 1)

    def test_a_capture_without_an_end_hides_no_silence_for_ever(self):
        """Of the thread that launches, which never ends it."""
        self.run_program(0, 1, ranks=1, FAKE_CUPTI_BLIND=1, GPU_PROGRAM_GRAPHLESS=1,
                         GPU_PROGRAM_LEFT_OPEN=1, GPU_PROGRAM_SECONDS=13)
        self.assertRegex(self.provider()["reason"], r"launched work \d+ times and CUPTI")


if __name__ == "__main__":
    main()
