#!/usr/bin/python3
"""Latency of an 8-byte ping-pong between two ranks in a tight loop, and of an MPI_Testany that
finds nothing, with libaon-mpi.so against without, and what two reads of the clock alone cost there.

    bench.py [RUNS]

Each rank is bound to a core; the two threads of one rank with MPI_THREAD_MULTIPLE have both. With and without take turns within a run (ping_pong.c). Under it
stands an agent that only drains and drops (hotpath_run), so the cost is that of the wrapper and the
ring, without the encoder's share of a core.
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from aon_bench import BUILD, environment, machine, percent_row, report, timed_run  # noqa: E402
from aon_bench import value_gate  # noqa: E402

PROGRAM = BUILD / "bin" / "bench_ping_pong"
LATENCY_GOAL_PERCENT = 4.0
RUNS = 30


def measure(cycles, *arguments, launcher=("-n", 2, "--bind-to", "core")):
    """{layer: ns per message or poll} of one run."""
    command = [BUILD / "bin" / "hotpath_run", "mpirun", *launcher]
    variables = environment(HOTPATH_PRELOAD=BUILD / "lib" / "libaon-mpi.so")
    _, _, done = timed_run([*command, PROGRAM, cycles, *arguments], env=variables)
    return {name: float(ns) for name, ns in re.findall(r"(\w+) ([\d.]+)", done.stdout)}


def rows(name, runs, goal):
    value_gate(f"{name}: without", [run["plain"] for run in runs], "ns", None)
    for layer, what, limit in (("clock", "two clock reads alone", None), ("wrapped", "AON", goal)):
        report(percent_row(f"{name}: {what}", [(r[layer], r["plain"]) for r in runs], limit))
        added = [run[layer] - run["plain"] for run in runs]
        value_gate(f"{name}: {what}, added", added, "ns", None)


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    print(machine())
    rows("ping-pong", [measure(400_000) for _ in range(count)], LATENCY_GOAL_PERCENT)
    alone = ("-n", 1, "--bind-to", "none")
    threads = [measure(200_000, "threads", launcher=alone) for _ in range(count)]
    rows("ping-pong of 2 threads", threads, LATENCY_GOAL_PERCENT)
    rows("empty MPI_Testany", [measure(2_000_000, "poll") for _ in range(count // 3)], None)


if __name__ == "__main__":
    main()
