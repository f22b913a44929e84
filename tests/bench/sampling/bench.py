#!/usr/bin/python3
"""What call-path samples cost: CPU time of a busy rank at 97 Hz against none, and bytes on disk for
a sample of a path of more than 20 frames.

Both runs of a pair are under aon-run and do the same work: only --sampling differs. The rank's own
CPU clock is compared, which holds the interrupts and nothing of the agent.
"""
import pathlib
import shutil
import sys
import tempfile

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import aon_bench as bench  # noqa: E402

DEEP = bench.BUILD / "bin" / "bench_deep"
SCRATCH = pathlib.Path(tempfile.mkdtemp(prefix="aon-bench-"))
TURNS = 60000


def measure(rate_hz, turns=TURNS, name="job"):
    output = SCRATCH / name
    shutil.rmtree(output, ignore_errors=True)
    command = ["mpirun", "-n", 1, "aon-run", "-o", output, "--budget", 100]
    command += ["--sampling", rate_hz, "--", DEEP, turns]
    _, _, done = bench.timed_run(command, timeout_s=300)
    return float(done.stdout.split()[0]), output


def spool_bytes(output):
    return sum(p.stat().st_size for p in (output / "spool").rglob("*.aon"))


def sample_count(output):
    with h5py.File(output / "profile.h5") as file:
        return int(file["samples/count"][:].sum())


def main():
    bench.percent_gate(
        "sampling: 97 Hz, CPU of a busy rank",
        lambda: measure(97)[0],
        lambda: measure(0)[0],
        0.3,
    )
    # As many samples as a minute has, so that what a job costs once does not count.
    _, without = measure(0, name="without")
    _, sampled = measure(4999, name="with")
    samples = sample_count(sampled)
    per_sample = (spool_bytes(sampled) - spool_bytes(without)) / samples
    note = f"{samples} samples of paths of more than 20 frames"
    bench.value_gate("sampling: spool", [per_sample] * 2, "bytes/sample", 24.0, note)


if __name__ == "__main__":
    try:
        main()
    finally:
        shutil.rmtree(SCRATCH, ignore_errors=True)
