"""Assembly: CPU time per OTF2 event record, decoding and HDF5 included, and the memory it takes, at
two lengths: neither may grow with the trace. In shares the combiner's time may not either: how much
longer it takes for four times as many events."""
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
LINE = re.compile(r"(\d+) events, [\d.]+ s, ([\d.]+) s CPU, .* peak (\d+) MiB")


def assembled(records, *more):
    """(ns of CPU per event, peak MiB) of one run; in shares of the combiner."""
    command = [BUILD / "bin" / "bench_assemble", records, LOCATIONS, *more]
    _, _, done = timed_run(command, timeout_s=300)
    found = LINE.search(done.stdout)
    if found is None:
        sys.exit(f"bench: no figures in: {done.stdout}")
    events, cpu_s, peak_mib = int(found[1]), float(found[2]), int(found[3])
    return cpu_s / events * 1e9, peak_mib


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


if __name__ == "__main__":
    main()
