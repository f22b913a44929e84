"""Blocks of the spool: CPU time and bytes per record of a loop of barriers, of an exchange of
halos, and of one with many requests. Encoding and compressing is the agent's, reading and decoding
the assembly's."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from aon_bench import BUILD, report, Row, timed_run, value_gate  # noqa: E402

RUNS = 9
GOAL_NS = 40  # of the agent's, for all it does to a record
GOAL_BYTES = 6


def main():
    _, _, done = timed_run([
        BUILD / "bin" / "bench_spool", "--benchmark_format=json", "--benchmark_min_time=0.1",
        f"--benchmark_repetitions={RUNS}", "--benchmark_enable_random_interleaving=true",
    ], timeout_s=300)  # fmt: skip
    by_name = {}
    for one in json.loads(done.stdout)["benchmarks"]:
        if one["run_type"] == "iteration":
            by_name.setdefault(one["run_name"], []).append(one)
    for name, runs in by_name.items():
        label = name.replace("<test::", " ").replace("Stream>", "").replace("_", " ")
        is_agents = name.startswith("encode_and_seal")
        cost_ns = [one["ns_per_record"] for one in runs]
        value_gate(f"{label}, per record", cost_ns, "ns", GOAL_NS if is_agents else None)
        if is_agents:
            size = runs[0]["bytes_per_record"]  # the same in each
            report(Row(f"{label}, per record", size, size, size, "bytes", GOAL_BYTES))


if __name__ == "__main__":
    main()
