#!/usr/bin/python3
"""What TaskProlog adds to the start of a task and what the node's service takes while nobody reads;
the bound of clocks that is stated and the true error, alone and beside another MPI job (AON_RUNS
runs each, default 100); 64 ranks over 8 hosts; the assembly of jobs from 100 to 10 000 ranks, eight
a node: seconds and peak memory of the largest, and how the cost of a rank changes between the
smallest and it. Needs root for clocks and hosts."""
import contextlib
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "cluster"))

from aon_bench import BUILD, Row, environment, report, value_gate  # noqa: E402
from scale_test import AGENT_BYTES, HOSTS, NODE_BYTES, many_ranks  # noqa: E402
from skewed import SkewedHosts  # noqa: E402

RANKS = (100, 1000, 10_000)
RANKS_PER_NODE = 8
RUNS = 5
PROLOG_RUNS = 101
CLOCK_RUNS = int(os.environ.get("AON_RUNS", "100"))
CLOCK_SECONDS = 3
IDLE_SECONDS = 20
MOST_GROWTH = 1.3
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
    return samples


def worst(name, values, unit, goal):
    """The largest of all, not their median: what holds in every run."""
    largest = max(values)
    report(Row(name, largest, largest, largest, unit, goal, f"{len(values)} values"))


def idle_service():
    """A service that somebody has read from once, and nobody reads from now."""
    with tempfile.TemporaryDirectory(prefix="aon-bench-") as folder:
        path = pathlib.Path(folder) / "run" / "node.sock"
        words = [pathlib.Path(BUILD) / "bin" / "aon-node", "--socket", path]
        with subprocess.Popen(words, env=environment(), stderr=subprocess.DEVNULL) as service:
            while not path.exists():
                time.sleep(0.01)
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as reader:
                reader.connect(str(path))
                reader.recv(64)
            time.sleep(1)
            before_ns = cpu_ns(service.pid)
            time.sleep(IDLE_SECONDS)
            percent = (cpu_ns(service.pid) - before_ns) / IDLE_SECONDS / 1e7
            status = pathlib.Path(f"/proc/{service.pid}/status").read_text()
            service.terminate()
    worst("idle service, share of a core", [percent], "%", 0.1)
    worst("idle service, resident", [int(status.split("VmRSS:")[1].split()[0]) / 1024], "MiB", 20)


def cpu_ns(pid):
    return int(pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[0])


def clocks():
    """Bounds and errors of hosts with clocks of their own, over all runs."""
    with SkewedHosts() as hosts:
        for name, load in (("clocks", contextlib.nullcontext), ("beside a job", hosts.load)):
            bounds_us, shares = [], []
            with load():
                for number in range(CLOCK_RUNS):
                    found = hosts.measure(f"{name.replace(' ', '-')}{number}", CLOCK_SECONDS)
                    others = [one for one in found if one[1] > 0]  # the root has no error
                    bounds_us.append(max(bound_ns for _, bound_ns, _ in others) / 1e3)
                    shares += [error_ns / bound_ns for _, bound_ns, error_ns in others]
            value_gate(f"{name}: stated bound", bounds_us, "us", 5)
            worst(f"{name}: stated bound, widest", bounds_us, "us", 5)
            worst(f"{name}: true error of its bound, most", shares, "x", 1)


def ranks_on_hosts():
    document = many_ranks()
    ranks = len(document["ranks"])
    lost = sum(rank["lost"] for rank in document["ranks"])
    budget = document["budget"]
    worst(f"{ranks} ranks on {HOSTS} hosts, lost", [lost], "records", 1)
    worst("their rings and staging", [budget["memory_bytes"] / HOSTS / 2**20], "MiB a node",
          NODE_BYTES / 2**20)
    worst("their agents, resident", [budget["agent_resident_bytes"] / HOSTS / 2**20], "MiB a node",
          AGENT_BYTES / 2**20)


def main():
    first, *others = task_prolog_ms()
    value_gate("TaskProlog", others, "ms a task", 20)
    worst("TaskProlog, first task of a step, which starts the doorman", [first], "ms", 20)
    idle_service()
    clocks()
    ranks_on_hosts()
    runs = {ranks: measure(ranks) for ranks in RANKS}
    largest = runs[RANKS[-1]]
    nodes = RANKS[-1] // RANKS_PER_NODE
    value_gate(f"assemble {RANKS[-1]} ranks of {nodes} nodes", [r[0] for r in largest], "s", 10)
    value_gate("their CPU time", [r[1] for r in largest], "s", 10)
    value_gate("their peak memory", [r[2] for r in largest], "MiB", 1024)
    growth = RANKS[-1] / RANKS[0]
    ratios = [big[1] / (growth * small[1]) for big, small in zip(largest, runs[RANKS[0]])]
    value_gate(f"CPU time of a rank, {RANKS[-1]} to {RANKS[0]}", ratios, "x", MOST_GROWTH)


if __name__ == "__main__":
    main()
