"""Assembly: CPU time per OTF2 event record, decoding and HDF5 included, and the memory it takes, at
two lengths: neither may grow with the trace. In shares the combiner's time may not either: how much
longer it takes for four times as many events. The memory of jobs rich in NCCL, whose operations are
joined to kernels, has the same goal."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from aon_bench import BUILD, timed_run, value_gate  # noqa: E402

LENGTHS = (1_000_000, 4_000_000)  # records of MPI calls
LOCATIONS = 4
RUNS = 8
GOAL_NS = 200  # 5 million events a second on one core
GOAL_MIB = 256
MOST_GROWTH = 1.3
NCCL_LENGTHS = (500_000, 1_000_000, 2_000_000)  # operations of all ranks
NCCL_RANKS = 2
NCCL_RUNS = 5
LINE = re.compile(r"(\d+) events, [\d.]+ s, ([\d.]+) s CPU, .* peak (\d+) MiB.*share (\d+) MiB")


def measured(*words):
    """(ns of CPU per event, peak MiB) of one run; in shares the time is the combiner's, the memory
    that of who takes most."""
    _, _, done = timed_run([BUILD / "bin" / "bench_assemble", *words], timeout_s=300)
    found = LINE.search(done.stdout)
    if found is None:
        sys.exit(f"bench: no figures in: {done.stdout}")
    events, cpu_s = int(found[1]), float(found[2])
    return cpu_s / events * 1e9, max(int(found[3]), int(found[4]))


def assembled(records, *more):
    return measured(records, LOCATIONS, *more)


def report_nccl():
    cases = [(count, ()) for count in NCCL_LENGTHS] + [(NCCL_LENGTHS[-1], (2,))]
    for count, shares in cases:
        runs = [measured("nccl", count, NCCL_RANKS, *shares) for _ in range(NCCL_RUNS)]
        parts = " in two shares" if shares else ""
        name = f"assembly of {count / 1e6:g} M operations of NCCL{parts}"
        if not shares:
            value_gate(f"{name}, speed", [1e3 / cpu_ns for cpu_ns, _ in runs], "M events/s of CPU",
                       None)  # fmt: skip
        value_gate(f"{name}, peak memory", [peak for _, peak in runs], "MiB", GOAL_MIB)


def main():
    for records in LENGTHS:
        runs = [assembled(records) for _ in range(RUNS)]
        name = f"assembly of {records // 1_000_000} M calls"
        value_gate(f"{name}, CPU per event", [cpu_ns for cpu_ns, _ in runs], "ns", GOAL_NS)
        value_gate(f"{name}, peak memory", [peak for _, peak in runs], "MiB", GOAL_MIB)
    growth = []
    for _ in range(RUNS):
        short, long = (records * assembled(records, 4096, 2)[0] for records in LENGTHS)
        growth.append(long / short)
    value_gate("combiner, four times the events", growth, "times the CPU", MOST_GROWTH)
    report_nccl()


if __name__ == "__main__":
    main()
