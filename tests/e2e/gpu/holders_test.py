"""Who holds CUPTI and the counters of GPUs, as `aon doctor` tells it of running processes."""
import json
import os
import pathlib
import shutil
import subprocess
import unittest

from gpu_case import FAKES, gpu_environment
from aon_test import PYTHON, TestCase, environment, run, wait_until

USES_CUDA = "import ctypes, time; ctypes.CDLL('libcuda.so.1').cuInit(0); time.sleep(300)"


class Holders(TestCase):
    def setUp(self):
        super().setUp()
        self.name = f"h{os.getpid()}"  # other tests may run programs of their own

    def start(self, *command, name=None, **variables):
        """Python under another name, which is that of the process."""
        program = self.folder / (name or self.name)
        program.symlink_to(PYTHON)
        process = subprocess.Popen([*command, program, "-c", USES_CUDA],
                                   env=gpu_environment(**variables))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def start_client(self, library):
        """A process of which `library` is CUPTI's client."""
        process = self.start(CUDA_INJECTION64_PATH=library)
        maps = pathlib.Path(f"/proc/{process.pid}/maps")
        wait_until(lambda: "libcupti.so.13" in maps.read_text(), what="CUPTI is loaded")
        return process

    def check(self, name, **variables):
        process = run(["aon", "doctor", "--json"], env=environment(**variables))
        self.assert_exit(process)
        return {c["name"]: c for c in json.loads(process.stdout)}[name]

    def test_a_process_with_another_tool_is_named_with_it(self):
        tool = shutil.copy(FAKES / "libnull-client.so", self.folder / "libToolsInjection64.so")
        process = self.start_client(tool)
        check = self.check("processes with CUPTI")
        self.assertEqual(check["state"], "limited")
        self.assertIn(f"{self.name} (PID {process.pid}): loaded libToolsInjection64.so of "
                      "Nsight Systems, libcupti.so.13", check["detail"])
        self.assertIn("without the other tool", check["remedy"])
        process.kill()
        process.wait()
        self.assertNotIn(self.name, self.check("processes with CUPTI")["detail"])

    def test_a_client_that_is_not_known_has_loaded_cupti_and_no_more_is_said(self):
        process = self.start_client(FAKES / "libnull-client.so")
        self.assertIn(f"{self.name} (PID {process.pid}): loaded libcupti.so.13",
                      self.check("processes with CUPTI")["detail"])

    def test_a_process_of_a_job_of_ours_is_named_with_us(self):
        process = self.start("aon-run", "-o", self.folder / "job", "--without", "mpi", "--")
        check = wait_until(lambda: self.named(self.name), what="CUPTI is loaded")
        self.assertIn("libaon-cupti.so of AON", check)
        process.terminate()
        process.wait(timeout=60)

    def named(self, name):
        parts = self.check("processes with CUPTI")["detail"].split("; ")
        return next((part for part in parts if part.startswith(f"{name} (")), None)

    def test_what_usually_has_the_counters_is_named(self):
        process = self.start(name="nv-hostengine")
        check = self.check("counters of GPUs")
        self.assertEqual(check["state"], "limited")
        self.assertRegex(check["detail"], rf"nv-hostengine \(PID .*\b{process.pid}\b.*\): DCGM")
        self.assertIn("dcgmi profile --pause", check["remedy"])

    def test_the_environment_is_that_of_the_next_job(self):
        tool = "/opt/nsys/libToolsInjection64.so"
        check = self.check("CUPTI's subscription", CUDA_INJECTION64_PATH=tool)
        self.assertEqual(check["state"], "no")
        self.assertIn(f"CUDA_INJECTION64_PATH is {tool} of Nsight Systems", check["detail"])
        self.assertIn("unset CUDA_INJECTION64_PATH", check["remedy"])
        self.assertEqual(self.check("CUPTI's subscription")["state"], "yes")


if __name__ == "__main__":
    unittest.main(verbosity=2)
