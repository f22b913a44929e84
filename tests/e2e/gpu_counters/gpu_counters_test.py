"""--gpu-counters in a real job, over a driver and a CUPTI that are made up (tests/fake_pm): series
of each GPU, what fails in the ledger, and a helper process that is never left behind."""
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import unittest

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from aon_test import (  # noqa: E402
    BUILD, IS_SANITIZED, TestCase, environment, ledger, profile, run, wait_until,
)  # fmt: skip

FAKES = BUILD / "lib" / "fake_pm"
UUID = "GPU-1111110{}-1111-1111-1111-111111111111"


def helpers(output):
    """Helper processes of the job in `output`: children of its agent."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if not words[0].endswith(b"/aon-gpu-counters"):
                continue
            variables = (folder / "environ").read_bytes()
        except (OSError, NotADirectoryError):
            continue
        if f"AON_TEST_JOB={output}".encode() in variables:
            found.append(int(folder.name))
    return found


def parent_of(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("PPid:")[1].split()[0])


def links_of(pid):
    """What the descriptors of a process stand for."""
    found = set()
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # closed meanwhile
            found.add(os.readlink(entry))
    return found


class CountersCase(TestCase):
    def environment(self, **knobs):
        knobs.setdefault("LD_LIBRARY_PATH", FAKES)
        return environment(AON_TEST_JOB=self.output, **knobs)

    def setUp(self):
        super().setUp()
        self.output = self.folder / "job"

    def command(self, seconds, choice):
        return ["aon-run", "-o", self.output, "--without", "mpi", "--gpu-counters", choice, "--",
                "sleep", seconds]

    def run_job(self, seconds=1.5, choice="core", **knobs):
        self.assert_exit(run(self.command(seconds, choice), env=self.environment(**knobs)))
        self.finish()

    def finish(self):
        wait_until(lambda: not helpers(self.output), what="no helper is left")
        self.assert_exit(run(["aon", "finalize", "--quiet", self.output]))
        self.provider = ledger(self.output)["nodes"][0]["providers"].get("gpu-counters")

    def series(self, gpu=0):
        with h5py.File(self.output / "profile.h5") as file:
            group = file[f"series/gpu_{UUID.format(gpu)}/counters"]
            self.units = {n: group[n].attrs.get("units") for n in group}
            return {n: group[n][:] for n in group}

    def assert_pauses(self, times, ms, share=0.9):
        """Most samples are `ms` apart: none was dropped or moved."""
        gaps = [b - a for a, b in zip(times, times[1:])]
        good = sum(abs(gap - ms * 1e6) < 0.2 * ms * 1e6 for gap in gaps)
        self.assertGreater(good, share * len(gaps), gaps[:20])


class Counters(CountersCase):
    def test_each_gpu_has_series_at_ten_milliseconds(self):
        self.run_job(FAKE_PM_GPUS=2)
        self.assertEqual(self.provider["state"], "on", self.provider)
        self.assertIn("GH100", self.provider["reason"])
        for gpu in (0, 1):
            series = self.series(gpu)
            self.assertEqual(self.units["sm-active"], "1")
            self.assertEqual(self.units["nvlink-sent-rate"], "By/s")
            self.assertGreater(len(series["time"]), 50)
            self.assertEqual(set(series["sm-active"]), {0.01})
            self.assertEqual(set(series["tensor-active"]), {0.03})
            # Metric 7: 7 bytes in 10 ms.
            self.assertEqual(set(series["nvlink-received-rate"]), {700})
            self.assert_pauses(series["time"], 10)
        with h5py.File(self.output / "profile.h5") as file:
            cost = file["series/node_0/gpu-counters"]
            self.assertGreater(cost["helper-cpu-time"][-1], 0)
            self.assertGreater(cost["helper-memory"][-1], 1 << 20)

    def test_a_gpu_that_no_process_may_see_is_named(self):
        """The second of two; the program is one that registers as a process of the job, and goes on
        for longer than a sanitized helper takes to begin beside others."""
        options = ("--gpu-counters", "core", "--sampling", "0")
        self.assert_exit(profile(1, self.output, BUILD / "bin" / "fault_worker", "pace",
                                 self.folder, "6", options=options,
                                 env=self.environment(FAKE_PM_GPUS=2, CUDA_VISIBLE_DEVICES=0)))
        self.finish()
        hidden = "is hidden from all processes of this job"
        self.assertIn(f"{UUID.format(1)} (GH100) {hidden}", self.provider["reason"])
        self.assertEqual(self.provider["reason"].count(hidden), 1)

    def test_parts_of_a_gpu_are_named_as_such(self):
        self.run_job(FAKE_PM_MIG=1)
        self.assertIn("MIG-1111", self.provider["reason"])

    def test_wide_has_more(self):
        self.run_job(choice="wide", FAKE_PM_LACKS="ctxsw")
        series = self.series()
        self.assertIn("l2-hit-rate", series)
        self.assertNotIn("context-switch-active", series)
        self.assertIn("has no context-switch-active", self.provider["reason"])

    def test_bursts_are_fine_grained(self):
        self.run_job(choice="burst")
        self.assert_pauses(self.series()["time"], 1)

    def test_nobody_misses_what_nobody_asked_for(self):
        self.run_job(seconds=0.5, choice="off")
        self.assertIsNone(self.provider)


class Faults(CountersCase):
    def test_busy_counters_are_told_and_tried_again(self):
        self.run_job(FAKE_PM_ERROR="cuptiPmSamplingEnable:26:1:100")
        self.assertEqual(self.provider["state"], "off")
        self.assertIn("in use by another profiler", self.provider["reason"])
        self.assertIn("dcgmi profile --pause", self.provider["remedy"])

    def test_missing_privileges_have_a_remedy(self):
        self.run_job(FAKE_PM_GPUS=2, FAKE_PM_ERROR="cuptiPmSamplingEnable:35:1:100")
        self.assertEqual(self.provider["state"], "off")
        self.assertIn("NVreg_RestrictProfilingToAdminUsers=0", self.provider["remedy"])

    def test_one_gpu_that_fails_leaves_the_other(self):
        self.run_job(FAKE_PM_GPUS=2, FAKE_PM_ERROR="cuptiPmSamplingEnable:35:1")
        self.assertEqual(self.provider["state"], "degraded")
        self.assertGreater(len(self.series(1)["time"]), 50)

    def test_a_crash_of_cupti_is_the_helpers_alone(self):
        self.run_job(seconds=4, FAKE_PM_CRASH=3)
        self.assertEqual(self.provider["state"], "degraded")
        # The sanitizer of a sanitized helper takes the signal and ends it.
        how = "exit code 1" if IS_SANITIZED else "signal 11"
        self.assertIn(how, self.provider["reason"])
        self.assertTrue(ledger(self.output)["job"]["complete"])
        self.assertGreater(len(self.series()["time"]), 5)

    def test_too_much_memory_ends_it(self):
        """The program ends when the helper has: a sanitized one takes its time to fill so much."""
        stop = self.folder / "stop"
        waits = f"while [ ! -e {stop} ]; do sleep 0.1; done"
        command = [*self.command(0, "core")[:-2], "sh", "-c", waits]
        job = subprocess.Popen([str(c) for c in command], stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True,
                               env=self.environment(FAKE_PM_MEMORY=1200))
        self.addCleanup(job.kill)
        helper = wait_until(lambda: helpers(self.output), what="a helper")[0]
        pipe, worker = os.readlink(f"/proc/{helper}/fd/1"), parent_of(helper)
        wait_until(lambda: helper not in helpers(self.output), 90, what="the helper has ended")
        wait_until(lambda: pipe not in links_of(worker), what="the agent has seen it")
        stop.touch()
        _, said = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 0, said)
        self.finish()
        self.assertIn("more than 1 GiB", self.provider["reason"])

    def test_a_full_buffer_is_told(self):
        self.run_job(FAKE_PM_OVERFLOW=2)
        self.assertEqual(self.provider["state"], "degraded")
        self.assertIn("buffer was full 1 times", self.provider["reason"])

    def test_without_driver_it_is_off(self):
        self.run_job(LD_LIBRARY_PATH="/none", AON_CUPTI_LIB=FAKES / "libcupti.so.13")
        if self.provider["state"] != "off":
            self.skipTest("this machine has a GPU")
        self.assertIn("libcuda.so.1 is not there", self.provider["reason"])

    def test_a_libcupti_that_cannot_be_is_told(self):
        self.run_job(AON_CUPTI_LIB="libcupti.so.13")
        self.assertEqual(self.provider["state"], "degraded")
        self.assertIn("libcupti.so.13 is no absolute path; ", self.provider["reason"])
        self.assertIn(f"{FAKES}/libcupti.so.13 is used instead", self.provider["reason"])
        self.assertIn("AON_CUPTI_LIB", self.provider["remedy"])
        self.assertGreater(len(self.series()["time"]), 50)

    def test_the_helper_dies_with_the_agents_worker(self):
        job = subprocess.Popen([str(c) for c in self.command(6, "core")], env=self.environment(),
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(job.kill)
        helper = wait_until(lambda: helpers(self.output), what="a helper")[0]
        os.kill(parent_of(helper), signal.SIGKILL)
        wait_until(lambda: helper not in helpers(self.output), what="the helper has died")
        # The next worker has a helper of its own.
        wait_until(lambda: helpers(self.output), what="another helper")
        _, said = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 0, said)
        self.finish()
        self.assertGreater(len(self.series()["time"]), 50)

    def test_a_killed_helper_is_told(self):
        job = subprocess.Popen([str(c) for c in self.command(3, "core")], env=self.environment(),
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(job.kill)
        helper = wait_until(lambda: helpers(self.output), what="a helper")[0]
        os.kill(helper, signal.SIGKILL)
        _, said = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 0, said)
        self.finish()
        self.assertEqual(self.provider["state"], "degraded")
        self.assertIn("signal 9", self.provider["reason"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
