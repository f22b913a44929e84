#!/usr/bin/python3
"""Hosts whose clocks stand wrong and run at other rates, which nothing in AON can see but by asking
the other hosts: the corrected times are true within the bound that is stated.

    clocks_test.py [unittest arguments]        AON_RUNS=N repeats it N times (default 1)
"""
import os
import time
import unittest

import h5py
import numpy

import cluster
from aon_test import BUILD, TestCase, environment, ledger
from cluster import AON_RUN

HOSTS = 4
RUNS = int(os.environ.get("AON_RUNS", "1"))
SECONDS = os.environ.get("AON_SECONDS", "3")
# Offset in ns (which REALTIME shows too, so below what NTP leaves), rate in parts per billion.
SKEWS = {
    "n1": (0, 0),
    "n2": (3_000_000, 20_000),
    "n3": (-2_500_000, -30_000),
    "n4": (700_000, 8_000),
}
MOST_APART_NS = 3_000  # of the two readings around an instant


class SkewedHosts(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hosts = cluster.Hosts(HOSTS)
        cls.hosts.__enter__()
        cls.addClassCleanup(cls.hosts.__exit__)
        origin = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        for host, (offset, rate) in SKEWS.items():
            cls.skew(host, f"{offset} {rate} {origin}")

    @classmethod
    def skew(cls, host, text):
        """Gives the host an /etc of its own, and a kernel that does not trust its TSC."""
        etc = cls.hosts.folder / host / "etc"
        source = cls.hosts.folder / host / "clocksource"
        source.write_text("hpet\n")
        kernels = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
        script = f"""set -e
            mkdir {etc}; cp -a /etc/. {etc}
            echo {text} > {etc}/aon-skew
            echo {BUILD}/lib/libcluster_skew.so > {etc}/ld.so.preload
            mount --bind {etc} /etc
            mount --bind {source} {kernels}"""
        done = cls.hosts.run(host, "sh", "-c", script)
        if done.returncode != 0:
            raise AssertionError(done.stderr)

    def test_skew_is_there(self):
        command = ["/usr/bin/python3", "-c",
                   "import time; print(time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW))"]
        here = int(self.hosts.run("n1", *command).stdout)
        there = int(self.hosts.run("n3", *command).stdout)
        self.assertLess(there - here, 1_000_000_000)
        self.assertIn("hpet", self.hosts.run("n2", "cat", "/sys/devices/system/clocksource/"
                                             "clocksource0/current_clocksource").stdout)

    def errors_of(self, output):
        """{node: (lowest, highest)}: corrected less true time of instants, ns, up to a constant."""
        document = ledger(output)
        nodes = {r["rank"]: r["node"] for r in document["ranks"]}
        result = {}
        with h5py.File(output / "profile.h5") as file:
            for rank, node in nodes.items():
                series = file[f"series/rank_{rank}/user"]
                stamps = series["time"][()]
                before, after = series["true_before"][()], series["true_after"][()]
                known = ~numpy.isnan(before)
                # The stamp of "before" lies between both readings.
                times, first = stamps[known], before[known]
                last = after[~numpy.isnan(after)]
                count = min(len(first), len(last))
                near = last[:count] - first[:count] < MOST_APART_NS
                error = times[:count][near] - first[:count][near]
                result.setdefault(node, []).append(error)
        return {node: numpy.concatenate(parts) for node, parts in result.items()}

    def test_true_error_is_within_the_stated_bound(self):
        widest = worst = 0
        for number in range(RUNS):
            output = self.hosts.folder / f"job{number}"
            env = environment(AON_MEMORY="4MiB")
            done = self.hosts.mpirun(
                1, AON_RUN, "-o", output, "--sampling", "0", BUILD / "bin" / "cluster_clock_truth",
                SECONDS, env=env)
            self.assert_exit(done)
            document = ledger(output)
            bounds = {n["node"]: n for n in document["clock"]["nodes"]}
            errors = self.errors_of(output)
            self.assertEqual(set(errors), set(SKEWS))
            origin = numpy.median(errors["n1"])
            for node, error in errors.items():
                bound = bounds[node]["error_ns"]
                self.assertIsNotNone(bound, bounds)
                self.assertGreater(len(error), 50)
                true_error = numpy.median(numpy.abs(error - origin))
                # Where the stamp lies between the readings is known to MOST_APART_NS only.
                self.assertLessEqual(true_error, bound + MOST_APART_NS / 2, (node, bounds))
                widest, worst = max(widest, bound), max(worst, true_error)
        print(f"{RUNS} runs: bound at most {widest} ns, error at most {worst:.0f} ns")


if __name__ == "__main__":
    cluster.require()
    if os.geteuid() != 0:
        print("skipped: hosts with clocks of their own need root")
        raise SystemExit(77)
    unittest.main(verbosity=2)
