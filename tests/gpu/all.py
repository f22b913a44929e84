"""Every test of this folder that needs a GPU, where ctest is not: on a machine that AON was carried
to. Prints their output and one line for each; exit 1 when one failed.

    AON_BUILD=DIR python3 tests/gpu/all.py [NAME ...]     NAME: cupti, nvml, ... (default all)

Needs h5py and numpy in this interpreter. What is skipped is named with its reason.
"""
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
SUFFIX = "_device_test.py"
VERDICTS = {0: "passed", 77: "skipped, or a part of it"}
LIMIT_S = 300


def run(script):
    """(exit code, seconds); 124 where it ran too long."""
    start_s = time.monotonic()
    try:
        code = subprocess.run([sys.executable, script, "-v"], timeout=LIMIT_S).returncode
    except subprocess.TimeoutExpired:
        code = 124
    return code, time.monotonic() - start_s


def main():
    names = sys.argv[1:] or sorted(p.name[: -len(SUFFIX)] for p in HERE.glob(f"*{SUFFIX}"))
    lines, codes = [], []
    for name in names:
        print(f"== {name}", flush=True)
        code, seconds = run(HERE / f"{name}{SUFFIX}")
        codes.append(code)
        verdict = VERDICTS.get(code, f"FAILED with {code}")
        lines.append(f"{name}.device: {verdict}, {seconds:.0f} s")
    print("\n".join(lines))
    return 0 if all(code in VERDICTS for code in codes) else 1


if __name__ == "__main__":
    sys.exit(main())
