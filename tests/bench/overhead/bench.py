#!/usr/bin/python3
"""Overhead on whole programs: LAMMPS, HPCC, Quantum ESPRESSO, start, memory, Barrier tail,
interruptions, context switches, agent.

    bench.py [NAME ...]      lammps hpcc espresso start memory barrier interruptions
                             switches agent; default all

On and off runs are interleaved (aon_bench.py). The program's own time is compared, not mpirun's:
the launch has a row of its own.
"""
import functools
import os
import pathlib
import re
import shutil
import sys
import tempfile
import time

import h5py
import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import aon_bench as bench  # noqa: E402

HERE = pathlib.Path(__file__).parent
PROBE = bench.BUILD / "bin" / "bench_rank_probe"
INTERRUPTION_PROBE = bench.BUILD / "bin" / "bench_interruption_probe"
SWITCH_PROBE = bench.BUILD / "bin" / "bench_switch_probe"
SCRATCH = pathlib.Path(tempfile.mkdtemp(prefix="aon-bench-"))


def mpirun(rank_count, command, output=None, cwd=SCRATCH):
    """Runs with AON when `output` is given, without otherwise; (wall_s, cpu_s, process)."""
    wrapper = []
    if output is not None:
        shutil.rmtree(output, ignore_errors=True)
        wrapper = ["aon-run", "-o", output, "--"]
    return bench.timed_run(["mpirun", "-n", rank_count, *wrapper, *command], cwd=cwd, timeout_s=300)


def measured_cpu_percent(output, rank_cpu_s):
    """(application-side cost + agent CPU) / CPU of mpirun's children as the kernel counted it."""
    overhead = bench.ledger(output)["overhead"]
    return 100 * (overhead["app_cpu_s"] + overhead["agent_cpu_s"]) / rank_cpu_s


def program_gate(name, command, own_seconds, goal_percent, prepare=None, look=None):
    """Wall ratio by the program's own clock, then the cost as part of the ranks' CPU time. `look`
    sees each job that AON recorded."""
    output, costs = SCRATCH / f"{name}-job", []

    def measure(job):
        if prepare:
            prepare()
        _, cpu_s, done = mpirun(2, command, job)
        if job:
            costs.append(measured_cpu_percent(job, cpu_s))
            if look:
                look(job)
        return own_seconds(done)

    bench.percent_gate(
        f"{name}: wall", lambda: measure(output), lambda: measure(None), goal_percent, unit="s"
    )
    bench.value_gate(f"{name}: CPU cost", costs, "% of the ranks' CPU", goal_percent)
    return output


def lammps():
    def loop_seconds(done):
        return float(re.search(r"Loop time of ([\d.]+)", done.stdout).group(1))

    per_call = []

    def weigh(output):
        size_bytes = sum(p.stat().st_size for p in (output / "spool").rglob("*.aon"))
        per_call.append(size_bytes / mpi_call_count(output))

    command = ["lmp", "-in", HERE / "in.lj", "-log", "none"]
    program_gate("lammps", command, loop_seconds, 1.0, look=weigh)
    bench.value_gate("lammps: spool", per_call, "bytes/call", 6.0)


def mpi_call_count(output):
    with h5py.File(output / "profile.h5") as file:
        names = [n.decode() if isinstance(n, bytes) else n for n in file["regions/name"][()]]
        is_mpi = numpy.array([name.startswith("MPI_") for name in names])
        return int(file["profile/count"][()][is_mpi[file["profile/region"][()]]].sum())


def hpcc():
    """HPCC tells no total time: from before mpirun to the last write of its result file."""
    result, started_ns = SCRATCH / "hpccoutf.txt", [0]

    def prepare():
        shutil.copy(HERE / "hpccinf.txt", SCRATCH)
        result.unlink(missing_ok=True)
        started_ns[0] = time.time_ns()

    def own_seconds(_):
        return (result.stat().st_mtime_ns - started_ns[0]) / 1e9

    program_gate("hpcc", ["hpcc"], own_seconds, 3.0, prepare)


def espresso():
    """Quantum ESPRESSO: Fortran, some 50 000 small calls a second."""

    def own_seconds(done):
        return float(re.search(r"PWSCF +: .* ([\d.]+)s WALL", done.stdout).group(1))

    command = ["env", "OMP_NUM_THREADS=1", "pw.x", "-in", HERE / "si.scf.in"]
    output = program_gate("pw.x", command, own_seconds, 1.0)
    print("pw.x:", mpi_call_count(output), "MPI calls a run")


def probe_lines(done):
    """[[rank, main_ns, init_ns, rss_kib, p50_ns, p999_ns]] of rank_probe."""
    rows = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("probe ")]
    return numpy.array(rows, dtype=float)


def start():
    for rank_count, goal_ms, pairs in ((2, 10.0, 20), (64, 50.0, 30)):

        def start_ms(output, ranks=rank_count, before=()):
            begin_ns = time.time_ns()
            lines = probe_lines(mpirun(ranks, [*before, PROBE, 0], output)[2])
            return numpy.median(lines[:, 1:3] - begin_ns, axis=0) / 1e6

        def compare(on, plain=start_ms, pair_count=pairs):
            """[[[main, init] with, [main, init] without] of each pair], ms."""
            return numpy.array(
                bench.interleaved(on, lambda: plain(None), lambda _: False, pair_count))

        def gate(what, times, goal=None, name=f"start of {rank_count} ranks"):
            bench.difference_gate(f"{name}: {what}", *times.T, goal, "ms")

        # The least that any launcher in between adds: one more program is executed.
        bare = compare(functools.partial(start_ms, None, before=["env"]))
        gate("env alone, to main()", bare[:, :, 0])
        full = compare(functools.partial(start_ms, SCRATCH / "start-job"))
        gate("to main()", full[:, :, 0], goal_ms)
        gate("to the end of MPI_Init", full[:, :, 1])


def memory():
    def resident_mib(output):
        return numpy.median(probe_lines(mpirun(2, [PROBE, 200000], output)[2])[:, 3]) / 1024

    output = SCRATCH / "memory-job"
    samples = bench.interleaved(
        lambda: resident_mib(output), lambda: resident_mib(None), lambda _: False, 8
    )
    bench.difference_gate("resident per rank", *zip(*samples), 12.0, "MiB")
    budget = bench.ledger(output)["budget"]
    ranks = bench.ledger(output)["ranks"]
    print("node memory:", {k: v for k, v in budget.items() if "bytes" in k})
    print("ring memory:", [rank["memory_bytes"] for rank in ranks])


def barrier():
    """As many ranks as cores, spinning: all cores are busy. Some five seconds, so that the first
    one, in which the rings grow and their pages are used for the first time, is no part of one in
    a thousand."""
    ranks = os.cpu_count()

    def tail_ns(output):
        return numpy.max(probe_lines(mpirun(ranks, [PROBE, 12_000_000], output)[2])[:, 5])

    output = SCRATCH / "barrier-job"
    bench.percent_gate(
        "barrier p99.9, all cores busy",
        lambda: tail_ns(output),
        lambda: tail_ns(None),
        20.0,
        unit="ns",
    )


def interruptions():
    """What ranks that only compute, one a core, lose: in which one of them or another is
    interrupted. Nothing is recorded of them: it is what the agent costs when it is idle."""

    def lost_ms_per_s(output):
        done = mpirun(os.cpu_count(), [INTERRUPTION_PROBE, 4], output)[2]
        _, any_ns, spent_ns = map(int, re.search(r"interruptions (.*)", done.stdout)[1].split())
        return 1000 * any_ns / spent_ns

    output = SCRATCH / "interruptions-job"
    pairs = bench.interleaved(
        lambda: lost_ms_per_s(output), lambda: lost_ms_per_s(None), lambda _: False, 12
    )
    on, off = zip(*pairs)
    bench.difference_gate("idle job: time in which a rank is interrupted", on, off, None, "ms/s")


def switches():
    """Two ranks that take turns on one CPU: what being watched adds to a context switch, at first
    and when the budget has seen it."""

    def switch_ns(output):
        done = mpirun(2, [SWITCH_PROBE, 6], output)[2]
        return [float(ns) for ns in re.search(r"switch (.*)", done.stdout)[1].split()]

    output = SCRATCH / "switches-job"
    pairs = bench.interleaved(
        lambda: switch_ns(output), lambda: switch_ns(None), lambda _: False, 5
    )
    for at, moment in enumerate(("at first", "after 5 s")):
        on, off = ([one[at] for one in column] for column in zip(*pairs))
        bench.difference_gate(f"context switch, {moment}", on, off, None, "ns")


def agent():
    """CPU of the agent per event of a run at full rate: drained, encoded, written."""
    values = []
    for _ in range(5):
        output = SCRATCH / "agent-job"
        mpirun(2, [PROBE, 6_000_000], output)
        document = bench.ledger(output)
        event_count = sum(rank["spooled"] for rank in document["ranks"])
        values.append(document["overhead"]["agent_cpu_s"] * 1e9 / event_count)
    bench.value_gate("agent", values, "ns/event", 40.0, f"{event_count} events a run")


PARTS = (lammps, hpcc, espresso, start, memory, barrier, interruptions, switches, agent)
BENCHES = {f.__name__: f for f in PARTS}


def main():
    chosen = sys.argv[1:] or list(BENCHES)
    unknown = [name for name in chosen if name not in BENCHES]
    if unknown:
        sys.exit(f"bench: unknown {unknown}; known: {', '.join(BENCHES)}")
    try:
        for name in chosen:
            BENCHES[name]()
    finally:
        shutil.rmtree(SCRATCH, ignore_errors=True)


if __name__ == "__main__":
    main()
