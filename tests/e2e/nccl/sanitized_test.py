"""The plugin under the sanitizers of the preset: as part of fake_nccl (STATIC_PLUGIN), without an
agent, in the cases and versions where the most goes wrong, and with what was recorded on a device.
"""
import concurrent.futures
import unittest

from nccl_records import BUILD, run

from aon_test import SOURCE, TestCase, environment

FAKE = BUILD / "bin" / "fake_nccl_with_plugin"
RECORDER = BUILD / "lib" / "fake_nccl" / "libnccl-profiler-recorder.so"
RECORDINGS = sorted((SOURCE / "tests" / "replay" / "nccl").glob("*.calls"))
# Version 4 has no calls, 5 is what was seen on a device, 7 has it all.
VERSIONS = (4, 5, 7)
CASES = {
    "allreduce": 300, "communicators": 10, "copy_engines": 5, "crowd": 1, "double_stop": 3,
    "every": 1, "exchange": 100, "foreign_proxy": 3, "graph": 3, "graph_relevelled": 3, "junk": 1,
    "late_data": 1, "late_proxy": 300, "lone_stop": 3, "lost_steps": 2, "many": 20,
    "missing_channels": 300, "missing_stop": 3, "no_finalize": 10, "no_timer": 3, "no_work": 300,
    "one_rank": 3, "paused": 30, "proxy": 20, "relevelled": 1, "reloaded": 5, "self_transfers": 3,
    "toggled": 9, "two_ranks": 50, "unmasked": 5,
}  # fmt: skip
CHAINED = ("every", "double_stop", "missing_stop", "graph", "junk", "two_ranks", "foreign_proxy")


class Sanitized(TestCase):
    def one(self, arguments, **changes):
        output = self.folder / "-".join(str(a).rpartition("/")[2] for a in (*arguments, *changes))
        output.mkdir()
        told = {"NCCL_PROFILER_PLUGIN": "STATIC_PLUGIN", "AON_NCCL_LEVEL": "step",
                "AON_OUTPUT": output, "AON_MEMORY": "8M", "ASAN_OPTIONS": "detect_leaks=0",
                **changes}  # fmt: skip
        done = run([FAKE, *map(str, arguments)], env=environment(**told))
        return arguments, done

    def all_of(self, commands, **changes):
        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            for arguments, done in threads.map(lambda c: self.one(c, **changes), commands):
                with self.subTest(arguments):
                    self.assertEqual(done.returncode, 0, done.stderr[-3000:])

    def test_finds_nothing_in_any_case(self):
        self.all_of([(case, version, count) for case, count in CASES.items()
                     for version in VERSIONS])  # fmt: skip

    def test_finds_nothing_at_level_api(self):
        self.all_of([(case, 7, 3) for case in CASES], AON_NCCL_LEVEL="api")

    def test_finds_nothing_where_another_plugin_is_chained(self):
        self.all_of([(case, 7, 3) for case in CHAINED], AON_NCCL_CHAIN=RECORDER,
                    RECORDER_MASK="4094")  # fmt: skip

    def test_finds_nothing_in_what_a_device_made_of_it(self):
        self.assertGreater(len(RECORDINGS), 8)
        self.all_of([("replay", path) for path in RECORDINGS])


if __name__ == "__main__":
    unittest.main(verbosity=2)
