"""The scripts for a machine with a GPU as far as they need none: what they are skipped for, what
they read out of programs and of torch.profiler, what their rules say of made-up counters."""
import json
import pathlib
import sys
import tempfile
import types
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
import all as all_tests
import device
import gpu_jax_device_test as jax
import gpu_times_device_test as times
import gpu_training_device_test as training
import phase_rules
from aon_bench import difference_gate, ratio_gate, rounds, spread
from aon_test import SOURCE
from busy_run import phases_of

GOOD = {
    "idle": {"sm-active": 0.001, "tensor-active": 0, "pcie-received-rate": 1e6,
             "dram-active": 0.001, "dram-read-active": 0, "dram-write-active": 0},
    "copy": {"sm-active": 0.5, "tensor-active": 0, "pcie-received-rate": 3e6,
             "dram-active": 0.9, "dram-read-active": 0.45, "dram-write-active": 0.45},
    "transfer": {"sm-active": 0.01, "tensor-active": 0, "pcie-received-rate": 2.4e10,
                 "dram-active": 0.01, "dram-read-active": 0, "dram-write-active": 0.01},
    "matrix": {"sm-active": 0.99, "tensor-active": 0.6, "pcie-received-rate": 1e6,
               "dram-active": 0.001, "dram-read-active": 0, "dram-write-active": 0},
}  # fmt: skip


def state(reason, kind="off"):
    return {"state": kind, "reason": reason, "remedy": "do something"}


class Starting(unittest.TestCase):
    def test_only_mpirun_of_open_mpi_starts_ranks(self):
        for said, problem in (
            ("mpirun (Open MPI) 4.1.4\n\nReport bugs to ...", None),
            ("mpirun (OpenRTE) 2.1\n", None),
            ("HYDRA build details:\n    Version: 4.0.2", "mpirun is not Open MPI's"),
            ("", "mpirun is not Open MPI's"),
        ):
            done = types.SimpleNamespace(stdout=said)
            with (
                self.subTest(said),
                unittest.mock.patch.object(device, "run", return_value=done),
                unittest.mock.patch.object(device.shutil, "which", return_value="/usr/bin/mpirun"),
            ):
                told = device.mpirun_problem()
                self.assertEqual(told and told[: len(problem)], problem)


class Skipping(unittest.TestCase):
    def test_a_named_reason_skips(self):
        for provider, reason in (
            ("cupti", "no libcupti.so.13 or libcupti.so.12 was found"),
            ("cupti", "another client holds CUPTI: nsys"),
            ("gpu-counters", "libcupti.so is not found"),
            ("gpu-counters", "GPU 0: cuptiPmSamplingEnable: counters are for administrators only, "
                             "CUPTI error 35"),
            ("gpu-counters", "GPU 0: cuptiPmSamplingEnable: the counters are in use by another "
                             "profiler (one per GPU), CUPTI error 26"),
            ("gpu-counters", "this libcupti (version 24) may read the counters of another GPU than "
                             "it is asked for"),
        ):  # fmt: skip
            with self.subTest(reason), self.assertRaises(unittest.SkipTest) as skipped:
                device.need(provider, state(reason))
            self.assertIn("do something", str(skipped.exception))

    def test_any_other_reason_fails_and_is_told(self):
        for provider, reason in (
            ("cupti", "cuptiSubscribe: error 999, CUPTI_ERROR_UNKNOWN"),
            ("cupti", "the libcupti that was found lacks functions"),
            ("cupti", "counters are for administrators only"),  # tracing needs no permission
            ("gpu-counters", "cuInit: unknown error, CUPTI error 999"),
            ("gpu-counters", "not supported by this GPU or in this mode"),
            ("nvml", "nvmlInit: unknown error, NVML error 999"),
            ("nvml", "libnvidia-ml.so.1 is not there"),
            ("cupti", ""),
        ):  # fmt: skip
            with self.subTest(reason), self.assertRaises(AssertionError) as failed:
                device.need(provider, state(reason))
            self.assertIn(reason, str(failed.exception))

    def test_what_works_goes_on(self):
        device.need("cupti", state("", "on"))
        device.need("cupti", state("another client holds CUPTI", "degraded"))

    def test_a_state_that_nobody_knows_fails(self):
        with self.assertRaises(AssertionError):
            device.need("cupti", state("another client holds CUPTI", "asleep"))

    def test_gpm_is_missed_on_hopper(self):
        works = state("NVML 13: 1 x NVIDIA H100", "on")
        with self.assertRaises(unittest.SkipTest):
            device.need_gpm(works, 80)
        with self.assertRaises(AssertionError):
            device.need_gpm(works, 90)
        with self.assertRaises(unittest.SkipTest):
            device.need_gpm(state("GPM: no permission, NVML error 4", "degraded"), 90)

    def test_the_named_reasons_are_what_the_plugins_say(self):
        for provider, reasons in device.NAMED.items():
            folder = SOURCE / "plugins" / provider.replace("-", "_")
            text = "".join(path.read_text() for path in folder.glob("*.cpp"))
            for reason in reasons:
                self.assertIn(reason, text, provider)
        faults = (SOURCE / "plugins" / "nvml" / "library.cpp").read_text()
        self.assertIn(f'"{device.GPM_NAMED}"', faults)


class Finding(unittest.TestCase):
    def test_names_come_before_places(self):
        with tempfile.TemporaryDirectory() as folder:
            places = []
            for place, name in (("extras-1", "libcupti.so.12"), ("other", "libcupti.so.13")):
                path = pathlib.Path(folder) / place / name
                path.parent.mkdir()
                path.touch()
                places.append(path.parent)
            wanted = [f"{folder}/extras-*", f"{folder}/other"]
            names = ("libcupti.so.13", "libcupti.so.12")
            self.assertEqual(device.find(names, wanted), str(places[1] / names[0]))
            self.assertEqual(device.find(names[1:], wanted), str(places[0] / names[1]))
            self.assertIsNone(device.find(("libnccl.so.2",), wanted))


class Reading(unittest.TestCase):
    def test_numbers_are_lines_of_two_words(self):
        text = "capability 90\nbusy 5\nspin 3 600\nkernels 7\ndone times 0\n"
        self.assertEqual(device.numbers(text), {"capability": 90, "busy": 5, "kernels": 7})

    def test_a_phase_ends_where_the_next_one_begins(self):
        told = "capability 90\nidle 10\nmatrix 20\nidle 30\nend 40\nlaunched 4\n"
        self.assertEqual(phases_of(told), [("idle", 10, 20), ("matrix", 20, 30), ("idle", 30, 40)])

    def test_kernels_are_told_from_copies_in_a_trace(self):
        events = [{"cat": "kernel", "name": "gemm"}, {"cat": "kernel", "name": "gemm"},
                  {"cat": "gpu_memcpy", "name": "Memcpy HtoD"}, {"name": "thread_name", "ph": "M"},
                  {"cat": "cuda_runtime", "name": "cudaLaunchKernel"}]  # fmt: skip
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"traceEvents": events}, file)
            file.flush()
            self.assertEqual(training.profiled_kernels(file.name), {"gemm": 2})

    def test_differing_counts_are_named(self):
        self.assertEqual(training.differences({"a": 2, "b": 1}, {"a": 2, "b": 1}), [])
        told = training.differences({"a": 2, "b": 1}, {"a": 2, "c": 1})
        self.assertEqual(told, ["b: 1, torch.profiler has 0", "c: 0, torch.profiler has 1"])

    def test_the_largest_error_is_that_of_a_kernel_or_of_all(self):
        measured = times.event_times("spin 2 1000\nspin_longer 2 3000\nkernels 4\n")
        error, name = times.largest_error({"spin": (2, 1020), "spin_longer": (2, 2990)}, measured)
        self.assertEqual((round(error, 6), name), (0.02, "spin"))
        error, name = times.largest_error({"spin": (2, 1000)}, measured)
        self.assertEqual((error, name), (1, "spin_longer"))


class Rules(unittest.TestCase):
    def broken(self, group, change=None, capability=90):
        means = {(series, phase): value for phase, row in GOOD.items()
                 for series, value in row.items()}  # fmt: skip
        means.update(change or {})
        return phase_rules.broken(phase_rules.rules_of(group, capability), means)

    def test_good_values_break_none(self):
        self.assertEqual(self.broken("gpm"), [])
        self.assertEqual(self.broken("counters"), [])

    def test_a_value_that_does_not_move_breaks_one(self):
        for series, phase in (("tensor-active", "matrix"), ("sm-active", "matrix"),
                              ("dram-active", "copy"), ("pcie-received-rate", "transfer")):
            told = self.broken("gpm", {(series, phase): GOOD["idle"][series]})
            self.assertEqual(len(told), 1, told)
            self.assertIn(f"{series} in {phase}", told[0])

    def test_a_value_that_always_moves_breaks_one(self):
        for series in ("tensor-active", "dram-active", "sm-active"):
            self.assertEqual(len(self.broken("gpm", {(series, "idle"): 0.9})), 1, series)

    def test_a_series_that_is_not_there_breaks_its_rules(self):
        self.assertIn("not there", self.broken("gpm", {("dram-active", "copy"): None})[0])
        self.assertIn("must be", self.broken("gpm", {("dram-active", "copy"): float("nan")})[0])

    def test_blackwell_has_no_counters_of_pcie(self):
        without = {("pcie-received-rate", phase): None for phase in phase_rules.PHASES}
        self.assertEqual(self.broken("counters", without, 100), [])
        self.assertEqual(len(self.broken("counters", without, 90)), len(phase_rules.PHASES))


class Verdicts(unittest.TestCase):
    def test_a_run_in_which_all_was_skipped_is_skipped(self):
        self.assertEqual(all_tests.verdict_of([77, 77]), 77)
        self.assertEqual(all_tests.verdict_of([]), 77)
        self.assertEqual(all_tests.verdict_of([77, 0]), 0)
        self.assertEqual(all_tests.verdict_of([0, 77, 1]), 1)
        self.assertEqual(all_tests.verdict_of([0, 124]), 1)

    def test_an_interpreter_that_crashes_is_not_one_without_jax(self):
        with tempfile.TemporaryDirectory() as folder:
            python = pathlib.Path(folder) / "python"
            for ending, wanted in (("exit 0", True), ("exit 77", False)):
                self.write(python, ending)
                self.assertEqual(jax.has_jax(python), wanted)
            for ending in ("exit 1", "kill -11 $$"):
                self.write(python, ending)
                with self.assertRaises(AssertionError):
                    jax.has_jax(python)

    @staticmethod
    def write(path, ending):
        path.write_text(f"#!/bin/sh\n{ending}\n")
        path.chmod(0o755)


class Rounds(unittest.TestCase):
    def test_each_runs_once_a_round_and_the_first_round_is_dropped(self):
        called = []
        found = rounds({name: lambda name=name: called.append(name) or len(called)
                        for name in "abc"}, 5)  # fmt: skip
        self.assertEqual(len(called), 3 * 6)
        for at in range(0, len(called), 3):
            self.assertEqual(set(called[at : at + 3]), set("abc"))
        self.assertGreater(len({tuple(called[at : at + 3]) for at in range(0, 18, 3)}), 1)
        self.assertEqual(sorted(v for values in found.values() for v in values),
                         list(range(4, 19)))  # fmt: skip

    def test_the_spread_has_medians_their_ratio_and_the_outer_pairs(self):
        told = spread([110, 120, 130], [100, 100, 100], "ns")
        self.assertEqual(told, "3 pairs, 120 over 100 ns: 1.2000 (pairs 1.1000 to 1.3000)")

    def test_gates_judge_pairs(self):
        off = [1000.0] * 8
        row = difference_gate("launch", [1400.0] * 8, off, 1000)
        self.assertEqual((row.value, row.verdict), (400, "pass"))
        row = ratio_gate("loop", [1100.0] * 8, off, 2)
        self.assertEqual((round(row.value, 6), row.verdict), (10, "FAIL"))
        row = ratio_gate("loop", [1000.0, 1100.0] * 4, off, 2)
        self.assertEqual(row.verdict, "undecided")
        row = difference_gate("launch", [1400.0] * 4, [1000.0] * 4, 1000)
        self.assertEqual(row.verdict, "info", "too few")


if __name__ == "__main__":
    unittest.main()
