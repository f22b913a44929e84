#!/usr/bin/python3
"""Latency of an 8-byte ping-pong between two ranks in a tight loop, and of an MPI_Testany that
finds nothing, with libaon-mpi.so against without, as ratios of interleaved pairs.

    bench.py [PAIRS]

Each rank is bound to a core. Under both stands an agent that only drains and drops (hotpath_run),
so the cost is that of the wrapper and the ring, without the encoder's share of a core.
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from aon_bench import BUILD, MAX_PAIRS, environment, machine, percent_gate, timed_run  # noqa: E402

PROGRAM = BUILD / "bin" / "bench_ping_pong"
LATENCY_GOAL_PERCENT = 4.0


def measure(cycles, *arguments, is_on):
    """ns per message or poll."""
    variables = {"HOTPATH_PRELOAD": BUILD / "lib" / "libaon-mpi.so"} if is_on else {}
    command = [BUILD / "bin" / "hotpath_run", "mpirun", "-n", 2, "--bind-to", "core"]
    _, _, done = timed_run([*command, PROGRAM, cycles, *arguments], env=environment(**variables))
    return float(re.search(r"ns ([\d.]+)", done.stdout)[1])


def main():
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else MAX_PAIRS
    print(machine())
    off_ns = measure(400_000, is_on=False)
    percent_gate(
        "8-byte ping-pong latency",
        lambda: measure(400_000, is_on=True),
        lambda: measure(400_000, is_on=False),
        LATENCY_GOAL_PERCENT,
        pairs,
        f"{off_ns:.0f} ns without",
    )
    off_ns = measure(2_000_000, "poll", is_on=False)
    percent_gate(
        "MPI_Testany that finds nothing",
        lambda: measure(2_000_000, "poll", is_on=True),
        lambda: measure(2_000_000, "poll", is_on=False),
        None,
        min(pairs, 10),
        f"{off_ns:.0f} ns without",
    )


if __name__ == "__main__":
    main()
