"""Prints what `with aon.region("halo"): pass` costs, in ns, once per burst: a JSON list. Run by
bench.py under hotpath_run; between bursts the agent gets time to drain."""
import json
import time

import aon

BURSTS = 200
LOOPS = 500


def with_region():
    numbers = range(LOOPS)
    start = time.perf_counter_ns()
    for _ in numbers:
        with aon.region("halo"):
            pass
    return time.perf_counter_ns() - start


def empty():
    numbers = range(LOOPS)
    start = time.perf_counter_ns()
    for _ in numbers:
        pass
    return time.perf_counter_ns() - start


def main():
    assert aon.is_present()
    costs = []
    for _ in range(BURSTS):
        costs.append((with_region() - empty()) / LOOPS)
        time.sleep(0.002)
    print(json.dumps(costs))


if __name__ == "__main__":
    main()
