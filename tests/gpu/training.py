"""Steps of training a small transformer with PyTorch, on a GPU and the same in each run:

    training.py STEPS [off|cuda|all|toggled [TRACE]]

Prints "step_ns N", the median over groups of ten steps that end with waiting for the device, and
"loss X" of the last step. Under torch.profiler from before the first kernel with its records of the
GPU alone (cuda) or with those of operators as well (all); TRACE gets them as a Chrome trace.

toggled, under AON: prints "pair_ns ON OFF ON OFF ...", steps with what AON records of the GPU and
with nothing, in turn: the kinds of CUPTI are the process's.
"""
import contextlib
import ctypes
import os
import statistics
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import torch  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402

GROUP = 10
BLOCK = 2
# Of CUpti_ActivityKind: kernels, copies, sets, waiting, overhead. Calls of CUDA stay on.
KINDS = (10, 1, 22, 2, 38, 17)
BATCH, TOKENS, WIDTH, LAYERS = 32, 128, 512, 4


def repeat_exactly():
    """Fused attention does not add up in the same order each time."""
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True, warn_only=True)
    for name in ("flash", "mem_efficient", "cudnn"):
        enable = getattr(torch.backends.cuda, f"enable_{name}_sdp", None)  # not in all versions
        if enable is not None:
            enable(False)


def prepare():
    """A function that does one step and returns its loss."""
    repeat_exactly()
    layer = torch.nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, dropout=0.0, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, LAYERS).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = torch.randn(BATCH, TOKENS, WIDTH).cuda()
    wanted = torch.randn(BATCH, TOKENS, WIDTH).cuda()

    def step():
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(data), wanted)
        loss.backward()
        optimizer.step()
        return loss

    return step


def train(steps):
    """Prints; the first group warms up where there is another one."""
    step = prepare()
    times_ns = []
    loss = None
    for done in range(0, steps, GROUP):
        count = min(GROUP, steps - done)
        start_ns = time.perf_counter_ns()
        for _ in range(count):
            loss = step()
        torch.cuda.synchronize()
        times_ns.append((time.perf_counter_ns() - start_ns) / count)
    print(f"step_ns {statistics.median(times_ns[1:] or times_ns):.0f}")
    print(f"loss {loss.item():.9g}", flush=True)


def timed(step, count):
    start_ns = time.perf_counter_ns()
    for _ in range(count):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter_ns() - start_ns) / count


def toggle(steps):
    step = prepare()
    cupti = ctypes.CDLL("libcupti.so.13", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    timed(step, GROUP)
    values = []
    for pair in range(steps // (2 * BLOCK)):
        times_ns = {}
        for is_on in (1, 0) if pair % 2 else (0, 1):
            for kind in KINDS:
                if (cupti.cuptiActivityEnable if is_on else cupti.cuptiActivityDisable)(kind) != 0:
                    raise SystemExit(f"CUPTI does not switch kind {kind}")
            times_ns[is_on] = timed(step, BLOCK)
        values += [times_ns[1], times_ns[0]]
    print("pair_ns", *(f"{value:.0f}" for value in values), flush=True)


def main():
    steps = int(sys.argv[1])
    mode = sys.argv[2] if len(sys.argv) > 2 else "off"
    if mode == "toggled":
        return toggle(steps)
    activities = {"cuda": [ProfilerActivity.CUDA],
                  "all": [ProfilerActivity.CPU, ProfilerActivity.CUDA]}.get(mode)  # fmt: skip
    with profile(activities=activities) if activities else contextlib.nullcontext() as profiler:
        train(steps)
    if len(sys.argv) > 3:
        profiler.export_chrome_trace(sys.argv[3])
    return None


if __name__ == "__main__":
    main()
