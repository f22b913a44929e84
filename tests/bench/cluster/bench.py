#!/usr/bin/python3
"""What TaskProlog adds to the start of a task; the assembly of jobs from 100 to 10 000 ranks, eight
a node: seconds and peak memory of the largest against their goals, and how the cost of a rank
changes between the smallest and it."""
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from aon_bench import BUILD, environment, value_gate  # noqa: E402

RANKS = (100, 1000, 10_000)
RANKS_PER_NODE = 8
RUNS = 5
PROLOG_RUNS = 101
PROGRAM = pathlib.Path(BUILD) / "bin" / "bench_nodes"
TASK_PROLOG = pathlib.Path(BUILD) / "share" / "aon" / "slurm" / "aon-taskprolog.sh"
FIGURES = re.compile(r"rank: ([\d.]+) s, ([\d.]+) s CPU, peak (\d+) MiB; .*")


def measure(ranks):
    """[(seconds, CPU seconds, MiB)] of the runs; bytes and files printed for the reader."""
    results = []
    for _ in range(RUNS):
        command = [PROGRAM, str(ranks), str(RANKS_PER_NODE)]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        results.append(tuple(map(float, FIGURES.search(text).groups())))
    print(text.strip(), flush=True)
    return results


def task_prolog_ms():
    """Wall clock of the script that Slurm runs before each task, for tasks of one step."""
    samples = []
    with tempfile.TemporaryDirectory(prefix="aon-bench-") as folder:
        with subprocess.Popen(["sleep", "600"]) as task:
            env = environment(
                SLURM_JOB_ID=7, SLURM_STEP_ID=0, SLURM_TASK_PID=task.pid, SLURM_SUBMIT_DIR=folder,
                XDG_RUNTIME_DIR=folder, HOME=folder)
            for _ in range(PROLOG_RUNS):
                begin_ns = time.monotonic_ns()
                done = subprocess.run([TASK_PROLOG], env=env, capture_output=True, check=True)
                samples.append((time.monotonic_ns() - begin_ns) / 1e6)
                assert b"LD_PRELOAD" in done.stdout, "it has switched AON on"
            task.kill()
    return samples[1:]  # the first one starts the doorman of the step


def main():
    value_gate("TaskProlog", task_prolog_ms(), "ms a task", 20)
    runs = {ranks: measure(ranks) for ranks in RANKS}
    largest = runs[RANKS[-1]]
    nodes = RANKS[-1] // RANKS_PER_NODE
    value_gate(f"assemble {RANKS[-1]} ranks of {nodes} nodes", [r[0] for r in largest], "s", 10)
    value_gate("their CPU time", [r[1] for r in largest], "s", 10)
    value_gate("their peak memory", [r[2] for r in largest], "MiB", 1024)
    growth = RANKS[-1] / RANKS[0]
    ratios = [big[1] / (growth * small[1]) for big, small in zip(largest, runs[RANKS[0]])]
    value_gate(f"CPU time of a rank, {RANKS[-1]} to {RANKS[0]}", ratios, "x", None)


if __name__ == "__main__":
    main()
