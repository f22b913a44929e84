"""What the scripts for a machine with a GPU share: whether there is one, what may be missing on it,
where libraries and PyTorch are, and what AON has of a run.

A script is skipped only for what NAMED has, or where there is no GPU, PyTorch, NCCL or mpirun.
Whatever else keeps a provider from working is a failure, told as the ledger has it.
"""
import ctypes
import glob
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from aon_test import BUILD, SKIPPED, environment, run  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
BUSY = BUILD / "bin" / "gpu_busy"
LAUNCHES = BUILD / "bin" / "gpu_launches"
TRAINING = HERE / "training.py"
# Words of the ledger for what a machine may lack: of plugins/cupti and plugins/gpu_counters.
NAMED = {
    "cupti": ("no libcupti.so.13 or libcupti.so.12 was found", "another client holds CUPTI"),
    "gpu-counters": ("libcupti.so is not found", "counters are for administrators only",
                     "the counters are in use by another profiler",
                     "may read the counters of another GPU than it is asked for"),
}  # fmt: skip
GPM_NAMED = "no permission"
HOPPER = 90  # the first with GPM
CUPTI_PLACES = ("/usr/local/cuda*/extras/CUPTI/lib64", "/usr/local/cuda*/lib64",
                "/usr/local/cuda*/targets/*/lib", "{site}/nvidia/cu1*/lib",
                "{site}/nvidia/cuda_cupti/lib")  # fmt: skip
NCCL = "libnccl.so.2"
NCCL_PLACES = ("/usr/local/cuda*/lib64", "/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/local/lib",
               "{site}/nvidia/nccl/lib")  # fmt: skip


def told(state):
    """A provider's state as one line."""
    return " - ".join(state[key] for key in ("state", "reason", "remedy") if state.get(key))


def named_reason(provider, state):
    """The words of NAMED that the provider is off for; None: it is not, or for something else."""
    if state["state"] != "off":
        return None
    return next((words for words in NAMED.get(provider, ()) if words in state["reason"]), None)


def need(provider, state):
    """Goes on where the provider works; skips for a named reason, fails for any other."""
    print(f"{provider}: {told(state)}", flush=True)
    if state["state"] in ("on", "degraded"):
        return
    if named_reason(provider, state) is not None:
        raise unittest.SkipTest(f"{provider}: {told(state)}")
    raise AssertionError(f"{provider}: {told(state)}")


def need_gpm(state, capability):
    """Called where the GPU has no series of GPM: skips before Hopper and without permission."""
    if capability < HOPPER:
        raise unittest.SkipTest(f"no GPM before Hopper: this GPU is {capability / 10:.1f}")
    if "GPM" in state["reason"] and GPM_NAMED in state["reason"]:
        raise unittest.SkipTest(f"nvml: {told(state)}")
    raise AssertionError(f"no GPM on a GPU of {capability / 10:.1f}: {told(state)}")


def device_problem():
    """None: there is a GPU that works; else why there is none. Ends the script where there is one
    that does not work."""
    done = run([BUSY])
    if done.returncode == SKIPPED:
        return done.stdout.strip()
    if done.returncode != 0:
        sys.exit(f"{BUSY.name} exited {done.returncode}: {done.stdout}{done.stderr}")
    return None


def skip_without_device():
    if problem := device_problem():
        print(f"skipped: {problem}")
        sys.exit(SKIPPED)


def site_folders():
    """Where Python's packages are: of this interpreter and of the one on the PATH."""
    folders = list(sys.path)
    done = subprocess.run([shutil.which("python3") or sys.executable, "-c",
                           "import sys; print(*sys.path, sep='\\n')"],
                          capture_output=True, text=True)  # fmt: skip
    return [f for f in dict.fromkeys(folders + done.stdout.split("\n")) if f.endswith("-packages")]


def find(names, places):
    """The first file with one of `names`, in their order, below `places`; None: nowhere."""
    folders = [place.format(site=site) for place in places
               for site in (site_folders() if "{site}" in place else [""])]  # fmt: skip
    found = [path for name in names for folder in folders for path in glob.glob(f"{folder}/{name}")]
    return found[0] if found else None


def is_loadable(name):
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def gpu_environment(**changes):
    """environment() in which programs without a libcupti of their own find one, if it is there."""
    names = ("libcupti.so.13", "libcupti.so.12")
    path = None if any(map(is_loadable, names)) else find(names, CUPTI_PLACES)
    if path is not None:
        folders = [str(pathlib.Path(path).parent), os.environ.get("LD_LIBRARY_PATH")]
        changes["LD_LIBRARY_PATH"] = ":".join(filter(None, folders))
    return environment(**changes)


def torch_python():
    """(interpreter with a PyTorch that uses CUDA, ""), or (None, why there is none)."""
    names = (os.environ.get("AON_TORCH_PYTHON"), shutil.which("python3"), sys.executable)
    why = "no PyTorch: AON_TORCH_PYTHON names an interpreter that has it"
    for name in dict.fromkeys(filter(None, names)):
        done = run([name, "-c", "import torch; print(torch.version.cuda)"])
        if done.returncode == 0 and done.stdout.strip() != "None":
            return name, ""
        if done.returncode == 0:
            why = f"PyTorch of {name} is built without CUDA"
    return None, why


def mpirun_problem():
    """None, or why ranks cannot be started as these scripts do it."""
    if shutil.which("mpirun") is None:
        return "no mpirun"
    said = run(["mpirun", "--version"]).stdout
    if "Open MPI" not in said and "OpenRTE" not in said:
        return f"mpirun is not Open MPI's: {said.strip()[:60]}"
    return None


def nccl_problem():
    """None, or what a job of NCCL lacks here."""
    if why := mpirun_problem():
        return why
    return None if nccl_library() else f"no {NCCL}: install NVIDIA's libnccl2"


def nccl_library():
    """As the loader finds it (of a module, say), or where packages put it; None: nowhere."""
    return NCCL if is_loadable(NCCL) else find((NCCL,), NCCL_PLACES)


def nccl_words(ranks, folder, case, count, aon=()):
    """Words of a job of nccl_ranks.py, under those of `aon`; `folder` gets the id of NCCL."""
    ids = pathlib.Path(folder) / f"{case}.id"
    ids.unlink(missing_ok=True)
    # Bound to one core, a rank that waits for the GPU keeps its own proxy thread from running.
    return ["mpirun", "--bind-to", "none", "--oversubscribe", "-n", ranks, *aon, sys.executable,
            HERE / "nccl_ranks.py", nccl_library(), ids, case, count]  # fmt: skip


def numbers(text):
    """{"launched": 12.0, ...}: the lines of two words of a program, the last of each name."""
    pairs = [line.split() for line in text.splitlines()]
    return {words[0]: float(words[1]) for words in pairs if len(words) == 2}


def kernels(output):
    """{name: (count, total_ns)} of /gpu/kernels, all processes and devices together."""
    result = {}
    with h5py.File(pathlib.Path(output) / "profile.h5") as file:
        table = file["gpu/kernels"]
        for name, count, ns in zip(table["name"].asstr()[:], table["count"][:],
                                   table["total_ns"][:]):  # fmt: skip
            before = result.get(name, (0, 0))
            result[name] = (before[0] + int(count), before[1] + int(ns))
    return result
