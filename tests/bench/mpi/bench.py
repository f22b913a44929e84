#!/usr/bin/python3
"""Latency of an 8-byte ping-pong between two ranks in a tight loop, of calls from Fortran, and of
an MPI_Testany that finds nothing, with libaon-mpi.so against without, and what two reads of the
clock alone cost there.

    bench.py [RUNS]

Each rank is bound to a core; the two threads of one rank with MPI_THREAD_MULTIPLE have both. With
and without take turns within a run (ping_pong.c). Under it stands an agent that only drains and
drops (hotpath_run), so the cost is that of the wrapper and the ring, without the encoder's share of
a core.
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from aon_bench import BUILD, environment, machine, percent_row, report, timed_run  # noqa: E402
from aon_bench import value_gate  # noqa: E402

PROGRAM = BUILD / "bin" / "bench_ping_pong"
FORTRAN_PROGRAM = BUILD / "bin" / "bench_fortran_calls"
LATENCY_GOAL_PERCENT = 4.0
FORTRAN_GOAL_NS = 3.0  # above two reads of the clock
COUNTED_GOAL_NS = 1.0  # above forwarding
RUNS = 30


def measure(cycles, *arguments, launcher=("-n", 2, "--bind-to", "core"), program=PROGRAM):
    """{layer: ns per message or call} of one run."""
    command = [BUILD / "bin" / "hotpath_run", "mpirun", *launcher]
    variables = environment(HOTPATH_PRELOAD=BUILD / "lib" / "libaon-mpi.so")
    _, _, done = timed_run([*command, program, cycles, *arguments], env=variables)
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
    core = {"launcher": ("-n", 1, "--bind-to", "core"), "program": FORTRAN_PROGRAM}
    for mode, what, goal in (("send", "Fortran MPI_Send", FORTRAN_GOAL_NS),
                             ("request", "Fortran MPI_Isend, MPI_Wait", FORTRAN_GOAL_NS),
                             ("c", "C MPI_Isend, MPI_Wait", FORTRAN_GOAL_NS)):
        calls = [measure(20_000, mode, **core) for _ in range(count)]
        added = [run["wrapped"] - run["clock"] for run in calls]
        value_gate(f"{what}: a call, above two clock reads", added, "ns", goal)
    counts = [measure(20_000, "count", **core) for _ in range(count)]
    added = [run["wrapped"] - run["plain"] for run in counts]
    value_gate("Fortran call counted, above forwarding", added, "ns", COUNTED_GOAL_NS)
    rows("empty MPI_Testany", [measure(2_000_000, "poll") for _ in range(count // 3)], None)


if __name__ == "__main__":
    main()
