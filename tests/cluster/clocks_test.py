#!/usr/bin/python3
"""Hosts whose clocks stand wrong and run at other rates (skewed.py): the corrected times are true
within the bound that is stated at every instant, alone and beside another MPI job. How narrow that
bound is depends on who else uses the cores: tests/bench/cluster.

    clocks_test.py [unittest arguments]        AON_RUNS=N repeats it N times (default 1)
"""
import os
import unittest

import cluster
from aon_test import TestCase
from skewed import SkewedHosts

RUNS = int(os.environ.get("AON_RUNS", "1"))
MOST_BOUND_NS = 100_000  # where cores are shared with anybody; the goal is the bench's
SECONDS = os.environ.get("AON_SECONDS", "3")


class Clocks(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hosts = SkewedHosts()
        cls.hosts.__enter__()
        cls.addClassCleanup(cls.hosts.__exit__)

    def test_skew_is_there(self):
        command = ["/usr/bin/python3", "-c",
                   "import time; print(time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW))"]
        here = int(self.hosts.run("n1", *command).stdout)
        there = int(self.hosts.run("n3", *command).stdout)
        self.assertLess(there - here, 1_000_000_000)
        self.assertIn("hpet", self.hosts.run("n2", "cat", "/sys/devices/system/clocksource/"
                                             "clocksource0/current_clocksource").stdout)

    def test_true_error_is_within_the_stated_bound(self):
        self.assert_within_bounds("alone")

    def test_and_so_it_is_beside_another_job(self):
        with self.hosts.load():
            self.assert_within_bounds("loaded")

    def assert_within_bounds(self, name):
        widest = worst = 0
        for number in range(RUNS):
            for node, bound_ns, error_ns in self.hosts.measure(f"{name}{number}", SECONDS):
                self.assertLessEqual(error_ns, bound_ns, node)
                widest, worst = max(widest, bound_ns), max(worst, error_ns)
        self.assertLess(widest, MOST_BOUND_NS, "a bound that says nothing")
        print(f"{name}, {RUNS} runs: bound at most {widest} ns, error at most {worst:.0f} ns")


if __name__ == "__main__":
    cluster.require()
    if os.geteuid() != 0:
        print("skipped: hosts with clocks of their own need root")
        raise SystemExit(77)
    unittest.main(verbosity=2)
