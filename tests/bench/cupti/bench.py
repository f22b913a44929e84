#!/usr/bin/python3
"""Cost of a kernel launch under AON beside that of a CUPTI client that does nothing, over the
made-up driver and CUPTI (tests/fake_cuda); CPU time of our thread per record; growth of memory.

    bench.py [RUNS [ROUNDS]]

A launch makes two records, that of the kernel and that of the call. Under AON stands an agent that
only drains and drops (hotpath_run). What the real CUPTI costs is not in it: that takes a device.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from aon_bench import BUILD, environment, machine, timed_run, value_gate  # noqa: E402

LAUNCH_GOAL_NS = 200
RECORD_GOAL_NS = 60
GROWTH_GOAL_KB = 1024
RECORDS_PER_LAUNCH = 2
RUNS = 8
ROUNDS = 60
FAKES = BUILD / "lib" / "fake_cuda"


def measure(injection, rounds):
    """{"launch_ns": ..., "drain_ns": ..., "launches": ..., "growth_kb": ...} of one run."""
    variables = environment(
        HOTPATH_PRELOAD=BUILD / "lib" / "libaon.so",
        CUDA_INJECTION64_PATH=injection,
        LD_LIBRARY_PATH=FAKES,
        GPU_PROGRAM_BENCH=rounds,
        AON_BUDGET=100,
    )
    agent = [BUILD / "bin" / "hotpath_run"] if "aon" in injection.name else []
    command = agent + [BUILD / "bin" / "gpu_program"]
    _, _, done = timed_run(command, env=variables)
    line = next(line for line in done.stdout.splitlines() if line.startswith("bench "))
    words = line.split()[1:]
    return dict(zip(words[::2], map(float, words[1::2])))


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else ROUNDS
    print(machine())
    ours, empty = [], []
    for _ in range(runs):
        empty.append(measure(FAKES / "libnull-client.so", rounds))
        ours.append(measure(BUILD / "lib" / "libaon-cupti.so", rounds))
    more = [a["launch_ns"] - b["launch_ns"] for a, b in zip(ours, empty)]
    value_gate("CUDA launch, above an empty client", more, "ns", LAUNCH_GOAL_NS)
    value_gate("CUDA launch, empty client", [run["launch_ns"] for run in empty], "ns", None)
    drain = [run["drain_ns"] / RECORDS_PER_LAUNCH for run in ours]
    value_gate("CUPTI record, our thread", drain, "ns", RECORD_GOAL_NS)
    millions = rounds * 10_000 * RECORDS_PER_LAUNCH / 1e6
    value_gate(f"memory over {millions:g} million CUPTI records",
               [run["growth_kb"] for run in ours], "KiB", GROWTH_GOAL_KB)


if __name__ == "__main__":
    main()
