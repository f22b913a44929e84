#!/usr/bin/python3
"""One million distinct addresses of libLLVM named: seconds and peak memory against their goals; and
lines with inlined functions of 10 000 addresses of a program with much debug information (ours)."""
import glob
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from aon_bench import BUILD, value_gate  # noqa: E402

RUNS = 7
PROGRAM = pathlib.Path(BUILD) / "bin" / "bench_symbols"


def measure(*arguments):
    """[(seconds, MiB, CPU seconds)] of the runs; the last line printed for the reader."""
    results = []
    for _ in range(RUNS):
        command = [PROGRAM, *arguments]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        words = text.split()
        results.append((float(words[0]), float(words[2]), float(words[4])))
    print(f"{arguments[0]}: {text.strip()}", flush=True)
    return results


def main():
    libraries = sorted(glob.glob("/usr/lib/llvm-*/lib/libLLVM-*.so.1"))
    if not libraries:
        sys.exit("bench: no libLLVM here: scripts/setup installs it")
    named = measure(libraries[0], "1000000")
    value_gate("name 1 M addresses of libLLVM", [run[0] for run in named], "s", 5)
    value_gate("their peak memory, both processes", [run[1] for run in named], "MiB", 1024)
    value_gate("their CPU time, both processes", [run[2] for run in named], "s", None)
    lines = measure(str(pathlib.Path(BUILD) / "bin" / "aon"), "10000", "lines")
    value_gate("lines of 10 000 addresses of aon", [run[0] for run in lines], "s", 5)
    value_gate("their peak memory, both processes", [run[1] for run in lines], "MiB", 1024)


if __name__ == "__main__":
    main()
