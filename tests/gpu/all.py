"""Every test of this folder that needs a GPU, where ctest is not: on a machine that AON was carried
to. Prints their output and one line for each; exit 1 when one failed, 77 when none passed whole.

    AON_BUILD=DIR python3 tests/gpu/all.py [NAME ...]     NAME: cupti, nvml, ... (default all)

Needs h5py and numpy in this interpreter. What is skipped is named with its reason.
"""
import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
SUFFIX = "_device_test.py"
VERDICTS = {0: "passed", 77: "skipped, or a part of it"}
LIMIT_S = 300
PR_SET_CHILD_SUBREAPER = 36


def run(script):
    """(exit code, seconds); 124 where it ran too long. What it leaves running is ended: a kernel
    that waits for ever would be part of what the next ones measure."""
    start_s = time.monotonic()
    process = subprocess.Popen([sys.executable, script, "-v"])
    try:
        code = process.wait(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        code = 124
    end_descendants()
    process.wait()
    return code, time.monotonic() - start_s


def end_descendants():
    """Kills all children, also those that come to us from those (main() made us their reaper)."""
    me = pathlib.Path(f"/proc/self/task/{os.getpid()}/children")
    while children := me.read_text().split():
        for pid in children:
            os.kill(int(pid), signal.SIGKILL)
            os.waitpid(int(pid), 0)


def verdict_of(codes):
    """What to exit with: a run in which each was skipped has shown nothing."""
    if not all(code in VERDICTS for code in codes):
        return 1
    return 0 if 0 in codes else 77


def main():
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    names = sys.argv[1:] or sorted(p.name[: -len(SUFFIX)] for p in HERE.glob(f"*{SUFFIX}"))
    lines, codes = [], []
    for name in names:
        print(f"== {name}", flush=True)
        code, seconds = run(HERE / f"{name}{SUFFIX}")
        codes.append(code)
        verdict = VERDICTS.get(code, f"FAILED with {code}")
        lines.append(f"{name}.device: {verdict}, {seconds:.0f} s")
    print("\n".join(lines))
    return verdict_of(codes)


if __name__ == "__main__":
    sys.exit(main())
