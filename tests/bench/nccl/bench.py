#!/usr/bin/python3
"""Cost of a callback of the NCCL plugin at level api, over the twelve of an eager AllReduce, less
that of calling functions that do nothing between the same reads of the clock (fake_nccl bench).

    bench.py [RUNS]

Under it stands an agent that only drains and drops (hotpath_run). The 99.9th percentile is judged
as it is, with the clock's reads and what the machine does to anybody, and above that of the empty
functions: a noisy machine makes the one undecided or fail, and can make the other pass.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from aon_bench import BUILD, environment, machine, timed_run, value_gate  # noqa: E402

MEDIAN_GOAL_NS = 60
TAIL_GOAL_NS = 300
PROXY_GOAL_NS = {"piece": 2 * MEDIAN_GOAL_NS, "step": 7 * MEDIAN_GOAL_NS}  # 2 and 7 callbacks
RUNS = 20
GROUPS = 100_000


def measure(case="bench", level="api", count=GROUPS):
    """{kind: (median, 99.9th percentile)} of one run."""
    variables = environment(
        HOTPATH_PRELOAD=BUILD / "lib" / "libaon.so",
        NCCL_PROFILER_PLUGIN=BUILD / "lib" / "libnccl-profiler-aon.so",
    )
    variables["AON_NCCL_LEVEL"] = level
    command = [BUILD / "bin" / "hotpath_run", BUILD / "bin" / "fake_nccl", case, 7, count]
    _, _, done = timed_run(command, env=variables)
    lines = (line.split() for line in done.stdout.splitlines())
    return {name: (float(median), float(tail)) for name, median, tail in lines}


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    print(machine())
    runs = [measure() for _ in range(count)]

    def own(kind, which):  # of `runs` as it is then
        return [run[kind][which] - run[f"nothing.{kind}"][which] for run in runs]

    value_gate("NCCL callback, median", own("all", 0), "ns", MEDIAN_GOAL_NS)
    value_gate("NCCL callback, 99.9 %, above empty", own("all", 1), "ns", TAIL_GOAL_NS)
    # As it is, too: where the machine disturbs the empty ones, the difference tells nothing.
    value_gate("NCCL callback, 99.9 %", [run["all"][1] for run in runs], "ns", TAIL_GOAL_NS)
    value_gate("the same, empty", [run["nothing.all"][1] for run in runs], "ns", None)
    for kind in ("CollApi", "CollApiStop", "KernelLaunch", "Coll", "CollStop", "GroupApiStop"):
        value_gate(f"{kind}, median", own(kind, 0), "ns", None)
    for level, kind in (("net", "piece"), ("step", "step")):
        runs = [measure("bench_steps", level, GROUPS // 16) for _ in range(count)]
        value_gate(f"level {level}: all callbacks of a {kind}, median", own(kind, 0), "ns",
                   PROXY_GOAL_NS[kind])  # fmt: skip


if __name__ == "__main__":
    main()
