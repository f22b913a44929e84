#!/usr/bin/python3
"""Cost of one event on the hot path: pair, single, counted, paused; beside LTTng-UST.

All rows are differences or ratios of times taken in the same process and repetition (T is what one
rdtsc takes there), so they hold on another machine; only moments count in which no other
hyperthread works on the core (hotpath_bench.cpp).
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from aon_bench import BUILD, value_gate  # noqa: E402

REPETITIONS = 60
BIN = pathlib.Path(BUILD) / "bin"
LIB = pathlib.Path(BUILD) / "lib"
FOLDER = pathlib.Path(__file__).resolve().parent


def measure(preload, names):
    """({name: [ns of each repetition]}, [share of undisturbed bursts of each]); repetition i of all
    names belongs together."""
    times = {name: [] for name in names}
    shares = []
    pattern = "^run_function/(" + "|".join(names) + ")(/|$)"
    command = [
        BIN / "hotpath_run",
        BIN / "hotpath_bench",
        f"--benchmark_filter={pattern}",
        f"--benchmark_repetitions={REPETITIONS}",
        "--benchmark_enable_random_interleaving=true",
        "--benchmark_format=json",
    ]
    done = subprocess.run(
        command,
        env={
            **os.environ,
            "HOTPATH_PRELOAD": str(preload),
            "NVTX_INJECTION64_PATH": str(LIB / "libaon-nvtx.so"),
        },
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode != 0:
        sys.exit(f"hotpath: the benchmark exited {done.returncode}")
    for row in json.loads(done.stdout)["benchmarks"]:
        if row["run_type"] == "iteration":
            times[row["name"].split("/")[1]].append(row["real_time"])
            shares.append(row["undisturbed"] * 100)
    return times, shares


def measure_python():
    """Nanoseconds of `with aon.region("halo"): pass` less those of the loop around it."""
    if not list((LIB / "aon" / "python" / "aon").glob("_aon*.so")):
        sys.exit("hotpath: no python3-dev: the Python module is not built")
    done = subprocess.run(
        [BIN / "hotpath_run", "/usr/bin/python3", "-B", FOLDER / "with_region.py"],
        env={
            **os.environ,
            "HOTPATH_PRELOAD": str(LIB / "libaon.so"),
            "PYTHONPATH": str(LIB / "aon" / "python"),
        },
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode != 0:
        sys.exit(f"hotpath: with_region.py exited {done.returncode}")
    return json.loads(done.stdout)


def report_what_hides():
    """What hides behind a read of the clock (docs/decisions/020-clock-of-intel.md)."""
    done = subprocess.run([BIN / "hotpath_clock_hides"], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"hotpath: hotpath_clock_hides exited {done.returncode}")
    for case, ns in json.loads(done.stdout).items():
        value_gate(f"{case}: alone", ns["alone"], "ns", None)
        value_gate(f"{case}: added to two reads", ns["added"], "ns", None)
        shares = [added / alone * 100 for added, alone in zip(ns["added"], ns["alone"])]
        value_gate(f"{case}: what of it does not hide", shares, "%", None)


class LttngSession:
    """A session daemon and a per-UID session in discard mode, in a folder of their own."""

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="aon-lttng-"))
        self.environment = {**os.environ, "LTTNG_HOME": str(self.folder)}
        self.daemon = subprocess.Popen(
            ["lttng-sessiond", "--no-kernel", "--sig-parent", "--quiet"],
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.command("create", "aon-bench", f"--output={self.folder}/trace", attempts=50)
        self.command(
            "enable-channel", "--userspace", "--buffers-uid", "--discard",
            "--subbuf-size=1M", "--num-subbuf=16", "channel",
        )  # fmt: skip
        self.command("enable-event", "--userspace", "--channel=channel", "aon_bench:*")
        self.command("start")
        return self

    def command(self, *arguments, attempts=1):
        """Runs lttng; tries again while the daemon starts."""
        for left in range(attempts, 0, -1):
            done = subprocess.run(
                ["lttng", "--no-sessiond", *arguments],
                env=self.environment,
                capture_output=True,
                text=True,
            )
            if done.returncode == 0:
                return
            if left > 1:
                subprocess.run(["sleep", "0.1"])
        sys.exit(f"hotpath: lttng {arguments[0]}: {done.stdout}{done.stderr}")

    def __exit__(self, *_):
        self.command("stop")
        self.command("destroy", "aon-bench")
        self.daemon.terminate()
        self.daemon.wait(timeout=20)
        shutil.rmtree(self.folder, ignore_errors=True)


def main():
    wrappers = LIB / "libhotpath_wrappers.so"
    names = ["plain", "forward", "clock", "recorded", "counted", "sampled", "paused"]
    names += ["clock_read", "event", "region", "no_region", "nvtx"]
    own, undisturbed = measure(wrappers, names)

    def difference(what, base, factor=1):
        return [a - factor * b for a, b in zip(own[what], own[base])]

    value_gate("hot path: bursts on an undisturbed core", undisturbed, "%", None)
    for name, values in own.items():
        value_gate(f"hot path: {name}", values, "ns", None)
    report_what_hides()
    value_gate("event pair above 2 T(rdtsc)", difference("recorded", "clock_read", 2), "ns", 3)
    value_gate("single event above T(rdtsc)", difference("event", "clock_read"), "ns", 2)
    value_gate("counted only above forwarding", difference("counted", "forward"), "ns", 1)
    value_gate("paused above forwarding", difference("paused", "forward"), "ns", 1)
    value_gate("region pair above the event pair", difference("region", "recorded"), "ns", 3)
    value_gate("NVTX push and pop above the event pair", difference("nvtx", "recorded"), "ns", 8)
    value_gate("region pair without AON", own["no_region"], "ns", 1)
    value_gate("Python: with aon.region()", measure_python(), "ns", 400)

    if not (LIB / "libhotpath_lttng.so").exists() or shutil.which("lttng-sessiond") is None:
        sys.exit("hotpath: LTTng-UST is not installed; its row cannot be measured")
    with LttngSession():
        both, _ = measure(f"{wrappers}:{LIB}/libhotpath_lttng.so", ["recorded", "lttng"])
    value_gate("hot path: LTTng-UST, two tracepoints", both["lttng"], "ns", None)
    shares = [a / b for a, b in zip(both["recorded"], both["lttng"])]
    value_gate("cost beside LTTng-UST, same payload", shares, "of it", 0.2, "a fifth or less")


if __name__ == "__main__":
    main()
