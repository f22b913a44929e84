"""The real NCCL on a machine without a GPU, as far as it goes: it asks for a version that the
plugin has, finds the plugin by its path and by its name, and init fails as it does without us."""
import ctypes
import glob
import os
import re
import subprocess
import sys
import unittest

from nccl_records import BUILD, PLUGIN, PluginTestCase

SKIPPED = 77
LIBRARIES = glob.glob("/usr/local/cuda*/lib64/libnccl.so.2") + glob.glob(
    "/usr/lib/x86_64-linux-gnu/libnccl.so.2"
)
INIT = """
import ctypes, sys
nccl = ctypes.CDLL(sys.argv[1])
class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]
number, own, comm = ctypes.c_int(), Id(), ctypes.c_void_p()
print(nccl.ncclGetVersion(ctypes.byref(number)), number.value > 22300)
print(nccl.ncclGetUniqueId(ctypes.byref(own)))
nccl.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, Id, ctypes.c_int]
result = nccl.ncclCommInitRank(ctypes.byref(comm), 1, own, 0)
print(result)
if result == 0:
    print(nccl.ncclCommDestroy(comm))
"""


class RealNccl(PluginTestCase):
    def init(self, **variables):
        env = dict(os.environ, NCCL_SOCKET_IFNAME="lo", **variables)
        words = [sys.executable, "-c", INIT, LIBRARIES[0]]
        done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout.split("\n"), done.stderr

    def test_it_asks_for_a_version_that_the_plugin_has(self):
        with open(LIBRARIES[0], "rb") as file:
            asked = set(re.findall(rb"ncclProfiler_v(\d+)", file.read()))
        plugin = ctypes.CDLL(str(PLUGIN), mode=os.RTLD_LOCAL | os.RTLD_NOW)
        newest = max(int(version) for version in asked)
        self.assertTrue(hasattr(plugin, f"ncclProfiler_v{newest}"), asked)

    def test_init_ends_with_the_plugin_as_it_does_without(self):
        code, plain, _ = self.init(NCCL_PROFILER_PLUGIN="none")
        self.assertEqual((code, plain[:2]), (0, ["0 True", "0"]))
        folder = str(PLUGIN.parent)
        ways = {
            "path": {"NCCL_PROFILER_PLUGIN": str(PLUGIN)},
            "name": {"NCCL_PROFILER_PLUGIN": "aon", "LD_LIBRARY_PATH": folder},
            "preloaded": {"NCCL_PROFILER_PLUGIN": "STATIC_PLUGIN", "LD_PRELOAD": str(PLUGIN)},
        }
        for way, variables in ways.items():
            with self.subTest(way=way):
                code, lines, errors = self.init(**variables)
                self.assertEqual((code, lines), (0, plain), errors)

    def test_a_job_without_a_gpu_is_recorded_and_ends_as_without_us(self):
        output = self.folder / "job"
        plain = self.init(NCCL_PROFILER_PLUGIN="none")
        words = [BUILD / "bin" / "aon-run", "-o", output, "--nccl-level", "gpu", "--",
                 sys.executable, "-c", INIT, LIBRARIES[0]]  # fmt: skip
        env = dict(os.environ, NCCL_SOCKET_IFNAME="lo")
        done = subprocess.run([str(w) for w in words], env=env, capture_output=True, text=True,
                              timeout=180)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.split("\n"), plain[1])


if __name__ == "__main__":
    if not LIBRARIES:
        print("skipped: no libnccl.so.2: install NVIDIA's libnccl2")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
