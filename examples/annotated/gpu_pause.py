"""gpu_pause: steps on a GPU, one of which leaves CUPTI to another profiler, such as torch.profiler.

Run:  PYTHONPATH=$(aon --python-path) aon-run --cupti-mode yield python3 gpu_pause.py
"""
import ctypes

import aon

STEPS = 5
OTHERS_STEP = 2
BYTES = 1 << 20


class Gpu:
    """As much of CUDA's driver as this needs."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        self.memory = ctypes.c_uint64()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)
        self.call("cuMemAlloc_v2", ctypes.byref(self.memory), ctypes.c_size_t(BYTES))

    def call(self, name, *arguments):
        error = getattr(self.cuda, name)(*arguments)
        if error != 0:
            raise RuntimeError(f"{name}: error {error}")

    def clear(self):
        zero = ctypes.c_ubyte(0)
        self.call("cuMemsetD8Async", self.memory, zero, ctypes.c_size_t(BYTES), None)
        self.call("cuCtxSynchronize")


def main():
    gpu = Gpu()
    for step in aon.steps(range(STEPS)):
        if step == OTHERS_STEP:
            with aon.gpu_paused() as is_free:  # in it: with torch.profiler.profile(): ...
                gpu.clear()
            print("CUPTI was free" if is_free else "CUPTI was AON's")
        else:
            gpu.clear()


if __name__ == "__main__":
    main()
