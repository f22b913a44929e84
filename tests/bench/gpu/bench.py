#!/usr/bin/python3
"""What AON costs on a real GPU; runs with and without it take turns (aon_bench.rounds).

    bench.py [--rounds N] [--seconds S] [NAME ...]     launches loop graphs training nccl
                                                       subscription recording attached
                                                       parts

launches: a launch of an empty kernel, everything recorded. loop: empty kernels without a pause,
under the budget, from 5 s on: what was too dear is switched off by then. graphs: replays. training:
steps of PyTorch, beside torch.profiler. nccl: AllReduce of two ranks, each level in turn with
nothing in blocks of one process, so --rounds are short. subscription: what a client of CUPTI
costs that does nothing, AON or another; before and behind it in one process. recording: steps of
PyTorch with work recorded and not, in turn in one process. attached: the loop with a CUPTI that
records nothing any more, and without one. parts: training with all but one provider. What a machine
lacks is said and skipped (77). `tests/gpu/device.py` says where libraries are looked for.
"""
import argparse
import atexit
import functools
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "gpu"))

import aon_bench as bench  # noqa: E402
import device  # noqa: E402
from aon_test import environment  # noqa: E402

CALL_GOAL_NS = 1000
LOOP_GOAL_PERCENT = 2
STEP_GOAL_PERCENT = 1
ROUNDS = 10
SECONDS = 4
WARM_S = 5
OFF_S = 14
BURSTS = 200
NODES = 100
STEPS = 100
PAIRS_PER_ROUND = 20
NCCL_GOAL_PERCENT = 1
TOGGLE = device.BUILD / "lib" / "fake_nccl" / "libnccl-profiler-toggle.so"
LEVELS = ("api", "gpu", "net", "step")
SCRATCH = pathlib.Path(tempfile.mkdtemp(prefix="aon-bench-"))
atexit.register(shutil.rmtree, SCRATCH, ignore_errors=True)
EVERYTHING = ("--budget", "100")


class Missing(Exception):
    """What a part needs and the machine has not."""


def job():
    return SCRATCH / "job"


def aon(*options):
    """Words before a program that is recorded; its files are not made, which takes no turn."""
    return ["aon-run", "-o", job(), "--no-assemble", *options, "--"]


def measure(words, wrapper=(), env=None):
    """{name: number} that the program prints."""
    shutil.rmtree(job(), ignore_errors=True)
    _, _, done = bench.timed_run([*wrapper, *words], env=env, timeout_s=300)
    return device.numbers(done.stdout)


def compare(variants, count):
    """{variant: {name: [value of each round]}}. `variants`: {variant: function}."""
    values = bench.rounds(variants, count)
    return {variant: {name: [run[name] for run in runs] for name in runs[0]}
            for variant, runs in values.items()}  # fmt: skip


def tell_state(variants, provider="cupti"):
    """Prints what the ledger says in one more run of each; not recorded at all is an error."""
    for name, variant in variants.items():
        variant()
        if not job().exists():
            continue
        bench.run(["aon", "finalize", "--quiet", job()])
        state = bench.ledger(job())["ranks"][0]["providers"][provider]
        print(f"{name}: {provider} {device.told(state)}", flush=True)
        if device.named_reason(provider, state):
            raise Missing(device.told(state))
        if state["state"] == "off":
            sys.exit(f"bench: {provider} does not work")


def programs(words, wrappers, **variables):
    """{variant: function} of a program without a Python of its own."""
    return {name: functools.partial(measure, words, wrapper,
                                    device.gpu_environment(**{**variables, **more}))
            for name, (wrapper, more) in wrappers.items()}  # fmt: skip


def launches(options):
    variants = programs([device.LAUNCHES, "launch", BURSTS],
                        {"off": ((), {}), "on": (aon(*EVERYTHING), {})})
    tell_state(variants)
    found = compare(variants, options.rounds)
    on, off = found["on"], found["off"]
    bench.difference_gate("empty kernel: a launch", on["call_ns"], off["call_ns"], CALL_GOAL_NS)
    bench.ratio_gate("empty kernel: launches and waiting", on["loop_ns"], off["loop_ns"], None)


def loop(options):
    variants = programs([device.LAUNCHES, "loop", min(WARM_S, 2 * options.seconds),
                         options.seconds], {"off": ((), {}), "on": (aon(), {})})  # fmt: skip
    tell_state(variants)
    found = compare(variants, options.rounds)
    on, off = found["on"], found["off"]
    bench.ratio_gate("launch loop, budget engaged", on["loop_ns"], off["loop_ns"],
                     LOOP_GOAL_PERCENT)  # fmt: skip
    bench.ratio_gate("launch loop, its first seconds", on["warm_loop_ns"], off["warm_loop_ns"],
                     None)  # fmt: skip


def graphs(options):
    variants = programs([device.LAUNCHES, "graph", BURSTS, NODES], {
        "off": ((), {}),
        "as one": (aon(*EVERYTHING), {"AON_CUPTI_GRAPH": "graph"}),
        "node by node": (aon(*EVERYTHING), {"AON_CUPTI_GRAPH": "node"}),
    })  # fmt: skip
    tell_state(variants)
    found = compare(variants, options.rounds)
    off = found["off"]
    for name, goal in (("as one", CALL_GOAL_NS), ("node by node", None)):
        what = f"graph of {NODES}, {name}"
        bench.difference_gate(f"{what}: a launch", found[name]["call_ns"], off["call_ns"], goal)
        bench.ratio_gate(f"{what}: replay", found[name]["loop_ns"], off["loop_ns"], None)


def training(options):
    python, why = device.torch_python()
    if python is None:
        raise Missing(why)
    step = [python, device.TRAINING, STEPS]
    recorded = {"AON": functools.partial(measure, step, aon()),
                "AON, no budget": functools.partial(measure, step, aon(*EVERYTHING))}
    others = {"off": functools.partial(measure, step),
              "torch.profiler": functools.partial(measure, [*step, "all"]),
              "torch.profiler, GPU alone": functools.partial(measure, [*step, "cuda"])}
    tell_state(recorded)
    found = compare({**recorded, **others}, options.rounds)
    off = found.pop("off")
    for name, values in found.items():
        goal = STEP_GOAL_PERCENT if name == "AON" else None
        bench.ratio_gate(f"training step: {name}", values["step_ns"], off["step_ns"], goal)
        if values["loss"] != off["loss"]:
            print(f"training: {name} computes another loss: {values['loss']}, {off['loss']}")


def nccl(options):
    if why := device.nccl_problem():
        raise Missing(why)

    def measure_level(level, pairs):
        """{name: (values with the level, values with nothing)}"""
        shutil.rmtree(job(), ignore_errors=True)
        wrapper = aon(*EVERYTHING, "--without", "cupti", "--nccl-level", level)
        words = device.nccl_words(2, SCRATCH, "times", pairs, wrapper)
        _, _, done = bench.timed_run(words, env=environment(AON_TOGGLE=TOGGLE), timeout_s=300)
        names = re.findall(r"^(?:all_reduce|call)_\d+", done.stdout, re.MULTILINE)
        return {name: columns(done, name) for name in names}

    tell_state({level: functools.partial(measure_level, level, 1) for level in LEVELS}, "nccl")
    for level in LEVELS:
        found = measure_level(level, PAIRS_PER_ROUND * options.rounds)
        all_on, all_off = [], []
        for name, (on, off) in found.items():
            what, size = name.rsplit("_", 1)
            label = f"AllReduce of {int(size) // 1024} KiB, level {level}"
            if what == "call":
                bench.difference_gate(f"{label}: the call", on, off, None)
                continue
            bench.ratio_gate(label, on, off, None)
            all_on += on
            all_off += off
        goal = NCCL_GOAL_PERCENT if level == "api" else None
        bench.ratio_gate(f"AllReduce of all sizes, level {level}", all_on, all_off, goal)


def subscription(options):
    words = [device.LAUNCHES, "subscribe", BURSTS]
    found = compare(programs(words, {"plain": ((), {})}), options.rounds)["plain"]
    for what, name in (("a launch", "call_ns"), (f"graph of {NODES}: a launch", "graph_call_ns")):
        on, off = found[f"subscribed_{name}"], found[name]
        bench.difference_gate(f"CUPTI subscribed, {what}", on, off, None)
    bench.ratio_gate("CUPTI subscribed, launches and waiting", found["subscribed_loop_ns"],
                     found["loop_ns"], None)  # fmt: skip
    bench.ratio_gate(f"CUPTI subscribed, graph of {NODES}: replay",
                     found["subscribed_graph_loop_ns"], found["graph_loop_ns"], None)  # fmt: skip


def columns(done, name):
    """(values at even places, at odd places) of the line that begins with `name`."""
    lines = [line.split() for line in done.stdout.splitlines()]
    values = next(([float(v) for v in w[1:]] for w in lines if w[:1] == [name]), None)
    if not values:
        sys.exit(f"bench: no {name} in: {done.stdout}")
    return values[::2], values[1::2]


def recording(options):
    python, why = device.torch_python()
    if python is None:
        raise Missing(why)
    shutil.rmtree(job(), ignore_errors=True)
    words = [*aon(*EVERYTHING), python, device.TRAINING, STEPS * options.rounds, "toggled"]
    _, _, done = bench.timed_run(words, timeout_s=300)
    bench.ratio_gate("training step, work recorded", *columns(done, "pair_ns"), None)


def attached(options):
    """After OFF_S nothing is recorded: the budget is a tenth of a thousandth."""
    words = [device.LAUNCHES, "loop", min(OFF_S, 4 * options.seconds), options.seconds]
    variants = programs(words, {"off": ((), {}),
                                "nothing recorded": (aon("--budget", "0.01"), {}),
                                "without CUPTI": (aon("--without", "cupti"), {})})  # fmt: skip
    found = compare(variants, options.rounds)
    off = found.pop("off")
    for name, values in found.items():
        bench.ratio_gate(f"launch loop, {name}", values["loop_ns"], off["loop_ns"], None)


def parts(options):
    python, why = device.torch_python()
    if python is None:
        raise Missing(why)
    step = [python, device.TRAINING, STEPS]
    variants = {f"without {name}": functools.partial(
                    measure, step, aon(*EVERYTHING, "--without", name))
                for name in ("cupti", "nvml", "sampling", "perf")}  # fmt: skip
    found = compare({**variants, "off": functools.partial(measure, step)}, options.rounds)
    off = found.pop("off")
    for name, values in found.items():
        bench.ratio_gate(f"training step, {name}", values["step_ns"], off["step_ns"], None)


PARTS = {f.__name__: f for f in (launches, loop, graphs, training, nccl,
                                 subscription, recording, attached, parts)}


def gpu_machine():
    query = ["nvidia-smi", "--query-gpu=name,driver_version,clocks.max.sm", "--format=csv,noheader"]
    try:
        told = subprocess.run(query, capture_output=True, text=True, timeout=60).stdout
    except OSError:
        told = ""
    return "; ".join(told.splitlines()) or "a GPU that nvidia-smi does not tell of"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    options = parser.parse_args()
    if problem := device.device_problem():
        print(f"skipped: {problem}")
        return device.SKIPPED
    print(f"{bench.machine()}\n{gpu_machine()}", flush=True)
    is_whole = True
    for name in options.parts or PARTS:
        try:
            PARTS[name](options)
        except Missing as why:
            print(f"skipped: {name}: {why}", flush=True)
            is_whole = False
    return 0 if is_whole else device.SKIPPED


if __name__ == "__main__":
    sys.exit(main())
