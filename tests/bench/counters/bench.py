#!/usr/bin/python3
"""Reading four counters at one border of a call: the protocol alone, and with rdpmc where there is
a PMU that programs may read. Without one that row is skipped and the output counts it."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from aon_bench import BUILD, Row, bootstrap, report, run  # noqa: E402

PROGRAM = BUILD / "bin" / "counters_bench"
SKIPPED = 77
GOAL_NS = 200


def measure(mode):
    """(values, "") or (None, reason)."""
    done = run([PROGRAM, mode])
    if done.returncode == SKIPPED:
        return None, done.stdout.strip().removeprefix("skipped: ")
    if done.returncode != 0:
        sys.exit(f"counters: {mode}: {done.stderr}")
    return [float(line) for line in done.stdout.split()], ""


def main():
    skipped = 0
    for mode, name, goal in (
        ("made", "4 counters, made pages, no rdpmc", None),
        ("pmu", "4 counters read by rdpmc", GOAL_NS),
    ):
        values, reason = measure(mode)
        if values is None:
            skipped += 1
            print(f"{name}: skipped: {reason}")
            continue
        report(Row(name, *bootstrap(values), "ns", goal))
    print(f"counters: {skipped} skipped")


if __name__ == "__main__":
    main()
