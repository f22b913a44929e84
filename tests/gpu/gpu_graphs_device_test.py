"""Graphs that a program makes and launches while the budget leaves work out, or in a pause, on a
real GPU: the program goes on, and all graphs are recorded but those behind the pause. CUPTI ends a
program whose graphs were made while it did not record them as one, and does now:
`gpu_launches anew`. And captures that are ended in vain."""
import h5py
from device import LAUNCHES, gpu_environment, kernels, need, numbers, skip_without_device
import readers
from aon_test import TestCase, ledger, main, run

SECONDS = 6  # the second window is 5 s from the start
PAUSED_S = 1


class Graphs(TestCase):
    def record(self, *words, options=(), **variables):
        self.output = self.folder / "job"
        done = run(["aon-run", "-o", self.output, *options, "--", LAUNCHES, *words],
                   env=gpu_environment(**variables))  # fmt: skip
        self.assert_exit(done)
        self.assert_exit(run(["aon", "finalize", "--quiet", self.output]))
        self.state = ledger(self.output)["ranks"][0]["providers"]["cupti"]
        need("cupti", self.state)
        return numbers(done.stdout)

    def graph_count(self):
        with h5py.File(self.output / "profile.h5") as file:
            return int(file["gpu/graphs/count"][:].sum()) if "gpu/graphs" in file else 0

    def kernel_count(self):
        return sum(count for count, _ in kernels(self.output).values())

    def test_that_are_made_while_less_is_recorded_are_recorded(self):
        told = self.record("anew", SECONDS, options=("--budget", "0.1"))
        self.assertRegex(self.state["reason"], "in one of 8|no work is recorded")
        self.assertLess(self.kernel_count(), told["kernels"])
        self.assertEqual(self.graph_count(), told["graphs"])

    def test_of_which_each_kernel_is_recorded(self):
        self.record("anew", SECONDS, options=("--budget", "0.1"), AON_CUPTI_GRAPH="node")
        self.assertEqual(self.graph_count(), 0)
        self.assertGreater(self.kernel_count(), 0)

    def test_that_are_made_in_a_pause_end_the_recording(self):
        told = self.record("anew", PAUSED_S, "pause", options=("--budget", "100"),
                           AON_CUPTI_MODE="yield")
        self.assertEqual((told["paused"], told["resumed"]), (1, 0))
        self.assertGreater(self.graph_count(), 0)
        self.assertLess(self.graph_count(), told["graphs"])
        self.assertLess(self.kernel_count(), told["kernels"])

    def test_whose_capture_is_ended_in_vain_or_breaks_hide_no_launch(self):
        """Of CUDA: an end on another stream ends nothing, that of a broken capture does."""
        captures = 20
        told = self.record("ends", captures, options=("--budget", "100"))
        self.assertNotIn(told["wrong_end"], (0, 901, 904))
        self.assertEqual(told["broken_end"], 901)
        self.assertEqual(self.kernel_count(), told["kernels"])
        counted = readers.region_counts(self.output)
        self.assertEqual(counted["cuStreamEndCapture"], 3 * captures)
        self.assertEqual(counted["cuLaunchKernel"], told["kernels"] + 2 * captures)
        with h5py.File(self.output / "profile.h5") as file:
            self.assertEqual(int(file["gpu/use/missing_launches"][0]), 0)


if __name__ == "__main__":
    skip_without_device()
    main()
