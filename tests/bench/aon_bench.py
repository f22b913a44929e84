"""What every benchmark shares: interleaved pairs, bootstrap intervals, gates, the machine.

A gate passes when the upper end of the 95 % bootstrap interval is under its goal. An interval that
holds the goal, or is wider than it, is "undecided" after 60 pairs, and that fails too. Nothing is
ever compared with a number from another run. Whether it is decided is asked only after 8, 12, 18,
27, 40 and 60 pairs: who looks after each pair stops at the first lucky one.

A bench is tests/bench/FOLDER/bench.py; scripts/bench runs them all. It prints what it likes for the
reader and one JSON line per row for the table, which `report` writes.
"""
import dataclasses
import json
import os
import pathlib
import platform
import random
import resource
import shutil
import statistics
import subprocess
import sys
import time

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

from aon_test import BUILD, environment, ledger, run  # noqa: E402,F401

LOOKS = (8, 12, 18, 27, 40, 60)  # numbers of pairs
MAX_PAIRS = LOOKS[-1]
MIN_ROUNDS = 5  # fewer are shown and not judged
RESAMPLES = 4000
ROW_MARK = "BENCH-ROW "


@dataclasses.dataclass
class Row:
    """One line of the bench table. `goal` None: printed, not judged."""

    name: str
    value: float
    low: float
    high: float
    unit: str
    goal: float | None = None
    note: str = ""

    @property
    def verdict(self):
        if self.goal is None:
            return "info"
        if self.high - self.low > abs(self.goal):
            return "undecided"
        if self.high < self.goal:
            return "pass"
        return "FAIL" if self.low > self.goal else "undecided"


def report(row):
    """Prints a row for a reader and for scripts/bench."""
    goal = "" if row.goal is None else f"  goal {row.goal:g}"
    interval = f"[{row.low:.4g}, {row.high:.4g}]"
    text = f"{row.name}: {row.value:.4g} {row.unit} {interval}{goal}: {row.verdict}"
    print(f"{text}  {row.note}".rstrip(), flush=True)
    print(ROW_MARK + json.dumps(dataclasses.asdict(row)), flush=True)


def bootstrap(values, statistic=numpy.median):
    """(statistic, low, high) of `values`: a 95 % percentile bootstrap interval."""
    values = numpy.asarray(values, dtype=float)
    generator = numpy.random.default_rng(1)
    picks = generator.integers(0, len(values), size=(RESAMPLES, len(values)))
    resampled = statistic(values[picks], axis=1)
    low, high = numpy.percentile(resampled, [2.5, 97.5])
    return float(statistic(values)), float(low), float(high)


def percent_row(name, pairs, goal, note=""):
    """Row of the paired ratio on/off, as per cent above 1."""
    ratios = [(on / off - 1) * 100 for on, off in pairs]
    value, low, high = bootstrap(ratios)
    spread = statistics.pstdev(ratios)
    return Row(name, value, low, high, "%", goal, f"{len(pairs)} pairs, sd {spread:.2g} {note}")


def interleaved(measure_on, measure_off, decided, max_pairs=MAX_PAIRS):
    """Calls both in turn, in random order within a pair, until decided or at the limit.
    Returns [(on, off)]. The first pair warms up and is dropped."""
    order = random.Random(1)
    pairs = []
    for number in range(max_pairs + 1):
        if order.random() < 0.5:
            on, off = measure_on(), measure_off()
        else:
            off = measure_off()
            on = measure_on()
        if number > 0:
            pairs.append((on, off))
        if len(pairs) in LOOKS and decided(pairs):
            break
    return pairs


def rounds(measures, count):
    """Calls all of `measures` ({name: function}) in turn, in random order within a round. The
    first round warms up and is dropped. Returns {name: [value of each round]}."""
    order = random.Random(1)
    values = {name: [] for name in measures}
    for number in range(count + 1):
        for name in order.sample(list(measures), len(measures)):
            value = measures[name]()
            if number > 0:
                values[name].append(value)
    return values


def medians_text(on, off, unit=""):
    """The medians, their ratio, and the least and the largest ratio of a pair."""
    ratios = [a / b for a, b in zip(on, off)]
    medians = statistics.median(on), statistics.median(off)
    return (
        f"{medians[0]:.5g} over {medians[1]:.5g}{' ' if unit else ''}{unit}: "
        f"{medians[0] / medians[1]:.4f} (pairs {min(ratios):.4f} to {max(ratios):.4f})"
    )


def spread(on, off, unit):
    return f"{len(on)} pairs, {medians_text(on, off, unit)}"


def judged(goal, values):
    return goal if len(values) >= MIN_ROUNDS else None


def ratio_gate(name, on, off, goal, unit="ns"):
    """Reports the median of on/off, values of the same rounds, as per cent above 1."""
    row = percent_row(name, list(zip(on, off)), judged(goal, on))
    row.note = spread(on, off, unit)
    report(row)
    return row


def difference_gate(name, on, off, goal, unit="ns"):
    """Reports the median of on - off, values of the same rounds."""
    more = [a - b for a, b in zip(on, off)]
    row = Row(name, *bootstrap(more), unit, judged(goal, on), spread(on, off, unit))
    report(row)
    return row


def percent_gate(name, measure_on, measure_off, goal, max_pairs=MAX_PAIRS, note="", unit=""):
    """Runs pairs until the ratio is decided against `goal` per cent, reports and returns the
    row, which has the medians of both, in `unit`."""

    def decided(pairs):
        return percent_row(name, pairs, goal).verdict != "undecided"

    pairs = interleaved(measure_on, measure_off, decided, max_pairs)
    on, off = zip(*pairs)
    row = percent_row(name, pairs, goal, f"{medians_text(on, off, unit)} {note}".rstrip())
    report(row)
    return row


def value_gate(name, values, unit, goal, note=""):
    """Reports the median of `values` with its interval against `goal`."""
    row = Row(name, *bootstrap(values), unit, goal, f"{len(values)} runs {note}".rstrip())
    report(row)
    return row


def timed_run(command, **more):
    """Runs `command`; returns (wall seconds, CPU seconds of it and all it waited for, process).
    Ends the bench when the command fails: a failed run has no time."""
    before_s, start_s = _children_cpu_s(), time.monotonic()
    done = run(command, **more)
    wall_s, cpu_s = time.monotonic() - start_s, _children_cpu_s() - before_s
    if done.returncode != 0:
        sys.exit(f"bench: {command} exited {done.returncode}\n{done.stdout}\n{done.stderr}")
    return wall_s, cpu_s, done


def _children_cpu_s():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def machine():
    """One line: processor, cores, memory, kernel, load."""
    cpu = next(
        (l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), "?"
    )
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    version = ""
    if shutil.which("mpirun"):
        version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout
    return (
        f"{cpu}, {os.cpu_count()} cores, {memory_gib:.0f} GiB, Linux {platform.release()}, "
        f"{version.splitlines()[0] if version else 'no mpirun'}, load {os.getloadavg()[0]:.1f}"
    )
